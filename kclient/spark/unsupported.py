"""Options that the source knows and does not take, each with what to use instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kclient.spark.option_table import Mode

KAFKA_KEYS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are binary; cast or decode the column key",
    "value.deserializer": "values are binary; cast or decode the column value",
    "enable.auto.commit": "to commit progress to a group give commit.group.id",
    "interceptor.classes": "do the work on the DataFrame",
}
"""`kafka.*` keys that would change what the source itself decides."""


CREATE_TABLE: Final = (
    "CREATE TABLE loses options in Spark 4.3; use CREATE TEMPORARY VIEW … USING kclient OPTIONS (…)"
)


ONLY_THERE: Final[Mapping[Mode, str]] = {
    "batch": "is for streams",
    "stream": "is for batches: a stream has no end",
}
OTHER_MODE: Final[Mapping[Mode, Mapping[str, str]]] = {
    "batch": {"commit.metadata": "is for streams: a batch commits nothing"},
    "stream": {"pushdownFilters": "is for batches: Spark pushes no filters into a stream"},
}
"""Why an option of the other mode has no place in this one."""

SPARK_SETTINGS: Final = ("spark.kafka.", "spark.sql.")


def is_table(options: Mapping[str, str]) -> bool:
    """Whether these are the properties of a catalog's table, where options are called `option.…`."""
    return "provider" in options and any(name.startswith("option.") for name in options)


def problems(written: str, raw: str, known: Iterable[str]) -> list[str]:
    """Return the problem with an option that no rule accepts; none for a harmless one or `kafka.*`."""
    lower = written.lower()
    if lower.startswith("kafka."):
        return []
    if lower == "path":
        return [f"load({raw!r}) is not how topics are named; use option('subscribe', {raw!r}).load()"]
    if lower.startswith(SPARK_SETTINGS):
        return [
            f"{written} is a setting of Spark's own Kafka source; this source has no use for it, leave it out"
        ]
    return [_unknown(written, [*known, "kafka.bootstrap.servers"])]


def in_other_mode(name: str, raw: str, mode: Mode) -> list[str]:
    """Return the problem with an option of the other mode; none where its value requests nothing."""
    if name == "pushdownFilters" and raw.strip().lower() == "false":
        return []
    return [f"{name} {OTHER_MODE[mode].get(name, ONLY_THERE[mode])}; leave it out"]


def _unknown(written: str, known: Iterable[str]) -> str:
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(written.lower(), sorted(names), n=1, cutoff=0.5)
    if near:
        return f"{written} is unknown; did you mean {names[near[0]]}?"
    return f"{written} is unknown; keys of Kafka itself begin with kafka."
