"""What an ingest job tells people: one line for its plan, one for each batch, one for its end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kclient.spark.ingest.progress import BatchProgress, IngestPlan, IngestResult, PartitionPlan
from kclient.text import LONGEST_PATH, format_count, printable

SHOWN: Final = 8
"""So many partitions a line names; of the others it tells how many there are."""
UNITS: Final = ("B", "kB", "MB", "GB", "TB")


def plan_line(plan: IngestPlan) -> str:
    """Topics, partitions, backlog, start, tasks, sink and checkpoint."""
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
    """What waits in the logs; nothing is said of a replay, which reads none."""
    if not plan.partitions:
        return []
    size = "" if plan.backlog_bytes is None else f" (about {size_text(plan.backlog_bytes)})"
    return [
        format_count(len(plan.partitions), "partition"),
        f"backlog {format_count(plan.backlog_rows, 'row')}{size}",
        f"start {starts(plan.partitions)}",
    ]


def batch_line(progress: BatchProgress) -> str:
    """Rates, lag, times, files and bad records."""
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
    """How a run ended, in numbers."""
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


def rates(progress: BatchProgress) -> str:
    """Rows and bytes a second."""
    return f"{progress.rows_per_second:,.0f} rows/s  {size_text(progress.bytes_per_second)}/s"


def lag(progress: BatchProgress) -> str:
    """What is left to read, in records and in seconds."""
    behind = "" if progress.lag_seconds is None else f" ({progress.lag_seconds:.1f} s)"
    return f"lag {progress.lag_records:,}{behind}"


def times(progress: BatchProgress) -> str:
    """The batch's milliseconds, and those of its phases as far as they are known."""
    phases = ("fetch", "decode", "write", "commit")
    known = [(phase, getattr(progress, f"{phase}_ms")) for phase in phases]
    parts = [f"{phase} {ms:,}" for phase, ms in known if ms is not None]
    return f"{progress.duration_ms:,} ms" + (f" ({', '.join(parts)})" if parts else "")


def starts(partitions: Iterable[PartitionPlan]) -> str:
    """orders 0:12 1:7 clicks 0:3 … and 40 more"""
    shown: dict[str, list[str]] = {}
    ordered = sorted(partitions, key=lambda one: one.partition)
    for one in ordered[:SHOWN]:
        shown.setdefault(one.partition.topic, []).append(f"{one.partition.partition}:{one.start}")
    text = " ".join(f"{printable(topic)} {' '.join(places)}" for topic, places in shown.items())
    more = len(ordered) - SHOWN
    return f"{text} … and {more} more" if more > 0 else text


def size_text(size: float) -> str:
    """Bytes as people read them."""
    step = 0
    while size >= 1000 and step < len(UNITS) - 1:
        size, step = size / 1000, step + 1
    return f"{size:,.{min(step, 1)}f} {UNITS[step]}"
