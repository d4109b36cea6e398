"""What has happened to Connect's Iceberg sink happens to a job: its rows count once. A job with its bugs is noticed."""

from __future__ import annotations

import pytest

from tests.lakehouse.connect_bugs import PLANS
from tests.lakehouse.world import Verdict, run_plan
from tests.simulation.mutants import MUTANTS, planted

pytestmark = [pytest.mark.spread, pytest.mark.timeout(300)]

SAME_MISTAKE = {
    "#16282": "M-173",  # the table is never asked what it has
    "#17637": "M-163",  # of two that commit neither looks where the other one is
    "#13763": "M-163",
    "#13752": "M-172",  # the tries are used up, and the offsets go on
    "#17340": "M-173",  # the mark of what is committed is one outside of the table
    "#17551": "M-165",  # and an old one is believed
    "unanswered": "M-162",
    "restored": "M-177",
    "manifests": "M-175",
    "slept": "M-179",
    "recreated": "M-170",
    "recreated unseen": "M-180",
}
"""Plan → the planted bug that is the mistake of that report."""

ENDS = {
    "#16282": (),
    "#17637": ("Another run of the job",),
    "#13763": ("Another run of the job",),
    "#13752": ("could not be committed", "did not answer"),
    "#17340": (),
    "#17551": ("are not there",),
    "unanswered": (),
    "restored": ("Another run of the job", "would end before it begins"),
    "manifests": ("this run is fenced",),
    "slept": ("are 80 hours old",),
    "recreated": ("was recreated", "was deleted and recreated since"),
    "recreated unseen": ("was deleted and recreated since",),
}
"""Plan → what ends runs under it. Where there is nothing, none but kills."""

SEEDS = (1, 2)


def run(plan: str, seed: int) -> Verdict:
    return run_plan(seed, PLANS[plan])


@pytest.mark.spec("I-46", "I-47", "I-48", "I-49", "I-50", "I-51", "I-52")
@pytest.mark.parametrize("plan", sorted(PLANS))
def test_each_record_lands_once(plan: str) -> None:
    assert [run(plan, seed).violations for seed in SEEDS] == [()] * len(SEEDS)


@pytest.mark.parametrize("plan", sorted(PLANS))
def test_runs_end_by_what_is_expected_and_nothing_else(plan: str) -> None:
    errors = run(plan, 1).errors
    for text in ENDS[plan]:
        assert any(text in error for error in errors), text
    assert bool(errors) == bool(ENDS[plan])


@pytest.mark.parametrize("plan", sorted(PLANS))
def test_the_mistake_of_the_report_is_noticed(plan: str) -> None:
    bug = MUTANTS[SAME_MISTAKE[plan]]
    with planted(bug.id):
        assert any(run(plan, seed).violations for seed in (*SEEDS, bug.seed))


@pytest.mark.spec("I-50")
def test_a_topic_that_was_created_again_is_never_read_into_the_rows_of_the_one_before() -> None:
    verdict = run("recreated", 1)
    assert verdict.violations == ()
    assert verdict.versions > 1
