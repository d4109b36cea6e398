"""A loop whose time is a number: it jumps to the next timer, and one seed decides what runs first.

Nothing here waits. Each callback costs 5 µs of virtual time, because code that waits for what is left of a timeout
would otherwise spin for ever on a rest of 1e-16 s. Within one iteration the steps of tasks run in a seeded order;
plain callbacks keep theirs, because asyncio itself relies on it. Equal deadlines fire in a seeded order too.

A run that cannot go on says so: SimDeadlock when nothing can ever happen again (a lost wakeup), SimTimeout past the
limit (a hang), SimLivelock when a virtual second holds too many callbacks (a hot loop).
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final

from tests.simulation.doors import Doors
from tests.simulation.handles import SimFuture, SimHandle, SimTask, SimTimer
from tests.simulation.hosts import HOST, UP, Host
from tests.simulation.stuck import Limits, SimDeadlock, name_of, waiting_tasks
from tests.simulation.timers import Timers
from tests.simulation.tracing import Trace

CALLBACK_SECONDS: Final = 5e-6
CALLBACKS_A_SECOND: Final = 50_000  # of virtual time; 200,000 is what never jumping gives


class SimLoop(Doors):
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
        self.limits = Limits(limit, callbacks_a_second)
        self.rng = Random(f"{seed}:schedule")
        self.timers = Timers(self.rng)
        self.trace_of = Trace(self, history=history)
        self.findings: list[str] = []
        self.callbacks = 0
        self.ended = False  # the run is over: nothing is scheduled any more
        self.hosts: list[Host] = []  # every incarnation
        self.resumed: list[Host] = []
        self._now = 0.0
        self._numbers = 0
        self._ready: list[SimHandle] = []

    # --- what asyncio asks of a loop

    def time(self) -> float:
        return self._now

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def create_future(self) -> SimFuture:
        return SimFuture(self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> SimTask:
        if self.ended:
            coro.close()  # it will never run; else Python would warn that it was never awaited
        return SimTask(self, coro, name, context)

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: contextvars.Context | None = None
    ) -> SimHandle:
        handle = SimHandle(callback, args, self, context)
        if not self.ended:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # there is one thread

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
        """Note unhandled exceptions; a test looks at `findings`."""
        if not self.ended:
            problem = context.get("exception")
            self.findings.append(f"{context.get('message')}: {problem!r}")
            self.trace("unhandled", type(problem).__name__)

    # --- the trace

    def trace(self, *words: object) -> None:
        """Put an event into the digest and, if it is kept, into the history."""
        self.trace_of.event(words)

    # --- one iteration

    def _run_once(self) -> None:
        if self.resumed:
            self._take_up_parked()
        if not self._ready and not self._stopping:
            self._jump()
        batch, self._ready = self._ready, []
        self.timers.take_due(self._now, batch)
        if len(batch) > 1:
            self._permute_steps(batch)
        self.callbacks += len(batch)
        self.limits.check(self)
        step = self.trace_of.step
        for handle in batch:
            if handle._cancelled:
                continue
            context = handle._context
            host = context.get(HOST)
            if host is not None and host.state is not UP:
                host.put_aside(handle)
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
                self.call_exception_handler({"message": f"in {name_of(callback)}", "exception": exc})

    def _take_up_parked(self) -> None:
        """What was parked of a resumed host comes first: its later callbacks must not overtake it."""
        hosts, self.resumed = self.resumed, []
        parked = [handle for host in hosts for handle in host.go_on()]
        self._ready[:0] = parked

    def _jump(self) -> None:
        """Move the clock to the next timer."""
        when = self.timers.next_time()
        if when is None:
            raise SimDeadlock(f"nothing can happen after {self._now:.6f} s", waiting_tasks(self))
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
        self.timers.was_cancelled(handle)

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        self._asyncgens.discard(agen)
        if not self.ended:
            self.create_task(agen.aclose())
