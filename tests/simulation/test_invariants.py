"""Every promise of the list is looked after: on each seed, in a test of its own, or there is a reason why not yet."""

from __future__ import annotations

import re
from pathlib import Path

from tests.simulation import invariants

PROMISES = [f"I-{number:02}" for number in range(1, 41)]


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
