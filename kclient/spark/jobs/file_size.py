"""`--target-file-mb`: how many records make a file of that size, by what the last batch's rows took on the disk.

The first run goes by samples of the topics, as their brokers keep them. The number is kept beside the checkpoint, so
that a batch which runs again is cut as it was.
"""

from __future__ import annotations

from typing import Final

from kclient.spark.jobs import sinks
from kclient.spark.jobs.checkpoint import Checkpoint, Position
from kclient.spark.jobs.settings import IngestSettings
from kclient.spark.jobs.survey import Survey

MB: Final = 1_000_000


def rows_per_file(
    settings: IngestSettings, found: Survey, checkpoint: Checkpoint, here: Position
) -> int | None:
    """None where no size was asked for, and where nothing tells yet how large records are. Raises SinkError."""
    if settings.target_file_mb is None:
        return None
    kept = checkpoint.file_rows(settings.target_file_mb)
    if here.end is not None and kept is not None:
        return kept
    return measured(settings, settings.target_file_mb, found) or kept


def measured(settings: IngestSettings, target_mb: int, found: Survey) -> int | None:
    """The same by what landed last, or by samples of what was found. Raises SinkError."""
    size = sinks.last_written(settings.sink, settings.writer) or _sampled(found)
    return None if size is None else max(1, target_mb * MB * size[0] // max(1, size[1]))


def _sampled(found: Survey) -> tuple[int, int] | None:
    """Records and their bytes in the logs, of the partitions that were looked at."""
    rows = sum(max(0, found.bounds[tp].end - found.start[tp]) for tp in found.sizes)
    return (rows, sum(found.sizes.values())) if rows else None
