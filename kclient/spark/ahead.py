"""Pieces of a range before they are wanted: a queue of requests, of which one at a time is on its way.

Where a piece begins is known when the one before it is here, so each task awaits the one before it and then asks. What
went wrong with one is raised to who comes to it, behind all the pieces before it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from kclient.errors import KclientError

if TYPE_CHECKING:
    from kclient.generated.fetch_response import AbortedTransaction

STEPS: Final = 4
"""Turns of the loop that it takes to read an answer, end its request, begin the next task, and send its own."""


@attrs.frozen
class Piece:
    """Batches from `position` on, in the frame that they came with; the last may be cut off.

    `next_offset` is behind the last whole one, None where they are damaged. The repr leaves the bytes out: asyncio
    makes one of every result, to name the task in a handler of signals, and showing megabytes costs more than reading
    them.
    """

    position: int
    data: memoryview = attrs.field(repr=False)
    next_offset: int | None
    aborted: Sequence[AbortedTransaction] = attrs.field(repr=False)


Fetch: TypeAlias = Callable[[int], Coroutine[Any, Any, Piece | None]]
"""Gives the piece at a position, None where there is none before the end."""


class ReadAhead:
    """The pieces from `position` on, up to `most` of them asked for before anybody wants them."""

    def __init__(self, fetch: Fetch, position: int, most: int) -> None:
        self._fetch = fetch
        self._position = position
        self._most = most
        self._tasks: deque[asyncio.Task[Piece | None]] = deque()

    async def next(self) -> Piece | None:
        """The next piece, None behind the last. Raises what `fetch` raises; when cancelled, so is the request."""
        task = self._tasks.popleft() if self._tasks else asyncio.create_task(self._fetch(self._position))
        piece = await task
        if piece is None or piece.next_offset is None:
            return piece
        self._position = piece.next_offset
        while len(self._tasks) < self._most:
            last = self._tasks[-1] if self._tasks else task
            self._tasks.append(asyncio.create_task(self._behind(last)))
        await self.go_on()
        return piece

    async def go_on(self) -> None:
        """Let the loop do what can be done without waiting: read what came meanwhile, and send the next request."""
        for _ in range(STEPS):
            if not self._tasks or self._tasks[-1].done():
                return
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Cancel the request that is on its way, and those behind it."""
        for task in self._tasks:
            task.cancel()
        while self._tasks:
            with suppress(asyncio.CancelledError, KclientError):
                await self._tasks.popleft()

    async def _behind(self, before: asyncio.Task[Piece | None]) -> Piece | None:
        piece = await before
        position = None if piece is None else piece.next_offset
        del before, piece  # or their frame would stay in memory until the next one is here
        return None if position is None else await self._fetch(position)
