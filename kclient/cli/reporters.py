"""Reporters of an ingest job's events: a terminal, a log, machine-readable files, or several of them at once."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kclient.cli.prometheus import Prometheus
from kclient.errors import ConfigError, KclientError, SinkError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import (
    BatchProgress,
    IngestListener,
    IngestPlan,
    IngestResult,
    PartitionPlan,
)
from kclient.spark.offsets import dump_offsets
from kclient.text import LONGEST_PATH, LONGEST_TEXT, format_count, printable
from kclient.types import TopicPartition


class IngestReporter(IngestListener, Protocol):
    """A listener that also gets the warnings and the failure of a run. `close` is called last, however it ended.

    A warning may come from any thread, one at a time.
    """

    def warned(self, text: str) -> None: ...

    def failed(self, error: BaseException, exit_code: int) -> None: ...

    def close(self) -> None: ...


class All:
    """Passes each event to several reporters."""

    def __init__(self, reporters: list[IngestReporter]) -> None:
        self._reporters = reporters

    def planned(self, plan: IngestPlan) -> None:
        self._each(lambda reporter: reporter.planned(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._each(lambda reporter: reporter.batch(progress))

    def finished(self, result: IngestResult) -> None:
        self._each(lambda reporter: reporter.finished(result))

    def warned(self, text: str) -> None:
        self._each(lambda reporter: reporter.warned(text))

    def failed(self, error: BaseException, exit_code: int) -> None:
        self._each(lambda reporter: reporter.failed(error, exit_code))

    def close(self) -> None:
        self._each(lambda reporter: reporter.close())

    def _each(self, call: Callable[[IngestReporter], None]) -> None:
        for reporter in self._reporters:
            call(reporter)


class Lines:
    """One line for each event on standard error, suited to log files."""

    def planned(self, plan: IngestPlan) -> None:
        self._say(plan_line(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._say(batch_line(progress))

    def finished(self, result: IngestResult) -> None:
        self._say(finished_line(result))

    def warned(self, text: str) -> None:
        self._say(warning_line(text))

    def failed(self, error: BaseException, exit_code: int) -> None:
        """Do nothing: the command prints the failure."""

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _say(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Screen:
    """One line that is updated in place on a terminal: rows written, rate and lag."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._wanted = 0
        self._rows = 0

    def planned(self, plan: IngestPlan) -> None:
        self._wanted = plan.backlog_rows
        self._console.print(Text(plan_line(plan)), soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self._show(Text("waiting for the first batch …", style="dim"))

    def batch(self, progress: BatchProgress) -> None:
        """Update the line. The most important values come first: a narrow terminal cuts the end."""
        self._rows += progress.rows
        line = Text.assemble(
            (f"{_bar(self._rows, self._wanted)} ", "cyan"),
            (f"{self._rows:,} rows", "bold"),
            "  ",
            (f"{progress.bad_records:,} bad", "red" if progress.bad_records else "dim"),
            "  ",
            (lag(progress), "green" if not progress.lag_records else "yellow"),
            f"  {rates(progress)}  batch {progress.batch}  {progress.duration_ms:,} ms  "
            f"{format_count(progress.files, 'file')}",
            no_wrap=True,
            overflow="ellipsis",
        )
        self._show(line)

    def finished(self, result: IngestResult) -> None:
        self.close()
        self._console.print(Text(finished_line(result)), soft_wrap=True)

    def warned(self, text: str) -> None:
        """Print above the line that is updated."""
        self._console.print(Text(warning_line(text), style="yellow"), soft_wrap=True)

    def failed(self, error: BaseException, exit_code: int) -> None:
        self.close()

    def close(self) -> None:
        """Give the line back to the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, line: Text) -> None:
        if self._live is not None:
            self._live.update(line, refresh=True)


def _bar(done: int, wanted: int, width: int = 20) -> str:
    full = width if wanted <= 0 else min(width, width * done // wanted)
    return "━" * full + "╌" * (width - full)


SHOWN: Final = 8
"""A line names at most this many partitions, and counts the others."""
UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def plan_line(plan: IngestPlan) -> str:
    """Format topics, partitions, backlog, start, tasks, sink and checkpoint."""
    words = [
        f"plan  {printable(','.join(plan.topics), LONGEST_PATH) or 'nothing to read'}",
        *_backlog(plan),
        format_count(plan.tasks, "task"),
        f"engine {plan.engine}",
        f"trigger {plan.trigger}",
        f"sink {printable(plan.sink, LONGEST_PATH)}",
        f"checkpoint {plan.checkpoint}",
    ]
    if plan.group is not None:
        words.append(f"group {printable(plan.group)}")
    return "  ".join(words)


def _backlog(plan: IngestPlan) -> list[str]:
    """Format the backlog in the logs; empty for a replay, which reads no logs."""
    if not plan.partitions:
        return []
    size = "" if plan.backlog_bytes is None else f" (about {size_text(plan.backlog_bytes)})"
    return [
        format_count(len(plan.partitions), "partition"),
        f"backlog {format_count(plan.backlog_rows, 'row')}{size}",
        f"start {starts(plan.partitions)}",
    ]


def batch_line(progress: BatchProgress) -> str:
    """Format rates, lag, times, files and bad records."""
    return "  ".join(
        (
            f"batch {progress.batch}",
            format_count(progress.rows, "row"),
            rates(progress),
            lag(progress),
            times(progress),
            format_count(progress.files, "file"),
            f"{progress.bad_records:,} bad",
        )
    )


def finished_line(result: IngestResult) -> str:
    """Format the totals of a finished run."""
    words = [
        f"{result.ended}  {format_count(result.batches, 'batch', 'batches')}",
        format_count(result.rows, "row"),
        size_text(result.bytes),
        format_count(result.files, "file"),
        f"{result.bad_records:,} bad",
        f"{result.seconds:.1f} s",
        f"lag {result.lag_records:,}",
    ]
    if result.committed is not None:
        words.append("group committed" if result.committed else "group NOT committed (see the log)")
    return "  ".join(words)


def warning_line(text: str) -> str:
    """Format a warning."""
    return f"warning  {text}"


def rates(progress: BatchProgress) -> str:
    """Format rows and bytes per second."""
    return f"{progress.rows_per_second:,.0f} rows/s  {size_text(progress.bytes_per_second)}/s"


def lag(progress: BatchProgress) -> str:
    """Format the lag in records and in seconds."""
    seconds = "" if progress.lag_seconds is None else f" ({progress.lag_seconds:.1f} s)"
    return f"lag {progress.lag_records:,}{seconds}"


def times(progress: BatchProgress) -> str:
    """Format the batch's milliseconds, and those of its phases as far as they are known."""
    phases = ("fetch", "decode", "write", "commit")
    known = [(phase, getattr(progress, f"{phase}_ms")) for phase in phases]
    parts = [f"{phase} {ms:,}" for phase, ms in known if ms is not None]
    return f"{progress.duration_ms:,} ms" + (f" ({', '.join(parts)})" if parts else "")


def starts(partitions: Iterable[PartitionPlan]) -> str:
    """Format start offsets: orders 0:12 1:7 clicks 0:3 … and 40 more"""
    shown: dict[str, list[str]] = {}
    ordered = sorted(partitions, key=lambda one: one.partition)
    for one in ordered[:SHOWN]:
        shown.setdefault(one.partition.topic, []).append(f"{one.partition.partition}:{one.start}")
    text = " ".join(f"{printable(topic)} {' '.join(places)}" for topic, places in shown.items())
    more = len(ordered) - SHOWN
    return f"{text} … and {more} more" if more > 0 else text


def size_text(size: float) -> str:
    """Format a size in bytes with its unit."""
    step = 0
    while size >= 1000 and step < len(UNITS) - 1:
        size, step = size / 1000, step + 1
    return f"{size:,.{min(step, 1)}f} {UNITS[step]}"


VERSION: Final = 1


class JsonLines:
    """Writes every event and flushes, so that a reader of the file sees it at once."""

    def __init__(self, out: TextIO, runtime: Runtime) -> None:
        self._out = out
        self._runtime = runtime

    def planned(self, plan: IngestPlan) -> None:
        self._write("plan", plan_fields(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._write("batch", batch_fields(progress))

    def finished(self, result: IngestResult) -> None:
        self._write("finished", finished_fields(result))

    def warned(self, text: str) -> None:
        self._write("warning", {"text": text})

    def failed(self, error: BaseException, exit_code: int) -> None:
        self._write("failed", failed_fields(error, exit_code))

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._out is not sys.stdout:
            self._out.close()

    def _write(self, event: str, fields: Mapping[str, Any]) -> None:
        line = {"event": event, "version": VERSION, "time_ms": self._runtime.wall_ms(), **fields}
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def plan_fields(plan: IngestPlan) -> dict[str, Any]:
    """Return the fields of a run's plan."""
    return {
        "cluster_id": plan.cluster_id,
        "topics": list(plan.topics),
        "partitions": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "start": one.start,
                "end": one.end,
                "backlog": one.backlog,
                "backlog_bytes": one.backlog_bytes,
            }
            for one in plan.partitions
        ],
        "backlog_rows": plan.backlog_rows,
        "backlog_bytes": plan.backlog_bytes,
        "tasks": plan.tasks,
        "sink": plan.sink,
        "engine": plan.engine,
        "trigger": plan.trigger,
        "group": plan.group,
        "checkpoint": plan.checkpoint.state,
        "next_batch": plan.checkpoint.next_batch,
        "again": plan.checkpoint.again,
    }


def batch_fields(progress: BatchProgress) -> dict[str, Any]:
    """Return the fields of a finished batch."""
    return {
        "batch": progress.batch,
        "rows": progress.rows,
        "bytes": progress.bytes,
        "files": progress.files,
        "bad_records": progress.bad_records,
        "duration_ms": progress.duration_ms,
        "fetch_ms": progress.fetch_ms,
        "decode_ms": progress.decode_ms,
        "write_ms": progress.write_ms,
        "commit_ms": progress.commit_ms,
        "rows_per_second": round(progress.rows_per_second, 1),
        "bytes_per_second": round(progress.bytes_per_second, 1),
        "lag_records": progress.lag_records,
        "lag_seconds": progress.lag_seconds,
        "start": offsets(progress.start),
        "end": offsets(progress.end),
        "latest": offsets(progress.latest),
    }


def finished_fields(result: IngestResult) -> dict[str, Any]:
    """Return the fields of a finished run, with the totals of this run."""
    return {
        "ended": result.ended,
        "signal": result.signal,
        "batches": result.batches,
        "total_rows": result.rows,
        "total_bytes": result.bytes,
        "total_files": result.files,
        "total_bad_records": result.bad_records,
        "seconds": round(result.seconds, 3),
        "lag_records": result.lag_records,
        "committed": result.committed,
        "end": offsets(result.end),
    }


def failed_fields(error: BaseException, exit_code: int) -> dict[str, Any]:
    """Return the fields of a failed run."""
    known = isinstance(error, KclientError)
    return {
        "error": type(error).__name__,
        "code": error.kc_code if isinstance(error, KclientError) else None,
        "text": error.text if isinstance(error, KclientError) else str(error),
        "retriable": known and bool(getattr(error, "retriable", False)),
        "exit_code": exit_code,
    }


def offsets(found: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in the form that checkpoints use."""
    content: dict[str, dict[str, int]] = json.loads(dump_offsets(found))
    return content


LOOPBACK: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65_535
FORM: Final = "is neither jsonl:FILE nor prometheus:[HOST:]PORT"


def reporters(wanted: Iterable[str], *, json: bool) -> All:
    """Return all reporters. With `json` standard output gets the JSON lines, and no text for people is written.

    It comes last: a reader of its events finds the metrics file and page up to date.

    Raises ConfigError for a `--metrics` that is none, SinkError for a file that cannot be written.
    """
    opened: list[IngestReporter] = []
    try:
        opened.extend(map(_reporter, wanted))
    except BaseException:
        All(opened).close()
        raise
    opened.append(JsonLines(sys.stdout, Runtime()) if json else _for_people())
    return All(opened)


def _for_people() -> IngestReporter:
    console = Console(stderr=True, highlight=False)
    return Screen(console) if console.is_terminal and not console.is_dumb_terminal else Lines()


def _reporter(text: str) -> IngestReporter:
    kind, colon, where = text.partition(":")
    if not (colon and where) or kind not in ("jsonl", "prometheus"):
        raise ConfigError(f"--metrics {text!r} {FORM}. Write --metrics jsonl:progress.jsonl, for one.")
    return _file(where) if kind == "jsonl" else _port(text, where)


def _file(path: str) -> JsonLines:
    try:
        return JsonLines(open(path, "a", encoding="utf-8"), Runtime())
    except OSError as exc:
        raise SinkError(
            f"--metrics jsonl:{path} cannot be written: {exc.strerror}. Give a file in a directory that is there.",
            path=path,
        ) from exc


def _port(text: str, where: str) -> Prometheus:
    host, _, port = where.rpartition(":")
    if not port.isdecimal() or int(port) > HIGHEST_PORT:
        raise ConfigError(f"--metrics {text!r} {FORM}. Write --metrics prometheus:9108, for one.")
    return Prometheus(host.strip("[]") or LOOPBACK, int(port))


# --- warnings --------------------------------------------------------------------------------------------------------


WARNED_SECONDS: Final = 600.0
"""The same warning is shown at most once in this time: a first run plans twice, and each commit looks again."""
MAX_WARNED: Final = 1_000


@contextmanager
def warnings_shown(reporter: IngestReporter | None = None) -> Iterator[None]:
    """Report the warnings of jobs and tables in this block, on standard error if no reporter is given.

    The command line shows nothing else that is logged: commands print their errors, and reconnects are routine.
    """
    logger = get_logger("kclient.spark")
    handler = _WarningHandler(Lines() if reporter is None else reporter)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


class _WarningHandler(logging.Handler):
    """Passes the text of each warning to a reporter."""

    def __init__(self, reporter: IngestReporter) -> None:
        super().__init__(logging.WARNING)
        self._reporter = reporter
        self._shown: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record in one line. A lost output is left to the next event: it must not end what warns."""
        text = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            text = printable(f"{text} {record.exc_info[1]!r}", LONGEST_TEXT)
        if record.created - self._shown.get(text, -WARNED_SECONDS) < WARNED_SECONDS:
            return
        if len(self._shown) >= MAX_WARNED:
            self._shown.clear()
        self._shown[text] = record.created
        with suppress(OSError):
            self._reporter.warned(text)
