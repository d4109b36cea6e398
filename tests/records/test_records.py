"""What a poll returns: records, Records, Arrow columns."""

from __future__ import annotations

import datetime
import pickle
import subprocess
import sys

import pyarrow as pa
import pytest

from kclient.errors import ArgumentError, ConfigError, CorruptDataError
from kclient.records.headers import Headers
from kclient.records.reader import PartitionReader
from kclient.records.records import Record, Records
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata, TimestampType, TopicPartition
from tests.records.support import take_all

ROWS = [
    NewRecord(b"k", b"value", 1_700_000_000_123, [("h", b"1"), ("h", None)]),
    NewRecord(None, b"", -1),
    NewRecord(b"", None, 0),
]
A0, B1, C2 = TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("c", 2)


def sample() -> Records[bytes | None, bytes | None]:
    """Two chunks of a-0 around one of b-1, and c-2 that only moved."""
    a = build_batch(ROWS, partition_leader_epoch=6) + build_batch(
        [NewRecord(b"x", b"y", 5)],
        base_offset=3,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp=7,
    )
    reader = PartitionReader("a", 0, a, 0)
    first = reader.take(2)
    (b,) = take_all(PartitionReader("b", 1, build_batch([NewRecord(value=b"b")], base_offset=8), 8))
    (c,) = take_all(PartitionReader("c", 2, build_batch([], base_offset=1, last_offset=4), 1))
    return Records([first, b, reader.take(500), c])


@pytest.mark.spec("S2-48", "D-79")
def test_a_record_carries_all_of_its_fields() -> None:
    record = next(iter(sample()))
    assert record == Record(
        topic="a",
        partition=0,
        offset=0,
        timestamp=1_700_000_000_123,
        timestamp_type=TimestampType.CREATE_TIME,
        key=b"k",
        value=b"value",
        headers=(("h", b"1"), ("h", None)),
        leader_epoch=6,
        serialized_key_size=1,
        serialized_value_size=5,
    )
    assert type(record) is Record
    assert pickle.loads(pickle.dumps(record)) == record


def test_a_record_does_not_show_its_key_and_value() -> None:
    assert (
        repr(next(iter(sample())))
        == "<Record a-0@0 timestamp=1700000000123 key_size=1 value_size=5 headers=2>"
    )


@pytest.mark.spec("B.10.9", "S2-39")
def test_records_know_their_partitions_and_the_positions_after_them() -> None:
    records = sample()
    assert len(records) == 5
    assert [(r.topic, r.offset) for r in records] == [("a", 0), ("a", 1), ("b", 8), ("a", 2), ("a", 3)]
    assert list(records) == list(records)
    assert records.partitions() == (A0, B1)
    assert [r.offset for r in records.of(A0)] == [0, 1, 2, 3]
    assert len(records.of(C2)) == 0
    assert records.next_offsets() == {
        A0: OffsetAndMetadata(4),
        B1: OffsetAndMetadata(9),
        C2: OffsetAndMetadata(5),
    }
    assert repr(records) == "<Records: 5 of a-0, b-1>"


def test_no_records_are_false() -> None:
    assert not Records()
    assert repr(Records()) == "<Records: 0 of no partition>"


@pytest.mark.spec("D-79")
def test_arrow_columns() -> None:
    table = sample().to_arrow()
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    assert [(field.name, field.type) for field in table.schema] == [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
        ("headers", pa.list_(pa.field("element", header))),
        ("leaderEpoch", pa.int32()),
    ]
    table.validate(full=True)
    columns = table.to_pydict()
    moment = columns.pop("timestamp")
    assert moment[0] == datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, datetime.UTC)
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_000_123_000, -1000, 0, 0, 7000]
    assert columns == {
        "key": [b"k", None, None, b"", b"x"],
        "value": [b"value", b"", b"b", None, b"y"],
        "topic": ["a", "a", "b", "a", "a"],
        "partition": [0, 0, 1, 0, 0],
        "offset": [0, 1, 8, 2, 3],
        "timestampType": [0, 0, 0, 0, 1],
        "headers": [[{"key": "h", "value": b"1"}, {"key": "h", "value": None}], None, None, None, None],
        "leaderEpoch": [6, 6, None, 6, None],
    }


def test_arrow_columns_can_be_chosen() -> None:
    table = sample().to_arrow(["offset", "value"])
    assert table.schema.names == ["offset", "value"]
    assert table.num_rows == 5
    with pytest.raises(ArgumentError, match=r"'valeu'.*value"):
        sample().to_arrow(["valeu"])


def test_no_records_are_an_empty_table_of_the_same_schema() -> None:
    assert Records().to_arrow().schema == sample().to_arrow().schema


@pytest.mark.spec("D-79")
def test_arrow_has_the_raw_bytes_of_deserialized_records() -> None:
    def length(topic: str, headers: Headers, data: bytes) -> int:
        return len(data)

    reader = PartitionReader("a", 0, build_batch(ROWS), 0, value_deserializer=length)
    records = Records[bytes | None, int | None]([reader.take(500)])
    assert [record.value for record in records] == [5, 0, None]
    assert records.to_arrow()["value"].to_pylist() == [b"value", b"", None]


@pytest.mark.parametrize("timestamp", [2**63 - 1, 2**62])
def test_a_timestamp_beyond_microseconds_is_reported(timestamp: int) -> None:
    reader = PartitionReader("a", 0, build_batch([NewRecord(timestamp=timestamp)]), 0)
    records = Records[None, None]([reader.take(1)])
    assert next(iter(records)).timestamp == timestamp
    with pytest.raises(CorruptDataError, match="a-0"):
        records.to_arrow()
    assert records.to_arrow(["offset"])["offset"].to_pylist() == [0]


def test_without_pyarrow_the_error_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from kclient.records.records import Records\n"
        "from kclient.errors import ConfigError\n"
        "try: Records().to_arrow()\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert "kclient-kafka[arrow]" in done.stdout
    assert issubclass(ConfigError, ValueError)


def test_codecs_and_arrow_are_imported_late() -> None:
    script = "import sys, kclient.records.records, kclient.records.writer\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert not {"crc32c", "lz4", "cramjam", "backports.zstd", "compression.zstd", "pyarrow"} & set(
        done.stdout.split()
    )


def test_the_writer_refuses_what_a_batch_cannot_hold() -> None:
    with pytest.raises(ArgumentError, match="ascend"):
        build_batch([NewRecord(offset=4), NewRecord(offset=4)])
    with pytest.raises(ArgumentError, match="ascend"):
        build_batch([NewRecord(offset=4)], base_offset=5)
    with pytest.raises(ArgumentError, match="timestamp"):
        build_batch([NewRecord(timestamp=-2)])
    with pytest.raises(ArgumentError, match="last_offset"):
        build_batch([NewRecord(), NewRecord()], last_offset=0)
