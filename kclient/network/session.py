"""The authentication of one connection: once before it is ready, and again whenever its session comes to its end.

The renewal runs beside the requests that are in flight; until it is over no further request goes out (KIP-368). It is a
task of its own, so it goes on when the request that set it off is cancelled.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from kclient.errors import KclientError

Line = TypeVar("Line")


class Session(Generic[Line]):
    """`authenticate` gives the seconds until it must be done again, None for never. Spec: B.4.12.

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

    async def begin(self) -> None:
        """Authenticate. Raises KclientError."""
        began = self._loop.time()
        seconds = await self._authenticate(self._line)
        self._renew_at = math.inf if seconds is None else began + seconds

    def renewing(self) -> bool:
        """Whether requests must wait for a renewal, which begins now if it is time."""
        if self._renewal is None and self._loop.time() >= self._renew_at:
            self._renew_at = math.inf
            self._renewal = asyncio.create_task(self._renew())
        return self._renewal is not None

    async def _renew(self) -> None:
        problem: KclientError | None = None
        try:
            await self.begin()
        except KclientError as failed:
            problem = failed
        finally:
            self._renewal = None
        self._renewed(problem)

    def end(self) -> None:
        """The connection is closed: a renewal under way is of no use."""
        if self._renewal is not None:
            self._renewal.cancel()
