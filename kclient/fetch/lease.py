"""One poll's decoding: which buffered entries, how many records, what came of it. Touches neither positions nor loop.

Spec: S2-05, S2-20…S2-22, B.10.7, B.10.11.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import attrs

from kclient.config import Config
from kclient.errors import KclientError
from kclient.fetch.completed import CompletedFetch
from kclient.records.reader import Chunk


@attrs.frozen
class Taken:
    """Records of one entry, from `start_offset` on."""

    fetch: CompletedFetch
    start_offset: int
    chunk: Chunk


class Lease:
    """`picked` was taken out of the buffer's line. After `decode`, `taken` holds the records in order, `failure` what
    ended them early and `failed` the entry that it belongs to.
    """

    def __init__(self, picked: Sequence[CompletedFetch], max_records: int, config: Config) -> None:
        self.picked = picked
        self.taken: list[Taken] = []
        self.failure: KclientError | None = None
        self.failed: CompletedFetch | None = None
        self._to_do = deque(picked)
        self._wanted = max_records
        self._config = config

    def decode(self, budget_seconds: float | None = None) -> bool:
        """Decode up to the wanted number of records; True when done. Any thread, one at a time.

        With a budget it returns False when that time is over, so that a caller in the loop can let others run. What is
        not an error of kclient (KeyboardInterrupt) passes through; the lease is then given up.

        Spec: S2-20, S2-21, B.10.7.
        """
        clock = None if budget_seconds is None else asyncio.get_running_loop().time
        end = clock() + budget_seconds if clock is not None and budget_seconds is not None else 0.0
        while self._to_do and self._wanted > 0:
            self._take(self._to_do[0])
            if clock is not None and clock() >= end:
                break
        return not self._to_do or self._wanted <= 0

    def _take(self, fetch: CompletedFetch) -> None:
        start_offset = fetch.next_offset
        try:
            chunk = fetch.take(self._wanted, self._config)
        except KclientError as failure:
            self.failure, self.failed = failure, fetch
            self._to_do.clear()
            return
        if chunk.next_offset != start_offset:
            self.taken.append(Taken(fetch, start_offset, chunk))
            self._wanted -= len(chunk)
        if fetch.exhausted:
            self._to_do.popleft()
