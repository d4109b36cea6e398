"""`spark.read.format("kclient")`: the classes that Spark calls. Each is thin; the work is in the modules beside it.

    load()         process A: schema()                       the options are checked
    first action   process B: reader(), partitions()         the brokers are asked, ranges planned
    tasks          process D: read(range)                    a pickled copy of B's reader

Nothing that one process sets reaches another but the options, the columns and the ranges themselves, and no
constructor opens anything.

Spec: SP-10…SP-16, SP-33, SP-36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kclient.errors import ConfigError
from kclient.spark.columns import check_columns, ddl, default_columns
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

NOTHING = OffsetRange("", 0, 0, 0)


class RangePartition(InputPartition):
    """A range of offsets as Spark carries it to a task."""

    def __init__(self, value: OffsetRange) -> None:
        super().__init__(value)


class BatchReader(DataSourceReader):
    """Plans ranges on the driver and reads one of them in each task."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns

    def partitions(self) -> list[InputPartition]:
        """Never an empty list, which Spark would replace by a partition that is none of ours (SP-11)."""
        from kclient.spark.planning import plan_batch

        ranges = asyncio.run(plan_batch(self._options))
        return [RangePartition(planned) for planned in ranges or [NOTHING]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range as Arrow batches."""
        from kclient.spark.worker import read_range

        return read_range(partition.value, self._options, self._columns)


class KClientSource(DataSource):
    """Apache Kafka as a batch source, without a JAR. The options are those of Spark's own Kafka source.

    Spec: spark 3.2, section 4.
    """

    @classmethod
    def name(cls) -> str:
        return "kclient"

    def schema(self) -> str:
        """The columns of Spark's own source. Raises ConfigError for bad options, all at once."""
        options = SourceOptions.parse(self.options)
        return ddl(default_columns(include_headers=options.include_headers))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns: all, or those that the user named in `.schema(…)`."""
        columns = check_columns([(field.name, field.dataType.simpleString()) for field in schema.fields])
        return BatchReader(SourceOptions.parse(self.options), columns)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Streams come in a later version."""
        raise ConfigError(
            "format('kclient') cannot be read as a stream yet. This version reads batches. "
            "Use spark.read, and give startingOffsets to go on where the last batch ended."
        )
