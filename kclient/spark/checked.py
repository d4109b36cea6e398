"""The first batch of a range, held against the schema that Spark expects, before Spark does.

Spark compares only the first batch, and says little about what differs; before 4.2 it compares nothing but the names,
and reads another type as garbage. So a batch of another schema is a bug of ours, told field by field.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING

from kclient.errors import InternalError

if TYPE_CHECKING:
    import pyarrow as pa


def checked(batches: Iterator[pa.RecordBatch], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The same batches. Raises InternalError where the first has not exactly the schema that is wanted."""
    first = True
    for batch in batches:
        if first and not batch.schema.equals(wanted):
            raise InternalError(
                f"The columns of a batch are not what Spark was told: {_differences(batch.schema, wanted)}. "
                "This is a bug of kclient. Please report it."
            )
        first = False
        yield batch


def _differences(found: pa.Schema, wanted: pa.Schema) -> str:
    pairs = zip_longest(map(_told, found), map(_told, wanted), fillvalue="nothing")
    return "; ".join(f"{one} instead of {other}" for one, other in pairs if one != other)


def _told(field: pa.Field) -> str:
    return f"{field.name} {field.type}{'' if field.nullable else ' not null'}"
