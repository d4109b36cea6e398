"""A loop whose time is a number: it jumps to the next timer, and one seed decides what runs first.

Nothing here waits. Each callback costs 5 µs of virtual time, because code that waits for what is left of a timeout
would otherwise spin for ever on a rest of 1e-16 s. Within one iteration the steps of tasks run in a seeded order;
plain callbacks keep theirs, because asyncio itself relies on it. Equal deadlines fire in a seeded order too.

Connections, ports and names lead to `sockets`, which the network provides; executors run their function in place.

A run that cannot go on raises SimulationDeadlockError when nothing can ever happen again (a lost wakeup),
SimulationTimeoutError past the limit (a hang), SimulationLivelockError when a virtual second holds too many callbacks
(a hot loop).
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
from array import array
from asyncio import base_events
from collections.abc import Callable, Coroutine
from hashlib import blake2b
from random import Random
from typing import Any, Final, Protocol

from kclient.simulation.process import CURRENT_PROCESS, UP, Process, current_name
from kclient.simulation.schedule import SimFuture, SimHandle, SimTask, SimTimer, Timers
from kclient.simulation.stuck import RunLimits, SimulationDeadlockError, callback_name, waiting_tasks

CALLBACK_SECONDS: Final = 5e-6
CALLBACKS_A_SECOND: Final = 50_000  # of virtual time; 200,000 is what never jumping gives
OFFLOAD_SECONDS: Final = 0.01
FLUSH_NUMBERS: Final = 16_384


class LoopSockets(Protocol):
    """What a loop needs of a network."""

    async def create_connection(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """See `asyncio.loop.create_connection`."""

    async def create_server(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:
        """See `asyncio.loop.create_server`."""

    async def getaddrinfo(self, host: Any, port: Any) -> list[Any]:
        """See `asyncio.loop.getaddrinfo`."""

    async def getnameinfo(self, sockaddr: tuple[Any, ...]) -> tuple[str, str]:
        """See `asyncio.loop.getnameinfo`."""


class Trace:
    """The history of a run, as a digest always and as lines to read when asked for.

    Every callback goes in with its time and its task's number, so two runs of one digest did the same things in the
    same order. Payload bytes never go in: TLS draws its own randomness. `lines` is None unless the history is kept.
    """

    def __init__(self, *, history: bool) -> None:
        self.lines: list[str] | None = [] if history else None
        self._hash = blake2b(digest_size=16)
        self._numbers = array("d")

    def step(self, *numbers: float) -> None:
        """Put numbers into the digest."""
        self._numbers.extend(numbers)
        if len(self._numbers) >= FLUSH_NUMBERS:
            self._flush()

    def event(self, now: float, words: tuple[object, ...]) -> None:
        """Put words into the digest, and into the history with time and host."""
        self._flush()
        line = f"{now:12.6f} {current_name():<10} {' '.join(map(str, words))}"
        self._hash.update(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    def digest(self) -> str:
        """Return the digest of everything so far."""
        self._flush()
        return self._hash.hexdigest()

    def _flush(self) -> None:
        if self._numbers:
            self._hash.update(self._numbers)
            self._numbers = array("d")


class SimLoop(base_events.BaseEventLoop):
    """See the module. `limit` in virtual seconds; `findings` are unhandled exceptions."""

    def __init__(
        self,
        seed: object = 0,
        *,
        limit: float = float("inf"),
        callbacks_a_second: int = CALLBACKS_A_SECOND,
        history: bool = False,
    ) -> None:
        super().__init__()
        self.limits: RunLimits = RunLimits(limit, callbacks_a_second)
        self.rng: Random = Random(f"{seed}:schedule")
        self.timers: Timers = Timers(self.rng)
        self.history: Trace = Trace(history=history)
        self.findings: list[str] = []
        self.callbacks: int = 0
        self.ended: bool = False  # the run is over: nothing is scheduled any more
        self.processes: list[Process] = []  # every incarnation
        self.resumed: list[Process] = []
        self._sockets: LoopSockets | None = None
        self._signal_handlers: dict[int, Any] = {}  # of what runs in no process
        self._now = 0.0
        self._numbers = 0
        self._ready: list[SimHandle] = []

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def next_number(self) -> int:
        """Return the number of the next future, task or other thing that needs one."""
        self._numbers += 1
        return self._numbers

    def create_future(self) -> SimFuture:
        return SimFuture(self, self.next_number())

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> SimTask:
        if self.ended:
            coro.close()  # it will never run; else Python would warn that it was never awaited
        return SimTask(self, self.next_number(), coro, name, context)

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> SimHandle:
        handle = SimHandle(callback, args, self, context)
        if not self.ended:
            self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> SimHandle:
        return self.call_soon(callback, *args, context=context)  # there is one thread

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> SimTimer:
        timer = SimTimer(when, callback, args, self, context)
        if not self.ended:
            self.timers.add(timer)
        return timer

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: object,
        context: contextvars.Context | None = None,
    ) -> SimTimer:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note an unhandled exception; a test looks at `findings`."""
        if not self.ended:
            problem = context.get("exception")
            self.findings.append(f"{context.get('message')}: {problem!r}")
            self.trace("unhandled", type(problem).__name__)

    # --- connections, names, executors

    @property
    def sockets(self) -> LoopSockets:
        """The network that this loop is on. Raise OSError without one."""
        if self._sockets is None:
            raise OSError("this loop has no network")
        return self._sockets

    @sockets.setter
    def sockets(self, sockets: LoopSockets) -> None:
        self._sockets = sockets

    async def create_connection(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:  # type: ignore[override]
        return await self.sockets.create_connection(factory, *args, **options)

    async def create_server(self, factory: Callable[[], Any], *args: Any, **options: Any) -> Any:  # type: ignore[override]
        return await self.sockets.create_server(factory, *args, **options)

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> list[Any]:
        return await self.sockets.getaddrinfo(host, port)

    async def getnameinfo(self, sockaddr: tuple[Any, ...], flags: int = 0) -> tuple[str, str]:
        return await self.sockets.getnameinfo(sockaddr)

    def run_in_executor(
        self, executor: object, func: Callable[..., Any], *args: object
    ) -> asyncio.Future[Any]:
        """Run `func` here, in one piece, after a seeded delay; not at all if no task waits for it before that."""
        done = self.create_future()
        timer = self.call_later(self.rng.random() * OFFLOAD_SECONDS, _run_into, done, func, args)
        done.add_done_callback(lambda _: timer.cancel())
        return done

    # --- signals

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: object) -> None:
        """Set the handler in the process that runs, or outside of all. Nothing but a test sends signals."""
        self.set_signal_handler(sig, lambda number, frame: callback(*args))

    def remove_signal_handler(self, sig: int) -> bool:
        return self.handlers_of_process().pop(sig, None) is not None

    def set_signal_handler(self, sig: int, handler: Any) -> Any:
        """See `signal.signal`: return the handler before."""
        handlers = self.handlers_of_process()
        before = handlers.get(sig, signal.SIG_DFL)
        handlers[sig] = handler
        return before

    def handlers_of_process(self) -> dict[int, Any]:
        """Return the signal handlers of the process that runs."""
        process = CURRENT_PROCESS.get()
        return self._signal_handlers if process is None else process.signal_handlers

    # --- the trace

    def trace(self, *words: object) -> None:
        """Put an event into the digest and, if it is kept, into the history."""
        self.history.event(self._now, words)

    # --- one iteration

    def _run_once(self) -> None:
        if self.resumed:
            self._take_parked()
        if not self._ready and not self._stopping:  # type: ignore[attr-defined]
            self._jump()
        batch, self._ready = self._ready, []
        self.timers.take_due(self._now, batch)
        if len(batch) > 1:
            self._permute_steps(batch)
        self.callbacks += len(batch)
        self.limits.check(self, self.callbacks)
        step = self.history.step
        for handle in batch:
            if handle._cancelled:
                continue
            context = handle._context
            process = context.get(CURRENT_PROCESS)
            if process is not None and process.state is not UP:
                process.defer(handle)
                continue
            self._now += CALLBACK_SECONDS
            callback = handle._callback
            owner = getattr(callback, "__self__", None)
            step(self._now, owner.number if type(owner) is SimTask else 0)
            try:
                context.run(callback, *handle._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as exc:  # noqa: BLE001 – as asyncio does: passed to the handler
                self.call_exception_handler({"message": f"in {callback_name(callback)}", "exception": exc})

    def _take_parked(self) -> None:
        """Put what was parked of a resumed process first: its later callbacks must not overtake it."""
        processes, self.resumed = self.resumed, []
        parked: list[Any] = []
        for process in processes:
            if process.resume_if_due():
                self.trace("host", process.name, "resumed")
                parked += process.take_parked()
        self._ready[:0] = parked

    def _jump(self) -> None:
        """Move the clock to the next timer."""
        when = self.timers.next_time()
        if when is None:
            raise SimulationDeadlockError(f"nothing can happen after {self._now:.6f} s", waiting_tasks(self))
        self._now = max(self._now, when)

    def _permute_steps(self, batch: list[SimHandle]) -> None:
        places = [
            at
            for at, handle in enumerate(batch)
            if type(getattr(handle._callback, "__self__", None)) is SimTask
        ]
        if len(places) > 1:
            steps = [batch[at] for at in places]
            self.rng.shuffle(steps)
            for at, handle in zip(places, steps, strict=True):
                batch[at] = handle

    def _timer_handle_cancelled(self, handle: SimTimer) -> None:
        self.timers.on_cancelled(handle)

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        self._asyncgens.discard(agen)  # type: ignore[attr-defined]
        if not self.ended:
            self.create_task(agen.aclose())


def _run_into(done: asyncio.Future[Any], func: Callable[..., Any], args: tuple[object, ...]) -> None:
    if done.cancelled():
        return
    try:
        done.set_result(func(*args))
    except Exception as exc:  # noqa: BLE001 – the task that awaits gets it
        done.set_exception(exc)
