"""A few bytes of schema or value cannot keep a worker busy, or fill its memory."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded

HERE = "tests.hostile.decoding"


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(("depth", "leaf"), [(26, "null"), (60, "int")])
@pytest.mark.parametrize("side", ["writer", "reader"])
def test_an_avro_schema_of_nested_doubles_is_refused_at_once(side: str, depth: int, leaf: str) -> None:
    outcome = run_bounded(f"{HERE}:error_of_{side}_schema", depth, leaf, seconds=1, peak_mb=200)
    assert "it has more than 5,000 types when each name in it is written out" in outcome.result


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("side", ["writer", "reader"])
def test_an_avro_schema_that_is_deeper_than_a_stack_is_refused(side: str) -> None:
    for depth, message in ((300, "more than 100 types inside each other"), (3_000, "is not an Avro schema")):
        outcome = run_bounded(f"{HERE}:error_of_{side}_schema_nested", depth, seconds=2, peak_mb=200)
        assert message in outcome.result


@pytest.mark.spec("SP-75")
def test_the_defaults_of_a_reader_schema_are_bounded() -> None:
    outcome = run_bounded(f"{HERE}:error_of_long_default", seconds=2, peak_mb=200)
    assert "its defaults have more than 16,384 characters" in outcome.result


SIZE = 10_000_000
TOLD = "it holds more than 1,000,000 elements (maxElementsPerValue)"


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("avro", "nulls"),
        ("avro", "one of many"),
        ("json", "{}"),
        ("json", "null"),
        ("json", '{"\\u00660": 1}'),
        ("protobuf", "messages"),
        ("protobuf", "numbers"),
    ],
)
def test_a_value_of_more_elements_than_it_may_hold_is_a_bad_record(kind: str, item: str) -> None:
    outcome = run_bounded(f"{HERE}:error_of_{kind}_items", item, SIZE, seconds=5, peak_mb=400)
    assert outcome.result.endswith(TOLD)


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("kind", ["avro", "json"])
def test_values_that_hold_as_much_as_they_may_come_in_smaller_batches(kind: str) -> None:
    outcome = run_bounded(f"{HERE}:rows_of_large_values", kind, seconds=10, peak_mb=400)
    assert outcome.result > 2_500_000
