"""Every planted bug is noticed within 200 seeds, by a seed that passes without it."""

from __future__ import annotations

import os

import pytest

from tests.simulation.mutants import MUTANTS, NOT_APPLICABLE, planted
from tests.simulation.mutants.hunt import Caught, hunt_all


@pytest.fixture(scope="module")
def hunted() -> dict[str, Caught]:
    return {caught.mutant: caught for caught in hunt_all(sorted(MUTANTS), os.cpu_count() or 1)}


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_it_can_be_planted(name: str) -> None:
    with planted(name):
        pass


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_it_is_noticed(name: str, hunted: dict[str, Caught]) -> None:
    assert hunted[name].seed is not None, str(hunted[name])


def test_each_of_the_page_is_planted_or_has_a_reason_not_to_be() -> None:
    page = {f"M-{number:02d}" for number in range(1, 125)}
    assert {name for name in {*MUTANTS, *NOT_APPLICABLE} if name in page or int(name[2:]) < 125} == page
    assert not set(MUTANTS) & set(NOT_APPLICABLE)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 60
    assert {"M-122", "M-123"} <= set(MUTANTS)
