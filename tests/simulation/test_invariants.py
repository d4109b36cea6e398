"""Every promise of the list is looked after: on each seed, in a test of its own, or there is a reason why not yet."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation import invariants
from tests.simulation.invariants.liveness import InTime
from tests.simulation.plan import Plan
from tests.simulation.scenario import Scenario
from tests.simulation.watch import Violation

PROMISES = [f"I-{number:02}" for number in range(1, 53)]


def test_every_promise_is_looked_after_or_says_why_not() -> None:
    watched = {one.id for one in invariants.ALL}
    tables = [watched, invariants.OF_THE_RUN, invariants.OWN_TESTS, invariants.NOT_YET]
    assert sorted(set().union(*tables)) == PROMISES
    assert not watched & set(invariants.NOT_YET)
    assert all(invariants.NOT_YET.values())


def test_a_test_of_its_own_exists_and_names_its_promise() -> None:
    for promise, file in invariants.OWN_TESTS.items():
        assert promise in (Path(__file__).parent / file).read_text(encoding="utf-8")


def test_each_watcher_says_what_it_promises() -> None:
    for one in invariants.ALL:
        assert re.fullmatch(r"I-\d\d", one.id), one
        assert one.__doc__, one


@pytest.mark.parametrize(("timeout", "too_late"), [(0.0, True), (2.0, False)])
def test_a_poll_is_held_to_the_timeout_that_it_was_given(*, timeout: float, too_late: bool) -> None:
    violations: list[Violation] = []
    stage: Any = SimpleNamespace(now=0.0, plan=Plan(Scenario(), ()), report=violations.append)
    member: Any = SimpleNamespace(name="member-1", callback_seconds=0.0)
    watcher = InTime(stage)
    watcher.poll_began(member, timeout)
    stage.now = 2.5
    watcher.poll_ended(member, 0)
    assert [one.invariant for one in violations] == ["I-23"] * too_late
