"""Transactional producers that ask for anything at any time: a real broker and the embedded one answer alike."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import LATEST, asks_latest
from tests.conformance.dialogue import Dialogue

SEEDS = range(15)
STEPS = 60
TWINS = {"kafka-4.4.0": "embedded-4.4", "kafka-4.3.1": "embedded-4.3", "kafka-2.8.2": "embedded-2.8"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each real broker."""
    names = [name for name in TWINS if name != f"kafka-{LATEST}" or asks_latest(metafunc.config)]
    metafunc.parametrize("real", names)


@pytest.mark.kafka
@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_conversation(request: pytest.FixtureRequest, real: str, seed: int) -> None:
    targets = request.getfixturevalue("_targets")
    theirs = Dialogue(targets(real), seed, STEPS).lines
    ours = Dialogue(targets(TWINS[real]), seed, STEPS).lines
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert our == their, "\n".join(theirs[max(0, number - 15) : number + 1])
