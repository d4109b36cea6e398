"""A Kafka cluster inside of this process, for tests, demos and simulation. See `EmbeddedCluster`."""

from kclient.embedded.cluster import EmbeddedCluster
from kclient.embedded.listener import Listener
from kclient.embedded.oauth import OAuthValidator
from kclient.embedded.observer import Observer
from kclient.records.writer import NewRecord

__all__ = ["EmbeddedCluster", "Listener", "NewRecord", "OAuthValidator", "Observer"]
