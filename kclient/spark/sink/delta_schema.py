"""The columns of a Delta table: those of a new one, and whether rows fit those of one that is there.

Delta can change a column to a wider type without rewriting files (type widening), but delta-rs does not commit to such
a table: a column stays as it is until all files are written again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.sink.delta_errors import reason_of
from kclient.spark.sink.delta_partitions import check_keys, column_of, field_of, type_of
from kclient.spark.sink.partitions import PartitionKey, partition_key
from kclient.spark.sink.row_layout import rescued_advice

if TYPE_CHECKING:
    from deltalake import Schema

_NOT_IN_NAMES: Final = re.compile(r"[ ,;{}()\n\t=]|\A\Z")


def new_table(table: str, columns: pa.Schema, keys: Sequence[str]) -> tuple[Schema, list[str]]:
    """Return the columns and the partition columns of a new table. Raises ConfigError for what Delta does not have."""
    parsed = [partition_key(key) for key in keys]
    check_keys(table, parsed, columns)
    computed = [field_of(key, columns) for key in parsed if key.transform != "identity"]
    fields = pa.schema([*(field.with_nullable(True) for field in columns), *computed])
    return delta_schema(table, fields), [column_of(key) for key in parsed]


def delta_schema(table: str, columns: pa.Schema) -> Schema:
    """Return columns as Delta has them. Raises ConfigError for names and types that it does not have."""
    from deltalake import Schema

    problems = list(_of_names(columns))
    if not problems:
        try:
            schema = Schema.from_arrow(columns)
        except Exception as exc:  # noqa: BLE001 delta-rs raises Exception itself
            problems = [reason_of(exc)]
        else:
            there = pa.schema(schema.to_arrow())
            problems = [
                f"{was.name} would be {now.type}, not {was.type}"
                for was, now in zip(columns, there, strict=True)
                if was.type != now.type
            ]
    if problems:
        raise ConfigError(
            f"{table} cannot have the columns of this job: {'; '.join(problems)}. Rename or cast the field in the "
            "schema, or give --format raw.",
            problems=tuple(problems),
        )
    return schema


def _of_names(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield what is wrong with names, also with those inside of structures."""
    fields = list(fields)
    folded = Counter(field.name.lower() for field in fields)
    for field in fields:
        path = f"{above}{field.name}"
        if _NOT_IN_NAMES.search(field.name):
            yield f"{path!r} is no name of a column"
        if folded[field.name.lower()] > 1:
            yield f"{path} differs from another one only in its case"
        yield from _of_type(field.type, f"{path}.")


def _of_type(kind: pa.DataType, above: str) -> Iterator[str]:
    if pa.types.is_struct(kind):
        yield from _of_names(kind, above)
    elif pa.types.is_map(kind):
        yield from _of_type(kind.key_type, f"{above}key.")
        yield from _of_type(kind.item_type, f"{above}value.")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _of_type(kind.value_type, f"{above}element.")


# --- rows of a job in a table that is there


def check_rows(
    name: str,
    table: pa.Schema,
    rows: pa.Schema,
    partitions: Mapping[str, PartitionKey | None],
    *,
    may_add: bool,
) -> None:
    """Refuse rows that do not fit a table with these columns. Raises ConfigError.

    `partitions` has the table's partition columns, each with its key, None for one that the rows do not have. The table
    will get the columns that it lacks if it `may_add` them.
    """
    known = {column for column, key in partitions.items() if key is not None}
    there = [field for field in rows if field.name in table.names]
    others = [field for field in there if not fits(field.type, table.field(field.name).type)]
    problems = [
        *(problem for name in rows.names if (problem := _lacking(name, table, may_add=may_add))),
        *(_difference(field.name, table.field(field.name).type, field.type) for field in others),
        *(f"its {field.name} must not be null" for field in table
          if not field.nullable and field.name not in rows.names and field.name not in known),
        *(problem for column, key in partitions.items() if (problem := _of_partition(table.field(column), key, rows))),
    ]  # fmt: skip
    if problems:
        raise ConfigError(
            f"{name} does not fit the rows of this job: {'; '.join(problems)}. "
            + (_WIDER if any(needs_widening(table.field(field.name).type, field.type) for field in others)
               else "Change the table, give another --schema, or another table.")
            + ("" if may_add else rescued_advice(rows.names, table.names)),
            problems=tuple(problems),
        )  # fmt: skip


def _lacking(name: str, table: pa.Schema, *, may_add: bool) -> str | None:
    if name in table.names:
        return None
    same = [other for other in table.names if other.lower() == name.lower()]
    if same:
        return f"{name} differs from its column {same[0]} only in its case"
    return None if may_add else f"the table has no column {name}"


def _of_partition(column: pa.Field, key: PartitionKey | None, rows: pa.Schema) -> str | None:
    if key is None:
        return f"its partition column {column.name} is in no row"
    if key.transform == "identity":
        return None
    if column.name in rows.names:
        return f"its partition column {column.name} is {key}, and the rows have another column of this name"
    wanted = type_of(key, rows.field(key.column).type)
    if not fits(wanted, column.type):
        return f"its partition column {column.name} is {column.type}, and {key} is {wanted}"
    return None


_WIDER: Final = (
    "Type widening changes a column of Delta without writing its files again, and delta-rs does not do that. Write the "
    "table again with the wider type (write_deltalake with mode='overwrite' and schema_mode='overwrite', in Spark "
    "overwriteSchema; it still knows where the job stands), keep the narrower type in --schema, or give another table."
)


def _difference(name: str, table: pa.DataType, rows: pa.DataType) -> str:
    if needs_widening(table, rows):
        return f"its {name} is {table}, and {rows} needs type widening"
    return f"its {name} is {table}, not {rows}"


def fits(rows: pa.DataType, table: pa.DataType) -> bool:
    """Return whether every value of a type can be written as another one: the same, or a wider number."""
    if pa.types.is_integer(rows) and pa.types.is_integer(table):
        return bool(rows.bit_width <= table.bit_width)
    return bool(rows == table or (rows, table) == (pa.float32(), pa.float64()))


def needs_widening(table: pa.DataType, rows: pa.DataType) -> bool:
    """Return whether a column would get the type of the rows by type widening, as the protocol of Delta has it."""
    if type(table) is type(rows) and table.num_fields:
        pairs = _inner(table, rows)
        return table != rows and all(old == new or needs_widening(old, new) for old, new in pairs)
    if pa.types.is_integer(table):
        return _holds_integers(rows, table.bit_width)
    if pa.types.is_decimal(table) and pa.types.is_decimal(rows):
        more = (rows.scale - table.scale, (rows.precision - rows.scale) - (table.precision - table.scale))
        return bool(min(more) >= 0 and max(more) > 0)
    return bool((table, rows) in ((pa.float32(), pa.float64()), (pa.date32(), pa.timestamp("us"))))


def _inner(table: pa.DataType, rows: pa.DataType) -> list[tuple[pa.DataType, pa.DataType]]:
    """Return the types inside of two, in pairs; those of structures with other fields are a pair that never widens."""
    old, new = [[kind.field(number) for number in range(kind.num_fields)] for kind in (table, rows)]
    if pa.types.is_struct(table) and [field.name for field in old] != [field.name for field in new]:
        return [(pa.null(), pa.bool_())]
    return [(was.type, now.type) for was, now in zip(old, new, strict=True)]


def _holds_integers(kind: pa.DataType, bits: int) -> bool:
    """Return whether a wider type holds all integers of so many bits."""
    if pa.types.is_decimal(kind):
        return bool(kind.precision - kind.scale >= (20 if bits == 64 else 10))
    if pa.types.is_integer(kind):
        return bool(kind.bit_width > bits)
    return bool(kind == pa.float64() and bits < 64)
