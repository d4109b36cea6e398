"""The schema of a job's JSON values, frozen beside its checkpoint: no run changes it unasked.

    --schema DDL                        frozen by the first run; another one is refused
    --schema infer                      found in the records by the first run, and frozen
    --on-new-field add with either      the frozen one may grow: columns are added, none changes its type or goes away;
                                        into a table a type may become wider, if the table's format can do that

`kclient/schema.json` holds every version, with the batch that it began at. Pure of pyspark.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import attrs
import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.decoding.ddl import list_of, parse_ddl, spark_name
from kclient.spark.ingest.checkpoint import Checkpoint, Job
from kclient.spark.ingest.settings import INFER, IngestSettings
from kclient.spark.ingest.sinks import has_landed
from kclient.spark.sink.delta_schema import needs_widening

OPTION: Final = "--schema"
_ONE_TYPE: Final = {"void": pa.null(), "variant": pa.null()}
_OBJECT: Final = re.compile(r"(`(?:[^`]|``)*`)|OBJECT<")


def with_frozen_schema(settings: IngestSettings, checkpoint: Checkpoint) -> IngestSettings:
    """Return the settings with the current schema; `infer` stays while records must still be sampled.

    Raises ConfigError for a schema that is not the frozen one and may not take its place.
    """
    frozen = checkpoint.schema()
    if settings.format != "json" or frozen is None:
        return settings
    if settings.schema == INFER:
        return settings if settings.evolves else attrs.evolve(settings, schema=frozen)
    if has_landed(checkpoint):  # rows of the frozen one
        check_extends(frozen, settings, checkpoint.job())
    return settings


def with_job_schema(settings: IngestSettings, checkpoint: Checkpoint) -> IngestSettings:
    """Return the settings of what runs beside a job, with its frozen schema.

    Raises ConfigError if there is none yet.
    """
    if settings.format != "json" or settings.schema != INFER:
        return settings
    if (frozen := checkpoint.schema()) is None:
        raise ConfigError(
            f"{checkpoint.where} has no schema yet, which --schema infer was to take. A run of the job finds it. "
            "Run the job first, or give the schema with --schema."
        )
    return attrs.evolve(settings, schema=frozen)


def freeze(checkpoint: Checkpoint, schema: str, batch: int) -> None:
    """Keep the schema from this batch on. Raises SinkError."""
    frozen = checkpoint.schema()
    if frozen is None or _struct(frozen) != _struct(schema):
        checkpoint.add_schema(schema, batch)


def check_extends(frozen: str, settings: IngestSettings, job: Job | None) -> None:
    """Refuse a schema that is not the frozen one, or with `--on-new-field add` one that does not extend it.

    Into a table a column may become wider too: what its format cannot widen, the table refuses when it is checked.
    """
    was, now = _struct(frozen), _struct(str(settings.schema))
    if was == now:
        return
    is_table = settings.sink.is_lake
    lost = _not_kept(was, now, is_table=is_table)
    if lost or not settings.evolves:
        wider = _not_kept(was, now, is_table=False)  # shown where nothing is lost
        raise ConfigError(
            f"--schema is not the one that this checkpoint holds: {_difference(lost, wider)}. "
            + ("" if is_table else "Files of one sink would not fit together. ")
            + (_another_checkpoint(job, is_table=is_table) if lost else "Give --on-new-field add if that is meant."),
            problems=tuple(lost),
        )  # fmt: skip


def _difference(lost: Sequence[str], wider: Sequence[str]) -> str:
    if lost:
        return f"{', '.join(lost)} would change or go away"
    return f"{', '.join(wider)} would become wider" if wider else "fields were added"


def _another_checkpoint(job: Job | None, *, is_table: bool) -> str:
    if not is_table:
        return "Give a checkpoint and a sink of their own."
    name = "" if job is None else f" and --job {job.job}"
    return (
        f"Give a new --checkpoint with the same --sink{name}: the job goes on where the table says, if the table's "
        "columns take the new types. Otherwise give a checkpoint and a table of their own."
    )


def widened(frozen: str | None, found: str) -> str:
    """Return the frozen schema with the fields added that only the found one has, at the end."""
    if frozen is None:
        return ddl_of(_struct(found))
    return ddl_of(_union(_struct(frozen), _struct(found)))


def ddl_of(kind: pa.DataType) -> str:
    """Return a structure as DDL that parses to the same structure."""
    quoted = (f"`{field.name.replace('`', '``')}` {spark_name(field.type, quoted=True)}" for field in kind)
    return ", ".join(quoted)


def of_variants(text: str) -> str | None:
    """Return DDL for the result of `schema_of_variant_agg`; None if the values are not objects with fields of one type.

    Decimals become double, or decimal(38,0) where they are whole. A field that was only null, or of more than one type,
    has no type to be frozen: it is left out, and so kept with the fields that the schema does not name.
    """
    struct = _OBJECT.sub(lambda match: match[1] or "STRUCT<", text)
    kind = _one_typed(parse_ddl("what Spark found", struct.replace("STRUCT<>", "VOID"), _ONE_TYPE))
    return ddl_of(kind) if kind is not None and pa.types.is_struct(kind) else None


def _one_typed(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_null(kind):
        return None
    if pa.types.is_decimal(kind):
        return pa.float64() if kind.scale else pa.decimal128(38, 0)
    if pa.types.is_list(kind):
        item = _one_typed(kind.value_type)
        return None if item is None else list_of(item)
    if pa.types.is_struct(kind):
        fields = [
            pa.field(field.name, found) for field in kind if (found := _one_typed(field.type)) is not None
        ]
        return pa.struct(fields) if fields else None
    return kind


def _struct(ddl: str) -> pa.DataType:
    return parse_ddl(OPTION, ddl)


def _union(was: pa.DataType, found: pa.DataType) -> pa.DataType:
    if not (pa.types.is_struct(was) and pa.types.is_struct(found)):
        return was
    theirs = {field.name: field.type for field in found}
    kept = [pa.field(field.name, _union(field.type, theirs.get(field.name, field.type))) for field in was]
    names = {field.name.lower() for field in was}
    return pa.struct([*kept, *(field for field in found if field.name.lower() not in names)])


def _not_kept(was: pa.DataType, now: pa.DataType, path: str = "", *, is_table: bool) -> list[str]:
    """Return the fields that are gone or have another type, which for a table is not a wider one."""
    if not (pa.types.is_struct(was) and pa.types.is_struct(now)):
        keeps = was == now or (is_table and needs_widening(was, now))
        return [] if keeps else [path or "the whole"]
    theirs = {field.name: field.type for field in now}
    found: list[str] = []
    for field in was:
        name = f"{path}.{field.name}".lstrip(".")
        if field.name in theirs:
            found += _not_kept(field.type, theirs[field.name], name, is_table=is_table)
        else:
            found.append(name)
    return found
