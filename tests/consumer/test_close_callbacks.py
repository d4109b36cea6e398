"""close() completes every commit_async and runs its callback before it returns, connected or not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, OffsetAndMetadata, RebalanceListener
from kclient.embedded import EmbeddedCluster
from kclient.errors import ClosedError, CommitFailedError, ConnectError, KclientError, ListenerError
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import SETTINGS, T0, asked, consumer_of, play, read
from tests.waiting import until

SEVEN = {T0: OffsetAndMetadata(7)}
BEGINNINGS = pytest.mark.parametrize("beginning", ["nothing chosen", "assigned"])


class Outcomes(list[Any]):
    """A commit callback that keeps what it was given."""

    def __call__(self, offsets: Any, error: Any) -> None:
        self.append(error)


@pytest.mark.spec("B.14.2", "B.18")
@BEGINNINGS
def test_a_commit_of_a_consumer_that_is_not_connected_yet_has_its_outcome_at_close(beginning: str) -> None:
    """And no group is joined for it: if a subscribed consumer has not joined, its commit fails."""

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            outcomes = Outcomes()
            c = consumer_of(cluster, group_id="g")
            if beginning == "assigned":
                await c.assign([T0])
            c.commit_async(SEVEN, outcomes)
            await c.close()
            may_not = beginning == "subscribed"
            assert [getattr(error, "reason", error) for error in outcomes] == [
                "not_joined" if may_not else None
            ]
            assert cluster.committed("g") == ({} if may_not else {T0: 7})
            assert asked(cluster, "JoinGroup") == asked(cluster, "Fetch") == []

    play(scenario)


@pytest.mark.spec("B.14.2", "B.18")
def test_a_commit_of_a_subscribed_consumer_that_has_not_joined_fails_in_its_callback() -> None:
    """close() joins no group for it."""

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            outcomes = Outcomes()
            c = consumer_of(cluster, "t", group_id="g")
            c.commit_async(SEVEN, outcomes)
            await c.close()
            assert [error.reason for error in outcomes] == ["not_joined"]
            assert asked(cluster, "JoinGroup") == []

    play(scenario)


@pytest.mark.spec("B.14.2", "B.18")
def test_a_commit_of_a_thread_that_is_not_connected_yet_is_stored_by_the_end_of_the_block() -> None:
    outcomes = Outcomes()
    with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
        cluster.prepare_groups()
        with Consumer(bootstrap_servers=cluster.bootstrap_servers, group_id="g", **SETTINGS) as c:
            c.commit_async(SEVEN, outcomes)
        assert outcomes == [None]
        assert cluster.committed("g") == {T0: 7}


@pytest.mark.spec("B.14.2", "B.18", "U-10")
def test_a_commit_that_no_broker_can_be_asked_for_fails_in_its_callback() -> None:
    async def scenario() -> None:
        outcomes = Outcomes()
        c = AsyncConsumer(bootstrap_servers="127.0.0.1:1", group_id="g", **SETTINGS)
        c.commit_async(SEVEN, outcomes)
        await c.close()
        assert [type(error).__mro__[1] for error in outcomes] == [ConnectError]

    play(scenario, 5)


@pytest.mark.spec("B.14.2", "B.18")
@pytest.mark.parametrize("connected", [False, True])
def test_a_commit_without_a_response_fails_when_close_has_no_time_left(connected: bool) -> None:
    async def scenario(place: Place) -> None:
        outcomes = Outcomes()
        c = place.consumer(group_id="g")
        if connected:
            await place.on_member(c.committed([T0]))
            place.cluster.delay("OffsetCommit", 600_000)
        else:
            place.cluster.delay("ApiVersions", 600_000)
        await place.on_member(_commit_async(c, SEVEN, outcomes))
        await asyncio.sleep(0.1)
        began = place.now
        await place.on_member(c.close(5.0))
        assert place.now - began <= 5.1
        (error,) = outcomes
        assert isinstance(error, CommitFailedError)
        assert (error.reason, error.retriable, error.uncommitted) == ("closed", False, SEVEN)

    simulate(scenario, brokers=1, topics={"t": 1})


@pytest.mark.spec("B.14.2", "B.18", "U-10")
def test_a_commit_fails_soon_when_the_cluster_has_gone() -> None:
    async def scenario(place: Place) -> None:
        outcomes = Outcomes()
        c = place.consumer("t", group_id="g", enable_auto_commit=True)
        place.cluster.produce("t", ["v"])
        await place.read(c, 1)
        place.cluster.delay("OffsetCommit", 600_000)
        await place.on_member(_commit_async(c, SEVEN, outcomes))
        await asyncio.sleep(0.1)
        for node in range(1, 4):
            place.cluster.kill(node)
        began = place.now
        await place.on_member(c.close())
        assert place.now - began <= 3.0
        assert [type(error) for error in outcomes] == [CommitFailedError]

    simulate(scenario, brokers=3, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})


@pytest.mark.spec("B.14.2", "B.18")
def test_a_callback_that_raises_keeps_no_other_from_its_turn() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            heard: list[int] = []

            def callback(number: int) -> None:
                heard.append(number)
                raise RuntimeError(f"mine: {number}")

            c = consumer_of(cluster, group_id="g")
            for number in range(4):
                c.commit_async(SEVEN, lambda offsets, error, number=number: callback(number))  # type: ignore[misc]
            with pytest.raises(RuntimeError, match="mine: 0"):
                await c.close()
            assert heard == [0, 1, 2, 3]

    play(scenario)


@pytest.mark.spec("B.18", "S3-32")
def test_close_raises_what_the_polls_have_kept() -> None:
    """A poll in which a callback and a listener raise can raise one of the two."""

    class Upset(RebalanceListener):
        def on_partitions_revoked(self, partitions: Any) -> None:
            if partitions and not c.closing:
                raise RuntimeError("the listener's")

    def callback(offsets: Any, error: Any) -> None:
        raise RuntimeError("the callback's")

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.produce("t", ["v"])
            c.consumer = consumer = consumer_of(
                cluster, "t", group_id="g", listener=Upset(), heartbeat_interval_ms=100
            )
            await read(consumer, 1)
            callbacks, rebalances = consumer._core.callbacks, consumer._core.rebalance_steps
            cluster.rebalance("g")
            await until(lambda: len(rebalances))
            await consumer.poll(0)  # stops what goes; then the listener's turn comes
            consumer.commit_async({}, callback)
            await until(lambda: len(rebalances) and len(callbacks))
            with pytest.raises(RuntimeError, match="the callback's"):
                await consumer.poll(5)
            c.closing = True
            with pytest.raises(ListenerError, match="on_partitions_revoked"):
                await consumer.close()

    c: Any = SimpleNamespace(closing=False)
    play(scenario)


@pytest.mark.spec("B.14.2", "B.18")
def test_what_a_callback_commits_is_committed_as_well_and_then_no_more() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            outcomes = Outcomes()

            def again(offsets: Any, error: Any) -> None:
                outcomes.append(error)
                c.commit_async({T0: OffsetAndMetadata(7 + len(outcomes))}, again)

            c = consumer_of(cluster, group_id="g")
            c.commit_async(SEVEN, again)
            with pytest.raises(ClosedError):
                await c.close()
            assert outcomes == [None, None]
            assert cluster.committed("g") == {T0: 8}

    play(scenario)


@pytest.mark.spec("S3-15", "B.18")
@pytest.mark.parametrize("begun", [False, True])
def test_interceptors_are_called_for_the_commits_of_close(begun: bool) -> None:
    class Interceptor:
        def __init__(self) -> None:
            self.heard: list[dict[Any, int]] = []
            self.closed = False

        def on_commit(self, offsets: Any) -> None:
            assert not self.closed
            self.heard.append({tp: at.offset for tp, at in offsets.items()})

        def close(self) -> None:
            self.closed = True

    async def scenario() -> None:
        async with EmbeddedCluster(brokers=1, topics={"t": 1}) as cluster:
            cluster.prepare_groups()
            cluster.produce("t", ["a", "b"])
            one = Interceptor()
            keys: dict[str, Any] = {"group_id": "g", "interceptors": [one], "enable_auto_commit": True}
            c = consumer_of(cluster, **keys)
            await c.assign([T0])
            if begun:
                await read(c, 2)
            c.commit_async({T0: OffsetAndMetadata(1)})
            await c.close()
            assert one.heard == [{T0: 1}, {T0: 2}][: 1 + begun]
            assert one.closed

    play(scenario)


async def _commit_async(c: AsyncConsumer, offsets: Any, callback: Any) -> None:
    c.commit_async(offsets, callback)


@pytest.mark.spec("B.18", "U-10")
def test_a_listener_that_commits_does_not_hold_close_up_where_the_cluster_has_gone() -> None:
    """Its commit fails after a second or so, and not when close() runs out of time."""

    class Committing(RebalanceListener):
        error: Exception | None = None

        async def on_partitions_revoked(self, partitions: Any) -> None:
            try:
                await c.commit()
            except KclientError as exc:
                self.error = exc

    async def scenario(place: Place) -> None:
        nonlocal c
        listener = Committing()
        c = place.consumer("t", group_id="g", listener=listener)
        place.cluster.produce("t", ["v"])
        await place.read(c, 1)
        for node in range(1, 4):
            place.cluster.kill(node)
        began = place.now
        await place.on_member(c.close())
        assert place.now - began <= 3.0
        assert isinstance(listener.error, CommitFailedError)

    c: Any = None
    simulate(scenario, brokers=3, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})
