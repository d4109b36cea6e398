"""A Kafka cluster and the user's own processes in one world: `simulate` runs a scenario, `Simulation` is what it gets.

    async def scenario(simulation):                # bill: the code to test, a coroutine function that consumes
        simulation.start("billing-1", bill, simulation.bootstrap_servers)
        simulation.start("billing-2", bill, simulation.bootstrap_servers)
        faults = simulation.draw_faults(seconds=60)
        await asyncio.gather(simulation.produce("orders", orders, seconds=60), simulation.inject(faults))
        await simulation.heal()
        await simulation.all_handled(seconds=120)

    simulate(scenario, seed=7, brokers=3, topics={"orders": 6})

Everything runs on one loop with a virtual clock: `asyncio.sleep(60)` takes no time. The scenario itself runs on no
host, so no fault reaches it. Each member has a host of its own, and each broker listens on one.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, TypeVar

import attrs

from kclient.embedded import EmbeddedCluster, NewRecord
from kclient.embedded.listener import Factory, Listener
from kclient.errors import ArgumentError, UsageError
from kclient.runtime import running_loop
from kclient.simulation.faults import FaultInjector, PlannedFault
from kclient.simulation.handled import HandledRecords, format_records
from kclient.simulation.members import CLUSTER_ERRORS, Function, SimulatedMember
from kclient.simulation.world import Outcome, World, run

T = TypeVar("T")
Value = str | bytes | None | tuple[str | bytes | None, str | bytes | None] | NewRecord

PORT: Final = 9092
LOOK_SECONDS: Final = 0.1  # between two looks at a condition
SHOWN: Final = 20  # faults and failures in a note


class Simulation:
    """See the module. `cluster` has all methods of an EmbeddedCluster; `rng` is for the scenario's own choices.

    `handled` counts which records were handled; `members` are the processes, by name.
    """

    def __init__(self, world: World, cluster: EmbeddedCluster) -> None:
        self.seed: object = world.seed
        self.rng: Random = world.rng
        self.cluster: EmbeddedCluster = cluster
        self.members: dict[str, SimulatedMember] = {}
        self.handled: HandledRecords = HandledRecords()
        self._failure: asyncio.Future[None] = world.loop.create_future()  # of a member, which ends the run
        self._world = world
        self._faults = FaultInjector(world, cluster, self.members)
        cluster.state.observers.append(self.handled)

    @property
    def now(self) -> float:
        """Virtual seconds since the start of the run."""
        return self._world.loop.time()

    @property
    def bootstrap_servers(self) -> str:
        """The brokers' addresses, for consumers in members."""
        return self.cluster.bootstrap_servers

    # --- records

    async def produce(self, topic: str, values: Iterable[Value], *, seconds: float = 0.0) -> None:
        """Append records, one by one, spread over so many virtual seconds; wait while a partition has no leader.

        A value is what `EmbeddedCluster.produce` takes; a missing topic is created. No fault loses or repeats a
        record: what is tested is who reads them.
        """
        waiting = list(values)
        began, pause = self.now, seconds / max(1, len(waiting))
        for number, value in enumerate(waiting):
            await asyncio.sleep(began + number * pause - self.now)
            await self.until(lambda value=value: self._produced(topic, value), seconds=None)  # type: ignore[misc]

    def _produced(self, topic: str, value: Value) -> bool:
        try:
            self.cluster.produce(topic, [value])
        except UsageError:  # the partition has no leader now
            return False
        return True

    # --- processes

    def start(
        self,
        name: str,
        function: Function,
        *args: object,
        restart_on: tuple[type[Exception], ...] = CLUSTER_ERRORS,
    ) -> SimulatedMember:
        """Run `await function(*args)` as a process on a host named `name`. Raise ArgumentError for a name in use.

        It makes its consumers itself, from `bootstrap_servers`. A process that raises one of `restart_on` is started
        again after a second, as a supervisor does: by default for ConnectError, BrokerError, CommitFailedError,
        OffsetError and DeadlineError. Any other exception ends the run.
        """
        if name in self.members or name in self._faults.brokers():
            raise ArgumentError(f"There is a host {name!r} already. Give the process a name of its own.")
        self._faults.connect(name)
        member = SimulatedMember(self._world, name, function, args, restart_on, self._fail)
        self.members[name] = member
        return member

    def _fail(self, problem: BaseException) -> None:
        if not self._failure.done():
            self._failure.set_exception(problem)

    # --- faults

    def draw_faults(
        self, *, seconds: float = 60.0, count: int = 8, kinds: Sequence[str] | None = None
    ) -> list[PlannedFault]:
        """Draw faults by the seed, for so many virtual seconds: all that are possible, or those of the given kinds.

        The kinds are kill_member, roll_member, pause_member, cut_member, slow_member, reset_connections, kill_broker,
        pause_broker, cut_broker and rebalance. Raise ArgumentError for others, and for those of members before a
        member was started.
        """
        return self._faults.draw(seconds, count, kinds)

    async def inject(self, faults: Sequence[PlannedFault]) -> None:
        """Begin and end each fault at its time from now; return when all are over."""
        await self._faults.inject(faults)

    async def heal(self) -> None:
        """End every fault: cuts and pauses end, brokers are up, members that were killed are started again."""
        await self._faults.heal()

    # --- the end

    async def until(self, condition: Callable[[], object], *, seconds: float | None = 60.0) -> None:
        """Wait until the condition is true. Raise TimeoutError after so many virtual seconds, with None never."""
        async with asyncio.timeout(seconds):
            while not condition():  # noqa: ASYNC110 – it is the caller's, and time costs nothing
                await asyncio.sleep(LOOK_SECONDS)

    async def all_handled(self, topic: str | None = None, *, seconds: float = 120.0) -> None:
        """Wait until every record in the logs was handled. Raise AssertionError naming those that were not.

        Give it time: a group waits for the session timeout of a member that was killed, 45 s by default.
        """
        try:
            await self.until(lambda: not self.handled.missing(topic), seconds=seconds)
        except TimeoutError:
            missing, counts = self.handled.missing(topic), self.handled.counts(topic)
            raise AssertionError(
                f"{len(missing)} of {len(counts)} records were never handled: {format_records(missing)}"
            ) from None

    def report(self) -> str:
        """Return what went wrong so far: the faults that have begun, the exceptions that ended processes."""
        faults = [str(fault) for fault in self._faults.begun]
        ended = [
            f"{at:7.2f} s  {member.name} ended with {type(exc).__name__}: {str(exc).partition(chr(10))[0]}"
            for member in self.members.values()
            for at, exc in member.failures
        ]
        lines = sorted([*faults, *ended])
        more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        return "\n".join(["faults and failures:", *lines[:SHOWN], *more]) if lines else "no faults"


def simulate(
    scenario: Callable[[Simulation], Awaitable[T]],
    *,
    seed: int | str = 1,
    brokers: int = 3,
    topics: Mapping[str, int] | None = None,
    config: Mapping[str, Any] | None = None,
    release: str = "4.3",
    limit: float = 3600.0,
    history: bool = False,
) -> Outcome[T]:
    """Run `scenario(simulation)` with a cluster of so many brokers. The same seed gives the same run.

    `topics`, `config` and `release` are those of EmbeddedCluster; the run may take `limit` virtual seconds. `history`
    keeps a line for each event in the outcome.

    Raise what the scenario raises, or a member; SimulationTimeoutError, SimulationDeadlockError or
    SimulationLivelockError, with a line for each task, if the run does not end; AssertionError for an exception that
    nothing awaited; UsageError on a running event loop. A note says which faults had begun.
    """
    if running_loop() is not None:
        raise UsageError(
            "A simulation runs an event loop of its own, and one runs here already. Call it from a plain function: "
            "def test_…(kafka_simulation), with `async def` for the scenario alone."
        )
    began: list[Simulation] = []

    async def main(world: World) -> T:
        cluster = EmbeddedCluster(
            brokers,
            release=release,
            topics=topics,
            config=config,
            addresses=[(f"broker-{number + 1}", PORT) for number in range(brokers)],
            runtime=world.runtime("cluster"),
            serve=lambda factory, listener: _serve(world, factory, listener),
        )
        async with cluster:
            cluster.prepare_groups()
            simulation = Simulation(world, cluster)
            began.append(simulation)
            return await _first_of(world, scenario, simulation)

    try:
        outcome = run(seed, main, limit=limit, history=history)
        if outcome.findings:
            raise AssertionError(
                f"exceptions that nothing awaited, seed {seed}:\n" + "\n".join(outcome.findings)
            )
    except BaseException as exc:
        if began:
            exc.add_note(began[0].report())
        raise
    return outcome


async def _first_of(
    world: World, scenario: Callable[[Simulation], Awaitable[T]], simulation: Simulation
) -> T:
    """Return what the scenario returns. Raise what ends a member, as soon as it does."""

    async def play() -> T:
        return await scenario(simulation)

    playing = world.loop.create_task(play(), name="scenario", context=contextvars.copy_context())
    await asyncio.wait([playing, simulation._failure], return_when=asyncio.FIRST_COMPLETED)
    if not playing.done():
        playing.cancel()
        simulation._failure.result()
    result: T = playing.result()
    return result


async def _serve(world: World, factory: Factory, listener: Listener) -> asyncio.Server:
    """Listen behind the address of the broker's host; the cluster itself runs on no host."""
    if listener.host not in world.network.by_name:
        world.host(listener.host)
    server: asyncio.Server = await world.loop.create_server(
        factory, listener.host, listener.port, ssl=listener.ssl
    )
    return server


@attrs.frozen
class SimulationRunner:
    """Runs a scenario once for each seed: what the pytest fixture `kafka_simulation` is.

    `only_seed` is that of `--kafka-seed`: then no other seed runs.
    """

    only_seed: int | None = None

    def __call__(
        self,
        scenario: Callable[[Simulation], Awaitable[T]],
        *,
        seeds: Iterable[int] = range(1, 11),
        brokers: int = 3,
        topics: Mapping[str, int] | None = None,
        config: Mapping[str, Any] | None = None,
        release: str = "4.3",
        limit: float = 3600.0,
    ) -> list[Outcome[T]]:
        """Return the outcome of each seed. See `simulate`; the first seed that fails ends it, and a note names it."""
        if isinstance(seeds, int):
            raise ArgumentError(f"seeds={seeds} is one number. Give seeds=[{seeds}] to run one seed.")
        outcomes: list[Outcome[T]] = []
        for seed in seeds if self.only_seed is None else (self.only_seed,):
            try:
                outcome = simulate(
                    scenario,
                    seed=seed,
                    brokers=brokers,
                    topics=topics,
                    config=config,
                    release=release,
                    limit=limit,
                )
            except BaseException as exc:
                exc.add_note(f"repeat it with: pytest --kafka-seed={seed}")
                raise
            outcomes.append(outcome)
        if not outcomes:
            raise ArgumentError("seeds is empty: nothing was run. Give seeds=range(1, 11), or one as [7].")
        return outcomes
