"""I-21: the Spark reader reads what the topic holds, exactly once, and reports progress and data loss."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import spark_scripts
from tests.simulation.mutants.table import Look

LOOKS = [
    spark_scripts.every_record_once,
    spark_scripts.canonical_offsets,
    spark_scripts.progress_of_group,
    spark_scripts.loss_is_told,
]


@pytest.mark.spec("I-21")
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("look", LOOKS, ids=lambda look: str(look.__name__))
def test_it_holds(look: Look, seed: int) -> None:
    assert look(seed) == []
