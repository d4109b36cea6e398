"""Offsets without a record: the end of a range is reached all the same, and no fetch asks for what is not there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from kclient.embedded import EmbeddedCluster, NewRecord
from kclient.records.compression import Compression
from kclient.spark.executor import clients, read_range
from kclient.spark.ranges import OffsetRange
from tests.spark.range_support import ALL, COMMITTED, Log, options_for

Write = Callable[[Log], None]

POLL_TIMEOUT_SECONDS = 120.0  # the default of kafkaConsumer.pollTimeoutMs: nothing here may come near it


@pytest.fixture
def log() -> Iterator[Log]:
    with EmbeddedCluster(topics={"t": 1}) as kafka:
        yield Log(kafka)
        clients.close()


def gap_at_the_tail(log: Log) -> None:
    log.values(10)
    log.remove(7, 8, 9)


def compaction(log: Log) -> None:
    for size in (1, 4, 10, 2, 5):
        log.values(size)
    log.remove(0, 2, 4, 6, 7, 8, 12, 21)


def empty_batches(log: Log) -> None:
    for _ in range(6):
        log.values(3)
    log.remove(*range(3, 9), *range(12, 18))


def only_aborted_at_the_tail(log: Log) -> None:
    log.values(5)
    for _ in range(4):
        log.transaction(7, 3, commit=False)


def only_aborted(log: Log) -> None:
    log.transaction(7, 3, commit=False)
    log.transaction(8, 3, commit=False)


def only_control_batches(log: Log) -> None:
    for number in range(12):
        log.marker(7, commit=bool(number % 2))


def transactions_between_each_other(log: Log) -> None:
    for number in range(6):
        log.transaction(number % 2, 4, commit=number % 3 != 0)
        log.values(2)


EVERY_LOG = (
    gap_at_the_tail,
    compaction,
    empty_batches,
    only_aborted_at_the_tail,
    only_aborted,
    only_control_batches,
    transactions_between_each_other,
)


@pytest.mark.spec("SP-61", "SP-62", "ST-06")
@pytest.mark.parametrize("write", EVERY_LOG)
@pytest.mark.parametrize("ahead", ["0", "1", "4"])
def test_every_record_that_is_there_comes_and_nothing_waits_for_another(
    log: Log, write: Write, ahead: str
) -> None:
    write(log)
    began = time.monotonic()
    assert log.offsets(fetch__readAhead=ahead, **COMMITTED) == log.visible
    assert time.monotonic() - began < POLL_TIMEOUT_SECONDS / 20
    assert max(log.asked()) < log.end


@pytest.mark.spec("SP-61", "SP-62", "ST-06")
@pytest.mark.parametrize("write", EVERY_LOG)
def test_a_range_may_begin_and_end_anywhere(log: Log, write: Write) -> None:
    write(log)
    for start in range(0, log.end, 3):
        for end in (start, start + 1, (start + log.end) // 2, log.end):
            assert log.offsets(start, end, **COMMITTED) == log.seen(start, end)
    assert max(log.asked()) < log.end


@pytest.mark.spec("SP-61", "ST-06")
def test_the_last_offset_is_a_marker_and_the_range_ends_with_the_record_before(log: Log) -> None:
    log.transaction(7, 5, commit=True)
    assert log.offsets(**COMMITTED) == log.offsets() == [0, 1, 2, 3, 4]
    assert log.offsets(5, 6, **COMMITTED) == []


@pytest.mark.spec("ST-06")
def test_nulls_and_times_that_are_none_stay_what_they_are(log: Log) -> None:
    log.batch(
        NewRecord(None, None, -1),
        NewRecord(b"", b"", 0),
        NewRecord(b"k", b"v", 1_357_034_400_000, [("h", None), ("h", b""), ("ü", b"1")]),
        compression=Compression.LZ4,
    )
    rows = log.read()
    assert [(row["key"], row["value"]) for row in rows] == [(None, None), (b"", b""), (b"k", b"v")]
    assert [round(row["timestamp"].timestamp() * 1000) for row in rows] == [-1, 0, 1_357_034_400_000]
    assert [row["headers"] for row in rows[:2]] == [None, None]
    assert [(one["key"], one["value"]) for one in rows[2]["headers"]] == [
        ("h", None),
        ("h", b""),
        ("ü", b"1"),
    ]
    assert {(row["topic"], row["partition"], row["timestampType"]) for row in rows} == {("t", 0, 0)}


@pytest.mark.spec("SP-30", "ST-06")
@pytest.mark.parametrize("columns", [("value", "offset"), ("headers",), ("timestampType", "key"), ALL[::-1]])
def test_a_part_of_the_columns_is_that_part_of_all(log: Log, columns: tuple[str, ...]) -> None:
    transactions_between_each_other(log)
    log.batch(NewRecord(b"k", None, 5, [("h", b"1")]), compression=Compression.ZSTD)
    whole = log.read()
    part = log.read(columns=columns)
    assert part == [{name: row[name] for name in columns} for row in whole]
    assert [tuple(row) for row in part] == [columns] * len(whole)


@pytest.mark.spec("SP-66", "ST-06")
@pytest.mark.parametrize("ahead", ["0", "1", "4"])
def test_a_leader_that_moves_in_the_middle_of_a_range_is_followed(ahead: str) -> None:
    with EmbeddedCluster(brokers=3, topics={"t": 1}) as kafka:
        log = Log(kafka)
        for _ in range(40):
            log.values(50, size=100)
        small = {"kafka__max__partition__fetch__bytes": "20000", "arrow__batch__rows": "100"}
        options = options_for(kafka, fetch__readAhead=ahead, **small)
        offsets: list[int] = []
        for number, batch in enumerate(read_range(OffsetRange("t", 0, 0, log.end), options, ("offset",))):
            offsets += batch.column("offset").to_pylist()
            if number in (0, 4, 8):  # there, back, and there for good
                kafka.move_leader("t", 0)
        assert offsets == log.visible
        assert len({one.node for one in kafka.requests if one.api == "Fetch"}) > 1
        clients.close()
