"""Errors of work in the background, kept for the next poll: one of each kind, raised once, dropped when out of date.

While one is kept, its kind asks no broker again; taking it sets the work going again, the look-up of a first position
with the next poll. So a poll loop that goes on after an error sees it again as long as it lasts, but not after the
commit that it advised, and nothing is asked behind the back of one that does not poll.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from kclient.errors import KclientError
from kclient.log import get_logger
from kclient.positions.table import Positions
from kclient.types import TopicPartition

logger = get_logger("kclient.positions")


@attrs.frozen
class _Stored:
    error: KclientError
    eras: Mapping[TopicPartition, int]


class StoredErrors:
    """Kind → the first error of that kind that nobody has seen yet."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._stored: dict[str, _Stored] = {}

    def __contains__(self, kind: object) -> bool:
        return kind in self._stored

    def store(self, kind: str, error: KclientError, eras: Mapping[TopicPartition, int]) -> None:
        """Keep the error for the next poll. `eras` are the partitions it speaks of, none if it speaks of none.

        An error that is out of date gives way: it will not be told, and the next one of its kind may come only once.
        """
        waiting = self._stored.get(kind)
        if waiting is not None and (self._current(waiting) or not waiting.eras):
            logger.error("An error waits for the next poll already, so this one is dropped: %s", error)
            return
        self._stored[kind] = _Stored(error, dict(eras))
        self._positions.changed.notify()

    def about(self, tp: TopicPartition) -> KclientError | None:
        """The error that waits for the next poll because of this partition, as it is now."""
        for stored in self._stored.values():
            if tp in stored.eras and self._positions.find(tp, stored.eras[tp]) is not None:
                return stored.error
        return None

    def take(self) -> KclientError | None:
        """The oldest error that still matters: one of its partitions is as it was. Its work may go on now."""
        while self._stored:
            kind = next(iter(self._stored))
            stored = self._stored.pop(kind)
            self._positions.changed.notify()
            current = self._current(stored)
            for tp in current:
                self._positions.look_again(tp)
            if current or not stored.eras:
                return stored.error
        return None

    def _current(self, stored: _Stored) -> list[TopicPartition]:
        """The partitions of an error that are what they were."""
        return [tp for tp, era in stored.eras.items() if self._positions.find(tp, era) is not None]
