"""What one direction between two hosts is like, and what may be done to a connection in the middle of a frame."""

from __future__ import annotations

import enum
from random import Random
from typing import Final

import attrs

LARGEST_SEGMENT_BYTES: Final = 65_536


@attrs.define
class Wire:
    """Settings of one direction; shared by its connections, so a change counts at once. Times in seconds."""

    latency: float = 0.001
    jitter: float = 0.0005  # added to the latency, drawn for each segment
    bandwidth: float = float("inf")  # bytes/s of each connection
    split: float = (
        0.02  # how likely a segment is cut at a random byte; of the cuts, a quarter leaves one byte
    )
    coalesce: float = 0.1  # how likely an arrived segment waits for the one after it
    window_bytes: int = (
        262_144  # sent and not yet read by the peer; what is written beyond waits at the sender
    )
    retransmit_seconds: float = 60.0  # how long a sender goes on without an acknowledgement

    def segment_bytes(self, size: int, rng: Random) -> int:
        """How much of `size` bytes the next segment takes."""
        size = min(size, LARGEST_SEGMENT_BYTES)
        if size > 1 and self.split and rng.random() < self.split:
            return 1 if rng.random() < 0.25 else rng.randrange(1, size)
        return size

    def delay(self, rng: Random) -> float:
        """From the end of sending to the arrival."""
        return self.latency + self.jitter * rng.random()


class Act(enum.Enum):
    """What a tripped connection does. Both ends lose it with FIN and RST; they keep it with the other two."""

    FIN = "fin"  # the reader sees an orderly end in mid-frame, the sender a reset
    RST = "rst"  # both see a reset
    STALL = "stall"  # this direction waits for some seconds
    SILENCE = "silence"  # nothing passes in this direction any more


@attrs.define
class Trip:
    """Do `act` once `after_bytes` more bytes have been sent in a direction."""

    act: Act
    after_bytes: int
    seconds: float = 0.0
