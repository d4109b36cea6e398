"""Decoded records of one batch, column by column. Keys and values are spans of `data`; size −1 means null."""

from __future__ import annotations

from typing import Any, TypeAlias

import attrs

from kclient.types import TimestampType

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
"""A record's headers in their order, duplicates kept. A value may be null."""


@attrs.define(eq=False)
class Columns:
    """A run of records that lie in the same `data`; all lists have one entry a record.

    `data` owns its bytes: it never is a view into a frame. `keys` and `values` hold what deserializers
    returned, and are None where there is no deserializer.
    """

    data: bytes
    timestamp_type: TimestampType
    leader_epoch: int | None
    offsets: list[int] = attrs.field(factory=list)
    timestamps: list[int] = attrs.field(factory=list)
    key_starts: list[int] = attrs.field(factory=list)
    key_sizes: list[int] = attrs.field(factory=list)
    value_starts: list[int] = attrs.field(factory=list)
    value_sizes: list[int] = attrs.field(factory=list)
    headers: list[Headers] = attrs.field(factory=list)
    keys: list[object] | None = None
    values: list[object] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    def raw_keys(self) -> list[bytes | None]:
        """The keys' bytes, copied out of `data`."""
        return _cut(self.data, self.key_starts, self.key_sizes)

    def raw_values(self) -> list[bytes | None]:
        """The values' bytes, copied out of `data`."""
        return _cut(self.data, self.value_starts, self.value_sizes)

    def drop(self, start: int, stop: int) -> None:
        """Take the records from `start` to before `stop` out of every column."""
        for column in self._decoded():
            del column[start:stop]
        for deserialized in (self.keys, self.values):
            if deserialized is not None:
                del deserialized[start:stop]

    def split(self, count: int) -> Columns:
        """Keep the first `count` records and return the rest, which has not been deserialized."""
        rest = Columns(self.data, self.timestamp_type, self.leader_epoch)
        for column, of_rest in zip(self._decoded(), rest._decoded(), strict=True):
            of_rest[:] = column[count:]
            del column[count:]
        return rest

    def _decoded(self) -> tuple[list[Any], ...]:
        return (
            self.offsets,
            self.timestamps,
            self.key_starts,
            self.key_sizes,
            self.value_starts,
            self.value_sizes,
            self.headers,
        )


def _cut(data: bytes, starts: list[int], sizes: list[int]) -> list[bytes | None]:
    return [
        data[start : start + size] if size >= 0 else None for start, size in zip(starts, sizes, strict=True)
    ]
