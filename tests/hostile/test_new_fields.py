"""Fields that the schema does not name cannot keep a worker busy, or fill its memory."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded

HERE = "tests.hostile.new_fields"


@pytest.mark.spec("SP-76", "SP-87")
def test_new_fields_of_a_wide_message_take_linear_time() -> None:
    outcome = run_bounded(f"{HERE}:fields_of_a_wide_message", 8_000, seconds=2.5, peak_mb=300)
    assert outcome.result == 8_000


@pytest.mark.spec("SP-76", "SP-87")
@pytest.mark.parametrize("what", ["name", "symbol"])
def test_long_names_in_the_schema_of_an_avro_writer_do_not_multiply(what: str) -> None:
    outcome = run_bounded(f"{HERE}:why_avro_is_not_kept", what, 400_000, seconds=5, peak_mb=400)
    assert "as JSON they have more than 33,554,432 characters" in outcome.result
    outcome = run_bounded(f"{HERE}:why_avro_is_not_kept", what, 1, seconds=2, peak_mb=200)
    assert outcome.result == "kept"


@pytest.mark.spec("SP-76", "SP-87")
@pytest.mark.parametrize(
    ("what", "count", "kept"),
    [
        ("name", 4, [["b"], ["n" * 1_000]]),
        ("symbol", 4, [["b"], ["x"]]),
        ("name", 250_000, [["b"], ["7"]]),
        ("symbol", 250_000, [["2"], ["2"]]),
        ("elements", 1_000_000, [["2"], ["2"]]),
    ],
)
def test_names_of_a_protobuf_writer_do_not_multiply(what: str, count: int, kept: list[list[str]]) -> None:
    """What would be too large has numbers and bytes."""
    outcome = run_bounded(f"{HERE}:kept_of_protobuf", what, count, seconds=10, peak_mb=700)
    assert outcome.result[:2] == kept
    assert outcome.result[2] < 40_000_000


@pytest.mark.spec("SP-76", "SP-87")
@pytest.mark.parametrize("item", ["[],", "0,"])
@pytest.mark.parametrize("schema", ["a BIGINT, o STRUCT<x: BIGINT>", "ARRAY<STRUCT<a: BIGINT>>"])
def test_a_long_new_field_of_json_does_not_become_objects(item: str, schema: str) -> None:
    outcome = run_bounded(f"{HERE}:kept_of_json", item, 4_000_000, schema, seconds=10, peak_mb=250)
    assert outcome.result == '{"y": "[1, NaN]", "z": "1"}'
