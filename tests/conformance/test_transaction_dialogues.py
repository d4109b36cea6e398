"""Transactional producers that ask for anything at any time: a real broker and the embedded one answer alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.dialogue import Dialogue
from tests.conformance.target import Target

SEEDS = range(12)
STEPS = 60


@pytest.mark.kafka
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("real", ["kafka-4.3.1", "kafka-2.8.2"])
def test_the_same_conversation(_targets: Callable[[str], Target], real: str, seed: int) -> None:
    embedded = "embedded-4.3" if real == "kafka-4.3.1" else "embedded-2.8"
    theirs = Dialogue(_targets(real), seed, STEPS).lines
    ours = Dialogue(_targets(embedded), seed, STEPS).lines
    for number, (their, our) in enumerate(zip(theirs, ours, strict=True)):
        assert our == their, "\n".join(theirs[max(0, number - 15) : number + 1])
