"""Decoded records of one batch as columns. Keys and values are spans of `data`, a size of −1 means null.

The headers of a record are decoded when they are read; the column has the position of their count, −1 for none. The
number columns are lists here; another decoder may use another type (`decoder.Decoder`).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from itertools import repeat
from typing import Any, Final, TypeVar

import attrs

from kclient.records.headers import EMPTY, NO_HEADERS, read_headers
from kclient.types import Headers, TimestampType, TopicPartition

R = TypeVar("R", bound=tuple[Any, ...])

NUMBER_COLUMNS: Final = (
    "offsets",
    "timestamps",
    "key_starts",
    "key_sizes",
    "value_starts",
    "value_sizes",
    "header_starts",
)


@attrs.define(eq=False)
class Columns:
    """Records that lie in the same `data`; all lists have one entry per record.

    `data` owns its bytes: it is never a view of a response. `keys` and `values` hold what deserializers
    returned, and are None without a deserializer. `size_bytes` is the size of the records in `data`; `split`
    divides it by the number of records.
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

    @property
    def has_arrays(self) -> bool:
        """Whether the numbers are in arrays of C's own numbers, from which the extension makes `rows`."""
        return False

    def raw_keys(self) -> list[bytes | None]:
        """Return the bytes of the keys, copied from `data`."""
        return _cut(self.data, self.key_starts, self.key_sizes)

    def raw_values(self) -> list[bytes | None]:
        """Return the bytes of the values, copied from `data`."""
        return _cut(self.data, self.value_starts, self.value_sizes)

    @property
    def has_headers(self) -> bool:
        """Whether any record has headers."""
        return self.header_starts.count(NO_HEADERS) < len(self)

    @property
    def headers(self) -> Iterator[Headers]:
        """The headers of each record, decoded one by one."""
        if not self.has_headers:
            return repeat(EMPTY, len(self))
        return (read_headers(self.data, start) for start in self.header_starts)

    def headers_of(self, index: int) -> Headers:
        """Return the headers of one record."""
        return read_headers(self.data, self.header_starts[index])

    def rows(self, kind: type[R], partition: TopicPartition) -> Iterator[R]:
        """Make an object of each record: `kind` is `Record`, whose fields are listed here in their order."""
        return map(  # tuple.__new__ over zip: all of the object is made in C, nearly twice as fast as by the class
            tuple.__new__,
            repeat(kind),
            zip(
                repeat(partition.topic),
                repeat(partition.partition),
                self.offsets,
                self.timestamps,
                repeat(self.timestamp_type),
                self.raw_keys() if self.keys is None else self.keys,
                self.raw_values() if self.values is None else self.values,
                self.headers,
                repeat(self.leader_epoch),
                self.key_sizes,
                self.value_sizes,
                strict=False,
            ),
        )

    def stamp(self, start: int, timestamp: int) -> None:
        """Give the records from `start` on this timestamp."""
        self.timestamps[start:] = [timestamp] * (len(self) - start)

    def drop(self, start: int, stop: int) -> None:
        """Remove the records from `start` to before `stop` from every column."""
        self.size_bytes -= self._share(len(self.offsets[start:stop]))
        for column in self.number_columns():
            del column[start:stop]
        for deserialized in (self.keys, self.values):
            if deserialized is not None:
                del deserialized[start:stop]

    def split(self, count: int) -> Columns:
        """Keep the first `count` records and return the rest, which has not been deserialized."""
        rest = self._part(count, len(self))
        self.size_bytes -= rest.size_bytes
        for column in self.number_columns():
            del column[count:]
        return rest

    def parts(self, count: int) -> Iterator[Columns]:
        """Return copies of `count` records each, the last of fewer, of records that have not been deserialized."""
        return (self._part(start, start + count) for start in range(0, len(self), count))

    def _part(self, start: int, stop: int) -> Columns:
        part = type(self)(self.data, self.timestamp_type, self.leader_epoch)
        for name in NUMBER_COLUMNS:
            setattr(part, name, getattr(self, name)[start:stop])
        part.size_bytes = self._share(len(part))
        return part

    def use_lists(self) -> None:
        """Make lists of all number columns, which hold numbers of any size."""
        for name in NUMBER_COLUMNS:
            setattr(self, name, list(getattr(self, name)))

    def number_columns(self) -> tuple[MutableSequence[int], ...]:
        """Return the columns that a decoder fills, in the order of NUMBER_COLUMNS."""
        return (
            self.offsets,
            self.timestamps,
            self.key_starts,
            self.key_sizes,
            self.value_starts,
            self.value_sizes,
            self.header_starts,
        )

    def _share(self, count: int) -> int:
        return self.size_bytes * count // len(self) if count else 0


def _cut(data: bytes, starts: Sequence[int], sizes: Sequence[int]) -> list[bytes | None]:
    return [
        data[start : start + size] if size >= 0 else None for start, size in zip(starts, sizes, strict=True)
    ]
