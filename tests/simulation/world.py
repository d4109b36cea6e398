"""One run: a world made from a seed, in which nothing is real, and what came of it.

While a world stands, `time.*`, `random` and `os.urandom` are its own, and `time.sleep`, starting a thread and
connecting a socket are refused. The garbage collector is off, because finalizers would run at moments that depend on
memory; at the end every coroutine that is left is closed, so that none of it reaches into the next run.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Final, Generic, TypeVar

import attrs

from kclient.runtime import Runtime
from tests.simulation.hosts import Host
from tests.simulation.loop import SimLoop
from tests.simulation.network import Network
from tests.simulation.patches import patched

T = TypeVar("T")
EPOCH: Final = 1_767_225_600.0  # the wall clock at the start: 1 January 2026, UTC


@attrs.define
class WallClock:
    """A host's wall clock: set `skew` (seconds) and it is wrong (F-25). The loop's time knows nothing of it."""

    loop: SimLoop
    skew: float = 0.0

    def __call__(self) -> float:
        return EPOCH + self.loop.time() + self.skew


@attrs.define
class World:
    """What a simulated program gets. `rng` is for the test's own choices."""

    seed: object
    loop: SimLoop
    network: Network
    rng: Random
    clocks: dict[str, WallClock] = attrs.field(factory=dict)

    def host(self, name: str, *addresses: str) -> Host:
        """A new host, or the next incarnation of an old one; its first address is 10.0.0.n unless given."""
        known = self.network.by_name
        if name in known:
            return known[name].restart()
        host = Host(self.loop, name, addresses or (f"10.0.0.{len(known) + 1}",))
        self.network.attach(host)
        return host

    def clock(self, name: str) -> WallClock:
        """The wall clock of a host; a restart does not set it right."""
        return self.clocks.setdefault(name, WallClock(self.loop))

    def runtime(self, name: str) -> Runtime:
        """A seeded Runtime for code on that host: its wall clock is the host's, its random numbers are its own."""
        return Runtime(
            rng=Random(f"{self.seed}:{name}:{self.loop.next_number()}"), wall_clock=self.clock(name)
        )


@attrs.frozen
class Outcome(Generic[T]):
    """What came of a run. Equal digests: the same things happened in the same order."""

    result: T
    digest: str
    seconds: float  # virtual
    callbacks: int
    findings: tuple[str, ...]  # unhandled exceptions
    history: tuple[str, ...]


@contextmanager
def world(seed: object, *, limit: float = 3600.0, history: bool = False, **options: Any) -> Iterator[World]:
    """A world that stands until the block is left; be in `uncollected()`.

    `limit` in virtual seconds; more `options` are SimLoop's.
    """
    loop = SimLoop(seed, limit=limit, history=history, **options)
    made = World(seed, loop, Network(loop, seed), Random(f"{seed}:world"))
    with patched(loop, Random(f"{seed}:patched"), WallClock(loop)):
        try:
            yield made
        finally:
            _end(made)


def run(
    seed: object,
    main: Callable[[World], Awaitable[T]],
    *,
    limit: float = 3600.0,
    history: bool = False,
    **options: Any,
) -> Outcome[T]:
    """Run `main(world)` to its end. What it raises comes out with the seed noted on it. Raises SimStuck."""
    with uncollected():  # around the world, so that nothing of it is left when the collector looks
        return _run(seed, main, limit=limit, history=history, **options)


def _run(seed: object, main: Callable[[World], Awaitable[T]], **options: Any) -> Outcome[T]:
    with world(seed, **options) as made:
        loop = made.loop
        try:
            result = loop.run_until_complete(main(made))
        except BaseException as exc:
            exc.add_note(f"seed {seed}, {loop.time():.6f} virtual s")
            raise
        digest = loop.trace_of.digest()
        gc.collect()  # tasks dropped with an exception that was never retrieved report it now
        return Outcome(
            result,
            digest,
            loop.time(),
            loop.callbacks,
            tuple(loop.findings),
            tuple(loop.trace_of.lines or ()),
        )


@contextmanager
def uncollected() -> Iterator[None]:
    """Keep the collector from running in a world; everything that a world left is collected at the end."""
    enabled = gc.isenabled()
    gc.disable()
    gc.freeze()  # what was there before need not be looked at when this run is collected
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
        if enabled:
            gc.enable()


def _end(made: World) -> None:
    """Close every coroutine that is left; nothing that their `finally` blocks schedule will run."""
    loop = made.loop
    loop.ended = True
    kept = [thing for host in loop.hosts for thing in host.bury()]
    tasks = [*asyncio.all_tasks(loop), *(thing for thing in kept if isinstance(thing, asyncio.Task))]
    asyncio._set_running_loop(loop)
    try:
        for task in sorted(tasks, key=lambda task: task.number):
            task._log_destroy_pending = False
            _close(task.get_coro())
        for connection in made.network.connections.values():
            connection.client.hush()
            connection.server.hush()
    finally:
        asyncio._set_running_loop(None)
    loop.close()


def _close(coroutine: Any) -> None:
    for _ in range(100):  # a `finally` that awaits ignores the end once for each await
        try:
            coroutine.close()
        except RuntimeError:
            continue
        except Exception:  # noqa: BLE001 – of a program that is dead
            return
        return
