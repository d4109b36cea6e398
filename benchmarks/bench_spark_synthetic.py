"""A source that costs nothing: the same few Arrow batches again and again, in the columns of a Kafka source.

What Spark itself takes for a row, so that the rest can be seen. Spec: SG-05, SG-09.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

BATCH_ROWS, BATCHES = (
    10_000,
    4,
)  # so many different values that a column of Parquet has no dictionary for them
SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"


def value(number: int, size: int) -> bytes:
    """Something like an event: a part that varies, a part that does not."""
    varying = number * 2_654_435_761 % 4_294_967_296
    text = b'{"id":%d,"user":"%08x","price":%d.%02d,"carrier":"' % (
        number,
        varying,
        varying % 900,
        varying % 100,
    )
    return (text + b"%016x" % (varying * varying) * (size // 16))[:size]


@cache
def batch(value_bytes: int, which: int) -> pa.RecordBatch:
    """Made once in each worker."""
    numbers = range(which * BATCH_ROWS, (which + 1) * BATCH_ROWS)
    columns = {
        "key": pa.array([b"%08d" % number for number in numbers], pa.binary()),
        "value": pa.array([value(number, value_bytes) for number in numbers], pa.binary()),
        "topic": pa.repeat(pa.scalar("bench", pa.string()), BATCH_ROWS),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), BATCH_ROWS),
        "offset": pa.array(numbers, pa.int64()),
        "timestamp": pa.array(numbers, pa.timestamp("us", "UTC")),
        "timestampType": pa.repeat(pa.scalar(0, pa.int32()), BATCH_ROWS),
    }
    return pa.RecordBatch.from_pydict(columns)


class SyntheticReader(DataSourceReader):
    def __init__(self, rows: int, partitions: int, value_bytes: int) -> None:
        self._rows = rows
        self._partitions = partitions
        self._value_bytes = value_bytes

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(self._partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        rows = self._rows // self._partitions
        for number, first in enumerate(range(0, rows, BATCH_ROWS)):
            yield batch(self._value_bytes, number % BATCHES)[: rows - first]


class Synthetic(DataSource):
    """Options: `rows`, `partitions`, `valueBytes`."""

    @classmethod
    def name(cls) -> str:
        return "synthetic"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return SyntheticReader(*(int(self.options[key]) for key in ("rows", "partitions", "valueBytes")))
