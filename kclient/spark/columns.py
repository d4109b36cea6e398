"""The columns of Spark's Kafka source: their Spark types, and Arrow batches of exactly these.

Spark compares the first batch's schema with its own (same names, order, types, all nullable), so a reader holds one
schema object. Imports pyarrow when a batch is built, never pyspark.

Spec: SP-27, SP-30, spark section 4.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kclient.errors import ConfigError
from kclient.records.reader import Chunk

if TYPE_CHECKING:
    import pyarrow as pa

TYPES: Final = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}
"""Column → Spark's type, in the order of `load()` without a schema of its own."""


def default_columns(*, include_headers: bool) -> tuple[str, ...]:
    """Every column; headers only on demand."""
    return tuple(name for name in TYPES if include_headers or name != "headers")


def ddl(columns: Iterable[str]) -> str:
    """The schema as Spark reads it from text."""
    return ", ".join(f"`{name}` {TYPES[name]}" for name in columns)


def check_columns(fields: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The names of a schema that the user gave as (name, Spark type): any columns of ours, in any order.

    Raises ConfigError with every field that is none of them.
    """
    names = [name for name, _ in fields]
    problems = [problem for name, kind in fields if (problem := _problem(name, kind))]
    problems += [f"column {name} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems or not fields:
        listed = "; ".join(problems) or "it has no column"
        raise ConfigError(
            f"This schema cannot be read from Kafka: {listed}. The source gives these columns, in any order: "
            f"{ddl(TYPES)}. Name some of them with these types in .schema(…).",
            problems=tuple(problems),
        )
    return tuple(names)


def to_batch(chunks: Iterable[Chunk], columns: Sequence[str]) -> pa.RecordBatch:
    """The records of one partition as one Arrow batch of these columns, nothing else touched."""
    from kclient.records.arrow import to_table

    table = to_table(merged(chunks), columns)
    return table.to_batches()[0]


def merged(chunks: Iterable[Chunk]) -> list[Chunk]:
    """All runs in one chunk, so that they become one batch."""
    chunks = list(chunks)
    last = chunks[-1]
    runs = [run for chunk in chunks for run in chunk.runs]
    return [Chunk(last.partition, last.next_offset, last.leader_epoch, runs)]


def _problem(name: str, kind: str) -> str | None:
    if name not in TYPES:
        near = difflib.get_close_matches(name, TYPES, n=1, cutoff=0.5)
        return f"column {name} is unknown" + (f" (did you mean {near[0]}?)" if near else "")
    return None if kind == TYPES[name] else f"column {name} is {TYPES[name]}, not {kind}"
