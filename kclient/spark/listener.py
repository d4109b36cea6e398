"""Progress of queries, mirrored to a group as soon as each batch is done.

Spark calls a source's `commit` only when the next batch begins, and never for the last one: a group that only the
source commits to always lags. A listener gets every batch, the last one a moment after the query has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

from kclient.spark.client import DriverClient
from kclient.spark.group_progress import (
    GroupCommitter,
    Progress,
    SourceLag,
    end_offsets,
    gone_back,
    metadata_of,
    source_lags,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from kclient.spark.options import SourceOptions


class GroupCommitListener(StreamingQueryListener):
    """Commits the progress of a session's queries to one group; `kclient.spark.track` creates it.

    `lag` holds the lag of each source in the latest progress. Nothing here raises into Spark.
    """

    def __init__(
        self,
        spark: SparkSession,
        options: SourceOptions,
        group: str,
        query: str | None = None,
        metadata: str | None = None,
    ) -> None:
        self.lag: list[SourceLag] = []
        self._spark = spark
        self._client: DriverClient | None = DriverClient(options)
        self._group = group
        self._query = query
        self._metadata = metadata
        self._committers: dict[str, GroupCommitter] = {}

    def close(self, last_progress: Progress | None = None) -> bool:
        """Stop listening. With `query.lastProgress`, commit its last batch first, even if its event has not arrived.

        That holds the last batch as soon as `awaitTermination()` returns, when the listener's event may still be on its
        way. Returns whether the group knows all of it.
        """
        client, known = self._client, True
        if client is not None:
            known = last_progress is None or self._commit(last_progress)
            self._spark.streams.removeListener(self)
            self._client = None
            client.close()
        return known

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Do nothing: the query has no progress yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Commit where the batch ended."""
        self._commit(event.progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Keep the group's offsets from expiring."""
        committer = self._committers.get(str(event.id))
        if committer is not None and self._client is not None:
            committer.renew()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Drop the query's committer: a restart is another run, which may begin anywhere."""
        self._committers.pop(str(event.id), None)

    def _commit(self, progress: Progress) -> bool:
        if self._client is None or (self._query is not None and progress["name"] != self._query):
            return True
        committer = self._committers.get(str(progress["id"]))
        if committer is None:
            committer = GroupCommitter(self._client, self._group, others=True)
            self._committers[str(progress["id"])] = committer
        self.lag = source_lags(progress)
        committer.forget(gone_back(progress))
        return committer.commit(end_offsets(progress), self._metadata or metadata_of(progress))
