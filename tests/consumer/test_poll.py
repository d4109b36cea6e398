"""The order of the steps of a poll: an error that waits to be raised delays no other step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kclient import AsyncConsumer, OffsetAndMetadata, RebalanceListener, TopicPartition
from kclient.errors import (
    KclientError,
    ListenerError,
    NoOffsetError,
    TopicAuthorizationError,
    UnknownTopicError,
    WakeupError,
)
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0, T1
from tests.waiting import until

PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": "range"},
    "cooperative": {"partition_assignment_strategy": "cooperative-sticky"},
    "consumer protocol": {"group_protocol": "consumer"},
}
PAUSE, MAX_POLL_INTERVAL = 8.0, 10.0


def refuse(api: str, error: str) -> Callable[[Place], None]:
    return lambda place: place.cluster.fail(api, error, times=None, client_id="erring")  # type: ignore[return-value]


# What fails again and again: the settings of the member that meets it, and what the cluster does to it.
TROUBLES: dict[str, tuple[dict[str, Any], Callable[[Place], None]]] = {
    "no committed offset": ({"auto_offset_reset": "none"}, lambda place: None),
    "out of range": ({"auto_offset_reset": "none"}, lambda place: place.cluster.delete_records("t", 1, 5)),
    "reset refused": ({}, refuse("ListOffsets", "TOPIC_AUTHORIZATION_FAILED")),
    "committed offsets refused": ({}, refuse("OffsetFetch", "GROUP_AUTHORIZATION_FAILED")),
}


@attrs.define
class LogsAndRetries(RebalanceListener):
    """An application that logs what a poll raises, and pauses nearly as long as it may."""

    place: Place
    consumer: AsyncConsumer = attrs.field(init=False)
    errors: list[KclientError] = attrs.field(factory=list)
    calls: list[str] = attrs.field(factory=list)

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append("assigned")

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append("revoked")

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append("lost")

    async def run(self) -> None:
        while True:
            try:
                await self.consumer.poll(1.0)
            except KclientError as exc:
                self.errors.append(exc)
                await asyncio.sleep(PAUSE)


async def run_polls(consumer: AsyncConsumer) -> None:
    while True:
        await consumer.poll(1.0)


async def committed_from_outside(place: Place, offsets: dict[TopicPartition, int]) -> None:
    outside = place.consumer(group_id="g")
    await place.on_member(outside.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}))
    await place.on_member(outside.close())


async def erring_member(place: Place, *topics: str, **settings: Any) -> LogsAndRetries:
    application = LogsAndRetries(place)
    application.consumer = consumer = place.consumer(
        client_id="erring", group_id="g", max_poll_interval_ms=int(MAX_POLL_INTERVAL * 1000), **settings
    )
    await consumer.subscribe(topics or ["t"], listener=application)
    return application


@pytest.mark.spec("S0-42", "S1-18", "B.3.1")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_member_that_logs_and_retries_with_pauses_stays_a_good_member(protocol: str, trouble: str) -> None:
    settings, begin = TROUBLES[trouble]

    async def scenario(place: Place) -> None:
        for partition in (0, 1):
            place.cluster.produce("t", [f"{n}" for n in range(10)], partition=partition)
        offsets = {T0: 0} if trouble in ("no committed offset", "reset refused") else {T0: 0, T1: 0}
        await committed_from_outside(place, offsets)
        begin(place)
        erring = await erring_member(place, **settings, **PROTOCOLS[protocol])
        done: list[KclientError | None] = []
        running = [asyncio.create_task(place.on_member(erring.run()))]
        await until(lambda: erring.errors, 30)
        erring.consumer.commit_async({T0: OffsetAndMetadata(0)}, lambda offsets, error: done.append(error))
        other = place.consumer("t", client_id="other", group_id="g", **PROTOCOLS[protocol])
        running.append(asyncio.create_task(place.on_member(run_polls(other))))
        # The group waits while it pauses, once for each join. Cooperative members join twice.
        await until(lambda: len(other.assignment()) == len(erring.consumer.assignment()) == 1, 4 * PAUSE)
        await asyncio.sleep(3 * PAUSE)
        assert len(other.assignment()) == len(erring.consumer.assignment()) == 1
        assert "lost" not in erring.calls
        assert place.asked("LeaveGroup") == []
        assert len(done) == 1
        for task in running:
            task.cancel()

    simulate(scenario, topics={"t": 2}, config={"group.initial.rebalance.delay.ms": 0})


@pytest.mark.spec("S0-42", "S3-20", "S4-43", "U-07")
def test_a_topic_that_does_not_exist_holds_up_neither_callbacks_nor_the_automatic_commit() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", [f"{n}" for n in range(10)], partition=0)
        settings = {
            "enable_auto_commit": True,
            "auto_commit_interval_ms": 1000,
            "missing_topic_timeout_ms": 1000,
        }
        erring = await erring_member(place, "t", "no-such-topic", allow_auto_create_topics=False, **settings)
        running = asyncio.create_task(place.on_member(erring.run()))
        await asyncio.sleep(5 * PAUSE)
        running.cancel()
        assert erring.errors
        assert all(isinstance(exc, UnknownTopicError) for exc in erring.errors)
        assert place.cluster.committed("g") == {T0: 10}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S1-17", "S3-22")
def test_callbacks_that_raise_in_every_poll_hold_up_no_rebalance() -> None:
    async def scenario(place: Place) -> None:
        def raising(offsets: Any, error: KclientError | None) -> None:
            raise LookupError("no such thing")

        async def run(consumer: AsyncConsumer) -> None:
            while True:
                try:
                    consumer.commit_async({T0: OffsetAndMetadata(0)}, raising)
                    await consumer.poll(1.0)
                except LookupError:
                    await asyncio.sleep(1.0)

        erring = (await erring_member(place)).consumer
        running = [asyncio.create_task(place.on_member(run(erring)))]
        await asyncio.sleep(5.0)
        other = place.consumer("t", group_id="g")
        running.append(asyncio.create_task(place.on_member(run_polls(other))))
        await asyncio.sleep(10.0)
        assert len(other.assignment()) == len(erring.assignment()) == 1
        for task in running:
            task.cancel()

    simulate(scenario, topics={"t": 2}, config={"group.initial.rebalance.delay.ms": 0})


# --- first positions


def begin_at(policy: str) -> dict[str, Any]:
    return {"group_id": "g", "auto_offset_reset": policy}


async def with_a_hundred_records(place: Place, **settings: Any) -> AsyncConsumer:
    place.cluster.produce("t", [f"{n}" for n in range(100)], partition=0)
    consumer = place.consumer(**settings)
    await place.on_member(consumer.list_topics())  # connected, so nothing but the order keeps a look-up back
    return consumer


@pytest.mark.spec("S0-19", "B.6.3")
@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_a_commit_between_assign_and_the_first_poll_counts(policy: str) -> None:
    async def scenario(place: Place) -> None:
        consumer = await with_a_hundred_records(place, **begin_at(policy))
        await consumer.assign([T0])
        await asyncio.sleep(1.0)
        await place.on_member(consumer.commit({T0: OffsetAndMetadata(30)}))
        assert [record.offset for record in await place.read(consumer, 70)] == list(range(30, 100))
        assert len(place.asked("OffsetFetch")) == 1
        assert place.asked("ListOffsets") == []

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S0-19", "B.2")
def test_position_needs_no_poll() -> None:
    async def scenario(place: Place) -> None:
        consumer = await with_a_hundred_records(place, **begin_at("latest"))
        await consumer.assign([T0])
        await place.on_member(consumer.commit({T0: OffsetAndMetadata(30)}))
        assert await place.on_member(consumer.position(T0)) == 30

    simulate(scenario, topics={"t": 1})


@attrs.define
class CommitsLate(RebalanceListener):
    """Waits and commits before it returns, and may ask for the position first."""

    asks_first: bool
    consumer: AsyncConsumer = attrs.field(init=False)
    position: int | None = None

    async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        if self.asks_first:
            self.position = await self.consumer.position(T0)
        await asyncio.sleep(2.0)
        await self.consumer.commit({T0: OffsetAndMetadata(30)})


@pytest.mark.spec("S0-10", "S0-19", "B.13.7")
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("asks_first", [False, True])
def test_a_commit_inside_on_partitions_assigned_counts(protocol: str, asks_first: bool) -> None:
    """Unless it asked for the position before: that one stands."""

    async def scenario(place: Place) -> None:
        listener = CommitsLate(asks_first)
        settings = {**begin_at("earliest"), **PROTOCOLS[protocol]}
        listener.consumer = consumer = await with_a_hundred_records(place, **settings)
        await consumer.subscribe(["t"], listener=listener)
        first = 0 if asks_first else 30
        assert [record.offset for record in await place.read(consumer, 100 - first)] == list(
            range(first, 100)
        )
        assert listener.position == (0 if asks_first else None)

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("S0-07", "S0-42")
def test_a_missing_commit_error_is_not_raised_again_after_the_advised_commit() -> None:
    async def scenario(place: Place) -> None:
        consumer = await with_a_hundred_records(place, **begin_at("none"))
        await consumer.assign([T0])
        with pytest.raises(NoOffsetError):
            await place.on_member(consumer.poll(1.0))
        await asyncio.sleep(1.0)  # as an application that logs and waits
        with pytest.raises(NoOffsetError):
            await place.on_member(consumer.poll(1.0))
        await asyncio.sleep(1.0)
        await place.on_member(consumer.commit({T0: OffsetAndMetadata(30)}))
        assert [record.offset for record in await place.read(consumer, 70)] == list(range(30, 100))

    simulate(scenario, topics={"t": 1})


# --- joining


@pytest.mark.spec("B.17.2", "S1-12")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_only_a_poll_joins_the_group(protocol: str) -> None:
    async def scenario(place: Place) -> None:
        consumer = place.consumer("t", group_id="g", **PROTOCOLS[protocol])
        await place.on_member(consumer.partitions_for("t"))
        await consumer.subscribe(["t", "u"])
        await asyncio.sleep(5.0)
        assert place.asked("ConsumerGroupHeartbeat") == place.asked("JoinGroup") == []
        await place.poll_until(consumer, consumer.assignment, seconds=5.0)
        await place.on_member(consumer.unsubscribe())
        await consumer.subscribe(["u"])
        joins = len(place.asked("ConsumerGroupHeartbeat") + place.asked("JoinGroup"))
        await asyncio.sleep(5.0)
        assert len(place.asked("ConsumerGroupHeartbeat") + place.asked("JoinGroup")) == joins
        await place.poll_until(consumer, consumer.assignment, seconds=5.0)
        assert {tp.topic for tp in consumer.assignment()} == {"u"}

    simulate(scenario, topics={"t": 1, "u": 1}, config={"group.initial.rebalance.delay.ms": 0})


# --- the whole order


@attrs.define
class NotesTheOrder(RebalanceListener):
    """Writes down what a poll did, and when."""

    place: Place
    done: list[tuple[str, float]] = attrs.field(factory=list)

    def note(self, what: str) -> None:
        self.done.append((what, self.place.now))

    async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.note("revoked")

    async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        await asyncio.sleep(1.0)
        self.note("assigned")

    def at(self, what: str) -> float:
        return next(at for one, at in self.done if one == what)


@pytest.mark.spec("B.3.1", "S1-12", "S1-17", "S3-08")
def test_one_poll_does_everything_in_the_order_of_its_table() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["first"], partition=0)
        await committed_from_outside(place, {T0: 0})
        refuse("ListOffsets", "TOPIC_AUTHORIZATION_FAILED")(place)  # so t-1 finds no place to begin
        order = NotesTheOrder(place)
        consumer = place.consumer(client_id="erring", group_id="g", enable_auto_commit=True)
        await consumer.subscribe(["t"], listener=order)
        while not await poll_or_none(place, consumer):
            continue
        await place.on_member(consumer.position(T0))
        consumer.commit_async({T0: OffsetAndMetadata(0)}, lambda offsets, error: order.note("callback"))
        place.cluster.rebalance("g")
        await asyncio.sleep(5.0)  # the error is stored, the commit answered, the rebalance known
        order.done.clear()
        place.cluster.forget_requests()

        consumer.wakeup()
        with pytest.raises(WakeupError):
            await place.on_member(consumer.poll(5.0))
        assert order.done == []
        with pytest.raises(TopicAuthorizationError):
            await place.on_member(consumer.poll(5.0))
        order.note("error")

        assert [what for what, _ in order.done] == ["callback", "revoked", "assigned", "error"]
        (join,), (look_up,) = place.asked("JoinGroup"), place.asked("OffsetFetch")
        commits = [one.at for one in place.asked("OffsetCommit")]
        assert (
            commits[0]
            <= order.at("revoked")
            <= join.at
            < order.at("assigned")
            <= look_up.at
            <= order.at("error")
        )

    simulate(scenario, topics={"t": 2}, config={"group.initial.rebalance.delay.ms": 0})


async def poll_or_none(place: Place, consumer: AsyncConsumer) -> Any:
    try:
        return await place.on_member(consumer.poll(1.0))
    except KclientError:
        return ()


@pytest.mark.spec("S3-36", "S3-50")
def test_a_wakeup_in_on_partitions_assigned_ends_the_poll_and_the_assignment_stands() -> None:
    """Java calls the method once more, with no partitions; that brings back nothing of what it was about to do."""

    class Looks(NotesTheOrder):
        async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            self.note(f"assigned {len(partitions)}")
            consumer.wakeup()
            await consumer.committed([T0])

    async def scenario(place: Place) -> None:
        nonlocal consumer
        place.cluster.produce("t", ["first"], partition=0)
        order = Looks(place)
        consumer = place.consumer(group_id="g")
        await consumer.subscribe(["t"], listener=order)
        with pytest.raises(WakeupError):
            await place.on_member(consumer.poll(10.0))
        assert consumer.assignment() == (T0,)
        assert len(await place.read(consumer, 1)) == 1
        assert [what for what, _ in order.done] == ["assigned 1"]

    consumer: AsyncConsumer
    simulate(scenario, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})


def test_the_error_of_a_listener_that_closed_before_is_raised_by_its_poll() -> None:
    class ClosesAndRaises(RebalanceListener):
        async def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
            await consumer.close()
            raise ValueError("after close()")

    async def scenario(place: Place) -> None:
        nonlocal consumer
        consumer = place.consumer(group_id="g")
        await consumer.subscribe(["t"], listener=ClosesAndRaises())
        with pytest.raises(ListenerError, match="ValueError"):
            await place.on_member(consumer.poll(10.0))
        assert consumer.closed

    consumer: AsyncConsumer
    simulate(scenario, topics={"t": 1})
