"""Options that the source knows and does not take, each with what to use instead.

Spec: SP-40, SP-41, spark 3.2 and 3.3.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

log = logging.getLogger("kclient.spark")

KAFKA_KEYS: Final[Mapping[str, str]] = {
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are binary; cast or decode the column key",
    "value.deserializer": "values are binary; cast or decode the column value",
    "enable.auto.commit": "the source commits nothing by itself; leave it out",
    "interceptor.classes": "do the work on the DataFrame",
}
"""`kafka.*` keys that would change what the source itself decides."""


CREATE_TABLE: Final = (
    "CREATE TABLE loses options in Spark 4.3; use CREATE TEMPORARY VIEW … USING kclient OPTIONS (…)"
)


class Later(NamedTuple):
    """An option that is not built yet: what to do meanwhile, and the values that ask for nothing."""

    instead: str
    harmless: tuple[str, ...] = ()


_COMMIT = (
    "the source does not commit progress to a group yet; keep the offsets yourself and give startingOffsets"
)
_FORMAT = "keys and values come as binary only; decode the column with from_json, cast or your own function"

LATER: Final[Mapping[str, Later]] = {
    "commit.group.id": Later(_COMMIT),
    "commitOffsets": Later(_COMMIT, ("false",)),
    "commit.metadata": Later(_COMMIT),
    "keyFormat": Later(_FORMAT, ("raw",)),
    "valueFormat": Later(_FORMAT, ("raw",)),
    "keySchema": Later(_FORMAT),
    "valueSchema": Later(_FORMAT),
    "schema.registry.url": Later(_FORMAT),
    "schema.registry.auth": Later(_FORMAT),
    "badRecords": Later("nothing is decoded yet, so no record can be bad; leave it out", ("fail",)),
    "pushdownFilters": Later(
        "filters are not pushed down yet; narrow the read with assign, startingOffsets and endingOffsets",
        ("false",),
    ),
}

STREAM_ONLY: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
SPARK_SETTINGS: Final = ("spark.kafka.", "spark.sql.")


def is_table(options: Mapping[str, str]) -> bool:
    """Whether these are the properties of a catalog's table, where options are called `option.…`. Spec: SP-35."""
    return "provider" in options and any(name.startswith("option.") for name in options)


def problems(written: str, raw: str, known: Iterable[str]) -> list[str]:
    """What to tell about an option that no rule takes; nothing for one that is harmless or `kafka.*`."""
    lower = written.lower()
    if lower.startswith("kafka."):
        return []
    if lower in map(str.lower, STREAM_ONLY):
        log.warning("option %s limits streams; a batch ignores it", written)
        return []
    if lower == "path":
        return [f"load({raw!r}) is not how topics are named; use option('subscribe', {raw!r}).load()"]
    if lower.startswith(SPARK_SETTINGS):
        return [
            f"{written} is a setting of Spark's own Kafka source; this source has no use for it, leave it out"
        ]
    for name, later in LATER.items():
        if lower == name.lower():
            return (
                [] if raw.strip().lower() in later.harmless else [f"{name} is not built yet: {later.instead}"]
            )
    return [_unknown(written, [*known, *LATER, *STREAM_ONLY, "kafka.bootstrap.servers"])]


def _unknown(written: str, known: Iterable[str]) -> str:
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(written.lower(), sorted(names), n=1, cutoff=0.5)
    if near:
        return f"{written} is unknown; did you mean {names[near[0]]}?"
    return f"{written} is unknown; keys of Kafka itself begin with kafka."
