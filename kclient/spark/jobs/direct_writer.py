"""`--writer direct` with Spark: tasks land the ranges themselves, `foreachBatch` makes a batch count by its manifest.

    files under their names → one row for each in the driver → manifest n: the batch counts

Spark calls `foreachBatch` again for a batch whose commit it does not find: then the manifest is there, or the same
files are written again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kclient.spark.direct import RangeWritten
from kclient.spark.direct_source import FORMAT, DirectSource, from_rows, options_of
from kclient.spark.jobs.ledger import Landed, Ledger
from kclient.spark.jobs.prepared import Prepared
from kclient.spark.jobs.trigger import triggered
from kclient.spark.manifest import batch_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class DirectWriter:
    """The batches of one query, by their manifests. `failure` is what ended it here."""

    def __init__(self, prepared: Prepared, ledger: Ledger) -> None:
        self._prepared = prepared
        self._ledger = ledger
        self._counted: dict[int, Landed] = {}  # batches that nobody was told of yet
        self.failure: Exception | None = None

    def start(self, session: SparkSession) -> StreamingQuery:
        """Start the query."""
        prepared = self._prepared
        session.dataSource.register(DirectSource)
        options = options_of(prepared.stream_options(), prepared.target.of_new_run())
        frame = session.readStream.format(FORMAT).options(**options).load()
        return triggered(frame.writeStream.foreachBatch(self._count), prepared).start()

    def landed(self, progress: Mapping[str, Any]) -> Landed | None:
        """The batch that a progress is of, once; None for one that was told, and for a trigger without a batch."""
        return self._counted.pop(progress["batchId"], None)

    def _count(self, frame: DataFrame, batch: int) -> None:
        """Make a batch count. The frame is collected once: a second action would land the ranges again."""
        checkpoint = self._prepared.checkpoint
        try:
            end = checkpoint.offsets(batch)
            whole, written = self._ledger.format_count(batch, end), list[RangeWritten]()
            if whole is None:
                written = from_rows(row.asDict() for row in frame.collect())
                whole = self._ledger.count(batch_name(batch), checkpoint.start_of(batch), end, written)
            self._counted[batch] = Landed.of(whole, written)
        except Exception as exc:
            self.failure = exc
            raise
