"""One run: a world made from a seed, in which nothing is real, and what came of it.

While a world stands, `time.*`, `random`, `os.urandom` and `signal.signal` are its own, and `time.sleep`, starting a
thread and connecting a socket are refused. The garbage collector is off, because finalizers would run at moments that
depend on memory; at the end every coroutine that is left is closed, so that none of it reaches into the next run.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any, Final, Generic, TypeVar
from unittest.mock import patch

import attrs

from kclient.bridge import LoopThread
from kclient.config import rules
from kclient.runtime import Runtime
from kclient.simulation.loop import SimLoop
from kclient.simulation.network import Host, Network
from kclient.simulation.sockets import Sockets

T = TypeVar("T")
EPOCH: Final = 1_767_225_600.0  # the wall clock at the start: 1 January 2026, UTC


class SimulationForbiddenError(RuntimeError):
    """Code under simulation reached for the real world."""


@attrs.define
class WallClock:
    """A host's wall clock: set `skew` (seconds) and it is wrong. The loop's time knows nothing of it."""

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
        """Return a new host, or the next incarnation of an old one; its first address is 10.0.0.n unless given."""
        known = self.network.by_name
        if name in known:
            return known[name].restart()
        host = Host(self.network, name, addresses or (f"10.0.0.{len(known) + 1}",))
        self.network.attach(host)
        return host

    def clock(self, name: str) -> WallClock:
        """Return the wall clock of a host; a restart does not set it right."""
        return self.clocks.setdefault(name, WallClock(self.loop))

    def runtime(self, name: str) -> Runtime:
        """Return a seeded Runtime for code on a host: with the host's wall clock, and random numbers of its own."""
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
    """Make a world that stands until the block is left; be in `uncollected()`.

    `limit` in virtual seconds; more `options` are SimLoop's.
    """
    loop = SimLoop(seed, limit=limit, history=history, **options)
    network = Network(loop, seed)
    loop.sockets = Sockets(network)
    made = World(seed, loop, network, Random(f"{seed}:world"))
    with _patched(loop, Random(f"{seed}:patched"), WallClock(loop)):
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
    """Run `main(world)` to its end. What it raises comes out with the seed noted on it. Raise SimulationStuckError."""
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
        digest = loop.history.digest()
        gc.collect()  # tasks dropped with an exception that was never retrieved report it now
        return Outcome(
            result,
            digest,
            loop.time(),
            loop.callbacks,
            tuple(loop.findings),
            tuple(loop.history.lines or ()),
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
    kept = [thing for process in loop.processes for thing in process.take_kept()]
    tasks: list[Any] = [
        *asyncio.all_tasks(loop),
        *(thing for thing in kept if isinstance(thing, asyncio.Task)),
    ]
    asyncio._set_running_loop(loop)
    try:
        for task in sorted(tasks, key=lambda task: task.number):
            task._log_destroy_pending = False
            _close(task.get_coro())
        for connection in made.network.connections.values():
            connection.client.mark_closed()
            connection.server.mark_closed()
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


# --- what is not of this world while one stands


@contextmanager
def _patched(loop: SimLoop, rng: Random, wall_clock: Callable[[], float]) -> Iterator[None]:
    """Replace the clocks and randomness of the process; refuse what waits or leaves it."""
    state = random.getstate()
    random.seed(rng.random())
    with ExitStack() as stack:
        for module, name, value in _replacements(loop, rng, wall_clock):
            stack.enter_context(patch.object(module, name, value))
        try:
            yield
        finally:
            random.setstate(state)


def _replacements(
    loop: SimLoop, rng: Random, wall_clock: Callable[[], float]
) -> Iterator[tuple[Any, str, Any]]:
    clocks: dict[str, Callable[[], Any]] = {
        "time": wall_clock,
        "time_ns": lambda: int(wall_clock() * 1e9),
        "monotonic": loop.time,
        "monotonic_ns": lambda: int(loop.time() * 1e9),
        "perf_counter": loop.time,
        "perf_counter_ns": lambda: int(loop.time() * 1e9),
    }
    for name, clock in clocks.items():
        yield time, name, _here(clock, getattr(time, name))
    yield os, "urandom", _here(rng.randbytes, os.urandom)
    yield random, "_urandom", _here(rng.randbytes, os.urandom)  # SystemRandom, and with it `secrets`
    yield time, "sleep", _here(_refused("time.sleep"), time.sleep)
    yield threading.Thread, "start", _here(_refused("threading.Thread.start"), threading.Thread.start)
    yield socket.socket, "connect", _here(_refused("socket.socket.connect"), socket.socket.connect)
    # Another test's Consumer may have started the thread that a Consumer in the world would use.
    yield LoopThread, "join", _here(_refused("Consumer"), LoopThread.join)
    yield signal, "signal", _here(loop.set_signal_handler, signal.signal)
    yield sys, "unraisablehook", _noted_by(loop)
    yield rules, "_consumers", itertools.count(1)  # client ids are counted by process


def _here(in_world: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Replace a function for the thread that runs the world; others, of an embedded cluster, are in the real one."""
    here = threading.get_ident()

    def call(*args: Any, **keywords: Any) -> Any:
        return (in_world if threading.get_ident() == here else real)(*args, **keywords)

    return call


def _refused(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **keywords: Any) -> Any:
        raise SimulationForbiddenError(
            f"{name} was called in a simulation, which has one thread, virtual time and no real network. Use "
            "AsyncConsumer instead of Consumer, asyncio.sleep() instead of time.sleep(), and run_in_executor() or "
            "asyncio.to_thread() for what blocks."
        )

    return refuse


def _noted_by(loop: SimLoop) -> Callable[[Any], None]:
    def note(unraisable: Any) -> None:
        loop.call_exception_handler(
            {"message": str(unraisable.err_msg or "ignored"), "exception": unraisable.exc_value}
        )

    return note
