"""One run of the history: new records of `__consumer_offsets` become rows, then the log ends are sampled.

    compare the directory with the topic     the end of the last run, the same cluster and topic
    for each range of new records            read → rows → files → save the state
    sample the ends after the commits        so that an active group is never ahead of the known end

Each run begins where the last one ended, also if that was killed. The topic is compacted: commits that were overwritten
before the first run are lost.

The record of a committed offset is looked up after the commit is written, often in a later run: a group that has read
everything commits an offset that has no record yet.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

import attrs

from kclient.errors import ConfigError, KclientError, UnknownTopicError
from kclient.log import get_logger
from kclient.records.batch import read_batches
from kclient.records.reader import PartitionReader
from kclient.runtime import Runtime
from kclient.spark.client import ClusterHandle, DriverClient
from kclient.spark.executor import ExecutorClient, FetchedBatches, RangeFetcher, clients
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.offsets_history import sampling
from kclient.spark.offsets_history.rows import Row, TopicRecord, rows_of
from kclient.spark.offsets_history.settings import TOPIC, OffsetsHistorySettings
from kclient.spark.offsets_history.store import STATE, HistoryState, HistoryStore
from kclient.spark.option_table import Topics
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import LogBounds, OffsetRange, next_starts, report, split
from kclient.spark.sink.atomic_files import locked
from kclient.text import format_names
from kclient.types import TopicPartition

log: Final = get_logger("kclient.spark")

PAUSE_MS: Final = 200


@attrs.frozen(kw_only=True)
class HistoryRun:
    """What one run added: rows by table, records read, partitions of `__consumer_offsets`, groups seen."""

    rows: Mapping[str, int]
    records: int
    partitions: int
    groups: int
    resumed: bool
    seconds: float


def run(settings: OffsetsHistorySettings, runtime: Runtime | None = None) -> HistoryRun:
    """Keep what is new since the last run, and sample the logs' ends once.

    Raises ConfigError for the directory of another cluster, SinkError, ConnectError, AuthorizationError,
    UnknownTopicError if no group has ever committed, DeadlineError.
    """
    options = settings.source()
    client = DriverClient(options)
    try:
        client.connect()
        with locked(HistoryStore(settings.out).path, "offsets-history"):
            return _Run(settings, options, client, runtime or Runtime()).run()
    finally:
        client.close()


def watch(settings: OffsetsHistorySettings, report: Callable[[HistoryRun], None], stop: StopRequest) -> None:
    """Run again and again, `every_ms` after each run ended, until asked to stop.

    Retriable errors (a broker that restarts) are logged, and the next run goes on. Raises as `run` otherwise.
    """
    while not stop:
        try:
            report(run(settings))
        except KclientError as exc:
            if not exc.retriable:
                raise
            log.warning("offsets-history: this run failed, the next one goes on where it was: %s", exc)
        for _ in range(math.ceil(settings.every_ms / PAUSE_MS)):
            if not stop:
                Runtime().pause(PAUSE_MS / 1000)


class _Run:
    def __init__(
        self, settings: OffsetsHistorySettings, options: SourceOptions, client: DriverClient, runtime: Runtime
    ) -> None:
        self._settings = settings
        self._options = options
        self._client = client
        self._runtime = runtime
        self._store = HistoryStore(settings.out)
        self._seen = RunTotals()

    def run(self) -> HistoryRun:
        began = self._runtime.wall_ms()
        beginning = begin(self._settings, self._client, self._store)
        state = beginning.state
        names = {topic_id: name for name, topic_id in beginning.topics.items() if any(topic_id)}
        for wanted in beginning.ranges:
            self._store.write_range(wanted, self._tables(wanted, names))
            state = self._seen.advance(state, wanted)
            self._store.keep(state)
        self._store.keep(self._sample(state, beginning.topics))
        return HistoryRun(
            rows=dict(self._seen.rows),
            records=self._seen.records,
            partitions=beginning.partitions,
            groups=len(self._seen.groups),
            resumed=beginning.resumed,
            seconds=(self._runtime.wall_ms() - began) / 1000,
        )

    def _tables(self, wanted: OffsetRange, names: Mapping[bytes, str]) -> dict[str, list[Row]]:
        tables: dict[str, list[Row]] = {}
        now = self._runtime.wall_ms()
        for entry in entries(wanted, self._options):
            self._seen.records += 1
            for table, row in rows_of(entry, names):
                tables.setdefault(table, []).append(row | {"ingest_ts": now})
                self._seen.note(table, row)
        return tables

    def _sample(self, state: HistoryState, known: Collection[str]) -> HistoryState:
        committed = sorted({tp.topic for tp in state.committed})
        if unseen := [topic for topic in committed if topic not in known]:
            log.info(
                "offsets-history: no ends of %s: deleted, or DESCRIBE is not granted", format_names(unseen)
            )
        topics = [topic for topic in committed if topic in known]
        ends = self._client.call(lambda handle: sampling.watermarks(handle, topics))
        now = self._runtime.wall_ms()
        self._add("watermarks", sampling.watermark_rows(ends, now), now)
        times = self._client.call(
            lambda handle: sampling.record_times(handle, self._options, state.waiting, ends)
        )
        self._add("positions", sampling.position_rows(times, now), now)
        return still_waiting(state, ends, times)

    def _add(self, table: str, rows: list[Row], now: int) -> None:
        if rows:
            self._store.write_sample(table, rows, now)
            self._seen.rows[table] += len(rows)


# --- the start of a run ----------------------------------------------------------------------------------------------


@attrs.frozen
class RunStart:
    """Where a run begins, and which ranges it reads. `topics` are those that it may describe, with their ids."""

    state: HistoryState
    ranges: tuple[OffsetRange, ...]
    partitions: int
    topics: Mapping[str, bytes]
    resumed: bool


def begin(settings: OffsetsHistorySettings, client: DriverClient, store: HistoryStore) -> RunStart:
    """Compare the directory with the topic; remove files that a killed run left after its state.

    A new history is known by its state before it has a file. Raises ConfigError for the directory of another cluster or
    another topic, or one whose state is lost; SinkError, and what `DriverClient.call` raises.
    """
    kept = store.state()
    if kept is None and store.has_tables():
        raise ConfigError(
            f"The directory {settings.out} has tables, but not the file {STATE}, which says how far they go. Restore "
            "that file from a copy, or give another --out: the topic is compacted, so it cannot all be read again."
        )
    cluster_id, bounds = client.call(_survey)
    topic_id = min((log.topic_id.hex() for log in bounds.values() if log.topic_id), default=None)
    state = kept or HistoryState(cluster_id=cluster_id, topic_id=topic_id, offsets={})
    _check_same(settings.out, state, cluster_id, topic_id)
    starts = _starts(state, bounds, warn=kept is not None)
    state = attrs.evolve(state, topic_id=state.topic_id or topic_id, offsets={**state.offsets, **starts})
    if kept is None:
        store.keep(state)
    store.tidy({tp.partition: offset for tp, offset in starts.items()})
    whole = [OffsetRange(*tp, starts[tp], log.end, log.topic_id) for tp, log in bounds.items()]
    return RunStart(
        state=state,
        ranges=tuple(split([one for one in whole if one.size > 0], None, settings.records_per_file)),
        partitions=len(bounds),
        topics=client.call(_topics),
        resumed=kept is not None,
    )


def _starts(
    state: HistoryState, bounds: Mapping[TopicPartition, LogBounds], *, warn: bool
) -> dict[TopicPartition, int]:
    """Return where reading goes on.

    Never before the last position, because files from there on would be removed: a log end before it comes from a
    lagging broker, or from a log that lost records.
    """
    starts, losses = next_starts(state.offsets, bounds)
    report(losses if warn else (), fail=False)
    return {tp: max(offset, state.offsets.get(tp, offset)) for tp, offset in starts.items()}


async def _survey(handle: ClusterHandle) -> tuple[str | None, dict[TopicPartition, LogBounds]]:
    partitions = await handle.lookup.existing(Topics((TOPIC,)), internal=True)
    if not partitions:
        raise UnknownTopicError(
            f"No group has committed an offset on this cluster yet: there is no topic {TOPIC}. The brokers create it "
            "when the first consumer group joins or commits. Run again when one has, or look at another cluster.",
            topic=TOPIC,
        )
    return handle.cluster.metadata.cluster_id, await handle.lookup.log_bounds(partitions)


async def _topics(handle: ClusterHandle) -> dict[str, bytes]:
    response = await handle.cluster.describe_topics(
        None, allow_auto_create=False, timeout=handle.config.default_api_timeout_ms / 1000
    )
    return {topic.name: topic.topic_id for topic in response.topics if topic.name}


def _check_same(out: str, state: HistoryState, cluster_id: str | None, topic_id: str | None) -> None:
    """Refuse another topic or cluster: offsets of two topics cannot be ordered."""
    if state.cluster_id != cluster_id:
        raise ConfigError(
            f"The directory {out} holds the history of the cluster {state.cluster_id!r}, and this is {cluster_id!r}. "
            "Both together would be the history of none. Give this cluster a directory of its own."
        )
    if None not in (state.topic_id, topic_id) and state.topic_id != topic_id:
        raise ConfigError(
            f"The topic {TOPIC} was recreated: the directory {out} holds the history of the one with the id "
            f"{state.topic_id}, and now it is {topic_id}. That history is whole: keep it, and give another --out."
        )


# --- records of the topic --------------------------------------------------------------------------------------------


RECORDS: Final = 10_000


def entries(wanted: OffsetRange, options: SourceOptions) -> Iterator[TopicRecord]:
    """Yield every committed record of the range, in order.

    Raises DeadlineError, DataLossError, CorruptDataError, ConnectError, AuthorizationError, BrokerError.
    """
    try:
        yield from _entries(clients.borrow(options, wanted.topic), wanted, options)
    except KclientError:
        clients.discard(options)
        raise


def _entries(client: ExecutorClient, wanted: OffsetRange, options: SourceOptions) -> Iterator[TopicRecord]:
    fetcher = RangeFetcher(client.cluster, client.config, client.runtime, wanted, options)
    try:
        while (piece := client.run(fetcher.next())) is not None:
            yield from _of_piece(piece, fetcher.reader(piece), wanted.partition, fetcher.end)
    finally:
        client.run(fetcher.close())


def _of_piece(
    piece: FetchedBatches, reader: PartitionReader, partition: int, end: int
) -> Iterator[TopicRecord]:
    spans = [
        (batch.base_offset, batch.is_transactional) for batch in read_batches(piece.data) if batch.magic == 2
    ]
    begins = [begin for begin, _ in spans]
    while not reader.exhausted and reader.next_offset < end:
        chunk = reader.take(RECORDS)
        chunk.cut_at(end)
        for run in chunk.runs:
            records = zip(run.offsets, run.timestamps, run.raw_keys(), run.raw_values(), strict=False)
            for offset, timestamp, key, value in records:
                at = bisect_right(begins, offset) - 1
                yield TopicRecord(partition, offset, timestamp, at >= 0 and spans[at][1], key, value)


# --- what a run has read ---------------------------------------------------------------------------------------------


@attrs.define
class RunTotals:
    """Totals of a run: rows by table, records, groups, and each group's newest commits; None for a removal."""

    rows: Counter[str] = attrs.Factory(Counter)
    records: int = 0
    groups: set[str] = attrs.Factory(set)
    latest: dict[tuple[str, TopicPartition], int | None] = attrs.Factory(dict)

    def note(self, table: str, row: Row) -> None:
        """Add a row of a record."""
        self.rows[table] += 1
        if "group" in row:
            self.groups.add(row["group"])
        if table == "commits":
            tp = TopicPartition(row["topic"], row["partition"])
            self.latest[row["group"], tp] = row.get("offset")

    def advance(self, state: HistoryState, wanted: OffsetRange) -> HistoryState:
        """Return the state to store once the files of a range are written."""
        waiting = dict(state.waiting)
        for (_, tp), offset in self.latest.items():
            if offset is not None:
                waiting[tp] = waiting.get(tp, frozenset()) | {offset}
        return attrs.evolve(
            state,
            offsets={**state.offsets, wanted.tp: wanted.end},
            committed=state.committed | {tp for _, tp in self.latest},
            waiting=waiting,
        )


def still_waiting(
    state: HistoryState, there: Collection[TopicPartition], found: Mapping[tuple[TopicPartition, int], object]
) -> HistoryState:
    """Return the state without the found offsets, and without partitions that are gone."""
    waiting = {
        tp: left
        for tp, offsets in state.waiting.items()
        if tp in there and (left := frozenset(offset for offset in offsets if (tp, offset) not in found))
    }
    return attrs.evolve(state, waiting=waiting)
