"""Members of the consumer protocol (KIP-848) on a real Kafka 4.3, beside members of librdkafka, and live migration.

All members of a test are polled in turn, in one thread: who stops being polled keeps what it has.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import confluent_kafka
import pytest

from kclient import Consumer, KclientError, RebalanceListener, SubscriptionPattern, TopicPartition
from kclient.errors import BrokerError
from localkafka import KafkaCluster
from tests.kafka.fixtures import start
from tests.kafka.other_clients import members, produce_numbers, wait_until_committed
from tests.kafka.wire_tap import Tap

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(120)]

PARTITIONS = 6
SECONDS = 40
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.assignment.interval.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
CLASSIC = {"group.protocol": "classic", "session.timeout.ms": 3000, "heartbeat.interval.ms": 200}


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    """Apache Kafka 4.3.1, one node that asks for heartbeats often."""
    yield from start("4.3.1", 1, QUICK)


class RecordingListener(RebalanceListener):
    """Records its calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[int, ...]]] = []

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.calls.append(("assigned", tuple(tp.partition for tp in partitions)))

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append(("revoked", tuple(tp.partition for tp in partitions)))

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append(("lost", tuple(tp.partition for tp in partitions)))


class Ours:
    """A member of kclient."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self.tap, self.diary, self.numbers = Tap(), RecordingListener(), list[int]()
        self.consumer = Consumer(config=settings, runtime=self.tap)
        self.consumer.subscribe([topic], listener=self.diary)

    def poll(self) -> None:
        self.numbers += [int(record.value) for record in self.consumer.poll(0.05)]

    def owned(self) -> set[int]:
        return {tp.partition for tp in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


class Theirs:
    """A member of librdkafka."""

    def __init__(self, settings: dict[str, Any], topic: str) -> None:
        self.numbers: list[int] = []
        self.consumer = confluent_kafka.Consumer({**settings, "log_level": 3})
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        messages = self.consumer.consume(500, 0.05)
        self.numbers += [int(one.value()) for one in messages if one.error() is None]

    def owned(self) -> set[int]:
        return {tp.partition for tp in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


class Group:
    """The members of one group on one topic, polled in turn; no partition may be with two of them."""

    def __init__(self, kafka: KafkaCluster, topic: str) -> None:
        self.kafka, self.topic = kafka, topic
        self.here: dict[str, Ours | Theirs] = {}
        self.gone: list[Ours | Theirs] = []
        self.written = 0
        kafka.create_topic(topic, PARTITIONS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            for one in self.here.values():
                stack.callback(one.close)

    def join(self, name: str, kind: type[Ours | Theirs], **settings: Any) -> Any:
        """A new member; settings with underscores for dots."""
        base = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": self.topic,
            "client.id": name,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        self.here[name] = kind({**base, **dotted}, self.topic)
        return self.here[name]

    def leave(self, name: str) -> None:
        one = self.here.pop(name)
        one.close()
        self.gone.append(one)

    def until(self, condition: Callable[[], bool]) -> None:
        """Poll all until it holds; what the members had then is in the failure."""
        deadline = time.monotonic() + SECONDS
        while not condition():
            for one in self.here.values():
                one.poll()
            owned = {name: one.owned() for name, one in self.here.items()}
            assert time.monotonic() < deadline, f"{owned}, {len(self.seen())} of {self.written} numbers seen"

    def shared(self) -> bool:
        """Whether all partitions are owned, and every member has some. Fails where one is owned twice."""
        owned = [number for one in self.here.values() for number in one.owned()]
        assert len(owned) == len(set(owned)), owned
        return len(owned) == PARTITIONS and all(one.owned() for one in self.here.values())

    def read_more(self, count: int = 60) -> None:
        """Numbers that are written now are all read."""
        produce_numbers(self.kafka, self.topic, range(self.written, self.written + count), PARTITIONS)
        self.written += count
        self.until(lambda: len(self.seen()) == self.written)

    def seen(self) -> Counter[int]:
        """How often each number was read."""
        return Counter(number for one in (*self.here.values(), *self.gone) for number in one.numbers)


def heartbeats(tap: Tap) -> list[Any]:
    return [one.request for one in tap.asked("ConsumerGroupHeartbeat")]


@pytest.mark.slow
@pytest.mark.spec("A-14", "B.17.2", "B.17.3", "B.17.5", "I-02", "I-10")
def test_members_of_two_clients_share_come_and_go(kafka: KafkaCluster, fresh_name: str) -> None:
    """Nothing is read twice: every member commits what it gives up, and a member that leaves does too."""
    with Group(kafka, fresh_name) as group:
        ours = group.join("ours", Ours)
        group.until(group.shared)
        group.read_more()
        group.join("theirs", Theirs)
        group.until(group.shared)
        state, parts = members(kafka, fresh_name)
        assert state == "STABLE"
        assert {tp.partition for tp in parts["ours"]} == ours.owned()
        group.read_more()
        group.join("late", Ours, group_remote_assignor="range")
        group.until(group.shared)
        group.read_more()
        group.leave("theirs")
        group.until(group.shared)
        group.read_more()
        group.leave("ours")
        group.until(group.shared)
        group.read_more()
        group.leave("late")
        assert set(group.seen().values()) == {1}
        each = group.written // PARTITIONS
        wait_until_committed(
            kafka, fresh_name, {TopicPartition(fresh_name, number): each for number in range(PARTITIONS)}
        )
        first, *later = heartbeats(ours.tap)
        assert (first.member_epoch, first.topic_partitions) == (0, [])
        assert all(one.rebalance_timeout_ms == -1 for one in later)
        assert {one.member_id for one in later} == {first.member_id}
        assert later[-1].member_epoch == -1
        assert all(one.response.error_code == 0 for one in ours.tap.answered("ConsumerGroupHeartbeat"))


@pytest.mark.slow
@pytest.mark.spec("A-14", "B.17.6", "I-10")
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_changes_its_protocol_while_it_reads_and_back(
    kafka: KafkaCluster, fresh_name: str, strategy: str
) -> None:
    old = {**CLASSIC, "partition.assignment.strategy": strategy}
    # As a leader librdkafka adds user data to cooperative assignments, and Kafka upgrades no group with such.
    other = Theirs if strategy == "range" else Ours
    with Group(kafka, fresh_name) as group:
        group.join("old-ours", Ours, **old)
        group.join("old-other", other, **old)
        group.until(group.shared)
        group.read_more()
        group.join("new-ours", Ours)
        group.until(group.shared)
        group.read_more()
        group.leave("old-other")
        group.join("new-theirs", Theirs)
        group.until(group.shared)
        group.leave("old-ours")
        group.until(group.shared)
        group.read_more()
        assert members(kafka, fresh_name)[0] == "STABLE"
        group.leave("new-theirs")
        back = group.join("old-again", Ours, **old)
        group.until(group.shared)
        group.leave("new-ours")
        group.until(group.shared)
        group.read_more()
        assert {one.api for one in back.tap.asked("JoinGroup")} == {"JoinGroup"}
        assert set(group.seen()) == set(range(group.written))


@pytest.mark.spec("A-14", "B.17.4", "B.17.5", "I-17")
def test_a_static_member_comes_back_and_its_double_is_refused(kafka: KafkaCluster, fresh_name: str) -> None:
    static = {"group.instance.id": "seat-1"}
    with Group(kafka, fresh_name) as group:
        ours = group.join("ours", Ours, **static)
        other = group.join("other", Ours)
        group.until(group.shared)
        double = Ours(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": fresh_name,
                "group.protocol": "consumer",
                **static,
            },
            fresh_name,
        )
        with pytest.raises(BrokerError, match="UNRELEASED_INSTANCE_ID"):
            group.until(lambda: double.poll() is not None)
        double.close()
        had, count = ours.owned(), len(other.diary.calls)
        group.leave("ours")
        assert heartbeats(ours.tap)[-1].member_epoch == -2
        again = group.join("again", Ours, **static)
        group.until(group.shared)
        assert again.owned() == had
        assert len(other.diary.calls) == count


@pytest.mark.spec("A-14", "B.17.2", "B.17.4", "D-01")
def test_a_member_that_polls_too_late_leaves_and_a_silent_one_is_fenced(
    kafka: KafkaCluster, fresh_name: str
) -> None:
    everything = tuple(range(PARTITIONS))
    with Group(kafka, fresh_name) as group:
        late = group.join("late", Ours, max_poll_interval_ms=1500)
        group.until(group.shared)
        late.diary.calls.clear()  # a coordinator that has not heard of the new topic yet assigns nothing at first
        time.sleep(2.5)
        assert heartbeats(late.tap)[-1].member_epoch == -1
        group.until(lambda: len(late.diary.calls) == 2)
        assert late.diary.calls == [("lost", everything), ("assigned", everything)]
        kafka.pause(1)
        time.sleep(5)
        kafka.resume(1)
        group.read_more()
        assert group.shared()


@pytest.mark.spec("A-14", "B.17.2", "B.17.4")
def test_a_pattern_of_the_brokers_finds_topics_and_a_wrong_one_is_fatal(
    kafka: KafkaCluster, fresh_name: str
) -> None:
    kafka.create_topic(f"{fresh_name}.1", 2)
    settings = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": fresh_name,
        "group.protocol": "auto",
        "auto.offset.reset": "earliest",
    }
    tap = Tap()

    def poll_until(done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not done():
            consumer.poll(0.1)
            assert time.monotonic() < deadline

    with Consumer(config=settings, runtime=tap) as consumer:
        consumer.subscribe(pattern=SubscriptionPattern(fresh_name.replace(".", "[.]") + "[.][0-9]"))
        poll_until(lambda: len(consumer.assignment()) == 2)
        assert heartbeats(tap)[0].subscribed_topic_regex.endswith("[.][0-9]")
    with Consumer(config=settings) as consumer:
        consumer.subscribe(pattern=SubscriptionPattern("(?=a"))
        with pytest.raises(KclientError, match="INVALID_REGULAR_EXPRESSION"):
            poll_until(lambda: False)
