"""Mirror a query's progress to a consumer group, for tools that show lag. The checkpoint stays the source of truth.

Offsets are committed without membership (generation −1), which the coordinator accepts only while the group is empty.
Within a run they never go back unless the log itself did. Unchanged offsets are committed again before they expire, but
not those of partitions that are gone. Nothing here raises: a failing mirror must not end the query.

`query.lastProgress` and the events of a StreamingQueryListener hold `startOffset`, `endOffset` and `latestOffset` of
each source; the second half of this module reads them. Sources whose offsets are not Kafka's are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

from kclient.errors import ClosedError, CommitFailedError, KclientError
from kclient.group.coordinator import Coordinator
from kclient.group.offset_commit import OffsetCommitter
from kclient.group.offset_fetch import CommittedOffsets
from kclient.log import ThrottledLogger, get_logger
from kclient.spark.client import ClusterCall, ClusterHandle, DriverClient
from kclient.spark.offsets import parse_offsets
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.spark")

COMMIT_SECONDS: Final = 5.0
RENEW_SECONDS: Final = 4 * 3600.0
"""A broker forgets the offsets of an empty group after seven days, or sooner by `offsets.retention.minutes`."""


class GroupCommitter:
    """Commits the progress of one query to one group; `failures` counts the commits that failed.

    Batches arrive in order. With `others` they may arrive late, and another committer commits for the same query too:
    then the stored offsets are read first, at the cost of a round trip, and the larger offset wins, except for
    partitions to `forget`.
    """

    def __init__(self, client: DriverClient, group: str, *, others: bool = False) -> None:
        self.failures: int = 0
        self._client = client
        self._group = group
        self._others = others
        self._floor: dict[TopicPartition, int] = {}  # what this run has committed
        self._metadata = ""
        self._renewed_at: float | None = None  # when all of it was sent last
        self._found: tuple[ClusterHandle, Coordinator] | None = None
        self._warned_of_members = False
        self._throttled = ThrottledLogger(log)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Allow offsets of these partitions to go back, because their logs did."""
        for tp in partitions:
            self._floor.pop(tp, None)

    def commit(self, offsets: Mapping[TopicPartition, int], metadata: str = "") -> bool:
        """Commit the position of each of the query's partitions. Return whether all are committed; never raise."""
        self._metadata = metadata
        return self._tried(lambda handle: self._advance(handle, offsets))

    def renew(self) -> bool:
        """Commit all offsets again if the last time was hours ago. Call it with every trigger."""
        return self._tried(self._renew) if self._floor else True

    # --- steps that run on the client's loop

    def _tried(self, step: ClusterCall[None]) -> bool:
        try:
            self._client.call(step, COMMIT_SECONDS)
        except ClosedError:  # a late event after `close`
            return False
        except KclientError as exc:
            self._warn(exc)
            return False
        except Exception:  # a bug in mirroring must not end the query
            self.failures += 1
            log.warning(
                "committing progress to group %s failed. Please report it.", self._group, exc_info=True
            )
            return False
        return True

    async def _advance(self, handle: ClusterHandle, offsets: Mapping[TopicPartition, int]) -> None:
        floor = self._floor
        if self._others:
            further = {tp: at for tp, at in offsets.items() if at > floor.get(tp, -1)}
            new = await self._without_smaller(handle, further)
        else:
            new = {tp: at for tp, at in offsets.items() if at != floor.get(tp)}
        await self._store(handle, new)
        self._floor = {tp: at for tp, at in self._floor.items() if tp in offsets}
        await self._renew(handle)

    async def _renew(self, handle: ClusterHandle) -> None:
        now = handle.runtime.now()
        if self._renewed_at is None:
            self._renewed_at = now
        elif now - self._renewed_at >= RENEW_SECONDS:
            self._renewed_at = (
                now  # set before the attempt: a failed one is repeated in hours, and brokers wait a week
            )
            await self._store_again(handle)

    async def _store(self, handle: ClusterHandle, offsets: Mapping[TopicPartition, int]) -> None:
        await self._commits(handle).commit(self._entries(offsets), retry=True)
        self._floor |= offsets

    async def _store_again(self, handle: ClusterHandle) -> None:
        """Commit the stored offsets again, or this run's where they are further: another committer may be ahead."""
        stored = await self._committed(handle).fetch(tuple(self._floor))
        kept = {
            tp: there for tp, there in stored.items() if there is not None and there.offset >= self._floor[tp]
        }
        await self._commits(handle).commit(self._entries(self._floor) | kept, retry=True)

    def _entries(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(offset, metadata=self._metadata) for tp, offset in offsets.items()}

    async def _without_smaller(
        self, handle: ClusterHandle, ahead: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the offsets without those that another committer has already passed in this run."""
        both = [tp for tp in ahead if tp in self._floor]
        stored = await self._committed(handle).fetch(both)
        return {tp: at for tp, at in ahead.items() if (there := stored.get(tp)) is None or there.offset < at}

    def _commits(self, handle: ClusterHandle) -> OffsetCommitter:
        return OffsetCommitter(self._coordinator(handle), handle.config, handle.runtime)

    def _committed(self, handle: ClusterHandle) -> CommittedOffsets:
        return CommittedOffsets(self._coordinator(handle), handle.config, handle.runtime)

    def _coordinator(self, handle: ClusterHandle) -> Coordinator:
        """Return the coordinator, looked up once for each connected cluster."""
        if self._found is None or self._found[0] is not handle:
            self._found = handle, Coordinator(handle.cluster, self._group, handle.config, handle.runtime)
        return self._found[1]

    def _warn(self, failure: KclientError) -> None:
        """Warn once of a group that has members, and at a limited rate of anything else."""
        self.failures += 1
        if not isinstance(failure, CommitFailedError) or failure.reason != "occupied":
            text = "progress is not committed to group %s; the query goes on: %s"
            self._throttled.warning(type(failure).__name__, self._client.now(), text, self._group, failure)
        elif not self._warned_of_members:
            self._warned_of_members = True
            log.warning(
                "progress is not committed to group %s while it has members; the query goes on. "
                "Give the stream a group of its own with commit.group.id. (%s)",
                self._group,
                failure,
            )


# --- reading a query's progress --------------------------------------------------------------------------------------


Progress: TypeAlias = Mapping[str, Any]
Offsets: TypeAlias = dict[TopicPartition, int]


@attrs.frozen
class SourceLag:
    """The lag of each partition of one source, in offsets, when its batch was planned."""

    source: str
    partitions: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        return sum(self.partitions.values())

    @property
    def min(self) -> int:
        return min(self.partitions.values(), default=0)

    @property
    def max(self) -> int:
        return max(self.partitions.values(), default=0)

    @property
    def avg(self) -> float:
        return self.total / len(self.partitions) if self.partitions else 0.0


def end_offsets(progress: Progress | None) -> Offsets:
    """Return the next offset of each partition of all sources; nothing before the first batch."""
    ends: Offsets = {}
    for source in _sources(progress):
        ends |= _offsets(source["endOffset"])
    return ends


def latest_offsets(progress: Progress) -> Offsets:
    """Return the log ends of all sources when last looked up; nothing for a batch that runs again after a restart."""
    return {tp: end for source in _sources(progress) for tp, end in _offsets(source["latestOffset"]).items()}


def gone_back(progress: Progress) -> list[TopicPartition]:
    """Return the partitions whose end is before their start: their logs were truncated or recreated."""
    return [
        tp
        for source in _sources(progress)
        for start in [_offsets(source["startOffset"])]
        for tp, end in _offsets(source["endOffset"]).items()
        if end < start.get(tp, 0)
    ]


def source_lags(progress: Progress | None) -> list[SourceLag]:
    """Return the lag of each Kafka source: the log ends seen last minus the offsets of the batch's end."""
    found: list[SourceLag] = []
    for source in _sources(progress):
        latest, done = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if latest:
            lags = {tp: max(0, end - done.get(tp, 0)) for tp, end in latest.items()}
            found.append(SourceLag(str(source["description"]), lags))
    return found


def metadata_of(progress: Progress) -> str:
    """Return the metadata to store beside each committed offset: the ids of query and batch."""
    return json.dumps({"query": str(progress["id"]), "batch": progress["batchId"]})


def _sources(progress: Progress | None) -> Iterator[Mapping[str, Any]]:
    yield from () if progress is None else progress["sources"]


def _offsets(raw: Any) -> Offsets:
    """Parse offsets: text from Spark, or an object if the progress itself is JSON.

    `query.lastProgress` of pyspark 4.0 and 4.1 has them as Python writes a dict; no name of a topic holds a quote.
    """
    try:
        return parse_offsets(raw.replace("'", '"') if isinstance(raw, str) else json.dumps(raw))
    except ValueError:
        return {}
