"""Members of librdkafka in groups of the consumer protocol: many, static, and changing their protocol while they read.

Every one of them reads what it has, all the time; what the group owns is what the members say that they own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.groups import inspection
from kclient.embedded.groups.loading import groups_of
from kclient.types import TopicPartition

pytestmark = [pytest.mark.spec("B.17.6"), pytest.mark.timeout(60)]

TOPIC = "flights"
PARTITIONS = 6
SECONDS = 15.0
CONFIG = {
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.session.timeout.ms": 3_000,
    "group.min.session.timeout.ms": 1_000,
    # Kafka's own. A classic group is to come together in one generation: in a later one librdkafka's cooperative-sticky
    # gives its assignments user data, with which no coordinator takes the group into the new protocol.
    "group.initial.rebalance.delay.ms": 3_000,
}


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, topics={TOPIC: PARTITIONS}, config=CONFIG) as cluster:
        yield cluster


class Members:
    """Consumers of one group, by name, in the order in which they came."""

    def __init__(self, cluster: EmbeddedCluster, group: str) -> None:
        self.cluster, self.group = cluster, group
        self.all: dict[str, confluent_kafka.Consumer] = {}
        self.read: list[bytes] = []

    def add(self, name: str, protocol: str = "consumer", **settings: Any) -> None:
        """One more: "consumer", or classic with the assignor that this names."""
        speaks = {"group.protocol": "consumer"}
        if protocol != "consumer":
            speaks = {
                "group.protocol": "classic",
                "partition.assignment.strategy": protocol,
                "heartbeat.interval.ms": "100",
                "session.timeout.ms": "3000",
            }
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.cluster.bootstrap_servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                **speaks,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
        )
        consumer.subscribe([TOPIC])
        self.all[name] = consumer

    def close(self, name: str) -> None:
        """It leaves, as its configuration says."""
        self.all.pop(name).close()

    def close_all(self) -> None:
        for name in list(self.all):
            self.close(name)

    def commit_all(self) -> None:
        """Each commits what it has read. One that is closed in mid-rebalance leaves first, and commits too late."""
        for consumer in self.all.values():
            try:
                consumer.commit(asynchronous=False)
            except confluent_kafka.KafkaException as exc:
                if exc.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET:  # it has read nothing
                    raise

    def owned(self) -> dict[str, list[int]]:
        """What each says that it owns."""
        return {
            name: sorted(tp.partition for tp in consumer.assignment()) for name, consumer in self.all.items()
        }

    def shared(self) -> bool:
        """Whether every partition has one owner, and no member many more than the others."""
        shares = self.owned().values()
        whole = sorted(number for share in shares for number in share) == list(range(PARTITIONS))
        return whole and max(map(len, shares)) - min(map(len, shares)) <= 1

    def poll_until(self, reached: Callable[[], bool]) -> None:
        """All of them go on reading until it is so."""
        deadline = time.monotonic() + SECONDS
        while not reached():
            assert time.monotonic() < deadline, self.owned()
            for consumer in self.all.values():
                message = consumer.poll(0.02)
                if message is not None and message.error() is None:
                    value = message.value()
                    assert isinstance(value, bytes)
                    self.read.append(value)


@pytest.fixture
def members(cluster: EmbeddedCluster) -> Iterator[Members]:
    with ExitStack() as stack:
        found = Members(cluster, "travellers")
        stack.callback(found.close_all)
        yield found


def look(cluster: EmbeddedCluster, group: str, attribute: str) -> Any:
    """What the coordinator has of the group."""
    return cluster.cluster_loop.call(lambda: getattr(inspection.find(cluster.state, group), attribute))


def test_three_members_come_and_go(members: Members) -> None:
    for name in ("one", "two", "three"):
        members.add(name)
        members.poll_until(members.shared)
    members.close("one")
    members.poll_until(members.shared)
    members.close("three")
    members.poll_until(members.shared)
    assert members.owned() == {"two": list(range(PARTITIONS))}


def test_every_record_is_read_once_while_members_share_what_moves(
    cluster: EmbeddedCluster, members: Members
) -> None:
    members.add("one")
    members.poll_until(members.shared)
    first = [b"%d" % number for number in range(300)]
    cluster.produce(TOPIC, first)
    members.add("two")
    members.poll_until(lambda: members.shared() and len(members.read) >= 300)
    members.commit_all()
    second = [b"%d" % number for number in range(300, 600)]
    cluster.produce(TOPIC, second)
    members.close("one")
    members.poll_until(lambda: members.shared() and len(members.read) >= 600)
    assert sorted(members.read, key=int) == first + second


def test_a_static_member_comes_back_to_its_partitions(cluster: EmbeddedCluster, members: Members) -> None:
    members.add("one", group_instance_id="i1")
    members.add("two", group_instance_id="i2")
    members.poll_until(members.shared)
    before, epoch = members.owned(), look(cluster, members.group, "epoch")
    members.close("one")
    members.add("one again", group_instance_id="i1")
    members.poll_until(members.shared)
    after = members.owned()
    assert look(cluster, members.group, "epoch") == epoch
    assert (after["one again"], after["two"]) == (before["one"], before["two"])


def test_the_group_outlives_its_coordinator(cluster: EmbeddedCluster, members: Members) -> None:
    members.add("one")
    members.add("two")
    members.poll_until(members.shared)
    before = members.owned()
    partition = groups_of(cluster.state.brokers[1]).partition_of(members.group)
    found = cluster.state.partition(TopicPartition("__consumer_offsets", partition))
    assert found is not None
    cluster.kill(found.leader)
    cluster.produce(TOPIC, [b"%d" % number for number in range(60)])
    members.poll_until(lambda: len(members.read) >= 60)
    assert members.owned() == before
    members.add("three")
    members.poll_until(members.shared)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_classic_members_and_new_ones_take_turns(
    cluster: EmbeddedCluster, members: Members, assignor: str
) -> None:
    """A rolling upgrade, and the way back: always two members read, and the offsets stay."""
    values = [b"%d" % number for number in range(120)]
    cluster.produce(TOPIC, values)
    members.add("classic one", assignor)
    members.add("classic two", assignor)
    members.poll_until(lambda: members.shared() and len(members.read) >= 120)
    members.commit_all()
    assert look(cluster, members.group, "kind") == "classic"

    members.close("classic one")
    members.add("new one")
    members.poll_until(members.shared)
    assert look(cluster, members.group, "kind") == "consumer"
    members.close("classic two")
    members.add("new two")
    members.poll_until(members.shared)
    assert look(cluster, members.group, "kind") == "consumer"

    members.close("new one")
    members.add("classic three", assignor)
    members.poll_until(members.shared)
    assert look(cluster, members.group, "kind") == "consumer"
    members.close("new two")
    members.poll_until(members.shared)
    assert look(cluster, members.group, "kind") == "classic"
    members.add("classic four", assignor)
    members.poll_until(members.shared)

    more = [b"%d" % number for number in range(120, 240)]
    cluster.produce(TOPIC, more)
    members.poll_until(lambda: len(members.read) >= 240)
    assert sorted(members.read, key=int) == values + more
