"""Records of one fetch decoded to record objects, against kafka-python in the same run. Prints ratios, not machines.

    python -m benchmarks.bench_records

A fetch is 1 MiB of batches of 16 KiB; records have a key of 8 bytes and a value of 100. Both sides check the CRC
and make one object a record. CPU time is measured and the rounds alternate, so that a busy machine slows both; the
best of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from kafka.consumer.fetcher import ConsumerRecord
from kafka.record import MemoryRecords

from kclient.records.compression import Compression
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch

ROUNDS = 30
FETCH_BYTES = 1 << 20
MAX_POLL_RECORDS = 500
GOAL_RECORDS_A_SECOND = 650_000


def fetched(compression: int, records_a_batch: int, value_bytes: int) -> tuple[bytes, int]:
    """The bytes of a fetch of about FETCH_BYTES (before compression), and how many records they hold."""
    parts: list[bytes] = []
    offset, size = 0, 0
    while size < FETCH_BYTES:
        records = [
            NewRecord(b"%08d" % (offset + n), b"v" * value_bytes, 1_700_000_000_000 + n // 4)
            for n in range(records_a_batch)
        ]
        parts.append(build_batch(records, compression=compression, base_offset=offset))
        offset += records_a_batch
        size += 61 + records_a_batch * (value_bytes + 18)
    return b"".join(parts), offset


def empty_batches(count: int) -> tuple[bytes, int]:
    """What compaction leaves of emptied batches, many in one fetch."""
    return b"".join(build_batch([], base_offset=offset, last_offset=offset) for offset in range(count)), count


def chunks_of(data: bytes) -> Iterator[Chunk]:
    reader = PartitionReader("t", 0, data, 0)
    while not reader.exhausted:
        yield reader.take(MAX_POLL_RECORDS)


def decode_columns(data: bytes) -> int:
    return sum(map(len, chunks_of(data)))


def decode_objects(data: bytes) -> int:
    count = 0
    for chunk in chunks_of(data):
        for _ in Records[bytes, bytes]([chunk]):
            count += 1
    return count


def decode_arrow(data: bytes) -> int:
    rows: int = Records[bytes, bytes](chunks_of(data)).to_arrow().num_rows
    return rows


def decode_with_kafka_python(data: bytes) -> int:
    """What kafka-python's fetcher does for each record, without its logging and its counters."""
    count = 0
    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None:
        batch.validate_crc()
        for record in batch:
            key, value = record.key, record.value
            ConsumerRecord(
                "t",
                0,
                batch.leader_epoch,
                record.offset,
                record.timestamp,
                record.timestamp_type,
                key,
                value,
                record.headers,
                record.checksum,
                -1 if key is None else len(key),
                -1 if value is None else len(value),
                -1,
            )
            count += 1
    return count


def best_seconds(data: bytes, *decoders: Callable[[bytes], Any]) -> list[float]:
    best = [float("inf")] * len(decoders)
    for _ in range(ROUNDS):
        for index, decode in enumerate(decoders):
            start = time.process_time()
            decode(data)
            best[index] = min(best[index], time.process_time() - start)
    return best


def main() -> None:
    cases = [
        (name, *fetched(codec, 130, 100))
        for name, codec in (("none", Compression.NONE), ("gzip", Compression.GZIP), ("lz4", Compression.LZ4))
    ]
    cases.append(("1 kB values", *fetched(Compression.NONE, 16, 1000)))
    cases.append(("one record a batch", *fetched(Compression.NONE, 1, 100)))
    print(f"{'fetch':<20}{'records/s':>12}{'ours : kafka-python':>22}{'columns only':>14}{'Arrow':>8}")
    for name, data, count in cases:
        objects, theirs, columns, arrow = best_seconds(
            data, decode_objects, decode_with_kafka_python, decode_columns, decode_arrow
        )
        ratios = f"{theirs / objects:>20.1f} ×{theirs / columns:>12.1f} ×{theirs / arrow:>6.1f} ×"
        print(f"{name:<20}{count / objects:>12,.0f}{ratios}")
        if name == "none":
            print(f"{'':<20}{count / objects / GOAL_RECORDS_A_SECOND:>11.2f} of the goal of 0.65 M records/s")
    for count in (2_000, 20_000):
        seconds = best_seconds(empty_batches(count)[0], decode_columns)[0]
        print(f"{count:,} empty batches: {seconds / count * 1e6:.1f} µs each")


if __name__ == "__main__":
    main()
