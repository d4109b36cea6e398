"""A few bytes of schema or value cannot keep a worker busy, or fill its memory."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded

HERE = "tests.hostile.decoding"


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("depth", [26, 60])
@pytest.mark.parametrize("leaf", ["int", "null"])
@pytest.mark.parametrize("side", ["writer", "reader"])
def test_an_avro_schema_of_nested_doubles_is_refused_at_once(side: str, leaf: str, depth: int) -> None:
    outcome = run_bounded(f"{HERE}:error_of_{side}_schema", depth, leaf, seconds=1, peak_mb=200)
    assert "it has more than 5,000 types when each name in it is written out" in outcome.result


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize("side", ["writer", "reader"])
def test_an_avro_schema_that_is_deeper_than_a_stack_is_refused(side: str) -> None:
    for depth, told in ((300, "more than 100 types inside each other"), (3_000, "is no Avro schema")):
        outcome = run_bounded(f"{HERE}:error_of_{side}_schema_nested", depth, seconds=2, peak_mb=200)
        assert told in outcome.result


@pytest.mark.spec("SP-75")
def test_the_defaults_of_a_reader_schema_are_bounded() -> None:
    outcome = run_bounded(f"{HERE}:error_of_long_default", seconds=2, peak_mb=200)
    assert "its defaults have more than 16,384 characters" in outcome.result
