"""The decoding of one poll: buffered entries, number of records, result. Touches neither positions nor loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.fetch.completed import CompletedFetch
from kclient.records.reader import Chunk

QUICK_PIECE: Final = 64  # records that are only cut out of their batch take a fraction of a millisecond
GROWTH: Final = 8


@attrs.frozen
class Taken:
    """Records of one entry, from `start_offset` on."""

    fetch: CompletedFetch
    start_offset: int
    chunk: Chunk


class Lease:
    """`picked` was taken out of the buffer's line. After `decode`, `taken` holds the records in order, `failure` what
    ended them early and `failed` the entry that it belongs to. `runs_user_code`: there is a deserializer to call.
    """

    def __init__(self, picked: Sequence[CompletedFetch], max_records: int, config: Config) -> None:
        self.picked = picked
        self.taken: list[Taken] = []
        self.failure: KclientError | None = None
        self.failed: CompletedFetch | None = None
        self._to_do = deque(picked)
        self._wanted = max_records
        self._config = config
        self.runs_user_code = config.key_deserializer is not None or config.value_deserializer is not None
        self._unpacked_bytes_left = config.buffer_memory_bytes
        self._piece = 1 if self.runs_user_code else QUICK_PIECE

    def decode(self, budget_seconds: float | None = None) -> bool:
        """Decode up to the wanted number of records; True when done. Any thread, one at a time.

        Fewer where their batches take `buffer_memory_bytes` decompressed: the next poll opens the next one.

        With a budget it returns False when that time is over, so that a caller in the loop can let others run. What is
        not an error of kclient (KeyboardInterrupt) passes through; the lease is then given up.
        """
        if budget_seconds is not None:
            return self._decode_within(budget_seconds)
        while self._goes_on:
            self._take(self._to_do[0], self._wanted)
        return True

    @property
    def _goes_on(self) -> bool:
        return bool(self._to_do) and self._wanted > 0

    def _decode_within(self, budget_seconds: float) -> bool:
        """In pieces that grow while they are quick: nobody knows how long a deserializer takes."""
        clock = asyncio.get_running_loop().time
        end = clock() + budget_seconds
        while self._goes_on:
            begun = clock()
            self._take(self._to_do[0], min(self._piece, self._wanted))
            now = clock()
            if now >= end:
                break
            if now - begun < budget_seconds / (2 * GROWTH):
                self._piece *= GROWTH
        return not self._goes_on

    def _take(self, fetch: CompletedFetch, count: int) -> None:
        start_offset = fetch.next_offset
        try:
            chunk = fetch.take(count, self._config, self._unpacked_bytes_left)
        except KclientError as exc:
            self.failure, self.failed = exc, fetch
            self._to_do.clear()
            return
        taken = len(chunk)
        if chunk.next_offset != start_offset:
            self.taken.append(Taken(fetch, start_offset, chunk))
            self._wanted -= taken
        if taken:  # else what was decompressed is free again
            self._unpacked_bytes_left -= chunk.unpacked_bytes
        if fetch.exhausted:
            self._to_do.popleft()
        elif not taken and self._unpacked_bytes_left <= 0:
            self._to_do.clear()
