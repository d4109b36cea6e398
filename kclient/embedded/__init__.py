"""A Kafka cluster inside of this process, for tests, demos and simulation. See `EmbeddedCluster`."""

from kclient.embedded.cluster import EmbeddedCluster

__all__ = ["EmbeddedCluster"]
