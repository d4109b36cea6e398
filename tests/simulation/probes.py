"""How a run hears what the client does beside its public calls: what it logs, connects to, sends and is answered.

`probing(watch)` stands around one run. A log record belongs to the application on whose host it was written.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from kclient.network.connection import Connection
from kclient.protocol.message import Message
from kclient.runtime import Address, Runtime
from tests.simulation.hosts import current_name

if TYPE_CHECKING:
    import asyncio

    from tests.simulation.application import Member
    from tests.simulation.stage import Stage

LOST: Final = "Offset %d of %s is not in the log any more: going on at %d (%s), %d records skipped"
TRUNCATED: Final = "The log of %s was truncated: going back from offset %d to %d"


@attrs.define
class WatchedRuntime(Runtime):
    """The Runtime of an application that tells whom it connects to."""

    tell: Callable[[Address], None] = lambda address: None

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Address, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        self.tell(address)
        return await Runtime.connect(self, factory, address, **options)


def watched_runtime(member: Member) -> Runtime:
    """A Runtime on the member's host."""
    plain = member.stage.world.runtime(member.name)
    tell = functools.partial(member.stage.watch.connecting, member)
    return WatchedRuntime(plain.rng, plain.wall_clock, tell)


class LogProbe(logging.Handler):
    """Passes on what applications' consumers log."""

    def __init__(self, stage: Stage, level: int) -> None:
        super().__init__(level)
        self._stage = stage

    def createLock(self) -> None:
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        member = self._stage.members.get(current_name())
        if member is None:
            return
        if record.levelno < logging.WARNING and self._stage.secret not in record.getMessage():
            return  # read for what must not be in it, no more
        self._stage.watch.logged(member, record)
        if record.msg is LOST or record.msg == LOST:
            tp, lost, to = record.args[1], record.args[0], record.args[2]  # type: ignore[index]
            self._stage.watch.jumped(member, tp, lost, to)
            if (holding := member.holdings.get(tp)) is not None:  # type: ignore[call-overload]
                holding.goes_to(to)
        elif record.msg == TRUNCATED:
            tp, start, to = record.args  # type: ignore[misc]
            self._stage.watch.went_back(member, tp, start, to)
            if (holding := member.holdings.get(tp)) is not None:
                holding.goes_back(to)


@contextmanager
def probing(stage: Stage, level: int = logging.WARNING) -> Iterator[None]:
    """Tell `stage.watch` of what happens inside of consumers, while the block lasts."""
    logger, plain = logging.getLogger("kclient"), Connection._send
    before = logger.level, logger.propagate, list(logger.handlers)
    exchanged = stage.watch.exchanged

    async def send(self: Connection, message: Message, version: int, deadline: float) -> Message:
        answer = await plain(self, message, version, deadline)
        exchanged(message, answer)
        return answer

    logger.handlers[:] = [LogProbe(stage, level)]
    logger.setLevel(level)
    logger.propagate = False
    Connection._send = send  # type: ignore[method-assign]
    try:
        yield
    finally:
        Connection._send = plain  # type: ignore[method-assign]
        logger.level, logger.propagate, logger.handlers[:] = before
        logger.setLevel(before[0])
