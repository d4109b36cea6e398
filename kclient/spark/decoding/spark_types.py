"""Arrow types and Spark's names for them. Arrow is the form that is worked with; Spark's text is only at the edges.

Every field is nullable, lists name their element and times are microseconds, as Spark itself makes its Arrow schemas:
it compares the first batch with its own and refuses another spelling of the same type.
"""

from __future__ import annotations

from typing import Final, NoReturn

import pyarrow as pa

from kclient.errors import ConfigError, InternalError

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ: Final = pa.timestamp("us")

NAMES: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    TIMESTAMP: "timestamp",
    TIMESTAMP_NTZ: "timestamp_ntz",
}


def list_of(item: pa.DataType) -> pa.DataType:
    """Spark's array of nullable elements."""
    return pa.list_(pa.field("element", item))


def map_of(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """Spark's map with nullable values."""
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def spark_name(kind: pa.DataType, *, quoted: bool = False) -> str:
    """The type as Spark's `simpleString` writes it, or `quoted`, as its parser reads any field name."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        key, item = spark_name(kind.key_type, quoted=quoted), spark_name(kind.item_type, quoted=quoted)
        return f"map<{key},{item}>"
    if pa.types.is_list(kind):
        return f"array<{spark_name(kind.value_type, quoted=quoted)}>"
    if pa.types.is_struct(kind):
        fields = (
            f"{_quoted(f.name) if quoted else f.name}:{spark_name(f.type, quoted=quoted)}" for f in kind
        )
        return f"struct<{','.join(fields)}>"
    if kind not in NAMES:
        raise InternalError(f"The Arrow type {kind} has no Spark type. Report this.")
    return NAMES[kind]


def refuse_type(option: str, path: str, why: str) -> NoReturn:
    """A part of a schema that no column can hold. Raises ConfigError."""
    where = f"field {path}" if path else "the schema"
    raise ConfigError(
        f"{option}: {where} {why}. Leave it out of a reader schema of your own, or take the column raw.",
        problems=(f"{where} {why}",),
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
