"""The line in which the commits of one consumer stand: none overtakes an earlier one, whichever task asked for it.

A commit that is tried once goes out as soon as the one before has gone out, for a connection keeps the order. One that
is tried again and again goes out when all before it have their answers, and lets nobody out until it is over. Who gives
up leaves the line as it was: those behind wait for those before.
"""

from __future__ import annotations

import asyncio

import attrs


@attrs.define(eq=False)
class Place:
    """One commit's place: `sent` once it is on the connection, or never will be; `answered` once that is known."""

    sent: asyncio.Future[None]
    answered: asyncio.Future[None]
    before: Place | None

    async def turn(self) -> None:
        """Return when the one before has gone out; the next may follow then."""
        if self.before is not None:
            await _done(self.before.sent)
        _follow(None, self.sent)

    async def alone(self) -> None:
        """Return when everybody before is answered; nobody behind goes out until this is over."""
        if self.before is not None:
            await _done(self.before.answered)

    def over(self) -> None:
        """It is answered, or was given up."""
        before, self.before = self.before, None
        _follow(None if before is None else before.sent, self.sent)
        _follow(None if before is None else before.answered, self.answered)

    async def all_over(self) -> None:
        """Return when it is over, and everybody before."""
        await _done(self.answered)


class CommitLine:
    """See the module."""

    def __init__(self) -> None:
        self._last: Place | None = None

    def join(self) -> Place:
        """The place behind everybody else's; the commit says when it is `over`, whatever becomes of it."""
        loop = asyncio.get_running_loop()
        self._last = Place(loop.create_future(), loop.create_future(), self._last)
        return self._last

    async def settle(self) -> None:
        """Wait until everybody who stands in the line now is over."""
        if self._last is not None:
            await self._last.all_over()


async def _done(future: asyncio.Future[None]) -> None:
    """Wait for it; who is cancelled meanwhile leaves it alone."""
    if not future.done():
        await asyncio.wait([future])


def _follow(first: asyncio.Future[None] | None, second: asyncio.Future[None]) -> None:
    """The second is done when the first is."""
    if first is not None and not first.done():
        first.add_done_callback(lambda _: _follow(None, second))
    elif not second.done():
        second.set_result(None)
