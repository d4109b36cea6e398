"""The columns of Spark's Kafka source: their Spark types, and Arrow batches of exactly these.

Spark compares the first batch's schema with its own (same names, order, types, all nullable), so a reader holds one
schema object. Imports pyarrow when a batch is built, never pyspark.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def ddl(columns: Iterable[str], types: Mapping[str, str] = TYPES) -> str:
    """The schema as Spark reads it from text."""
    return ", ".join(f"`{name}` {types[name]}" for name in columns)


def check_columns(fields: Sequence[tuple[str, str]], types: Mapping[str, str] = TYPES) -> tuple[str, ...]:
    """The names of a schema that the user gave as (name, Spark type): any columns of ours, in any order.

    `types` are the columns that there are, which differ from Spark's own where keys or values are decoded.

    Raises ConfigError with every field that is none of them.
    """
    names = [name for name, _ in fields]
    problems = [problem for name, kind in fields if (problem := _problem(name, kind, types))]
    problems += [f"column {name} is named twice" for name in dict.fromkeys(names) if names.count(name) > 1]
    if problems or not fields:
        listed = "; ".join(problems) or "it has no column"
        raise ConfigError(
            f"This schema cannot be read from Kafka: {listed}. The source gives these columns, in any order: "
            f"{ddl(types, types)}. Name some of them with these types in .schema(…).",
            problems=tuple(problems),
        )
    return tuple(names)


def to_batches(chunks: Sequence[Chunk], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of one partition as one Arrow batch of these columns, nothing else touched; more beyond 2 GiB."""
    from kclient.records.arrow import to_batches

    last = chunks[-1]
    runs = [run for chunk in chunks for run in chunk.runs]
    return to_batches(Chunk(last.partition, last.next_offset, last.leader_epoch, runs), columns)


def _problem(name: str, kind: str, types: Mapping[str, str]) -> str | None:
    if name not in types:
        near = difflib.get_close_matches(name, types, n=1, cutoff=0.5)
        return f"column {name} is unknown" + (f" (did you mean {near[0]}?)" if near else "")
    return None if kind == types[name] else f"column {name} is {types[name]}, not {kind}"
