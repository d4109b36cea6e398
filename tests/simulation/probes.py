"""How a run hears what the client does beside its public calls: what it logs, connects to, sends and is answered.

`probing(watch)` stands around one run. A log record belongs to the application on whose host it was written.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import attrs

from kclient.network.connection import Connection
from kclient.network.token_source import TokenSource
from kclient.positions.lookup_context import TRUNCATED, OffsetReset
from kclient.protocol.message import Message
from kclient.runtime import Address, Runtime
from kclient.security.oauthbearer import OAuthToken, TokenError
from kclient.simulation.process import current_name

if TYPE_CHECKING:
    from tests.simulation.application import Member
    from tests.simulation.stage import Stage


@attrs.define
class WatchedRuntime(Runtime):
    """The Runtime of an application that reports the addresses it connects to, and lets rare things happen."""

    tell: Callable[[Address], None] = lambda address: None
    odds: float = 0.0  # of each rare thing, whenever it could happen
    dice: Random = attrs.field(factory=lambda: Random(0))

    def buggify(self, what: str) -> bool:
        return self.odds > 0 and self.dice.random() < self.odds

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Address, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        self.tell(address)
        return await Runtime.connect(self, factory, address, **options)


def watched_runtime(member: Member) -> Runtime:
    """A Runtime on the member's host."""
    stage = member.stage
    plain = stage.world.runtime(member.name)
    tell = functools.partial(stage.watch.connecting, member)
    dice = Random(f"{stage.world.seed}:{member}:dice")
    return WatchedRuntime(plain.rng, plain.wall_clock, tell, stage.scenario.odds, dice)


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
        if record.levelno < logging.WARNING and not self._has_secret(record.getMessage()):
            return  # read for what must not be in it, no more
        self._stage.watch.logged(member, record)
        for jump in getattr(record, "offset_resets", ()):
            self._tell(member, jump)

    def _has_secret(self, text: str) -> bool:
        return any(secret in text for secret in self._stage.secrets)

    def _tell(self, member: Member, jump: OffsetReset) -> None:
        """A position was lost: the policy chose another one, or the log of the new leader did."""
        watch, tp, holding = self._stage.watch, jump.partition, member.holdings.get(jump.partition)
        if jump.strategy == TRUNCATED:
            watch.went_back(member, tp, jump.lost, jump.position)
            if holding is not None:
                holding.goes_back(jump.position)
        else:
            watch.jumped(member, tp, jump.lost, jump.position)
            if holding is not None:
                holding.goes_to(jump.position)


@contextmanager
def probing(stage: Stage, level: int = logging.WARNING) -> Iterator[None]:
    """Report to `stage.watch` what happens inside of consumers, while the block lasts."""
    logger, plain, plain_token = logging.getLogger("kclient"), Connection._send, TokenSource.token
    before = logger.level, logger.propagate, list(logger.handlers)
    asking, exchanged = stage.watch.asking, stage.watch.exchanged

    async def send(self: Connection, message: Message, version: int, deadline: float) -> Message:
        asking(message)
        response = await plain(self, message, version, deadline)
        exchanged(message, response)
        return response

    async def token(self: TokenSource, deadline: float = math.inf) -> OAuthToken:
        member, began, error = stage.members[current_name()], stage.now, None
        try:
            return await plain_token(self, deadline)
        except (TokenError, asyncio.CancelledError) as exc:
            error = exc
            raise
        finally:
            if not stage.world.loop.ended:
                stage.watch.token_awaited(member, began, error)

    logger.handlers[:] = [LogProbe(stage, level)]
    logger.setLevel(level)
    logger.propagate = False
    Connection._send = send  # type: ignore[method-assign]
    TokenSource.token = token  # type: ignore[method-assign]
    try:
        yield
    finally:
        Connection._send = plain  # type: ignore[method-assign]
        TokenSource.token = plain_token  # type: ignore[method-assign]
        logger.level, logger.propagate, logger.handlers[:] = before
        logger.setLevel(before[0])
