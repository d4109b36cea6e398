"""A log with a damaged batch: what a range then gives, and what reading it says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.control import leaders
from kclient.errors import CorruptBatchError
from kclient.spark.decoding import ValueDecoder
from kclient.spark.executor import clients
from kclient.spark.ranges import OffsetRange
from kclient.spark.source import BatchReader, RangePartition
from tests.spark.range_support import Log, options_for


@pytest.fixture
def log() -> Iterator[Log]:
    """Three batches; in the second one a byte of a value is another."""
    with EmbeddedCluster(topics={"t": 1}) as kafka:
        made = Log(kafka)
        for _ in range(3):
            made.values(5, size=40)
        stored = leaders.find(kafka.state, "t", 0).log.batches[1]
        stored.data = stored.data.replace(b"x" * 40, b"x" * 39 + b"y", 1)
        yield made
        clients.close()


@pytest.mark.spec("SP-66", "SP-67")
def test_a_damaged_batch_fails_with_its_coordinates(log: Log) -> None:
    with pytest.raises(CorruptBatchError, match="at offset 5 of t-0: its stored CRC"):
        log.offsets()
    assert log.offsets(end=5) == [0, 1, 2, 3, 4]
    assert log.offsets(start=10) == [10, 11, 12, 13, 14]


@pytest.mark.spec("SP-67")
def test_a_client_that_switches_the_check_off_reads_on(log: Log) -> None:
    rows = log.read(columns=("offset", "value"), kafka__check__crcs="false")
    assert [row["offset"] for row in rows if row["value"] != b"x" * 40] == [5]
    assert len(rows) == 15


@pytest.mark.spec("SP-10")
def test_a_task_reads_as_it_is_asked(log: Log) -> None:
    """An iterator, no list: nothing is fetched before it is asked, and what comes before the damage is there."""
    options = options_for(log.kafka, arrow__batch__rows="5")
    reader = BatchReader(options, ("offset",), ValueDecoder({}))
    batches = reader.read(RangePartition(OffsetRange("t", 0, 0, 15)))
    assert isinstance(batches, Iterator)
    assert log.asked() == []
    assert next(batches).column("offset").to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(CorruptBatchError):
        next(batches)
