"""Batches exchanged with kafka-python, in both directions."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from kclient.records.writer import NewRecord, build_batch, build_marker
from tests.records.support import records_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its own, while it is imported
    from kafka.record import MemoryRecords, MemoryRecordsBuilder

ROWS = [
    NewRecord(b"key", b"value", 1_700_000_000_000, [("h", b"1"), ("h", None), ("\u20ac", b"")]),
    NewRecord(None, b"x" * 5000, 1_700_000_000_500),
    NewRecord(b"", None, 1_699_999_000_000),
    *(NewRecord(b"%d" % n, b"v" * n, 1_700_000_100_000 + n) for n in range(300)),
]
CODECS = {"none": 0, "gzip": 1, "lz4": 3}  # kafka-python's other codecs need libraries that are not ours


@pytest.mark.spec("B.11.1", "D-79")
@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_kafka_python_reads_our_batches(codec: int) -> None:
    data = build_batch(
        ROWS,
        compression=codec,
        base_offset=77,
        partition_leader_epoch=4,
        producer_id=9,
        producer_epoch=2,
        base_sequence=5,
        is_transactional=True,
    )
    batch = MemoryRecords(data).next_batch()
    assert batch.validate_crc()
    assert (batch.base_offset, batch.next_offset, batch.leader_epoch) == (77, 77 + len(ROWS), 4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (
        9,
        2,
        5,
        True,
    )
    read = [(r.offset, r.timestamp, r.key, r.value, [tuple(header) for header in r.headers]) for r in batch]
    assert read == [
        (77 + n, row.timestamp, row.key, row.value, list(row.headers)) for n, row in enumerate(ROWS)
    ]


@pytest.mark.spec("B.11.3")
@pytest.mark.parametrize("commit", [True, False])
def test_kafka_python_reads_our_markers(commit: bool) -> None:
    batch = MemoryRecords(build_marker(commit=commit, offset=3, producer_id=1, producer_epoch=0)).next_batch()
    assert batch.validate_crc()
    assert batch.is_control_batch
    (record,) = list(batch)
    assert (record.offset, record.commit, record.abort) == (3, commit, not commit)


@pytest.mark.spec("B.11.1", "B.11.4", "H-13")
@pytest.mark.parametrize(
    ("magic", "codec"),
    # lz4 of format 0 needs another library there; Java's golden batches have it
    [(0, 0), (0, 1), (1, 0), (1, 1), (1, 3), (2, 0), (2, 1), (2, 3)],
)
def test_we_read_kafka_python_batches(magic: int, codec: int) -> None:
    builder: Any = MemoryRecordsBuilder(magic, codec, 1 << 20, offset=50)
    for row in ROWS:
        builder.append(row.timestamp, row.key, row.value, list(row.headers) if magic == 2 else [])
    builder.close()
    data = bytes(builder.buffer())
    records = records_of(data, at_once=7)
    assert [(r.key, r.value) for r in records] == [(row.key, row.value) for row in ROWS]
    if magic == 2:
        assert [r.headers for r in records] == [tuple(row.headers) for row in ROWS]
    if magic > 0:
        assert [r.timestamp for r in records] == [row.timestamp for row in ROWS]
    else:
        assert {r.timestamp for r in records} == {-1}
