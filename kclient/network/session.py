"""The authentication of one connection: once before it is ready, and again whenever its session comes to its end.

The renewal runs beside the requests that are in flight; until it is over no further request goes out (KIP-368). It is a
task of its own, so it goes on when the request that set it off is cancelled. If a renewal takes longer than the session
that it brings, one request goes out before the next renewal: else there would be nothing but renewals.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from kclient.errors import KclientError

Line = TypeVar("Line")


class Session(Generic[Line]):
    """`authenticate` gives the seconds until it must be done again, None for never.

    `renewed` is called when a renewal is over, with its error if it failed.
    """

    def __init__(
        self,
        authenticate: Callable[[Line], Awaitable[float | None]],
        line: Line,
        renewed: Callable[[KclientError | None], None],
    ) -> None:
        self._authenticate = authenticate
        self._line = line
        self._renewed = renewed
        self._loop = asyncio.get_running_loop()
        self._renew_at = math.inf
        self._renewal: asyncio.Task[None] | None = None
        self._request_is_owed = False  # the session was over as soon as it began

    async def begin(self) -> None:
        """Authenticate. Raises KclientError."""
        began = self._loop.time()
        seconds = await self._authenticate(self._line)
        self._renew_at = math.inf if seconds is None else began + seconds
        self._request_is_owed = self._loop.time() >= self._renew_at

    def renewing(self) -> bool:
        """Whether requests must wait for a renewal, which begins now if it is time."""
        is_due = not self._request_is_owed and self._loop.time() >= self._renew_at
        if self._renewal is None and is_due:
            self._renew_at = math.inf
            self._renewal = asyncio.create_task(self._renew())
        return self._renewal is not None

    def request_sent(self) -> None:
        """A request of the client's goes out: a renewal may follow."""
        self._request_is_owed = False

    async def _renew(self) -> None:
        problem: KclientError | None = None
        try:
            await self.begin()
        except KclientError as exc:
            problem = exc
        finally:
            self._renewal = None
        self._renewed(problem)

    def end(self) -> None:
        """The connection is closed: a renewal under way is of no use."""
        if self._renewal is not None:
            self._renewal.cancel()
