"""One count of bytes for everything fetched and not handed out, and for what may be on its way.

A request reserves what its answer may bring, and its `max_bytes` says so to the broker. The broker may go beyond it for
one batch, so the buffer may too: a record larger than the whole budget still passes, once nothing else is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kclient.config import Config
from kclient.fetch.buffer import FetchBuffer
from kclient.log import get_logger

if TYPE_CHECKING:
    from kclient.positions.table import Positions

logger = get_logger("kclient.fetch")

SMALLEST_FETCH_BYTES = 65_536


class Budget:
    """`buffer_memory_bytes`, shared by all nodes."""

    def __init__(self, buffer: FetchBuffer, config: Config) -> None:
        self._buffer = buffer
        self._config = config
        self.reserved_bytes = 0

    def grant(self, partitions: int, nodes: int) -> int | None:
        """How many bytes a request for so many partitions may ask for, with so many nodes in use; None: not now."""
        config = self._config
        most = min(config.fetch_max_bytes, partitions * config.max_partition_fetch_bytes)
        share = max(1, config.buffer_memory_bytes // max(1, nodes))
        wanted = max(1, min(most, share))
        available = config.buffer_memory_bytes - self._buffer.bytes_used - self.reserved_bytes
        if not self._buffer.bytes_used and not self.reserved_bytes:
            return wanted
        if available < min(wanted, SMALLEST_FETCH_BYTES):
            return None
        return min(wanted, available)

    def reserve(self, count: int) -> None:
        """An answer of up to so many bytes is on its way."""
        self.reserved_bytes += count

    def release(self, count: int) -> None:
        """It came, or will not come."""
        self.reserved_bytes -= count

    def make_room(self, positions: Positions) -> None:
        """What waits for the user, paused or broken, must not starve others: if nothing else is there, drop some."""
        buffer = self._buffer
        fetchable = {tp: positions.is_fetchable(tp) for tp in buffer.partitions()}
        if any(may and not buffer.queue(tp)[0].failing for tp, may in fetchable.items()):
            return
        if fetchable:
            first = min(fetchable, key=fetchable.__getitem__)  # the paused before the broken
            logger.debug(
                "The buffer is full of data that nobody may have now; %s will be fetched again", first
            )
            buffer.drop([first])
