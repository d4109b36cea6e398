"""Files that a user names, read with a bound: a wrong name may be a device without an end, or a pipe without a writer.

regular file        at most so many bytes
pipe, device        the same in at most 300 pieces, none of which is waited for longer than 0.1 s
"""

from __future__ import annotations

import os
import select
import stat
from os import PathLike
from typing import Final

LARGEST_TEXT: Final = 1 << 20  # settings, a secret
LARGEST_STORE: Final = 16 << 20  # certificates: Java's own cacerts has 200 KB
PIECE: Final = 65_536
WAITS: Final = 300
WAIT_MS: Final = 100
FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Opening a pipe must not wait for its writer. Windows has only the last."""


def read_local(path: str | PathLike[str], most: int) -> bytes:
    """Return the content of a file. Raise OSError, or ValueError if it is too large or does not arrive in time."""
    descriptor = os.open(path, FLAGS)
    try:
        kind = os.fstat(descriptor).st_mode
        data = b"".join(_pieces(descriptor, most, waits=not stat.S_ISREG(kind)))
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise ValueError(f"it is larger than {most >> 20} MiB")
    if not data and stat.S_ISFIFO(kind):
        raise ValueError("it is a pipe, and nothing writes to it")
    return data


def _pieces(descriptor: int, most: int, *, waits: bool) -> list[bytes]:
    """Yield pieces, up to one more than the limit allows."""
    pieces: list[bytes] = []
    size, left = 0, WAITS
    while size <= most:
        left -= waits
        if left < 0:
            raise ValueError("it is a pipe or a device, and its end does not come")
        try:
            piece = os.read(descriptor, PIECE)
        except BlockingIOError:  # there is a writer, and nothing from it yet
            _wait(descriptor)
            continue
        if not piece:
            break
        pieces.append(piece)
        size += len(piece)
    return pieces


def _wait(descriptor: int) -> None:
    """Wait until data or the end arrives, or for a short time."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll(WAIT_MS)
