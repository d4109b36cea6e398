"""What a Delta table asks of its writers, and whether kclient and delta-rs do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from deltalake import DeltaTable, Field

FEATURES: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",  # for added files the feed is the files themselves
        "checkConstraints",  # what they and the next two compute or check is refused where there is any
        "generatedColumns",
        "invariants",
        "columnMapping",
        "deletionVectors",
        "timestampNtz",
        "v2Checkpoint",  # `gc` reads the sidecars, too
    }
)
"""Features of a table that ask nothing of a writer who only adds files, or whose demands are checked here.

delta-rs 1.6 commits to tables with these. It refuses typeWidening, vacuumProtocolCheck, clustering and domainMetadata.
"""

WRITERS: Final = frozenset({1, 2, 3, 4, 5, 7})
"""The protocols for writers that delta-rs commits to: 6 has identity columns, and 7 names its features."""

COMPUTED: Final = frozenset({"delta.generationExpression", "delta.identity.start", "delta.invariants"})
CONSTRAINT: Final = "delta.constraints."
MAPPING: Final = "delta.columnMapping.mode"
TRACKING: Final = "delta.enableRowTracking"
TXN_RETENTION: Final = "delta.setTransactionRetentionDuration"
WIDENING: Final = "typeWidening"
"""The feature; a table of its preview has `typeWidening-preview`."""


def check_features(name: str, version: DeltaTable) -> None:
    """Refuse a table that asks of its writers what is not done here. Raises ConfigError."""
    features = set(version.protocol().writer_features or ()) - FEATURES
    problems = [*_of_protocol(version, features), *_of_columns(version), *_of_settings(version)]
    if problems:
        raise ConfigError(
            f"{name} cannot be written to by kclient: {'; '.join(problems)}. Give a table without that, or "
            f"one that does not exist yet.{_way_out(features)}",
            problems=tuple(problems),
        )


def _of_protocol(version: DeltaTable, features: Iterable[str]) -> Iterator[str]:
    number = version.protocol().min_writer_version
    if number not in WRITERS:
        yield f"its protocol {number} for writers is not supported"
    yield from (f"its feature {name} is not supported" for name in sorted(features))


def _of_columns(version: DeltaTable) -> Iterator[str]:
    for path, field in _fields("", version.schema()):
        if not COMPUTED.isdisjoint(field.metadata):
            yield f"its column {path} is computed or checked by its writers"


def _fields(above: str, kind: Any) -> Iterator[tuple[str, Field]]:
    """Yield the columns of a type at any depth, with the names on the way there."""
    for field in getattr(kind, "fields", ()):
        yield f"{above}{field.name}", field
        yield from _fields(f"{above}{field.name}.", field.type)
    for name in ("element", "key", "value"):
        if hasattr(kind, f"{name}_type"):
            yield from _fields(f"{above}{name}.", getattr(kind, f"{name}_type"))


def _of_settings(version: DeltaTable) -> Iterator[str]:
    settings = version.metadata().configuration
    for name in sorted(settings):
        if name.startswith(CONSTRAINT):
            yield f"it has the constraint {name.removeprefix(CONSTRAINT)}"
    if settings.get(MAPPING, "none") != "none":
        yield "its columns have other names in its files"
    if settings.get(TRACKING, "false") == "true":
        yield "its rows are tracked"
    if TXN_RETENTION in settings:
        yield f"with {TXN_RETENTION} it forgets where jobs stand"


def _way_out(features: Iterable[str]) -> str:
    """Return how to take away a feature that a table is likely to have by accident: one setting of Spark adds it."""
    widening = [name for name in features if name.startswith(WIDENING)]
    if not widening:
        return ""
    drop = f"ALTER TABLE … DROP FEATURE '{widening[0]}' TRUNCATE HISTORY"
    return (
        f" delta-rs does not commit to a table with type widening. To take it away, run {drop} in Spark, which writes "
        "the files with narrower types again, and once more when the time is over that it names. Without TRUNCATE "
        "HISTORY it leaves checkpointProtection, to which delta-rs does not commit either."
    )
