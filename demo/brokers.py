"""The brokers of the demo, three embedded ones or three of a real Apache Kafka. One of them is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import attrs

from kclient.embedded import EmbeddedCluster
from kclient.group import lag
from localkafka import KafkaCluster

BROKERS: Final = 3
REPLICAS: Final = 3


@attrs.frozen
class Killed:
    """Which broker is gone, and what became of what it led."""

    node: int
    description: str


class Brokers(Protocol):
    """What the demo wants of a cluster."""

    name: str

    @property
    def servers(self) -> str:
        """Where clients begin."""

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic on all brokers that keeps records whatever their age."""

    def kill_coordinator(self, group: str, topic: str, partitions: int) -> Killed:
        """Kill the broker that coordinates a group."""

    def committed(self, group: str) -> int:
        """The sum of the committed offsets of a group."""

    def lag(self, group: str, topic: str) -> int:
        """What a lag tool says of a group: all that is not committed."""


@contextmanager
def brokers(version: str | None) -> Iterator[Brokers]:
    """A running cluster: a real one of this version, or ours. Raises LocalKafkaError."""
    if version is None:
        with EmbeddedCluster(BROKERS, config={"group.min.session.timeout.ms": 1000}) as cluster:
            yield Embedded(cluster)
    else:
        with KafkaCluster(version, BROKERS) as kafka:
            yield Real(kafka)


class Embedded:
    """Three brokers of `kclient.embedded`, on a thread of this process."""

    name = "three embedded brokers"

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster

    @property
    def servers(self) -> str:
        """Where clients begin."""
        return self._cluster.bootstrap_servers

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic on all brokers that keeps records whatever their age."""
        self._cluster.create_topic(topic, partitions, REPLICAS, {"retention.ms": "-1"})

    def kill_coordinator(self, group: str, topic: str, partitions: int) -> Killed:
        """Kill the broker that coordinates a group."""
        return _killed(self._cluster, group, topic, partitions)

    def committed(self, group: str) -> int:
        """The sum of the committed offsets of a group."""
        return sum(self._cluster.committed(group).values())

    def lag(self, group: str, topic: str) -> int:
        """What kclient's lag tool says of a group: all that is not committed."""
        found = lag(group, topics=[topic], bootstrap_servers=self.servers).partitions
        return sum((one.end or 0) if one.lag is None else one.lag for one in found)


class Real:
    """Three brokers of Apache Kafka, processes of their own."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._kafka = kafka
        self.name = f"three brokers of Apache Kafka {kafka.version}"

    @property
    def servers(self) -> str:
        """Where clients begin."""
        return self._kafka.bootstrap_servers

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic on all brokers that keeps records whatever their age."""
        self._kafka.create_topic(topic, partitions, REPLICAS, retention_ms=-1)

    def kill_coordinator(self, group: str, topic: str, partitions: int) -> Killed:
        """Kill the broker that coordinates a group."""
        return _killed(self._kafka, group, topic, partitions)

    def committed(self, group: str) -> int:
        """The sum of the committed offsets of a group, as kafka-consumer-groups prints them."""
        return sum(row.committed or 0 for row in self._kafka.describe_group(group).values())

    def lag(self, group: str, topic: str) -> int:
        """Return the lag that kafka-consumer-groups prints for a group. Raises RuntimeError for one without commits."""
        rows = [row for (name, _), row in self._kafka.describe_group(group).items() if name == topic]
        if not rows:
            raise RuntimeError(f"group {group} has committed nothing of {topic}")
        return sum((row.end or 0) if row.lag is None else row.lag for row in rows)


def _killed(cluster: EmbeddedCluster | KafkaCluster, group: str, topic: str, partitions: int) -> Killed:
    node = cluster.coordinator_of(group)
    led = [number for number in range(partitions) if cluster.leader_of(topic, number) == node]
    began = time.monotonic()
    cluster.kill(node)
    after = {number: cluster.leader_of(topic, number) for number in led}
    took = time.monotonic() - began
    moved = ", ".join(f"{number} on broker {leader}" for number, leader in after.items())
    return Killed(
        node,
        f"broker {node} killed, the group's coordinator and leader of {len(led)} partitions → "
        f"{moved or 'nothing to move'} after {_duration_text(took)}",
    )


def _duration_text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
