"""The checkpoint that a query of Spark writes, where that of its job lies in an object store.

Spark writes it through Hadoop's file systems, which for an object store need JARs and credentials of their own. So the
query gets a directory of the driver, made from the job's checkpoint, and gone with the run:

    job's checkpoint → directory      Spark goes on after the last batch, or runs again the one that was begun
    Spark         offsets/n           in the directory
    foreachBatch  begin n             in the job's checkpoint, created once: batch n ends there in every run
                  batch n counts      by its manifest, or in the table
                  commit n            in the job's checkpoint
    Spark         commits/n           in the directory

Nothing in the directory is needed again: a run that was killed left all of it in the job's checkpoint. Only the driver
reads it, because a query without state keeps nothing with the executors. A checkpoint in a directory is Spark's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import attrs

from kclient.errors import SinkError
from kclient.spark.ingest.checkpoint import Checkpoint, Offsets
from kclient.spark.sink.store import is_remote

if TYPE_CHECKING:
    from kclient.spark.ingest.preflight import Prepared
    from kclient.spark.ingest.run_epoch import RunEpoch


@attrs.frozen
class QueryCheckpoint:
    """The checkpoint of the job, and the one that Spark writes: the same one where it is a directory."""

    job: Checkpoint
    query: Checkpoint
    epoch: RunEpoch

    @property
    def location(self) -> str:
        """What Spark is given."""
        # With its scheme: a path alone would be one of the cluster's default file system.
        return str(self.job.path) if self.query is self.job else f"file://{self.query.where}"

    def begin(self, batch: int) -> tuple[Offsets, Offsets]:
        """Return where a batch of the query starts and ends, and keep that for every run. Raises SinkError."""
        start, end = self.query.start_of(batch), self.query.offsets(batch)
        if self.query is not self.job:
            self.epoch.check()
            if self.job.begin(batch, end) != end:
                raise SinkError(
                    f"Another run has begun batch {batch} of {self.job.where} meanwhile, with another end: the job was "
                    "started twice, or a run before was still alive. Start it in one place only; started again now "
                    "it goes on with that batch, and nothing counts twice.",
                    path=self.job.where,
                )
        return start, end

    def commit(self, batch: int) -> None:
        """Note in the job's checkpoint that a batch counts; in a directory Spark does it."""
        if self.query is not self.job:
            self.job.commit(batch)


@contextmanager
def query_checkpoint(prepared: Prepared) -> Iterator[QueryCheckpoint]:
    """Yield the checkpoints of a claimed job. Raises SinkError."""
    job = prepared.checkpoint
    if not is_remote(job.where):
        yield QueryCheckpoint(job, job, prepared.epoch)
        return
    with TemporaryDirectory(prefix="kclient-query-", ignore_cleanup_errors=True) as directory:
        query = Checkpoint(directory)
        query.restore(prepared.position, job.first_start() or prepared.position.start)
        yield QueryCheckpoint(job, query, prepared.epoch)
