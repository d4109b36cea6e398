"""Writes the events of a run to the terminal and into the recording."""

from __future__ import annotations

import time
from collections.abc import Iterable

import attrs

from demo.recording import Event, Recording
from demo.terminal import Terminal


@attrs.frozen
class Recorder:
    """The recording and the terminal, with one clock."""

    recording: Recording
    terminal: Terminal

    def event(self, kind: str, text: str, at: float | None = None) -> None:
        """Add an event that the report marks in every chart, at the current time or at `at`."""
        self.terminal.say(text, kind)
        self.recording.events.append(Event(self.terminal.elapsed() if at is None else at, kind, text))

    def since(self, wall: float) -> float:
        """Return the seconds from the beginning to a wall clock time, such as that of a file."""
        return round(self.terminal.elapsed() - (time.time() - wall), 3)

    def begin(self, lane: str, state: str, at: float | None = None) -> None:
        """Note that a process starts an activity."""
        self.recording.begin(lane, state, self.terminal.elapsed() if at is None else at)

    def finish(self, lane: str, *, killed: bool = False, at: float | None = None) -> None:
        """Note that a process ended its activity."""
        self.recording.finish(lane, self.terminal.elapsed() if at is None else at, killed=killed)

    def owns(self, member: str, partitions: Iterable[int]) -> None:
        """Note the complete assignment of a member."""
        self.recording.owns(member, partitions, self.terminal.elapsed())
