"""The statistics by which readers of a Delta table skip files: those of a column or none, never those of another."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kclient.spark.sink.delta_statistics import statistics

PAIR = pa.struct([("a", pa.int64()), ("b", pa.int64())])


class Hiding(pa.ExtensionType):
    """A type of which a schema shows one field, where a file has two."""

    def __init__(self) -> None:
        super().__init__(PAIR, "kclient.hiding")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Hiding:
        return cls()


@pytest.fixture
def hiding() -> Iterator[Hiding]:
    pa.register_extension_type(Hiding())
    yield Hiding()
    pa.unregister_extension_type("kclient.hiding")


def found(*columns: pa.Array) -> dict[str, Any]:
    """The statistics of a file with these columns and, at its end, `z` with −7."""
    names = [f"c{number}" for number in range(len(columns))]
    file, footer = BytesIO(), BytesIO()
    pq.write_table(pa.table([*columns, pa.array([-7])], [*names, "z"]), file)
    pq.read_metadata(file).write_metadata_file(footer)
    return dict(json.loads(statistics(footer.getvalue())))


@pytest.mark.parametrize(
    "kind",
    [
        *(make(inner) for make in (pa.list_, pa.large_list) for inner in (pa.int64(), PAIR)),
        pa.list_(pa.int64(), 1),
        pa.map_(pa.string(), PAIR),
    ],
    ids=str,
)
def test_what_is_inside_of_lists_and_maps_has_none_and_what_follows_has_its_own(kind: pa.DataType) -> None:
    inner: Any = ("k", {"a": 1, "b": 2}) if pa.types.is_map(kind) else 1
    if kind.num_fields and pa.types.is_struct(kind.field(0).type) and not pa.types.is_map(kind):
        inner = {"a": 1, "b": 2}
    bounds = {"minValues": {"z": -7}, "maxValues": {"z": -7}, "nullCount": {"z": 0}}
    assert found(pa.array([[inner]], kind)) == {"numRecords": 1, **bounds}


def test_a_file_with_leaves_that_its_schema_does_not_show_has_no_bounds(hiding: Hiding) -> None:
    pair = pa.ExtensionArray.from_storage(hiding, pa.array([{"a": 1, "b": 2}], PAIR))
    assert found(pair) == {"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}
