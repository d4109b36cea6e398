"""Decoded records of one batch, column by column. Keys and values are spans of `data`; size −1 means null. Of headers
there is where they begin; −1 means none.

The number columns are lists here; those of another decoder may be of another kind (`decoder.Decoder`).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from itertools import repeat
from typing import Any

import attrs

from kclient.records.headers import EMPTY, NO_HEADERS, Headers, read_headers
from kclient.types import TimestampType


@attrs.define(eq=False)
class Columns:
    """A run of records that lie in the same `data`; all lists have one entry a record.

    `data` owns its bytes: it never is a view into a frame. `keys` and `values` hold what deserializers
    returned, and are None where there is no deserializer. `size_bytes` is what the records take in `data`; where a run
    is cut, each part has its share by the number of records.
    """

    data: bytes
    timestamp_type: TimestampType
    leader_epoch: int | None
    offsets: MutableSequence[int] = attrs.field(factory=list)
    timestamps: MutableSequence[int] = attrs.field(factory=list)
    key_starts: MutableSequence[int] = attrs.field(factory=list)
    key_sizes: MutableSequence[int] = attrs.field(factory=list)
    value_starts: MutableSequence[int] = attrs.field(factory=list)
    value_sizes: MutableSequence[int] = attrs.field(factory=list)
    header_starts: MutableSequence[int] = attrs.field(factory=list)
    keys: list[object] | None = None
    values: list[object] | None = None
    size_bytes: int = 0

    def __len__(self) -> int:
        return len(self.offsets)

    def raw_keys(self) -> list[bytes | None]:
        """The keys' bytes, copied out of `data`."""
        return _cut(self.data, self.key_starts, self.key_sizes)

    def raw_values(self) -> list[bytes | None]:
        """The values' bytes, copied out of `data`."""
        return _cut(self.data, self.value_starts, self.value_sizes)

    @property
    def has_headers(self) -> bool:
        """Whether any record has headers."""
        return self.header_starts.count(NO_HEADERS) < len(self)

    @property
    def headers(self) -> Iterator[Headers]:
        """The headers of each record in its turn, made when it comes."""
        if not self.has_headers:
            return repeat(EMPTY, len(self))
        return (read_headers(self.data, start) for start in self.header_starts)

    def headers_of(self, index: int) -> Headers:
        """The headers of one record."""
        return read_headers(self.data, self.header_starts[index])

    def stamp(self, start: int, timestamp: int) -> None:
        """Give the records from `start` on this timestamp."""
        self.timestamps[start:] = [timestamp] * (len(self) - start)

    def drop(self, start: int, stop: int) -> None:
        """Take the records from `start` to before `stop` out of every column."""
        self.size_bytes -= self._share(len(self.offsets[start:stop]))
        for column in self._decoded():
            del column[start:stop]
        for deserialized in (self.keys, self.values):
            if deserialized is not None:
                del deserialized[start:stop]

    def split(self, count: int) -> Columns:
        """Keep the first `count` records and return the rest, which has not been deserialized."""
        rest = type(self)(self.data, self.timestamp_type, self.leader_epoch)
        rest.size_bytes = self._share(len(self) - count)
        self.size_bytes -= rest.size_bytes
        for column, of_rest in zip(self._decoded(), rest._decoded(), strict=True):
            of_rest[:] = column[count:]
            del column[count:]
        return rest

    def _share(self, count: int) -> int:
        return self.size_bytes * count // len(self) if count else 0

    def _decoded(self) -> tuple[MutableSequence[Any], ...]:
        return (
            self.offsets,
            self.timestamps,
            self.key_starts,
            self.key_sizes,
            self.value_starts,
            self.value_sizes,
            self.header_starts,
        )


def _cut(data: bytes, starts: Sequence[int], sizes: Sequence[int]) -> list[bytes | None]:
    return [
        data[start : start + size] if size >= 0 else None for start, size in zip(starts, sizes, strict=True)
    ]
