"""Landed rows through Spark's own sink: no two columns of one name, as Spark compares names."""

from __future__ import annotations

import pytest

from kclient.errors import ConfigError
from kclient.spark.decoding import ValueDecoder
from kclient.spark.decoding.json_format import JsonFormat
from kclient.spark.sink.row_layout import RowLayout
from kclient.spark.sink.sources import schema_of


def layout(ddl: str, bad_records: str = "column") -> RowLayout:
    return RowLayout(decoder=ValueDecoder({"value": JsonFormat.of("valueSchema", ddl)}, bad_records))


@pytest.mark.spec("SP-81", "SP-86")
@pytest.mark.parametrize("bad_records", ["fail", "null", "column"])
@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("_error STRING, a INT", "has _error."),
        ("_Error STRING, a INT", "has _Error."),
        ("_OFFSET INT, a INT", "has _OFFSET."),
        ("_Ingest_Batch INT, a INT", "has _Ingest_Batch."),
        ("a INT, b INT, A INT", "has a, A."),
        ("Topic STRING, date STRING", "has Topic, date."),
    ],
)
def test_two_columns_of_one_name_are_refused(ddl: str, message: str, bad_records: str) -> None:
    with pytest.raises(ConfigError) as caught:
        schema_of(layout(ddl, bad_records))
    assert message in str(caught.value)


@pytest.mark.spec("SP-81", "SP-86")
def test_other_names_pass() -> None:
    ours = ["_topic", "_partition", "_offset", "_timestamp", "_headers", "_key"]
    behind = ["_ingest_batch", "topic", "date"]
    assert schema_of(layout("a INT, _raw INT", "fail")).names == [*ours, "a", "_raw", *behind]
    assert schema_of(layout("a INT")).names == [*ours, "a", *behind, "_error"]
    assert schema_of(RowLayout()).names == [*ours, "value", *behind]
