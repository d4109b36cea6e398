"""Limits of micro-batches as Spark 4.2 and newer speak of them, and ours.

Spark 4.0 and 4.1 know none of these classes. Stand-ins take their place at import, so that there is one code path;
there Spark asks for the latest offset without a limit, and cannot be held to one.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.errors import ConfigError
from kclient.spark.limits import NO_LIMIT, Limit
from kclient.spark.options import SourceOptions

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    KNOWS_LIMITS = True
except ImportError:  # pyspark before 4.2
    KNOWS_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        """Stands in for a limit."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Stands in for no limit."""

    @attrs.frozen
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        """Stands in for a maximum."""

        max_rows: int

    @attrs.frozen
    class ReadMinRows(ReadLimit):  # type: ignore[no-redef]
        """Stands in for a minimum."""

        min_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for the mixin."""


__all__ = ["ReadLimit", "SupportsTriggerAvailableNow", "check_version", "limit_within", "spoken"]

LIMITS: Final = ("max_offsets_per_trigger", "min_offsets_per_trigger")


def check_version(options: SourceOptions, knows_limits: bool = KNOWS_LIMITS) -> None:
    """Raise ConfigError for limits that this Spark would not keep.

    Before 4.2 it cannot tell a source of availableNow, which would then end after one limited batch.
    """
    if knows_limits or all(getattr(options, name) is None for name in LIMITS):
        return
    raise ConfigError(
        "maxOffsetsPerTrigger and minOffsetsPerTrigger need pyspark 4.2 or newer. Older ones tell a source neither its "
        "limit nor that the trigger is availableNow, which would end after one batch and leave the rest unread. "
        "Install pyspark 4.2, or leave the limits out."
    )


def spoken(limit: Limit) -> ReadLimit:
    """Ours in Spark's words. It has none for both at once: the minimum is then applied beside the maximum."""
    if limit.max_rows is not None:
        return ReadMaxRows(limit.max_rows)
    return ReadAllAvailable() if limit.min_rows is None else ReadMinRows(limit.min_rows)


def limit_within(asked: ReadLimit | None, ours: Limit) -> Limit:
    """What holds for a batch: what Spark asks for, and what it has no words for. Trigger.Once asks for no limit."""
    if isinstance(asked, ReadMaxRows):
        return attrs.evolve(ours, max_rows=asked.max_rows)
    if isinstance(asked, ReadMinRows):
        return attrs.evolve(ours, max_rows=None)
    return NO_LIMIT
