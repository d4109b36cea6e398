"""Every golden batch of the Java client, all formats and codecs: headers, records, and its uncompressed bytes again."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kclient.errors import CorruptBatchError
from kclient.records.batch import Batch, read_batches
from kclient.records.columns import Columns
from kclient.records.compression import Compression
from kclient.records.reader import PartitionReader
from kclient.records.writer import NewRecord, build_batch
from tests.records.support import columns_of, golden_cases, only_batch, records_of, take_all

CASES = golden_cases()
SOUND = [case for case in CASES if all(batch["valid"] for batch in case["batches"])]
FLIPPED = [case for case in CASES if not all(batch["valid"] for batch in case["batches"])]
BY_NAME = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}


def name_of(case: dict[str, Any]) -> str:
    return str(case["case"])


def test_no_golden_case_is_left_out() -> None:
    assert (len(SOUND), len(FLIPPED)) == (154, 9)


@pytest.mark.spec("B.11.1", "B.11.2", "B.11.4", "B.11.5", "B.10.12", "H-10", "D-56", "D-71", "D-79")
@pytest.mark.parametrize("case", SOUND, ids=name_of)
@pytest.mark.parametrize("block", [1, 10**9])
def test_golden_batches_decode_to_what_java_wrote(case: dict[str, Any], block: int) -> None:
    data = bytes.fromhex(case["hex"])
    batches = list(read_batches(data))
    assert sum(batch.size_in_bytes for batch in batches) == len(data) - case["trailing_bytes"]
    for batch, expected in zip(batches, case["batches"], strict=True):
        batch.check_crc()
        runs = columns_of(batch, block)
        assert_header(batch, expected, runs)
        assert [row for run in runs for row in rows(run)] == [
            expected_row(record) for record in expected["records"]
        ]


def assert_header(batch: Batch, expected: dict[str, Any], runs: list[Columns]) -> None:
    assert batch.next_offset == expected["next_offset"]
    assert batch.last_offset == expected["last_offset"]
    assert batch.magic == expected["magic"]
    assert batch.size_in_bytes == expected["size_in_bytes"]
    assert batch.attributes == expected["attributes"]
    assert Compression(batch.compression).name.lower() == expected["compression"]
    assert batch.timestamp_type == BY_NAME[expected["timestamp_type"]]
    assert batch.max_timestamp == expected["max_timestamp"]
    assert batch.crc == expected["crc"]
    if batch.magic < 2:
        assert runs[0].offsets[0] == expected["base_offset"]
        return
    assert batch.base_offset == expected["base_offset"]
    assert batch.base_timestamp == expected["base_timestamp"]
    assert batch.partition_leader_epoch == expected["partition_leader_epoch"]
    assert batch.producer_id == expected["producer_id"]
    assert batch.producer_epoch == expected["producer_epoch"]
    assert batch.base_sequence == expected["base_sequence"]
    assert batch.last_sequence == expected["last_sequence"]
    assert batch.is_transactional == expected["transactional"]
    assert batch.is_control == expected["control"]
    assert batch.delete_horizon_ms == expected["delete_horizon_ms"]
    assert batch.count == expected["count"]


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def rows(run: Columns) -> list[tuple[Any, ...]]:
    return [
        (offset, timestamp, key, digest(value), headers)
        for offset, timestamp, key, value, headers in zip(
            run.offsets, run.timestamps, run.raw_keys(), run.raw_values(), run.headers, strict=True
        )
    ]


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def expected_row(record: dict[str, Any]) -> tuple[Any, ...]:
    value = record["value_sha256"] if "value_sha256" in record else digest(unhex(record["value"]))
    headers = tuple((name, unhex(data)) for name, data in record.get("headers", []))
    return record["offset"], record["timestamp"], unhex(record["key"]), value, headers


@pytest.mark.spec("B.10.10", "B.11.3", "D-50", "D-51")
@pytest.mark.parametrize("case", SOUND, ids=name_of)
def test_a_partition_gives_every_data_record_and_ends_after_its_last_batch(case: dict[str, Any]) -> None:
    expected = [
        record["offset"]
        for batch in case["batches"]
        if not batch.get("control")
        for record in batch["records"]
    ]
    reader = PartitionReader("t", 0, bytes.fromhex(case["hex"]), 0)
    chunks = take_all(reader, 2)
    assert [offset for chunk in chunks for run in chunk.runs for offset in run.offsets] == expected
    assert reader.next_offset == case["batches"][-1]["next_offset"]


@pytest.mark.spec("B.10.12", "H-11")
@pytest.mark.parametrize("case", FLIPPED, ids=name_of)
def test_a_flipped_bit_is_refused(case: dict[str, Any]) -> None:
    data = bytes.fromhex(case["hex"])
    with pytest.raises(CorruptBatchError, match="CRC"):
        only_batch(data).check_crc()
    with pytest.raises(CorruptBatchError, match="t-0"):
        records_of(data)


WRITABLE = [
    (case["case"], index)
    for case in SOUND
    for index, batch in enumerate(case["batches"])
    if batch["magic"] == 2
    and batch["compression"] == "none"
    and not case["case"].endswith("-big")
    # the broker writes LogAppendTime into the header; the deltas below it are the producer's, not in the facts
    and batch["timestamp_type"] != "LogAppendTime"
]


@pytest.mark.spec("B.11.1", "B.11.3")
@pytest.mark.parametrize(("name", "index"), WRITABLE)
def test_the_writer_makes_the_bytes_that_java_made(name: str, index: int) -> None:
    case = next(case for case in SOUND if case["case"] == name)
    batch = list(read_batches(bytes.fromhex(case["hex"])))[index]
    expected = case["batches"][index]
    written = build_batch(
        [
            NewRecord(
                unhex(record["key"]),
                unhex(record["value"]),
                record["timestamp"],
                [(key, unhex(value)) for key, value in record["headers"]],
                record["offset"],
            )
            for record in expected["records"]
        ],
        base_offset=expected["base_offset"],
        last_offset=expected["last_offset"],
        partition_leader_epoch=expected["partition_leader_epoch"],
        timestamp_type=batch.timestamp_type,
        max_timestamp=expected["max_timestamp"],
        producer_id=expected["producer_id"],
        producer_epoch=expected["producer_epoch"],
        base_sequence=expected["base_sequence"],
        is_transactional=expected["transactional"],
        is_control=expected["control"],
        delete_horizon_ms=expected["delete_horizon_ms"],
    )
    assert written == bytes(batch.view())
