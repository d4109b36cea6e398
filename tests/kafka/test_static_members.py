"""Static members (KIP-345) on a real Kafka: restarts, duplicates of an instance id, and a final close."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kclient import Consumer, RebalanceListener, TopicPartition
from kclient.errors import BrokerError
from localkafka import KafkaCluster
from tests.kafka.wire_tap import Tap

SECONDS = 30
SESSION_MS = 8_000
FENCED = 82


class RecordingListener(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.calls.append("assigned")

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append("revoked")

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append("lost")


class Pair:
    """Members of one group, polled in turn from this thread; their heartbeats go on meanwhile."""

    def __init__(self, kafka: KafkaCluster, name: str, stack: ExitStack) -> None:
        self.kafka, self.name, self.stack = kafka, name, stack
        self.members: dict[str, Consumer] = {}
        self.listeners: dict[str, RecordingListener] = {}
        self.taps: dict[str, Tap] = {}

    def start(self, name: str, instance: str | None) -> Consumer:
        self.listeners[name], self.taps[name] = RecordingListener(), Tap()
        settings: dict[str, Any] = {
            "bootstrap_servers": self.kafka.bootstrap_servers,
            "group_id": self.name,
            "group_instance_id": instance,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 500,
        }
        consumer = Consumer(self.name, listener=self.listeners[name], runtime=self.taps[name], **settings)
        self.members[name] = self.stack.enter_context(consumer)
        return consumer

    def close(self, name: str, **how: Any) -> None:
        self.members.pop(name).close(**how)

    def until(self, condition: Callable[[], object], seconds: float = SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.owned()
            for member in self.members.values():
                member.poll(0.05)

    def for_seconds(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end)

    def owned(self) -> dict[str, tuple[TopicPartition, ...]]:
        return {name: member.assignment() for name, member in self.members.items()}

    def shared(self) -> bool:
        return (
            sorted(map(len, self.owned().values())) == [2, 2]
            and len(set(sum(self.owned().values(), ()))) == 4
        )

    def start_two(self, instances: dict[str, str | None]) -> None:
        for name, instance in instances.items():
            self.start(name, instance)
        self.until(self.shared)
        self.for_seconds(1.5)


@pytest.fixture(params=["kafka1", "kafka28"])
def pair(request: pytest.FixtureRequest, fresh_name: str) -> Iterator[Pair]:
    kafka: KafkaCluster = request.getfixturevalue(request.param)
    kafka.create_topic(fresh_name, 4)
    with ExitStack() as stack:
        yield Pair(kafka, fresh_name, stack)


@pytest.mark.spec("B.13.10", "B.18", "I-17", "S4-31", "A-04", "M-72")
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_restart_within_the_session_costs_no_rebalance(pair: Pair, name: str) -> None:
    """One of the two is the leader; the coordinator has it skip the assignment, or compute the same one again."""
    pair.start_two({"a": "a", "b": "b"})
    owned, before = pair.owned(), pair.members[name].group_metadata()
    (other,) = {"a", "b"} - {name}
    calls, gone = list(pair.listeners[other].calls), pair.taps[name]

    pair.close(name)
    pair.start(name, name)
    pair.until(pair.members[name].assignment)
    pair.for_seconds(2)

    assert gone.asked("LeaveGroup") == []
    assert pair.owned() == owned
    assert pair.listeners[other].calls == calls
    assert pair.listeners[name].calls == ["assigned"]
    again = pair.members[name].group_metadata()
    assert again.generation_id == before.generation_id
    assert again.member_id != before.member_id


@pytest.mark.spec("D-11", "B.13.10", "B.14.2", "B.15.5", "I-17", "A-04", "M-71")
def test_of_two_with_one_name_the_first_is_fenced_and_stays_so(pair: Pair) -> None:
    first = pair.start("first", "a")
    pair.until(lambda: len(first.assignment()) == 4)
    del pair.members["first"]
    second = pair.start("second", "a")
    pair.until(lambda: len(second.assignment()) == 4)
    deadline = time.monotonic() + SECONDS
    with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID") as fenced:  # noqa: PT012 – with the next heartbeat
        while time.monotonic() < deadline:
            first.poll(0.1)
    assert fenced.value.code == FENCED
    for call in (lambda: first.poll(0.1), first.commit, lambda: first.poll(0.1)):
        with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
            call()
    pair.for_seconds(2)
    assert len(second.assignment()) == 4
    assert pair.listeners["second"].calls == ["assigned"]
    assert len(pair.taps["first"].asked("JoinGroup")) == 1


@pytest.mark.spec("B.18", "B.13.10", "B.15.6", "A-04")
@pytest.mark.parametrize(("instance", "leave"), [("a", True), ("a", None), (None, False), (None, None)])
def test_a_member_that_closes_decides_whether_the_coordinator_is_notified(
    pair: Pair, instance: str | None, leave: bool | None
) -> None:
    pair.start_two({"a": instance, "b": "b"})
    member_id = pair.members["a"].group_metadata().member_id
    pair.close("a", leave=leave)
    left = [
        (m.member_id, m.group_instance_id)
        for e in pair.taps["a"].asked("LeaveGroup")
        for m in e.request.members
    ]
    goes = leave or (leave is None and instance is None)
    assert left == ([(member_id, None)] if goes else [])
    if goes:
        pair.until(lambda: len(pair.members["b"].assignment()) == 4, SESSION_MS / 2000)
    else:
        pair.for_seconds(2)
        assert len(pair.members["b"].assignment()) == 2
