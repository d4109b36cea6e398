"""One run of the history: what is new in `__consumer_offsets` becomes rows, and then the logs' ends are sampled.

    for each range of new records       read → rows → files → the state moves behind it
    ends are asked behind the commits   so that a group at work is not ahead of what is known

Each run begins where the last one ended, also one that was killed. The topic is compacted: what was overwritten before
the first run nobody can know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final

import attrs

from kclient.errors import KclientError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.spark.driver import Driver
from kclient.spark.durable import locked
from kclient.spark.jobs.offsets_history import sampling
from kclient.spark.jobs.offsets_history.beginning import begin
from kclient.spark.jobs.offsets_history.reading import entries
from kclient.spark.jobs.offsets_history.rows import Row, rows_of
from kclient.spark.jobs.offsets_history.seen import Seen, still_waiting
from kclient.spark.jobs.offsets_history.settings import OffsetsHistorySettings
from kclient.spark.jobs.offsets_history.store import State, Store
from kclient.spark.jobs.stopping import Stop
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.text import format_names

log = get_logger("kclient.spark")

PAUSE_MS: Final = 200


@attrs.frozen(kw_only=True)
class HistoryRun:
    """What one run added: rows by table, records read, partitions of `__consumer_offsets`, groups that were seen."""

    rows: Mapping[str, int]
    records: int
    partitions: int
    groups: int
    resumed: bool
    seconds: float


def run(settings: OffsetsHistorySettings, runtime: Runtime | None = None) -> HistoryRun:
    """Keep what is new since the last run, and sample the logs' ends once.

    Raises ConfigError for the directory of another cluster, SinkError, ConnectError, AuthorizationError,
    UnknownTopicError where nobody ever committed, DeadlineError.
    """
    options = settings.source()
    driver = Driver(options)
    try:
        driver.connect()
        with locked(Store(settings.out).path, "offsets-history"):
            return _Run(settings, options, driver, runtime or Runtime()).run()
    finally:
        driver.close()


def watch(settings: OffsetsHistorySettings, told: Callable[[HistoryRun], None], stop: Stop) -> None:
    """Run again and again, `every_ms` after each run ended, until asked to stop.

    What passes by itself (a broker that restarts) is logged, and the next run goes on. Raises as `run` otherwise.
    """
    while not stop:
        try:
            told(run(settings))
        except KclientError as exc:
            if not exc.retriable:
                raise
            log.warning("offsets-history: this run failed, the next one goes on where it was: %s", exc)
        for _ in range(math.ceil(settings.every_ms / PAUSE_MS)):
            if not stop:
                Runtime().pause(PAUSE_MS / 1000)


class _Run:
    def __init__(
        self, settings: OffsetsHistorySettings, options: SourceOptions, driver: Driver, runtime: Runtime
    ) -> None:
        self._settings = settings
        self._options = options
        self._driver = driver
        self._runtime = runtime
        self._store = Store(settings.out)
        self._seen = Seen()

    def run(self) -> HistoryRun:
        began = self._runtime.wall_ms()
        beginning = begin(self._settings, self._driver, self._store)
        state = beginning.state
        names = {topic_id: name for name, topic_id in beginning.topics.items() if any(topic_id)}
        for wanted in beginning.ranges:
            self._store.write_range(wanted, self._tables(wanted, names))
            state = self._seen.behind(state, wanted)
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

    def _sample(self, state: State, known: Collection[str]) -> State:
        committed = sorted({tp.topic for tp in state.committed})
        if unseen := [topic for topic in committed if topic not in known]:
            log.info(
                "offsets-history: no ends of %s: deleted, or DESCRIBE is not granted", format_names(unseen)
            )
        topics = [topic for topic in committed if topic in known]
        ends = self._driver.ask(lambda link: sampling.watermarks(link, topics))
        now = self._runtime.wall_ms()
        self._add("watermarks", sampling.watermark_rows(ends, now), now)
        times = self._driver.ask(lambda link: sampling.record_times(link, self._options, state.waiting, ends))
        self._add("positions", sampling.position_rows(times, now), now)
        return still_waiting(state, ends, times)

    def _add(self, table: str, rows: list[Row], now: int) -> None:
        if rows:
            self._store.write_sample(table, rows, now)
            self._seen.rows[table] += len(rows)
