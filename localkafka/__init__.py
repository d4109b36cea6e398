"""A real Apache Kafka on loopback, started from the jars of its release, for tests, demo and benchmarks.

    with KafkaCluster("4.3.1", nodes=3) as kafka:
        kafka.create_topic("flights", partitions=6)
        kafka.kill(kafka.coordinator_of("delays"))

It needs Java 17 and, the first time, mvn. Nothing here imports kclient: what judges the client must not be made of it.
"""

from __future__ import annotations

from localkafka.cluster import KafkaCluster
from localkafka.command_line import CommittedOffset
from localkafka.errors import LocalKafkaError
from localkafka.jars import unavailable

__all__ = ["CommittedOffset", "KafkaCluster", "LocalKafkaError", "unavailable"]
