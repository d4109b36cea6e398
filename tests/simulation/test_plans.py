"""Plans are data, and a failing one shrinks to what it needs."""

from __future__ import annotations

from pathlib import Path

from tests.simulation.plan import Fault, Plan
from tests.simulation.runner import draw_plan
from tests.simulation.shrink import shrink


def test_a_plan_survives_being_written_down(tmp_path: Path) -> None:
    plan = draw_plan(7)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan


def test_only_the_faults_that_matter_are_left() -> None:
    plan = next(plan for seed in range(1, 100) if len((plan := draw_plan(seed)).faults) > 12)
    needed = {plan.faults[2].kind, plan.faults[-1].kind}
    tried: list[tuple[Fault, ...]] = []

    def breaks(candidate: Plan) -> bool:
        tried.append(candidate.faults)
        return needed <= {fault.kind for fault in candidate.faults}

    found = shrink(plan, breaks)
    assert {fault.kind for fault in found.plan.faults} == needed
    assert len(found.plan.faults) == len(needed)
    assert found.runs == len(tried) <= 200


def test_a_fault_gets_no_longer_than_it_must_be() -> None:
    plan = Plan(draw_plan(1).scenario, (Fault("kill_broker", "1", 5.0, 20.0),))
    found = shrink(plan, lambda candidate: any(fault.seconds >= 10 for fault in candidate.faults))
    assert found.plan.faults == (Fault("kill_broker", "1", 5.0, 10.0),)
