"""The columns of landed rows as those of an Iceberg table: its schema, the schema of its files, its partitions.

    the table is new     its schema and its partition spec follow from the columns and the partition keys
    it is there          every column needs one of the same name in it, of the same type or a wider one

Iceberg keeps some names for columns that every table has for its readers, `_partition` among them: Spark cannot read a
table that has one of its own. So the partition of a record is `_kafka_partition` there (`table_columns`, `table_keys`).

Files have the table's field ids, so that a column that is renamed later keeps its values. Raises ConfigError before a
batch is read: for types that Iceberg does not have, columns that do not fit, and keys that it does not know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import attrs
import pyarrow as pa
from pyiceberg.exceptions import ResolveError
from pyiceberg.io.pyarrow import UnsupportedPyArrowTypeException, pyarrow_to_schema, schema_to_pyarrow
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema, promote
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    YearTransform,
)
from pyiceberg.types import (
    DecimalType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

from kclient.errors import ConfigError
from kclient.spark.sink.iceberg_partitions import IcebergPartitioning, PartitionSource, WholeColumn
from kclient.spark.sink.partitions import PartitionKey, partition_key
from kclient.spark.sink.row_layout import NAMES, rescued_advice

FIELD_ID: Final = b"PARQUET:field_id"
AnyTransform: TypeAlias = Transform[Any, Any]

_TRANSFORMS: Final = {
    "identity": IdentityTransform,
    "year": YearTransform,
    "month": MonthTransform,
    "day": DayTransform,
    "hour": HourTransform,
    "bucket": BucketTransform,
    "truncate": TruncateTransform,
}
_WHOLE: Final = (StringType, IntegerType, LongType)
"""The types whose values Iceberg keeps as Python has them, and prints so."""


# --- names -----------------------------------------------------------------------------------------------------------


RENAMED: Final = {"_kafka_partition": NAMES["partition"]}
"""Column of the table → column of a landed row, where they differ."""
_OURS: Final = {theirs: ours for ours, theirs in RENAMED.items()}

RESERVED: Final = frozenset(
    {
        *("_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number"),
        *("_change_type", "_change_ordinal", "_commit_snapshot_id"),
    }
)
"""Iceberg's metadata columns, by the table in its specification and MetadataColumns of Iceberg 1.10."""


def table_name(column: str) -> str:
    """Return the name that a column of landed rows has in a table."""
    return _OURS.get(column, column)


def table_columns(rows: pa.Schema) -> pa.Schema:
    """Return the columns of landed rows under their names in a table. Raises ConfigError for one of Iceberg's own."""
    columns = pa.schema([field.with_name(table_name(field.name)) for field in rows])
    # Spark does not tell upper case from lower case.
    taken = [name for name in rows.names if name.lower() in (RESERVED | RENAMED.keys()) and name not in _OURS]
    if taken:
        raise ConfigError(
            f"The payload has {', '.join(taken)}, which an Iceberg table needs for a column of its own: Spark could "
            "not read it. Rename the field in the schema, or land the value raw."
        )
    return columns


def table_keys(keys: Sequence[str]) -> list[str]:
    """Return partition keys, as they are typed, with the names of a table's columns."""
    parsed = map(partition_key, keys)
    return [str(attrs.evolve(key, column=table_name(key.column))) for key in parsed]


# --- the schema of a new table ---------------------------------------------------------------------------------------


def table_schema(columns: pa.Schema) -> Schema:
    """Return the schema of a table for these columns. Raises ConfigError for what Iceberg or Spark does not have."""
    counter = iter(range(1, 1 << 31))
    numbered = pa.schema([_numbered(field, counter) for field in columns])
    try:
        schema = pyarrow_to_schema(numbered)
    except (UnsupportedPyArrowTypeException, TypeError, ValueError) as exc:
        raise ConfigError(
            f"Iceberg has no type for a column of these records: {exc}. Leave the field out of the schema, or land the "
            "value raw."
        ) from exc
    check_case(schema)
    return schema


def check_case(schema: Schema, before: Schema | None = None) -> None:
    """Refuse columns that only case tells apart, unless a table had them before. Raises ConfigError.

    Spark's and Trino's look-up is by lower case, and fails for every query of such a table.
    """
    known = set() if before is None else _alike(before)
    if names := _alike(schema) - known:
        raise ConfigError(
            f"The table would have columns that differ only in upper and lower case: {', '.join(sorted(names))}. "
            "Spark could not read it. Rename the field in the schema, as the table has it, or land the value raw."
        )


def _alike(schema: Schema) -> set[str]:
    """Return the names of columns that only case tells apart, with the path to nested ones."""
    count = Counter(name.lower() for name in schema.column_names)
    return {name for name in schema.column_names if count[name.lower()] > 1}


def _numbered(field: pa.Field, ids: Iterator[int]) -> pa.Field:
    """Return a field with ids of its own at every level."""
    number = next(ids)
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_numbered(part, ids) for part in kind])
    elif _is_list(kind):
        kind = pa.list_(_numbered(kind.value_field, ids))
    elif pa.types.is_map(kind):
        kind = pa.map_(_numbered(kind.key_field, ids), _numbered(kind.item_field, ids))
    return field.with_type(kind).with_metadata({FIELD_ID: str(number)})


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


# --- the schema of the files of a table ------------------------------------------------------------------------------


def file_schema(columns: pa.Schema, table: Schema, name: str) -> pa.Schema:
    """Return the columns of a table's files, with its field ids. Raises ConfigError for columns that do not fit.

    A column that the table has wider gets the table's type. Columns of the table that the rows do not have are left
    out: they are null.
    """
    problems: list[str] = []
    fields = _fields(columns, table.as_struct(), "", problems)
    if problems:
        raise ConfigError(
            f"The table {name} does not fit the rows of this job: {'; '.join(problems)}. Add or widen the columns in "
            "the table, give --on-new-field add to let the job do that, or give the job a table of its own."
            f"{rescued_advice(columns.names, [field.name for field in table.fields])}",
            problems=tuple(problems),
        )
    return pa.schema(fields)


def column_changes(files: pa.Schema, table: Schema) -> list[str]:
    """Return what keeps files that were prepared for earlier columns of a table out of it; wider types do not.

    Their values are found by field ids: under another name, or nowhere, where an id now has another name, or none.
    """
    changes: list[str] = []
    fitted = pa.schema(_fields(files, table.as_struct(), "", changes))
    if changes:
        return changes
    before, now = pyarrow_to_schema(files), pyarrow_to_schema(fitted)
    for name in before.column_names:
        field, there = before.find_field(name), now.find_field(name)
        if there.field_id != field.field_id:
            changes.append(f"{name} is another column now")
        elif there.required and not field.required:
            changes.append(f"{name} is required now")
    return changes


def _fields(columns: Sequence[pa.Field], table: StructType, path: str, problems: list[str]) -> list[pa.Field]:
    """Return the fields of one level, in the order of the rows."""
    theirs = {field.name: field for field in table.fields}
    names = {field.name for field in columns}
    problems += [
        f"{path}{field.name} is required there, and the rows do not have it"
        for field in table.fields
        if field.required and field.name not in names
    ]
    found = []
    for field in columns:
        if field.name not in theirs:
            problems.append(f"{path}{field.name} is not there")
        else:
            there = theirs[field.name]
            kind = _fitted(field.type, there.field_type, f"{path}{field.name}", problems)
            found.append(_field(field.name, kind, there))
    return found


def _fitted(kind: pa.DataType, there: IcebergType, path: str, problems: list[str]) -> pa.DataType:
    """Return the type of a column in the files of the table, with the ids of all that is inside of it."""
    if isinstance(there, StructType) and pa.types.is_struct(kind):
        return pa.struct(_fields(list(kind), there, f"{path}.", problems))
    if isinstance(there, ListType) and _is_list(kind):
        element = _fitted(kind.value_type, there.element_type, f"{path}.element", problems)
        return pa.list_(_field("element", element, there.element_field))
    if isinstance(there, MapType) and pa.types.is_map(kind):
        key = _fitted(kind.key_type, there.key_type, f"{path}.key", problems)
        value = _fitted(kind.item_type, there.value_type, f"{path}.value", problems)
        return pa.map_(_field("key", key, there.key_field), _field("value", value, there.value_field))
    if isinstance(there, PrimitiveType) and not pa.types.is_nested(kind):
        return _leaf(kind, there, path, problems)
    problems.append(f"{path} is {there} there, and {kind} here")
    return kind


def _leaf(kind: pa.DataType, there: PrimitiveType, path: str, problems: list[str]) -> pa.DataType:
    ours = table_schema(pa.schema([pa.field("x", kind)])).fields[0].field_type
    if not _holds(there, ours):
        problems.append(f"{path} is {there} there, and {ours} here")
    if ours == there and (pa.types.is_string(kind) or pa.types.is_binary(kind)):
        return kind  # pyiceberg's own choice is the one with 64-bit lengths: it would be copied
    return schema_to_pyarrow(there, include_field_ids=False)


def _holds(there: PrimitiveType, ours: IcebergType) -> bool:
    """Return whether a column holds values of our type: it has the same, or a wider one."""
    if there == ours:
        return True
    if scale_of(there) != scale_of(ours):  # pyiceberg compares only the digits of decimals
        return False
    try:
        return promote(ours, there) == there
    except ResolveError:
        return False


def scale_of(kind: IcebergType) -> int | None:
    """Return how many digits of a decimal are after the point, None of another type."""
    return kind.scale if isinstance(kind, DecimalType) else None


def _field(name: str, kind: pa.DataType, there: NestedField) -> pa.Field:
    return pa.field(name, kind, not there.required, {FIELD_ID: str(there.field_id)})


# --- partitions ------------------------------------------------------------------------------------------------------


def spec_of(keys: Sequence[str], schema: Schema) -> PartitionSpec:
    """Return the partition spec of a new table. Raises ConfigError for a key that its columns do not allow."""
    fields = []
    for number, key in enumerate(map(partition_key, keys), PARTITION_FIELD_ID_START):
        transform, source = transform_of(key), _source(key, schema)
        if not transform.can_transform(source.field_type):
            raise ConfigError(
                f"--partition-by has {key}, and {key.column} is {source.field_type}, which {key.transform} does not "
                "take. Choose another column or transform."
            )
        name = key.column if key.transform == "identity" else f"{key.column}_{key.transform}"
        fields.append(
            PartitionField(source_id=source.field_id, field_id=number, transform=transform, name=name)
        )
    spec = PartitionSpec(*fields)
    taken = {field.name for field in schema.fields}
    for field in fields:
        if field.name in taken and not isinstance(field.transform, IdentityTransform):
            raise ConfigError(f"--partition-by would name a partition {field.name}, as a column of the rows.")
    if len({field.name for field in fields}) < len(fields):
        raise ConfigError(f"--partition-by has the same key twice: {', '.join(keys)}. Leave one of them out.")
    return spec


def transform_of(key: PartitionKey) -> AnyTransform:
    """Return Iceberg's transform of a key."""
    made: Any = _TRANSFORMS[key.transform]
    found: AnyTransform = made() if key.width is None else made(key.width)
    return found


def _source(key: PartitionKey, schema: Schema) -> NestedField:
    for field in schema.fields:
        if field.name == key.column:
            return field
    raise ConfigError(
        f"--partition-by has {key}, and the rows have no column {key.column}. They have "
        f"{', '.join(field.name for field in schema.fields)}."
    )


@attrs.frozen
class Computed:
    """One key of a partition spec: its name, the column it is computed from, and how."""

    name: str
    column: str
    transform: AnyTransform
    type: IcebergType

    def array(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the key of each row, as Iceberg keeps it: days, microseconds and such as integers."""
        keys = self.transform.pyarrow_transform(self.type)(rows.column(self.column))
        keys = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
        if pa.types.is_date32(keys.type):
            return keys.cast(pa.int32())
        return keys.cast(pa.int64()) if pa.types.is_temporal(keys.type) else keys

    def text(self, value: Any) -> str:
        """Return a value for people."""
        return f"{self.name}={_printed(self.transform.to_human_string, self.type, value)}"


def partitioning_of(
    spec: PartitionSpec, schema: Schema, columns: pa.Schema, place: str
) -> IcebergPartitioning:
    """Return how rows with these columns are divided. Raises ConfigError for a spec that cannot be followed."""
    sources: list[PartitionSource] = []
    for field in spec.fields:
        column = schema.find_column_name(field.source_id)
        if column not in columns.names or isinstance(field.transform, UnknownTransform):
            raise ConfigError(
                f"The table at {place} is partitioned by {field.name}, which is {field.transform} of "
                f"{column or 'a column that was dropped'}. That cannot be computed from the columns of the rows. Give "
                "the job a table of its own."
            )
        kind = schema.find_type(field.source_id)
        whole = isinstance(field.transform, IdentityTransform) and isinstance(kind, _WHOLE)
        sources.append(
            WholeColumn(field.name, str(column))
            if whole
            else Computed(field.name, str(column), field.transform, kind)
        )
    return IcebergPartitioning(tuple(sources), place)


class _AnyDay(DayTransform[Any]):
    """`day`, which pyiceberg cannot print beyond the year 9999, where a wrong clock of a producer leads."""

    def to_human_string(self, source: IcebergType, value: Any) -> str:
        return _printed(super().to_human_string, source, value)


class _AnyHour(HourTransform[Any]):
    """`hour`, likewise."""

    def to_human_string(self, source: IcebergType, value: Any) -> str:
        return _printed(super().to_human_string, source, value)


class _AnyIdentity(IdentityTransform[Any]):
    """`identity`, likewise."""

    def to_human_string(self, source: IcebergType, value: Any) -> str:
        return _printed(super().to_human_string, source, value)


def _printed(print_value: Callable[[IcebergType, Any], str], source: IcebergType, value: Any) -> str:
    try:
        return print_value(source, value)
    except (OverflowError, ValueError):
        return str(value)


_ANY: Final = {DayTransform: _AnyDay, HourTransform: _AnyHour, IdentityTransform: _AnyIdentity}


def any_value(spec: PartitionSpec) -> PartitionSpec:
    """Return a spec that can name the partition of any value: pyiceberg does so when it commits a file."""
    fields = []
    for field in spec.fields:
        lenient: Any = _ANY.get(type(field.transform))
        transform = field.transform if lenient is None else lenient()
        fields.append(PartitionField(field.source_id, field.field_id, transform, field.name))
    return PartitionSpec(*fields, spec_id=spec.spec_id)


def spec_texts(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Return the keys of a spec as they are typed."""
    found = []
    for field in spec.fields:
        name, _, width = str(field.transform).partition("[")
        column = schema.find_column_name(field.source_id) or field.name
        found.append(str(PartitionKey(name, column, int(width.rstrip("]")) if width else None)))
    return found
