"""What ends a wait early: the call's own timeout, `wakeup()`, and `close()`.

Only the wait ends. What the flows have in flight goes on, and the next call finds its result. No wakeup reaches a call
that a listener or a callback makes inside `close()` or `unsubscribe()`: the partitions go all the same, and an
interrupted commit of theirs could not be made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager

from kclient.change_signal import ChangeSignal
from kclient.consumer.nesting import inside, is_inside
from kclient.errors import ClosedError, DeadlineError, KclientError, WakeupError

Reason = Callable[[], KclientError]


class Wait:
    """One call's wait, and what ended it before its time."""

    why: str = "The brokers are slow or out of reach."
    ended_early: Reason | None = None

    def because(self, why: str) -> None:
        """What was asked for was refused, and is asked for again."""
        self.why = f"The last try: {why.removesuffix('.')}."


class Waits:
    """The waits of one consumer's calls."""

    def __init__(self, ended: ChangeSignal) -> None:
        self.closing = False
        self._ended = ended
        self._scopes: dict[asyncio.Timeout, Wait] = {}
        self._wakeable: set[asyncio.Timeout] = set()
        self._undisturbed: set[object] = set()
        self._woken = False

    def wakeup(self) -> None:
        """End the wait of a call, or of the next one if none waits. On the loop's thread, or before there is a loop.

        Without effect once `close()` has begun.
        """
        if not self.closing:
            self._woken = True
            self._end(self._wakeable, self._wakeup_error)

    def close(self) -> None:
        """End the waits of this moment for good, and forget a wakeup that no call has raised yet.

        Listeners that close() runs may still make calls that wait.
        """
        self.closing = True
        self._woken = False
        self._end(self._scopes, closed_error)

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """No wakeup ends a call that is made inside of this block; the first call after it raises WakeupError."""
        block = object()
        self._undisturbed.add(block)
        try:
            with inside(block):
                yield
        finally:
            self._undisturbed.discard(block)

    def check(self) -> None:
        """Raise WakeupError, once for each `wakeup`."""
        if self._woken:
            raise self._wakeup_error()

    @asynccontextmanager
    async def limit(self, timeout: float, waiting_for: str) -> AsyncIterator[Wait]:
        """Bound what is awaited inside; who waits can say why. Raises DeadlineError, WakeupError, ClosedError."""
        wakeable = not any(map(is_inside, self._undisturbed))
        if wakeable:
            self.check()
        wait = Wait()
        try:
            async with asyncio.timeout(timeout) as scope:
                with self._known(scope, wait, wakeable=wakeable):
                    yield wait
        except TimeoutError:
            if not scope.expired():
                raise
            if wait.ended_early is not None:
                raise wait.ended_early() from None
            raise DeadlineError(
                f"Waiting for {waiting_for} took longer than {timeout:g} s. {wait.why} "
                "Call again, with a longer timeout if this is expected.",
                waiting_for=waiting_for,
                timeout=timeout,
            ) from None

    @contextmanager
    def _known(self, scope: asyncio.Timeout, wait: Wait, *, wakeable: bool) -> Iterator[None]:
        """Let `close`, and `wakeup` if it may, end this scope."""
        self._scopes[scope] = wait
        if wakeable:
            self._wakeable.add(scope)
        try:
            yield
        finally:
            del self._scopes[scope]
            self._wakeable.discard(scope)

    def _wakeup_error(self) -> WakeupError:
        self._woken = False
        return WakeupError("wakeup() ended this call. Nothing is lost. Call again to go on.")

    def _end(self, scopes: Iterable[asyncio.Timeout], reason: Reason) -> None:
        for scope in scopes:
            if not scope.expired():
                self._scopes[scope].ended_early = reason
                scope.reschedule(asyncio.get_running_loop().time())
        self._ended.notify()


def closed_error() -> ClosedError:
    """What every call raises after close(), and one that waits when close() is called."""
    return ClosedError(
        "This consumer is closed. close() was called, or its with-block was left. Make a new consumer."
    )
