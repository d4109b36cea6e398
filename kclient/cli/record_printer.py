"""Reads records until a limit or a signal, prints them, and commits what was flushed to standard output."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final

import attrs

from kclient.cli.places import Place, offsets_of
from kclient.cli.record_format import for_terminal
from kclient.consumer.callbacks import RebalanceListener
from kclient.records.records import Record
from kclient.runtime import Runtime
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.sync import Consumer
from kclient.text import format_count
from kclient.types import OffsetAndMetadata, TopicPartition

POLL_SECONDS: Final = 0.25
COMMIT_MS: Final = 5_000
PROGRESS_MS: Final = 500


@attrs.frozen
class Limits:
    """Which records are printed, and when to stop. `end` None: never."""

    count: int | None
    end: Place | None
    key: re.Pattern[bytes] | None
    value: re.Pattern[bytes] | None

    def matches(self, record: Record[Any, Any]) -> bool:
        """Return whether key and value match the expressions; null matches none."""
        return _matches(self.key, record.key) and _matches(self.value, record.value)


class RecordPrinter:
    """Reads until a limit or a signal; knows what was flushed, and so may be committed."""

    def __init__(
        self,
        consumer: Consumer,
        limits: Limits,
        line: Callable[[Record[Any, Any]], bytes],
        runtime: Runtime,
        stop: StopRequest,
        *,
        commits: bool,
    ) -> None:
        self._consumer = consumer
        self._limits = limits
        self._line = line
        self._runtime = runtime
        self._stop = stop
        self._commits = commits
        self._out = sys.stdout.buffer
        self._on_terminal = sys.stdout.isatty()
        self._written: dict[TopicPartition, OffsetAndMetadata] = {}  # into the buffer of standard output
        self._flushed: dict[TopicPartition, OffsetAndMetadata] = {}  # and not committed yet
        self._ends: dict[TopicPartition, int] = {}
        self._done: set[TopicPartition] = set()
        self._count = 0
        self._committed_ms = runtime.wall_ms()
        self._progress = Progress(runtime)

    def run(self) -> None:
        """Read and print until a limit or a signal; commit what was printed, also after an error."""
        try:
            self._check_positions()
            while not self._finished():
                records = self._consumer.poll(POLL_SECONDS)
                self.look_up_ends(self._consumer.assignment())
                for record in records:
                    if self._stop or self._counted():
                        break
                    self._take(record)
                self.flush()
                self._progress.show(self._count)
                if not len(records):
                    self._check_positions()
                if self._runtime.wall_ms() - self._committed_ms >= COMMIT_MS:
                    self.commit()
        finally:
            self._progress.close(self._count)
            self.commit()

    def flush(self) -> None:
        """Write all lines to the reader; what fails here is not committed."""
        written, self._written = self._written, {}
        self._out.flush()
        self._flushed |= written

    def commit(self) -> None:
        """Commit what was printed since the last commit."""
        self._committed_ms = self._runtime.wall_ms()
        if self._commits:
            if self._written:
                self.flush()
            self._consumer.commit(self._flushed)
            self._flushed = {}

    def _take(self, record: Record[Any, Any]) -> None:
        tp = TopicPartition(record.topic, record.partition)
        end = self._ends.get(tp)
        if end is None or record.offset < end:
            if self._limits.matches(record):
                data = self._line(record)
                self._out.write(for_terminal(data) if self._on_terminal else data)
                self._count += 1
            self._written[tp] = OffsetAndMetadata(record.offset + 1, record.leader_epoch)
        if end is not None and record.offset + 1 >= end:
            self._end(tp)

    def _counted(self) -> bool:
        return self._limits.count is not None and self._count >= self._limits.count

    def _finished(self) -> bool:
        at_end = bool(self._ends) and self._done >= set(self._consumer.assignment())
        return bool(self._stop) or self._counted() or at_end

    def look_up_ends(self, partitions: Iterable[TopicPartition]) -> None:
        """Find where the partitions stop for which that is not known yet."""
        new = [tp for tp in partitions if tp not in self._ends]
        if new and self._limits.end is not None:
            self._ends |= offsets_of(self._consumer, new, self._limits.end)

    def _check_positions(self) -> None:
        """Notice partitions whose position has reached the end without a record: empty, or ended by a marker."""
        for tp in self._consumer.assignment():
            if tp in self._ends and tp not in self._done and self._consumer.position(tp) >= self._ends[tp]:
                self._end(tp)

    def _end(self, tp: TopicPartition) -> None:
        if tp not in self._done:
            self._done.add(tp)
            self._consumer.pause([tp])


class CommitOnRevoke(RebalanceListener):
    """Commits what was printed before another member reads on from there."""

    def __init__(self, printer: RecordPrinter) -> None:
        self._printer = printer

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._printer.commit()

    def on_partitions_lost(self, partitions: tuple[TopicPartition, ...]) -> None:
        return


class Progress:
    """A line on standard error with the number of records, where that is a terminal and standard output is not."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._began = self._shown = runtime.wall_ms()
        self._visible = sys.stderr.isatty() and not sys.stdout.isatty()

    def show(self, count: int) -> None:
        """Show the count, twice a second at most."""
        now = self._runtime.wall_ms()
        if self._visible and now - self._shown >= PROGRESS_MS:
            self._shown = now
            rate = count * 1000 / max(1, now - self._began)
            sys.stderr.write(f"\r\x1b[K{format_count(count, 'record')}, {rate:,.0f}/s")
            sys.stderr.flush()

    def close(self, count: int) -> None:
        """Replace the line by the final count."""
        if self._visible:
            seconds = (self._runtime.wall_ms() - self._began) / 1000
            sys.stderr.write(f"\r\x1b[K{format_count(count, 'record')} in {seconds:.1f} s\n")


def _matches(pattern: re.Pattern[bytes] | None, data: bytes | None) -> bool:
    return pattern is None or (data is not None and pattern.search(data) is not None)
