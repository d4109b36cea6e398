"""Decode the records of a batch of format 2 with the extension `_native` (`native/decoder.c`), where it is built.

Record objects are made there too (`native/records.c`): ordinary instances of `Record` that own copies of their bytes.

The extension finds what is wrong with a record and returns a number and what the text needs; the texts are here, those
of `decoder_python`. Importing this module raises ImportError where the extension is not built.

Two kinds of records do not fit into 32- and 64-bit numbers, and no sound producer sends them. The Python decoder reads
them, into lists that replace the arrays.

    a timestamp beyond 64 bits         base timestamp and delta have 64 bits each, their sum may need 65
    2 GiB of decompressed records      only with a max_decompressed_batch_bytes that allows it
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, MutableSequence, Sequence
from typing import Final

import attrs

from kclient.errors import CorruptBatchError, TooManyHeadersError
from kclient.records._native import decode, records
from kclient.records.columns import Columns, R
from kclient.records.decoder_python import PythonDecoder
from kclient.records.headers import ANY_NUMBER
from kclient.types import TopicPartition

INT32_MAX: Final = 2**31 - 1
OFFSET_BYTES: Final = 8
TOO_MANY_HEADERS: Final = 9
LARGE_TIMESTAMP: Final = 14
_TEXTS: Final = (
    "",
    "its records end in the middle of a record",
    "a varint before byte {} of its records has more than 32 bits",
    "a varint before byte {} of its records has more than 64 bits",
    "a record has a negative length",
    "the offset delta of a record is not in {}…{}",
    "a record's key has a negative size",
    "a record's value has a negative size",
    "a record claims {} headers in {} bytes",
    "the record at offset {} has {} headers, more than {}",
    "a header's key does not fit into {} bytes",
    "a header's value has a negative size",
    "a header's value does not fit into {} bytes",
    "a record does not end where its length says, or not before the batch does",
)
"""The texts of `decoder_python` in the order of `enum problem` in native/decoder.c, which says what fills them."""
_IN_PYTHON: Final = PythonDecoder()


_NO_INT64: Final = array("q")  # columns are replaced when the first records come, never appended to
_NO_INT32: Final = array("i")


@attrs.define(eq=False)
class ArrayColumns(Columns):
    """Columns whose numbers are in memory as C and Arrow use them: 64 bits for offset and timestamp, else 32."""

    offsets: MutableSequence[int] = _NO_INT64
    timestamps: MutableSequence[int] = _NO_INT64
    key_starts: MutableSequence[int] = _NO_INT32
    key_sizes: MutableSequence[int] = _NO_INT32
    value_starts: MutableSequence[int] = _NO_INT32
    value_sizes: MutableSequence[int] = _NO_INT32
    header_starts: MutableSequence[int] = _NO_INT32

    @property
    def has_arrays(self) -> bool:
        """Whether the numbers are in arrays; lists hold those that do not fit."""
        return isinstance(self.offsets, array)

    def append(self, numbers: Sequence[bytes]) -> int:
        """Append what the extension decoded. Return how many records that are."""
        done = len(numbers[0]) // OFFSET_BYTES
        if not self.offsets:
            offsets, timestamps, key_starts, key_sizes, value_starts, value_sizes, header_starts = numbers
            self.offsets, self.timestamps = array("q", offsets), array("q", timestamps)
            self.key_starts, self.key_sizes = array("i", key_starts), array("i", key_sizes)
            self.value_starts, self.value_sizes = array("i", value_starts), array("i", value_sizes)
            self.header_starts = array("i", header_starts)
            return done
        for column, made in zip(self.number_columns(), numbers, strict=True):
            column.frombytes(made)  # type: ignore[attr-defined]
        return done

    def rows(self, kind: type[R], partition: TopicPartition) -> Iterator[R]:
        if not self.has_arrays:
            return super().rows(kind, partition)
        return records(
            kind,
            partition.topic,
            partition.partition,
            self.timestamp_type,
            self.leader_epoch,
            self.data,
            self.offsets,
            self.timestamps,
            self.key_starts,
            self.key_sizes,
            self.value_starts,
            self.value_sizes,
            self.header_starts,
            self.keys,
            self.values,
        )

    def stamp(self, start: int, timestamp: int) -> None:
        if isinstance(self.timestamps, array):
            self.timestamps[start:] = array("q", [timestamp]) * (len(self) - start)
        else:
            super().stamp(start, timestamp)


class NativeDecoder:
    """Implement `decoder.Decoder`, which documents the arguments."""

    columns_type: type[Columns] = ArrayColumns
    reads_small_batches: Final = True  # with `small_batches`

    def decode(
        self,
        columns: Columns,
        position: int,
        count: int,
        *,
        end: int,
        base_offset: int,
        base_timestamp: int,
        previous_delta: int,
        last_delta: int,
        max_headers: int = ANY_NUMBER,
    ) -> int:
        if isinstance(columns, ArrayColumns) and columns.has_arrays and len(columns.data) <= INT32_MAX:
            position, problem, first, second, *found = decode(
                columns.data,
                position,
                count,
                end,
                base_offset,
                base_timestamp,
                previous_delta,
                last_delta,
                max_headers,
            )
            done = columns.append(found)
            if not problem:
                return position
            if problem != LARGE_TIMESTAMP:
                raise _refusal(problem, first, second, max_headers)
            if done:
                previous_delta = columns.offsets[-1] - base_offset
            count -= done
        columns.use_lists()
        return _IN_PYTHON.decode(
            columns,
            position,
            count,
            end=end,
            base_offset=base_offset,
            base_timestamp=base_timestamp,
            previous_delta=previous_delta,
            last_delta=last_delta,
            max_headers=max_headers,
        )


def _refusal(
    problem: int, first: int, second: int, max_headers: int
) -> CorruptBatchError | TooManyHeadersError:
    """Return the error for what the extension found. `first` and `second` are the numbers that its text needs."""
    text = _TEXTS[problem].format(first, second, max_headers)
    if problem != TOO_MANY_HEADERS:
        return CorruptBatchError(text)
    return TooManyHeadersError(text, offset=first, count=second, limit=max_headers)
