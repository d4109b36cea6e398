"""Tells a run while it happens: what is worth a line goes to the terminal and into the recording alike."""

from __future__ import annotations

import time
from collections.abc import Iterable

import attrs

from demo.recording import Event, Recording
from demo.terminal import Terminal


@attrs.frozen
class Chronicle:
    """The recording and the terminal, with one clock."""

    recording: Recording
    terminal: Terminal

    def event(self, kind: str, text: str, at: float | None = None) -> None:
        """Something that the report marks in every picture, now or at a moment that is told afterwards."""
        self.terminal.say(text, kind)
        self.recording.events.append(Event(self.terminal.elapsed() if at is None else at, kind, text))

    def since(self, wall: float) -> float:
        """Seconds from the beginning to a time of the wall clock, such as that of a file."""
        return round(self.terminal.elapsed() - (time.time() - wall), 3)

    def begin(self, lane: str, state: str, at: float | None = None) -> None:
        """This process does something from now on."""
        self.recording.begin(lane, state, self.terminal.elapsed() if at is None else at)

    def finish(self, lane: str, *, killed: bool = False, at: float | None = None) -> None:
        """This process does nothing any more."""
        self.recording.finish(lane, self.terminal.elapsed() if at is None else at, killed=killed)

    def owns(self, member: str, partitions: Iterable[int]) -> None:
        """A member has these partitions now, and no others."""
        self.recording.owns(member, partitions, self.terminal.elapsed())
