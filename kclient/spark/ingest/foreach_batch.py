"""Land the batches of any Structured Streaming query in an Iceberg or Delta table: the function for `foreachBatch`.

    executors    rows of a task as Arrow batches → files of the table, each under a name of its own
    driver       the files of all tasks → tables.commit: the files and the number of the batch, in one commit

The id of the query, which is that of its checkpoint, is kept with the number: another query counts from 0 again, and
its batches are not those of this one.

Spark calls the function again for a batch whose end it has not written yet. If the table has the batch, nothing is
written; if it has not, the files of the first try count nowhere, and `kclient ingest gc` removes them.

A Python data source writes, because Spark gives it Arrow batches without pandas. Spark commits in a process of its own
beside the driver, so the table is opened there again.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import attrs
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkAttributeError
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.spark.decoding.ddl import parse_ddl
from kclient.spark.ingest import resume
from kclient.spark.ingest.setting_values import Location, job_name, location, partition_by
from kclient.spark.ingest.spark_session import typed
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import tables
from kclient.spark.sink.manifest import WrittenFile
from kclient.spark.sink.parquet import TOKEN_BYTES, RangeFiles
from kclient.spark.sink.partitions import TableFiles
from kclient.spark.sink.tables import LakeTable, TableCommit, load_with_retries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

log: Final = get_logger("kclient.spark")

FORMAT: Final = "kclient-table"
BATCH: Final = "table.batch"
QUERY_ID: Final = "sql.streaming.queryId"
"""Spark's property of the thread that runs a query."""
CODEC: Final = "zstd"


@attrs.frozen(kw_only=True)
class TableTarget:
    """The table of a query, and the job in it. Pickles."""

    sink: Location
    job: str
    catalog: str | None = None
    keys: tuple[str, ...] = ()
    evolves: bool = False

    def open(self) -> LakeTable[Any]:
        """Return the table. Raises ConfigError if its library is not installed."""
        return resume.open_table(self.sink, self.catalog)

    def prepare(self, table: LakeTable[Any], columns: pa.Schema) -> TableFiles:
        """Create or check the table for these columns. Raises ConfigError, SinkError."""
        return table.prepare(columns, self.keys, evolves=self.evolves)


@attrs.frozen(kw_only=True)
class TableBatch:
    """One batch on its way into a table: what the tasks and the commit need. Pickles.

    `query` is the mark of the query's id, None if Spark does not say it.
    """

    target: TableTarget
    number: int
    columns: pa.Schema
    files: TableFiles
    query: int | None = None

    def commit_of(self, files: tuple[WrittenFile, ...] = ()) -> TableCommit:
        """Return the batch as the table takes it."""
        marks = {} if self.query is None else {tables.QUERY: self.query}
        return TableCommit(
            job=self.target.job, batch=self.number, start={}, end={}, files=files, topics=marks
        )


class TableWriter:
    """What `table_writer` returns. It is called on the driver, for one batch after the other."""

    def __init__(self, target: TableTarget) -> None:
        self._target = target
        self._table = target.open()

    def __call__(self, frame: DataFrame, batch: int) -> None:
        """Land one batch. Raises ConfigError, SinkError: then it is not in the table, and the query ends."""
        columns = pa.schema(list(parse_ddl("The query's columns", frame.schema.simpleString())))
        files = self._target.prepare(self._table, columns)
        described = TableBatch(
            target=self._target, number=batch, columns=columns, files=files, query=_query_of(frame)
        )
        found = self._table.progress(load_with_retries(self._table), self._target.job)
        tables.check_query(self._table.name, found, described.commit_of())
        if found is not None and found.batch == batch:
            log.info("%s has batch %d of the job %s already", self._table.name, batch, self._target.job)
            return
        text = base64.b64encode(pickle.dumps(described)).decode()
        frame.sparkSession.dataSource.register(TableSource)
        try:
            frame.write.format(FORMAT).option(BATCH, text).mode("append").save()
        except Exception as exc:
            raise typed(exc) from exc


class TableSource(DataSource):
    """Writes one batch of a query into a table."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Return the writer of the batch that the options describe."""
        options: Mapping[str, str] = self.options
        return BatchWriter(pickle.loads(base64.b64decode(options[BATCH])))  # noqa: S301 the driver's own


@attrs.frozen
class TaskFiles(WriterCommitMessage):
    """The files of one task."""

    files: tuple[WrittenFile, ...]


class BatchWriter(DataSourceArrowWriter):
    """Writes the files of a task, and commits those of all tasks."""

    def __init__(self, batch: TableBatch) -> None:
        self._batch = batch

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskFiles:
        """Write the rows of a task. Raises SinkError."""
        context, table = TaskContext.get(), self._batch.files
        number = self._batch.number
        # A file's name shows the task and the batch; a batch has no offsets of its own.
        wanted = OffsetRange("", 0 if context is None else context.partitionId(), number, number + 1)
        files = RangeFiles(wanted, table.root, CODEC, token=Runtime().random_bytes(TOKEN_BYTES).hex())
        try:
            for rows in iterator:
                for part in table.partitioning.split(table.fitted(rows)) if len(rows) else ():
                    files.add(part)
            files.finish()
            files.publish()
        except BaseException:
            files.discard()
            raise
        return TaskFiles(files.written())

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit the files of all tasks. Raises SinkError."""
        batch, table = self._batch, self._batch.target.open()
        if batch.target.prepare(table, batch.columns) != batch.files:
            raise SinkError(
                f"{table.name} was changed while a batch was written for it. Nothing of it was committed. Start the "
                "query again: the batch is then written for the table as it is.",
                path=table.name,
            )
        files = tuple(file for task in messages if isinstance(task, TaskFiles) for file in task.files)
        tables.commit(table, batch.commit_of(files))


def _query_of(frame: DataFrame) -> int | None:
    """Return the mark of the query that calls `foreachBatch`; None for a batch of your own, and with Spark Connect."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except PySparkAttributeError:
        return None
    return None if found is None else tables.topic_mark(UUID(found).hex)


def table_writer(
    sink: str, *, job: str, catalog: str | None, keys: str | Sequence[str], evolves: bool
) -> TableWriter:
    """Return the function for `foreachBatch`: see `kclient.spark.table_writer`. Raises ConfigError."""
    try:
        where, name = location(sink), job_name(job)
        parsed = partition_by(keys) if keys else ()
    except ValueError as exc:
        raise ConfigError(
            f"table_writer: the sink, the job or a partition key {exc}. Correct it, and start the query again."
        ) from exc
    if not where.is_lake:
        raise ConfigError(
            f"table_writer: {sink} is no table. Give iceberg:CATALOG.NAMESPACE.TABLE or delta:PLACE; Spark writes the "
            "other sinks itself, with writeStream.format(…)."
        )
    return TableWriter(TableTarget(sink=where, job=name, catalog=catalog, keys=parsed, evolves=evolves))
