"""Every planted bug is noticed within 200 seeds, by a seed that passes without it.

`make test` hunts for a sample: of each file of `mutants/`, which is one area of the client, the first bug and every
twelfth after it. `make verify` and `make mutants` hunt for all.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.simulation.mutants import MUTANTS, NOT_APPLICABLE, planted
from tests.simulation.mutants.hunt import hunt_all

EVERY = 12


def sample() -> list[str]:
    """Return the bugs that `make test` hunts for."""
    areas: dict[str, list[str]] = defaultdict(list)
    for name, bug in MUTANTS.items():
        areas[bug.plant.__module__].append(name)
    return [name for area in areas.values() for name in area[::EVERY]]


HUNTED = [
    pytest.param(name, marks=[] if name in sample() else [pytest.mark.exhaustive]) for name in sorted(MUTANTS)
]


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_it_can_be_planted(name: str) -> None:
    with planted(name):
        pass


@pytest.mark.slow
@pytest.mark.spread
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", HUNTED)
def test_it_is_noticed(name: str) -> None:
    """In a process of its own: what a bug leaves behind must not reach other tests."""
    [caught] = hunt_all([name], jobs=1)
    assert caught.seed is not None, str(caught)


def test_the_sample_has_bugs_of_every_area() -> None:
    areas = {bug.plant.__module__ for bug in MUTANTS.values()}
    assert {MUTANTS[name].plant.__module__ for name in sample()} == areas


def test_each_of_the_page_is_planted_or_has_a_reason_not_to_be() -> None:
    page = {f"M-{number:02d}" for number in range(1, 125)}
    assert {name for name in {*MUTANTS, *NOT_APPLICABLE} if name in page or int(name[2:]) < 125} == page
    assert not set(MUTANTS) & set(NOT_APPLICABLE)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 60
    assert {"M-122", "M-123"} <= set(MUTANTS)
