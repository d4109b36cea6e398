"""What a failure means for the group flow: go on at once, after a pause, or with the next poll.

22, 25, 27, 79                at once, a few times in a row; then after a pause
what passes by itself, 14     after a pause
FENCED_INSTANCE_ID            never by itself: another consumer has our name, and would be fenced in turn
anything else                 kept for the next poll to raise; the flow starts anew with the poll after that
"""

from __future__ import annotations

import asyncio
import copy
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.errors import BrokerError, KclientError
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.protocol import errors as codes

logger = get_logger("kclient.group")

AT_ONCE: Final = (
    codes.ILLEGAL_GENERATION,
    codes.UNKNOWN_MEMBER_ID,
    codes.REBALANCE_IN_PROGRESS,
    codes.MEMBER_ID_REQUIRED,
)
AT_ONCE_LIMIT: Final = 3


def code_of(error: KclientError) -> int:
    """The wire code of an error, 0 where it has none."""
    return error.code if isinstance(error, BrokerError) else codes.NONE


class Trouble:
    """The failures of one member. `polls` is notified by every poll."""

    def __init__(self, group_id: str, backoff: Backoff) -> None:
        self.polls = ChangeSignal()
        self.fenced: KclientError | None = None
        self._group_id = group_id
        self._backoff = backoff
        self._kept: KclientError | None = None
        self._at_once = 0

    def keep(self, error: KclientError) -> None:
        """Keep an error for the user; the first one wins. FENCED_INSTANCE_ID stays until `forget`."""
        logger.warning("group %s: %s", self._group_id, error.text)
        if code_of(error) == codes.FENCED_INSTANCE_ID:
            self.fenced = error
        elif self._kept is None:
            self._kept = error

    def take(self) -> KclientError | None:
        """The error that the next poll raises."""
        kept, self._kept = self._kept, None
        return kept if self.fenced is None else copy.copy(self.fenced)

    def check_fence(self) -> None:
        """Raise while another consumer has our instance id."""
        if self.fenced is not None:
            raise copy.copy(self.fenced)

    def over(self) -> None:
        """A rebalance went through: pauses start short again."""
        self._at_once = 0
        self._backoff.reset()

    def forget(self) -> None:
        """The consumer left the group on purpose: nothing of the past matters."""
        self.over()
        self.fenced = self._kept = None

    async def pause(self) -> None:
        """Wait before the next try, longer each time."""
        await asyncio.sleep(self._backoff.next())

    async def recover(self, error: KclientError) -> None:
        """Return when the flow may start anew after `error`."""
        at_once = code_of(error) in AT_ONCE
        if at_once and self._at_once < AT_ONCE_LIMIT:
            self._at_once += 1
        elif at_once or error.retriable:
            logger.info("group %s: not joined yet: %s", self._group_id, error.text)
            await self.pause()
        else:
            polled = self.polls.count
            self.keep(error)
            await self.pause()
            await self.polls.wait(polled)
