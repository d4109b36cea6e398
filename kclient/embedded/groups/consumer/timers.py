"""The timers of a group's members: one of each kind for a member, of the broker that coordinates it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

import attrs

from kclient.embedded.api_error import ApiError
from kclient.embedded.broker import Broker
from kclient.embedded.clock import Timer

AGAIN_MS: Final = 500


class Kind(enum.Enum):
    """What a member has only so much time for."""

    SESSION = "to be heard of again"
    REBALANCE = "to give up what it must"
    JOIN = "to join again (classic)"
    SYNC = "to ask for its assignment (classic)"


@attrs.define(eq=False)
class Timers:
    """Whose time runs."""

    broker: Broker
    _running: dict[tuple[str, Kind], Timer] = attrs.field(factory=dict)

    def start(self, member_id: str, kind: Kind, ms: int, late: Callable[[], None]) -> None:
        """Begin anew."""
        self.stop(member_id, kind)
        self._running[member_id, kind] = self.broker.call_later(
            ms / 1000, lambda: self._ring(member_id, kind, late)
        )

    def _ring(self, member_id: str, kind: Kind, late: Callable[[], None]) -> None:
        try:
            late()
        except ApiError:  # it could not be written, so it has not happened: try again
            self.start(member_id, kind, AGAIN_MS, late)

    def running(self, member_id: str, kind: Kind) -> bool:
        """Whether it was begun and neither rang nor was stopped."""
        timer = self._running.get((member_id, kind))
        return timer is not None and timer.callback is not None

    def stop(self, member_id: str, *kinds: Kind) -> None:
        """Stop these kinds; all of them unless said otherwise. Nothing happens to those that do not run."""
        for kind in kinds or Kind:
            timer = self._running.pop((member_id, kind), None)
            if timer is not None:
                timer.cancel()

    def stop_all(self) -> None:
        """Stop everybody's."""
        for timer in self._running.values():
            timer.cancel()
        self._running.clear()
