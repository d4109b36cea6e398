"""Static members (KIP-345): a place in the group that outlives a restart, and that one consumer at a time has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from kclient import AsyncConsumer, RebalanceListener, TopicPartition
from kclient.errors import BrokerError
from tests.scenarios.simulated import Place, simulate

SESSION: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000, "heartbeat_interval_ms": 1_000}
FENCED = 82

Partitions = tuple[TopicPartition, ...]


@attrs.define
class RecordingListener(RebalanceListener):
    """Records the names of its calls."""

    calls: list[str] = attrs.field(factory=list)

    def on_partitions_assigned(self, partitions: Partitions) -> None:
        self.calls.append("assigned")

    def on_partitions_revoked(self, partitions: Partitions) -> None:
        self.calls.append("revoked")

    def on_partitions_lost(self, partitions: Partitions) -> None:
        self.calls.append("lost")


@attrs.define
class Group:
    """Consumers of one group, polled together."""

    place: Place
    members: dict[str, AsyncConsumer] = attrs.field(factory=dict)
    listeners: dict[str, RecordingListener] = attrs.field(factory=dict)

    def start(self, name: str, **settings: Any) -> AsyncConsumer:
        """A member whose group instance id is its name."""
        self.listeners[name] = RecordingListener()
        keys = {**SESSION, "group_instance_id": name, **settings}
        self.members[name] = self.place.consumer("t", listener=self.listeners[name], **keys)
        return self.members[name]

    async def close(self, name: str, **how: Any) -> None:
        """Close a member; the others do not poll meanwhile."""
        await self.place.on_member(self.members.pop(name).close(**how))

    async def until(self, condition: Callable[[], object], seconds: float = 120.0) -> None:
        """Have every member poll until something holds."""

        async def polls() -> None:
            await asyncio.gather(*(member.poll(0.1) for member in self.members.values()))

        async with asyncio.timeout(seconds):
            while not condition():
                await self.place.on_member(polls())

    async def for_seconds(self, seconds: float) -> None:
        end = self.place.now + seconds
        await self.until(lambda: self.place.now >= end)

    def owned(self) -> dict[str, Partitions]:
        return {name: member.assignment() for name, member in self.members.items()}

    def shared(self) -> bool:
        """Whether all four partitions are assigned, each once, and every member has one at least."""
        all_of_them = [tp for owned in self.owned().values() for tp in owned]
        return sorted(all_of_them) == [("t", number) for number in range(4)] and all(self.owned().values())

    def asked(self, api: str) -> list[Any]:
        return [one.request for one in self.place.asked(api)]


def play(scenario: Callable[[Group], Awaitable[None]]) -> None:
    async def in_place(place: Place) -> None:
        await scenario(Group(place))

    config = {"group.initial.rebalance.delay.ms": 0}
    simulate(in_place, topics={"t": 4}, config=config)


@pytest.mark.spec("B.13.10", "B.18", "I-17", "S4-31", "A-04")
@pytest.mark.parametrize("name", ["a", "b"])
def test_a_restart_within_the_session_costs_no_rebalance(name: str) -> None:
    """One of the two is the leader; its JoinGroup response has skip_assignment."""

    async def scenario(group: Group) -> None:
        group.start("a"), group.start("b")
        await group.until(group.shared)
        await group.for_seconds(3)
        owned = group.owned()
        before = {each: member.group_metadata() for each, member in group.members.items()}
        calls = {each: list(listener.calls) for each, listener in group.listeners.items()}
        joins = len(group.asked("JoinGroup"))

        await group.close(name)
        group.start(name)
        await group.until(group.members[name].assignment)
        await group.for_seconds(15)

        assert group.owned() == owned
        assert group.asked("LeaveGroup") == []
        assert len(group.asked("JoinGroup")) == joins + 1
        assert group.listeners[name].calls == ["assigned"]
        (other,) = {"a", "b"} - {name}
        assert group.listeners[other].calls == calls[other]
        again = group.members[name].group_metadata()
        assert again.generation_id == before[name].generation_id
        assert again.member_id != before[name].member_id

    play(scenario)


@pytest.mark.spec("U-13", "I-17", "B.13.10")
def test_a_rolling_restart_of_three_costs_no_rebalance() -> None:
    async def scenario(group: Group) -> None:
        for name in "abc":
            group.start(name)
        await group.until(group.shared)
        await group.for_seconds(3)
        owned, generation = group.owned(), group.members["a"].group_metadata().generation_id
        for name in "abc":
            await group.close(name)
            await group.for_seconds(2)
            group.start(name)
            await group.until(group.members[name].assignment)
        await group.for_seconds(15)
        assert group.owned() == owned
        assert {m.group_metadata().generation_id for m in group.members.values()} == {generation}

    play(scenario)


@pytest.mark.spec("B.13.10", "A-04")
def test_a_member_that_stays_away_for_longer_than_the_session_loses_the_place() -> None:
    async def scenario(group: Group) -> None:
        group.start("a"), group.start("b")
        await group.until(group.shared)
        await group.close("a")
        await group.for_seconds(8)
        assert len(group.members["b"].assignment()) == 2
        await group.for_seconds(7)
        assert len(group.members["b"].assignment()) == 4
        group.start("a")
        await group.until(group.shared)
        assert group.listeners["b"].calls.count("revoked") >= 1
        assert group.asked("LeaveGroup") == []

    play(scenario)


@pytest.mark.spec("D-11", "B.13.10", "B.14.2", "B.15.5", "I-17", "A-04")
@pytest.mark.parametrize("call", ["poll", "commit"])
def test_of_two_with_one_name_the_first_is_fenced_and_stays_so(call: str) -> None:
    async def scenario(group: Group) -> None:
        first = group.start("a")
        await group.until(lambda: len(first.assignment()) == 4)
        second = group.place.consumer("t", **SESSION, group_instance_id="a")

        async def second_polls(seconds: float) -> None:
            end = group.place.now + seconds
            while group.place.now < end:
                await group.place.on_member(second.poll(0.1))

        await second_polls(5)
        assert len(second.assignment()) == 4
        for again in range(3):
            with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID") as fenced:
                await group.place.on_member(first.poll(0.5) if call == "poll" else first.commit())
            assert fenced.value.code == FENCED
            if again == 0:
                assert "group_instance_id" in str(fenced.value)
        await second_polls(15)
        assert len(second.assignment()) == 4
        joins = [one.request.member_id for one in group.place.asked("JoinGroup")]
        assert joins == ["", ""]  # neither came back

    play(scenario)


@pytest.mark.spec("B.18", "B.13.10", "B.15.6", "A-04")
@pytest.mark.parametrize(
    ("instance", "leave", "sends_leave"),
    [
        ("a", None, False),
        ("a", True, True),
        ("a", False, False),
        (None, None, True),
        (None, True, True),
        (None, False, False),
    ],
)
def test_a_member_that_closes_decides_whether_the_coordinator_is_notified(
    instance: str | None, leave: bool | None, sends_leave: bool
) -> None:
    async def scenario(group: Group) -> None:
        group.start("a", group_instance_id=instance), group.start("b")
        await group.until(group.shared)
        member_id = group.members["a"].group_metadata().member_id
        await group.close("a", leave=leave)
        left = [(m.member_id, m.group_instance_id) for r in group.asked("LeaveGroup") for m in r.members]
        assert left == ([(member_id, None)] if sends_leave else [])
        await group.for_seconds(5)
        assert len(group.members["b"].assignment()) == (4 if sends_leave else 2)

    play(scenario)


@pytest.mark.spec("B.18", "B.13.10")
def test_a_with_block_decides_nothing() -> None:
    async def scenario(group: Group) -> None:
        async def visit(instance: str | None) -> None:
            async with group.place.consumer("t", **SESSION, group_instance_id=instance) as consumer:
                while not consumer.assignment():
                    await consumer.poll(0.1)

        await group.place.on_member(visit("a"))
        assert group.asked("LeaveGroup") == []
        await asyncio.sleep(15)
        await group.place.on_member(visit(None))
        assert len(group.asked("LeaveGroup")) == 1

    play(scenario)
