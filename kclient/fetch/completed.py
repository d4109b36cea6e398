"""What one Fetch brought for one partition: bytes not looked into yet, or an error code, and where it belongs.

The end of the bytes is read off the last batch's header, so that the next fetch can begin there before anything is
decoded.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence

import attrs

from kclient.config import Config
from kclient.errors import CorruptDataError
from kclient.generated.fetch_response import AbortedTransaction
from kclient.metrics.fetching import AnswerSizes
from kclient.records.batch import MAGIC_POSITION, MIN_MESSAGE_BYTES, SIZE_PREFIX_BYTES, read_batches
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.undecodable import undecodable
from kclient.types import TopicPartition

_LENGTH = struct.Struct(">i")
_LENGTH_POSITION = 8
NOTHING = memoryview(b"")


@attrs.define(eq=False)
class Frame:
    """One answer in memory. It is freed as a whole, when the last partition that came with it was drained."""

    size_bytes: int
    sizes: AnswerSizes | None = None
    users: int = 0


@attrs.define(eq=False)
class CompletedFetch:
    """An entry of the buffer. `position_version` is what the partition was when it was asked for.

    `failing` is set where the user was told of a broken batch or a failed deserializer, and has to act.
    """

    tp: TopicPartition
    position_version: int
    fetch_offset: int
    frame: Frame
    data: memoryview = NOTHING
    end_offset: int | None = None
    aborted_transactions: Sequence[AbortedTransaction] | None = None
    error_code: int = 0
    failing: bool = False
    failure: str = ""  # what the user was told, while failing
    _reader: PartitionReader | None = None

    @property
    def next_offset(self) -> int:
        """The offset of what `take` returns next."""
        return self.fetch_offset if self._reader is None else self._reader.next_offset

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to take."""
        return self._reader is not None and self._reader.exhausted

    @property
    def expected_records(self) -> int:
        """About how many records are left; compaction and transactions may leave fewer."""
        return 1 if self.end_offset is None else max(1, self.end_offset - self.next_offset)

    @property
    def open_bytes(self) -> int:
        """What a decompressed batch that is not used up takes in memory."""
        return 0 if self._reader is None else self._reader.open_bytes

    def close_batch(self) -> None:
        """Free that memory. The next `take` decompresses the batch again, and goes on where this one stopped."""
        self.fetch_offset, self._reader = self.next_offset, None

    def take(self, max_records: int, config: Config, max_unpacked_bytes: int = sys.maxsize) -> Chunk:
        """The next records. Runs where decoding runs; raises what PartitionReader.take raises."""
        if self._reader is None:
            self._reader = PartitionReader(
                *self.tp,
                self.data,
                self.fetch_offset,
                isolation_level=config.isolation,
                aborted_transactions=self.aborted_transactions,
                check_crcs=config.check_crcs,
                max_decompressed_batch_bytes=config.max_decompressed_batch_bytes,
                max_headers_per_record=config.max_headers_per_record,
                key_deserializer=config.key_deserializer,
                value_deserializer=config.value_deserializer,
                undecodable=undecodable(config.on_decode_error, config.dead_letters),
            )
        return self._reader.take(max_records, max_unpacked_bytes)


def end_of(data: memoryview) -> int | None:
    """The offset behind the last whole batch. None where only decoding can tell (formats 0 and 1, broken bytes)."""
    last, position, size = None, 0, len(data)
    while size - position > MAGIC_POSITION:
        length = _LENGTH.unpack_from(data, position + _LENGTH_POSITION)[0]
        after = position + SIZE_PREFIX_BYTES + length
        if length < MIN_MESSAGE_BYTES or after > size:
            break
        last, position = position, after
    if last is None or data[last + MAGIC_POSITION] != 2:
        return None
    try:
        return next(read_batches(data[last:position])).next_offset
    except CorruptDataError:
        return None  # the poll that comes to these bytes tells
