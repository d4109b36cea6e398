"""Cycles on the run's own three brokers, one in `make test` and three in `make verify`, and what a seed draws.

`make chaos CYCLES=20` runs more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from localkafka import KafkaCluster
from tests.chaos.cycle import Cycle
from tests.chaos.member_settings import Commits
from tests.chaos.plan import PROCESSES, VARIANTS, Act, draw

SEED = 12
PROMISES = [f"I-{number:02d}" for number in range(1, 13)]  # every cycle is held to all of them
CYCLES = [0, *(pytest.param(number, marks=pytest.mark.exhaustive) for number in (1, 2))]


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.spec(*PROMISES)
@pytest.mark.parametrize("number", CYCLES)
def test_nothing_is_lost_whatever_fails(
    kafka3: KafkaCluster, fresh_name: str, tmp_path: Path, number: int
) -> None:
    """Six members of two clients; what each of them saw, and what Kafka has stored, keep every promise."""
    plan = draw(SEED, number)
    result = Cycle(kafka3, plan, fresh_name, tmp_path).run()
    assert result.findings == [], f"{plan}: {result}; journals in {tmp_path}"
    assert {one.member.partition(".")[0] for one in result.history.deliveries} == set(PROCESSES)


def test_the_same_seed_gives_the_same_plans_and_every_kind_comes() -> None:
    plans = [draw(SEED, number) for number in range(60)]
    assert plans == [draw(SEED, number) for number in range(60)]
    assert plans != [draw(SEED + 1, number) for number in range(60)]
    assert {plan.variant for plan in plans} == set(VARIANTS)
    assert {plan.commits for plan in plans} == set(Commits)
    assert {plan.static for plan in plans} == {True, False}
    assert {fault.act for plan in plans for fault in plan.brokers} == set(Act)
    assert {fault.target for plan in plans for fault in plan.members} == set(PROCESSES)
