"""Values become records, records partitions, and partitions batches, as Java's producer does it. Pure.

A record with a key goes to the partition of its key (murmur2, as Java's default), one without takes turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kclient.errors import ArgumentError
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch

Text: TypeAlias = str | bytes | None
Value: TypeAlias = Text | tuple[Text, Text] | NewRecord

BATCH_RECORDS: Final = 1_000
BATCH_BYTES: Final = 500_000
SEED: Final = 0x9747B28C
FACTOR: Final = 0x5BD1E995
WORD: Final = 0xFFFFFFFF


def codec_of(name: str) -> Compression:
    """The codec of this name: none, gzip, snappy, lz4 or zstd. Raise ArgumentError."""
    try:
        return Compression[name.upper()]
    except KeyError:
        known = ", ".join(one.name.lower() for one in Compression)
        raise ArgumentError(f"There is no codec {name!r}; there are {known}.") from None


def to_records(values: Iterable[Value], timestamp: int) -> list[NewRecord]:
    """Return each value as a record. Raise ArgumentError, also for a single str or bytes."""
    if isinstance(values, str | bytes):
        raise ArgumentError(
            f"Values come in a list, and {values!r:.100} is one of them; write [{values!r:.100}]."
        )
    return [to_record(value, timestamp) for value in values]


def to_record(value: Value, timestamp: int) -> NewRecord:
    """A value, a pair of key and value, or a record, which has a timestamp of its own. Raise ArgumentError."""
    if isinstance(value, NewRecord):
        return value
    if isinstance(value, tuple) and len(value) != 2:
        raise ArgumentError(
            f"A tuple is key and value, and one of {len(value)} came; a NewRecord can have more."
        )
    key, text = value if isinstance(value, tuple) else (None, value)
    return NewRecord(_encoded(key), _encoded(text), timestamp)


def _encoded(text: Text) -> bytes | None:
    if text is None or isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode()
    raise ArgumentError(f"A key or value is str, bytes or None, not {type(text).__name__}; encode it first.")


def spread(records: Iterable[NewRecord], partitions: int, turn: int) -> list[int]:
    """The partition of each record; records without a key take turns from `turn` on."""
    found = []
    for record in records:
        if record.key is not None:
            found.append((murmur2(record.key) & 0x7FFFFFFF) % partitions)
        else:
            found.append(turn % partitions)
            turn += 1
    return found


def batches(records: Iterable[NewRecord], codec: Compression) -> Iterator[bytes]:
    """The records in batches of at most a thousand records and half a megabyte before compression."""
    filling: list[NewRecord] = []
    size = 0
    for record in records:
        length = len(record.key or b"") + len(record.value or b"")
        if filling and (len(filling) == BATCH_RECORDS or size + length > BATCH_BYTES):
            yield build_batch(filling, compression=codec)
            filling, size = [], 0
        filling.append(record)
        size += length
    if filling:
        yield build_batch(filling, compression=codec)


def murmur2(data: bytes) -> int:
    """The 32-bit hash by which Java's producer spreads keys."""
    mixed = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * FACTOR & WORD
        word = (word ^ word >> 24) * FACTOR & WORD
        mixed = mixed * FACTOR & WORD ^ word
    if rest := data[whole:]:
        mixed = (mixed ^ int.from_bytes(rest, "little")) * FACTOR & WORD
    mixed = (mixed ^ mixed >> 13) * FACTOR & WORD
    return mixed ^ mixed >> 15
