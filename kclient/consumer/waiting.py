"""What ends a wait early: the call's own timeout, `wakeup()`, and `close()`.

Only the wait ends. What the flows have in flight goes on, and the next call finds its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kclient.errors import ClosedError, DeadlineError, KclientError, WakeupError
from kclient.notice import Notice

Reason = Callable[[], KclientError]


class Wait:
    """One call's wait."""

    why: str = "The brokers are slow or out of reach."

    def because(self, why: str) -> None:
        """What was asked for was refused, and is asked for again."""
        self.why = f"The last try: {why.removesuffix('.')}."


class Waits:
    """The waits of one consumer's calls. Spec: B.3.7, S1-12, S3-09, I-23."""

    def __init__(self, ended: Notice) -> None:
        self.closing = False
        self._ended = ended
        self._scopes: dict[asyncio.Timeout, Reason | None] = {}
        self._woken = False

    def wakeup(self) -> None:
        """End the wait of a call, or of the next one if none waits. On the loop's thread, or before there is a loop."""
        self._woken = True
        self._end_all(self._wakeup_error)

    def close(self) -> None:
        """End the waits of this moment for good. Listeners that close() runs may still make calls that wait."""
        self.closing = True
        self._end_all(closed_error)

    def check(self) -> None:
        """Raise WakeupError, once for each `wakeup`."""
        if self._woken:
            raise self._wakeup_error()

    @asynccontextmanager
    async def limit(self, timeout: float, waiting_for: str) -> AsyncIterator[Wait]:
        """Bound what is awaited inside; who waits can say why. Raises DeadlineError, WakeupError, ClosedError."""
        self.check()
        wait = Wait()
        try:
            async with asyncio.timeout(timeout) as scope:
                self._scopes[scope] = ended_early = None
                try:
                    yield wait
                finally:
                    ended_early = self._scopes.pop(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            if ended_early is not None:
                raise ended_early() from None
            raise DeadlineError(
                f"Waiting for {waiting_for} took longer than {timeout:g} s. {wait.why} "
                "Call again, with a longer timeout if this is expected.",
                waiting_for=waiting_for,
                timeout=timeout,
            ) from None

    def _wakeup_error(self) -> WakeupError:
        self._woken = False
        return WakeupError("wakeup() ended this call. Nothing is lost. Call again to go on.")

    def _end_all(self, reason: Reason) -> None:
        for scope in self._scopes:
            if not scope.expired():
                self._scopes[scope] = reason
                scope.reschedule(asyncio.get_running_loop().time())
        self._ended.notify()


def closed_error() -> ClosedError:
    """What every call raises after close(), and one that waits when close() is called."""
    return ClosedError(
        "This consumer is closed. close() was called, or its with-block was left. Make a new consumer."
    )
