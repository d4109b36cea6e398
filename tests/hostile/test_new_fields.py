"""Fields that the schema does not name cannot keep a worker busy, or fill its memory."""

from __future__ import annotations

import pytest

from tests.hostile.bounded import run_bounded

HERE = "tests.hostile.new_fields"


@pytest.mark.spec("SP-76", "SP-87")
def test_new_fields_of_a_wide_message_take_linear_time() -> None:
    outcome = run_bounded(f"{HERE}:fields_of_a_wide_message", 8_000, seconds=2.5, peak_mb=300)
    assert outcome.result == 8_000
