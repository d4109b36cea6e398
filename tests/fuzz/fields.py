"""Records fields of several batches, whole and damaged: what a reader with each decoder makes of them.

The extension decodes small batches together (`kclient.records.small_batches`), Python one by one. Both must return the
same records and positions in the same calls, and end with the same error. Only where a call ends because it has done
enough work, in the longest fields, Python has entered one batch more that it decodes in the next call.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs

from kclient.errors import KclientError
from kclient.records.batch import crc32c
from kclient.records.compression import Compression
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.reader import PartitionReader
from kclient.records.records import Record
from kclient.records.writer import NewRecord, build_batch, build_marker
from kclient.types import IsolationLevel, TimestampType, TopicPartition

PARTITION: Final = TopicPartition("t", 0)
CRC_AT, CRC_FROM, LENGTH_AT = 17, 21, 8
DAMAGED: Final = 4  # ways in which each field is damaged, after it was compared as it is
CODECS: Final = (*[Compression.NONE] * 3, *[Compression.LZ4] * 5, Compression.GZIP, Compression.SNAPPY)
MOST_CALLS: Final = 10_000
LONG_BYTES: Final = 18_000


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int


@attrs.frozen
class Field:
    """A records field, and how it is read."""

    data: bytes
    fetch_offset: int
    at_once: tuple[int, ...]
    most_unpacked: int
    options: dict[str, Any]

    @property
    def may_end_elsewhere(self) -> bool:
        """Whether a call may end because it has done enough work."""
        return len(self.data) > LONG_BYTES


class Fields:
    """Draws fields, and damages them."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)

    def __iter__(self) -> Iterator[Field]:
        """Fields without end."""
        while True:
            batches = self._batches()
            yield self._read(b"".join(batches))
            for _ in range(DAMAGED):
                yield self._read(self._damaged(batches))

    def _read(self, data: bytes) -> Field:
        draw = self._draw
        options = {
            "check_crcs": draw.random() < 0.5,
            "max_headers_per_record": draw.choice((1, 1000, 1000)),
            "max_decompressed_batch_bytes": draw.choice((40, 5_000, 1 << 20, 1 << 20, 1 << 20)),
        }
        if draw.random() < 0.4:
            aborted = [Aborted(draw.randrange(3), draw.randrange(60)) for _ in range(draw.randrange(3))]
            options |= {"isolation_level": IsolationLevel.READ_COMMITTED, "aborted_transactions": aborted}
        at_once = tuple(draw.choice((1, 3, 7, 500, 10_000)) for _ in range(3))
        unpacked = draw.choice((1, 300, 10_000, 1 << 30, 1 << 30, 1 << 30))
        return Field(data, draw.choice((0, 0, 0, draw.randrange(80))), at_once, unpacked, options)

    def _batches(self) -> list[bytes]:
        draw = self._draw
        codec, epoch = draw.choice(CODECS), draw.choice((-1, 0, 5))
        offset, batches = draw.choice((0, 0, 3, 40)), []
        for _ in range(300 if draw.random() < 0.02 else draw.choice((1, 2, 5, 12, 30))):
            if draw.random() < 0.1:
                codec, epoch = draw.choice(CODECS), draw.choice((-1, 0, 5))
            made, offset = self._batch(offset, codec, epoch)
            batches.append(made)
        return batches

    def _batch(self, offset: int, codec: int, epoch: int) -> tuple[bytes, int]:
        draw = self._draw
        if draw.random() < 0.08:
            marker = build_marker(
                commit=draw.random() < 0.5, offset=offset, producer_id=draw.randrange(3), producer_epoch=0
            )
            return marker, offset + 1
        count = draw.choice((0, 1, 1, 2, 5, 40)) if draw.random() < 0.3 else draw.randrange(1, 9)
        offsets = sorted(draw.sample(range(offset, offset + 2 * count), count))
        end = offset + 2 * count - draw.choice((0, 1)) if draw.random() < 0.1 else (offsets or [offset])[-1]
        records = [NewRecord(offset=number, **self._content()) for number in offsets]
        of_transaction = {"is_transactional": True, "producer_id": draw.randrange(3), "producer_epoch": 0}
        made = build_batch(
            records,
            base_offset=offset,
            last_offset=max(end, offset, *offsets) if offsets else max(end, offset),
            compression=codec,
            partition_leader_epoch=epoch,
            timestamp_type=TimestampType.LOG_APPEND_TIME
            if draw.random() < 0.1
            else TimestampType.CREATE_TIME,
            **(of_transaction if draw.random() < 0.1 else {}),
        )
        return made, max(end, offset) + draw.choice((1, 1, 1, 3))

    def _content(self) -> dict[str, Any]:
        draw = self._draw
        headers = [("h", draw.randbytes(2))] * draw.choice((0, 0, 0, 1, 2))
        return {
            "key": draw.choice((None, draw.randbytes(8))),
            "value": draw.choice((None, draw.randbytes(draw.choice((0, 5, 100))))),
            "timestamp": draw.randrange(1_700_000_000_000),
            "headers": headers,
        }

    def _damaged(self, batches: list[bytes]) -> bytes:
        """Change a batch, mostly with the CRC and the length that it then should have; or cut off the end."""
        draw = self._draw
        changed = list(batches)
        place = draw.randrange(len(changed))
        batch = bytearray(changed[place])
        at = draw.randrange(len(batch)) if draw.random() < 0.7 else draw.randrange(min(61, len(batch)))
        kind = draw.random()
        if kind < 0.7:
            batch[at] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
        elif kind < 0.8:
            batch[at:at] = draw.randbytes(draw.randrange(1, 4))
        elif kind < 0.9:
            del batch[at : at + draw.randrange(1, 4)]
        else:
            changed[place:place] = [changed[place]]
        if draw.random() < 0.7 and len(batch) > CRC_FROM:
            struct.pack_into(">i", batch, LENGTH_AT, len(batch) - 12)
            struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[CRC_FROM:])))
        changed[place] = bytes(batch)
        data = b"".join(changed)
        return data[: draw.randrange(len(data))] if draw.random() < 0.1 else data


def read_field(decoder: Decoder, field: Field) -> list[object]:
    """What each call returns, to the end or the first error."""
    reader = PartitionReader("t", 0, field.data, field.fetch_offset, decoder=decoder, **field.options)
    found: list[object] = []
    for call in range(MOST_CALLS):
        if reader.exhausted:
            break
        try:
            chunk = reader.take(field.at_once[call % len(field.at_once)], field.most_unpacked)
        except KclientError as exc:
            found.append((type(exc), exc.text, {name: repr(value) for name, value in vars(exc).items()}))
            break
        rows: list[Record[Any, Any]] = [row for run in chunk.runs for row in run.rows(Record, PARTITION)]
        found.append(
            (
                rows,
                chunk.next_offset,
                chunk.leader_epoch,
                chunk.unpacked_bytes,
                chunk.size_bytes,
                reader.open_bytes,
            )
        )
    return found


def together(found: list[Any]) -> tuple[list[object], list[object]]:
    """The records of all calls, and how the last one ended."""
    rows = [row for call in found if isinstance(call[0], list) for row in call[0]]
    last = found[-1] if found else None
    return rows, list(last[1:3] if last and isinstance(last[0], list) else last or ())


def compare_field(native: Decoder, field: Field) -> str:
    """Raise AssertionError where the decoders differ. Return how the field ended."""
    found, expected = read_field(native, field), read_field(PYTHON_DECODER, field)
    assert together(found) == together(expected)
    assert field.may_end_elsewhere or found == expected
    last = expected[-1] if expected else None
    return last[0].__name__ if isinstance(last, tuple) and isinstance(last[0], type) else "sound field"
