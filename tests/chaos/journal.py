"""A journal that survives kill -9: JSON lines, each on the disk before anything else happens.

Times are CLOCK_MONOTONIC, which all processes of a host share. A process that is killed while it writes leaves half a
line at most, which says nothing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Line:
    """Lines that a member, or the injector of faults, has written: process, time, event and its details."""

    at: float
    who: str
    event: str
    details: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.details[name]


class Journal:
    """The journal of one process; its threads may share it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)
        self._lock = threading.Lock()

    def write(self, who: str, event: str, **details: Any) -> None:
        """One line; it is on the disk when this returns."""
        with self._lock:
            line = {"at": time.monotonic(), "who": who, "event": event, **details}
            self._file.write(json.dumps(line).encode() + b"\n")
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read(path: Path) -> Iterator[Line]:
    """The lines of a journal, without one that was cut off."""
    for text in path.read_bytes().split(b"\n")[:-1]:
        fields = json.loads(text)
        yield Line(fields.pop("at"), fields.pop("who"), fields.pop("event"), fields)
