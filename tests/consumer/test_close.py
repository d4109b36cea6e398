"""close() in every state of a consumer: it ends in time, does what can still be done, and leaves no task or thread."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import pytest

from kclient import AsyncConsumer, RebalanceListener
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError, UsageError
from tests.scenarios.simulated import Place, has_left, simulate
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until

CLOSE_SECONDS: Final = 6.0
AT_ONCE: Final = 0.5
LONG_MS: Final = 60_000


@attrs.define
class Scene:
    """A consumer with records to commit, what waits in other tasks, and what its listener is held by."""

    place: Place
    consumer: AsyncConsumer
    listener: Held
    tasks: list[asyncio.Task[Any]] = attrs.field(factory=list)

    @property
    def cluster(self) -> Any:
        return self.place.cluster

    def beside(self, call: Awaitable[Any]) -> None:
        """Make a call in a task of its own, on the client's host."""

        async def run() -> None:
            await call

        self.tasks.append(asyncio.ensure_future(self.place.on_member(run())))

    async def seen(self, api: str) -> None:
        """Wait until the cluster was asked this, and the question lies there."""
        async with asyncio.timeout(30):
            while not self.place.asked(api):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def stable(self) -> None:
        """Be a member that has been given ten records, none of them committed."""
        assert len(await self.place.read(self.consumer, 10)) == 10


@attrs.define
class Held(RebalanceListener):
    """Its revocation waits for `go`, if `holds`."""

    holds: bool = False
    entered: asyncio.Event = attrs.field(factory=asyncio.Event)
    go: asyncio.Event = attrs.field(factory=asyncio.Event)

    async def on_partitions_revoked(self, partitions: Any) -> None:
        self.entered.set()
        if self.holds:
            await self.go.wait()


State = Callable[[Scene], Awaitable[None]]
STATES: dict[str, tuple[State, float, bool, bool]] = {}


def state(
    name: str, *, seconds: float = AT_ONCE, commits: bool = False, leaves: bool = False
) -> Callable[[State], State]:
    """How a state comes about; how long close() may take in it, and what of its work must have been done."""

    def known(how: State) -> State:
        STATES[name] = (how, seconds, commits, leaves)
        return how

    return known


# --- not a member yet


@state("never used")
async def never_used(scene: Scene) -> None:
    return


@state("starting")
async def starting(scene: Scene) -> None:
    scene.cluster.delay("ApiVersions", LONG_MS)
    scene.beside(scene.consumer.poll(30))
    await asyncio.sleep(0.5)


@state("no broker from the start")
async def no_broker(scene: Scene) -> None:
    kill_all(scene)
    scene.beside(scene.consumer.poll(30))
    await asyncio.sleep(0.5)


@state("looking for the coordinator")
async def looking_for_coordinator(scene: Scene) -> None:
    scene.cluster.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
    scene.beside(scene.consumer.poll(30))
    await scene.seen("FindCoordinator")


@state("the lookup is not answered")
async def lookup_unanswered(scene: Scene) -> None:
    scene.cluster.delay("FindCoordinator", LONG_MS)
    scene.beside(scene.consumer.poll(30))
    await scene.seen("FindCoordinator")


@state("joining", leaves=True)
async def joining(scene: Scene) -> None:
    scene.cluster.delay("JoinGroup", LONG_MS, only_if=lambda request: request.member_id != "")
    scene.beside(scene.consumer.poll(30))
    async with asyncio.timeout(30):
        while len(scene.place.asked("JoinGroup")) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@state("syncing", leaves=True)
async def syncing(scene: Scene) -> None:
    scene.cluster.delay("SyncGroup", LONG_MS)
    scene.beside(scene.consumer.poll(30))
    await scene.seen("SyncGroup")


@state("reading committed offsets", seconds=CLOSE_SECONDS)
async def reading_committed(scene: Scene) -> None:
    scene.cluster.delay("OffsetFetch", LONG_MS)
    scene.beside(scene.consumer.poll(30))
    await scene.seen("OffsetFetch")


# --- a member


@state("stable", commits=True, leaves=True)
async def stable(scene: Scene) -> None:
    await scene.stable()


@state("woken", commits=True, leaves=True)
async def woken(scene: Scene) -> None:
    """Nothing that close() does is cut short by a wakeup. Spec: B.3.7."""
    await scene.stable()
    scene.consumer.wakeup()


@state("a fetch in flight", commits=True, leaves=True)
async def fetching(scene: Scene) -> None:
    await scene.stable()
    scene.beside(scene.consumer.poll(30))
    await asyncio.sleep(1.0)


@state("a commit in flight", seconds=3.0 + AT_ONCE, commits=True, leaves=True)
async def committing(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.delay("OffsetCommit", 1_500)
    scene.beside(scene.consumer.commit())
    await scene.seen("OffsetCommit")


@state("a commit that is not answered", seconds=CLOSE_SECONDS)
async def commit_unanswered(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.delay("OffsetCommit", LONG_MS)
    scene.beside(scene.consumer.commit())
    await scene.seen("OffsetCommit")


@state("commits that wait for the coordinator", seconds=CLOSE_SECONDS)
async def commits_waiting(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.fail("OffsetCommit", "NOT_COORDINATOR", times=None)
    scene.cluster.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
    for _ in range(3):
        scene.consumer.commit_async()
    await asyncio.sleep(0.5)


@state("in a rebalance", commits=True, leaves=True)
async def rebalancing(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.delay("JoinGroup", LONG_MS)
    scene.consumer.enforce_rebalance()
    asked = len(scene.place.asked("JoinGroup"))
    scene.beside(scene.consumer.poll(30))
    async with asyncio.timeout(30):
        while len(scene.place.asked("JoinGroup")) == asked:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@state("in a callback", seconds=CLOSE_SECONDS, commits=True, leaves=True)
async def in_a_callback(scene: Scene) -> None:
    await scene.stable()
    scene.listener.holds = True
    scene.consumer.enforce_rebalance()
    scene.beside(scene.consumer.poll(30))
    await scene.listener.entered.wait()


@state("leaving", seconds=CLOSE_SECONDS, leaves=True)
async def leaving(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.delay("LeaveGroup", LONG_MS)
    scene.beside(scene.consumer.unsubscribe())
    await scene.seen("LeaveGroup")


@state("closing already", seconds=CLOSE_SECONDS, commits=True, leaves=True)
async def closing_already(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.delay("LeaveGroup", LONG_MS)
    scene.beside(scene.consumer.close(CLOSE_SECONDS))
    await scene.seen("LeaveGroup")


@state("fenced")
async def fenced(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.fail("Heartbeat", "FENCED_INSTANCE_ID", times=1)
    await asyncio.sleep(5.0)


# --- the cluster fails it


def kill_all(scene: Scene) -> None:
    for node in scene.cluster.state.brokers:
        scene.cluster.kill(node)


@state("the coordinator is gone", seconds=2.0, commits=True, leaves=True)
async def coordinator_gone(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.kill(scene.cluster.coordinator_of("g"))


@state("the coordinator stands still", seconds=CLOSE_SECONDS)
async def coordinator_paused(scene: Scene) -> None:
    await scene.stable()
    scene.cluster.pause(scene.cluster.coordinator_of("g"))


@state("every broker is gone", seconds=2.0)
async def cluster_gone(scene: Scene) -> None:
    await scene.stable()
    kill_all(scene)


@state("every broker has been gone for long", seconds=2.0)
async def cluster_gone_for_long(scene: Scene) -> None:
    await scene.stable()
    kill_all(scene)
    await asyncio.sleep(60.0)


@state("every broker stands still", seconds=CLOSE_SECONDS)
async def cluster_paused(scene: Scene) -> None:
    await scene.stable()
    for node in scene.cluster.state.brokers:
        scene.cluster.pause(node)


OF_CLASSIC_GROUPS: Final = (
    "joining",
    "syncing",
    "in a rebalance",
    "in a callback",
    "leaving",
    "closing already",
    "fenced",
)


def answered(place: Place, api: str) -> list[Any]:
    """The responses without an error."""
    responses = [one.response for one in place.asked(api) if one.response is not None]
    return [a for a in responses if all(p.error_code == 0 for topic in a.topics for p in topic.partitions)]


@pytest.mark.spec("I-24", "B.18", "U-10", "M-89", "M-90")
@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        (protocol, name)
        for protocol in ("classic", "consumer")
        for name in STATES
        if protocol == "classic" or name not in OF_CLASSIC_GROUPS
    ],
)
def test_close_in_every_state(protocol: str, name: str) -> None:
    how, seconds, commits, leaves = STATES[name]

    async def scenario(place: Place) -> None:
        held = Held()
        place.cluster.produce("t", [f"v{number}" for number in range(10)], partition=0)
        keys = {"group_id": "g", "enable_auto_commit": True, "group_protocol": protocol}
        consumer = place.consumer("t", listener=held, **keys)
        scene = Scene(place, consumer, held)
        await how(scene)
        began = place.now
        await place.on_member(consumer.close(CLOSE_SECONDS))
        took = place.now - began
        assert took <= seconds + 0.1, f"{took} s"
        held.go.set()
        ends = await asyncio.gather(*scene.tasks, return_exceptions=True)
        assert [end for end in ends if not isinstance(end, KclientError | None)] == []
        assert place.network.by_name["member"].leftovers() == []
        assert bool(answered(place, "OffsetCommit")) == commits
        assert has_left(place) == leaves

    simulate(scenario, brokers=3, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})


@pytest.mark.spec("B.18", "B.3.7", "S4-44")
def test_close_without_time_makes_one_attempt_of_each_step() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            cluster.produce("t", ["v0", "v1"], partition=0)
            consumer = consumer_of(cluster, "t", group_id="g", enable_auto_commit=True)
            assert len(await read(consumer, 2)) == 2
            cluster.forget_requests()
            await consumer.close(0)
            await until(lambda: asked(cluster, "LeaveGroup"))
            apis = [one.api for one in cluster.requests]
            assert apis.index("OffsetCommit") < apis.index("LeaveGroup")
            assert cluster.committed("g") == {T0: 2}

    play(scenario)


# --- a second close


@pytest.mark.spec("B.18", "I-24")
def test_a_second_close_sees_the_first_one_through_as_long_as_it_has_time() -> None:
    """Who closes on a signal may end the loop after it."""

    async def scenario(place: Place) -> None:
        held = Held(holds=True)
        consumer = place.consumer("t", listener=held, group_id="g")
        await place.poll_until(consumer, consumer.assignment)
        first = asyncio.ensure_future(place.on_member(consumer.close(30)))
        await held.entered.wait()
        began = place.now
        await place.on_member(consumer.close(1.5))
        assert (place.now - began, consumer.closed) == (pytest.approx(1.5, abs=0.1), False)
        second = asyncio.ensure_future(place.on_member(consumer.close(30)))
        await asyncio.sleep(1)
        assert not second.done()
        held.go.set()
        await second
        assert consumer.closed
        assert has_left(place)
        await first

    simulate(scenario, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})


@pytest.mark.spec("B.18", "I-24")
@pytest.mark.parametrize("call", ["close", "poll"])
def test_a_listener_that_closes_does_not_wait_for_the_close_that_waits_for_it(call: str) -> None:
    async def scenario(place: Place) -> None:
        class Closing(Held):
            async def on_partitions_revoked(self, partitions: Any) -> None:
                await super().on_partitions_revoked(partitions)
                await consumer.close(30)

        closing = Closing(holds=True)
        consumer = place.consumer("t", listener=closing, group_id="g")
        await place.poll_until(consumer, consumer.assignment)
        if call == "poll":
            consumer.enforce_rebalance()
            poll = asyncio.ensure_future(place.on_member(consumer.poll(30)))
            await closing.entered.wait()
        began = place.now
        other = asyncio.ensure_future(place.on_member(consumer.close(30)))
        await closing.entered.wait()
        await asyncio.sleep(0.1)
        closing.go.set()
        await other
        assert place.now - began < 1
        if call == "poll":
            await asyncio.gather(poll, return_exceptions=True)

    simulate(scenario, topics={"t": 1}, config={"group.initial.rebalance.delay.ms": 0})


# --- another loop


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_close_after_the_end_of_its_loop_says_what_became_of_the_consumer() -> None:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        consumer = consumer_of(cluster, "t", group_id="g")
        asyncio.run(consumer.poll(5))
        with pytest.raises(UsageError, match="event loop of this consumer ended before it was closed"):
            asyncio.run(consumer.close(5))
        assert consumer.closed
        asyncio.run(consumer.close(5))
        del consumer
        gc.collect()


def test_a_close_on_another_loop_leaves_the_consumer_to_its_own() -> None:
    async def use() -> AsyncConsumer:
        consumer = consumer_of(cluster, "t", group_id="g")
        await consumer.poll(5)
        with pytest.raises(UsageError, match="belongs to another event loop"):
            await asyncio.to_thread(asyncio.run, consumer.close(5))
        assert not consumer.closed
        await consumer.close()
        return consumer

    with EmbeddedCluster(topics={"t": 1}) as cluster:
        assert asyncio.run(use()).closed
