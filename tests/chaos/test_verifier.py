"""The verifier refuses every history in which one promise is broken, and only those."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.chaos import check_callbacks, check_commits, check_ownership, check_records
from tests.chaos.journal import Journal, read
from tests.chaos.kafka_state import Taken
from tests.chaos.valid_history import CHAOS, WALL, A, B, Forged, honest, row
from tests.chaos.verify import CHECKS

Change = Callable[[Forged], object]
BREAKS: list[tuple[str, Any, Change]] = []


def breaks(promise: str, check: Any) -> Callable[[Change], Change]:
    """One place of the honest history is changed so that this promise does not hold, which this check has to find."""

    def listed(change: Change) -> Change:
        BREAKS.append((promise, check, change))
        return change

    return listed


@breaks("I-01", check_commits.released_first)
def committed_before_it_was_handed_over(forged: Forged) -> None:
    forged.take(5.5, 1, 3)


@breaks("I-01", check_commits.released_first)
def committed_beyond_the_end(forged: Forged) -> None:
    forged.take(9.0, 1, 4)


@breaks("I-02", check_records.nothing_lost)
def a_record_came_to_no_member(forged: Forged) -> None:
    forged.replace(6.0, rows=[row(1, 1)])


@breaks("I-02", check_records.nothing_lost)
def kafka_has_lost_an_acknowledged_record(forged: Forged) -> None:
    forged.acknowledged[0, 3] = "0:6:1"


@breaks("I-03", check_records.in_order)
def an_older_record_after_a_newer_one(forged: Forged) -> None:
    forged.replace(2.0, rows=[row(0, 1), row(0, 0), row(1, 0)])


@breaks("I-04", check_records.in_order)
def a_record_is_skipped(forged: Forged) -> None:
    forged.replace(6.0, rows=[row(1, 0), row(1, 2)])


@breaks("I-05", check_records.as_written)
def a_value_is_another(forged: Forged) -> None:
    forged.replace(6.0, rows=[row(1, 1), [1, 2, "1:5:0"]])


@breaks("I-06", check_records.in_order)
def a_record_comes_twice_to_its_owner(forged: Forged) -> None:
    forged.replace(5.0, rows=[row(0, 2), row(0, 2)])


@breaks("I-07", check_records.begun_where_committed)
def an_owner_begins_where_none_has_committed(forged: Forged) -> None:
    forged.replace(5.0, rows=[row(0, 1), row(0, 2)])


@breaks("I-08", check_commits.never_back)
def a_commit_goes_back(forged: Forged) -> None:
    forged.take(7.0, 0, 2)
    forged.take(7.1, 0, 3)


@breaks("I-08", check_commits.to_the_end)
def the_end_is_not_committed(forged: Forged) -> None:
    forged.taken.pop()


@breaks("I-08", check_commits.as_promised)
def a_commit_is_reported_and_never_taken(forged: Forged) -> None:
    forged.taken[:] = [one for one in forged.taken if one != Taken(0, 2, WALL + 2.25)]
    forged.replace(5.0, rows=[])


@breaks("I-08", check_commits.of_what_is_owned)
def a_commit_of_another_members_partition(forged: Forged) -> None:
    forged.replace(5.2, offsets=[[0, 3], [1, 1]])


@breaks("I-08", check_commits.of_what_is_owned)
def a_commit_beyond_what_was_handed_over(forged: Forged) -> None:
    forged.replace(2.2, offsets=[[0, 3], [1, 1]])


@breaks("I-08", check_commits.overtaken)
def a_later_commit_is_less(forged: Forged) -> None:
    forged.add(2.5, A, "commit", number=3, offsets=[[0, 1]], inside="commit")
    forged.add(2.6, A, "committed", number=3, error=None)


@breaks("I-10", check_ownership.exclusive)
def two_have_a_partition(forged: Forged) -> None:
    forged.replace(4.0, partitions=[0, 1])
    forged.replace(8.0, partitions=[0, 1])


@breaks("I-10", check_ownership.exclusive)
def a_pause_shorter_than_the_session_is_no_excuse(forged: Forged) -> None:
    held_on(forged, stopped=1.5)


@breaks("I-09", check_ownership.fenced)
def the_fenced_owner_still_commits(forged: Forged) -> None:
    held_on(forged, stopped=0.5)
    forged.add(5.5, A, "commit", number=3, offsets=[[1, 1]], inside="commit")
    forged.add(5.6, A, "committed", number=3, error=None)


@breaks("I-11", check_records.to_its_owner)
def records_of_a_partition_that_was_given_up(forged: Forged) -> None:
    forged.add(7.0, A, "delivered", rows=[row(1, 1)])


@breaks("I-12", check_callbacks.callbacks)
def a_callback_outside_of_all_calls(forged: Forged) -> None:
    forged.replace(3.0, inside="")


@breaks("I-12", check_callbacks.callbacks)
def two_callbacks_at_once(forged: Forged) -> None:
    forged.add(3.05, A, "assigned", partitions=[], inside="poll")


@breaks("I-12", check_callbacks.callbacks)
def records_while_a_callback_runs(forged: Forged) -> None:
    forged.add(3.05, A, "delivered", rows=[])


@breaks("I-12", check_callbacks.callbacks)
def revoked_what_it_does_not_have(forged: Forged) -> None:
    forged.replace(8.0, partitions=[0, 1])


@breaks("I-12", check_callbacks.callbacks)
def assigned_twice(forged: Forged) -> None:
    forged.add(4.2, A, "assigned", partitions=[0], inside="poll")
    forged.add(4.3, A, "assigned over", partitions=[0])


@breaks("I-12", check_callbacks.callbacks)
def assigned_before_all_was_revoked(forged: Forged) -> None:
    forged.add(4.2, A, "assigned", partitions=[], inside="poll")
    forged.add(4.3, A, "assigned over", partitions=[])


@breaks("I-12", check_callbacks.callbacks)
def lost_for_no_reason(forged: Forged) -> None:
    lost(forged)


def lost(forged: Forged) -> None:
    """Instead of being revoked, both partitions are lost."""
    forged.remove(3.1)
    forged.remove(3.0)
    forged.add(3.0, A, "lost", partitions=[0, 1], inside="poll")
    forged.add(3.1, A, "lost over", partitions=[0, 1])


def held_on(forged: Forged, stopped: float) -> None:
    """The first owner keeps partition 1 until 7.0, when its process, which was stopped, has found out."""
    for at in (3.0, 3.1):
        forged.replace(at, partitions=[0])
    forged.add(stopped, CHAOS, "stop", target="ours-1")
    forged.add(6.5, CHAOS, "go on", target="ours-1")
    forged.add(6.9, A, "lost", partitions=[1], inside="poll")
    forged.add(7.0, A, "lost over", partitions=[1])
    forged.eager = False


def exchange(forged: Forged) -> None:
    """What one of them did, the other has done."""
    other = {A: B, B: A}
    forged.lines = [attrs.evolve(line, who=other.get(line.who, line.who)) for line in forged.lines]


@pytest.mark.parametrize(("promise", "check", "change"), BREAKS, ids=[one[2].__name__ for one in BREAKS])
def test_a_broken_promise_is_found(promise: str, check: Any, change: Change) -> None:
    forged = honest()
    change(forged)
    assert promise in {finding.promise for finding in check(forged.history())}
    assert promise in {finding.promise for finding in forged.findings()}


def test_every_promise_and_every_check_is_broken_once() -> None:
    assert {promise for promise, _, _ in BREAKS} == {f"I-{number:02}" for number in range(1, 13)}
    assert {check for _, check, _ in BREAKS} == set(CHECKS)


def test_a_valid_history_is_accepted() -> None:
    assert honest().findings() == []


def test_a_member_that_was_stopped_for_longer_than_its_session_may_overlap_until_it_learns() -> None:
    forged = honest()
    held_on(forged, stopped=0.4)
    assert forged.findings() == []


def test_partitions_may_be_lost_when_brokers_fail() -> None:
    forged = honest()
    lost(forged)
    forged.add(0.5, CHAOS, "kill", target="node 2")
    forged.add(0.6, CHAOS, "go on", target="node 2")
    assert forged.findings() == []


def test_the_killed_own_nothing_any_more() -> None:
    forged = honest()
    for at in (8.2, 8.1, 8.0):
        forged.remove(at)
    forged.add(7.0, CHAOS, "kill", target="ours-1", life=1)
    assert [own.how for own in forged.history().ownerships] == ["revoked", "revoked", "killed", "revoked"]
    assert forged.findings() == []


@pytest.mark.parametrize(("holder", "promises"), [(A, {"I-10"}), (B, set())])
def test_of_librdkafka_no_more_is_asked_than_it_keeps(holder: str, promises: set[str]) -> None:
    """In groups of the consumer protocol it holds on to what it has given up; no other client may."""
    forged = honest()
    forged.by_coordinator, forged.eager = True, False
    for at in (3.0, 3.1):
        forged.replace(at, partitions=[0])
    forged.add(5.6, A, "revoked", partitions=[1], inside="poll")
    forged.add(5.7, A, "revoked over", partitions=[1])
    if holder == B:
        exchange(forged)
    assert {one.promise for one in check_ownership.exclusive(forged.history())} == promises


@pytest.mark.parametrize(("loser", "promises"), [(A, {"I-12"}), (B, set())])
def test_librdkafka_may_lose_its_partitions_for_no_reason_of_ours(loser: str, promises: set[str]) -> None:
    """In groups of the consumer protocol it may be put out for a response that it forgot; no other client is."""
    forged = honest()
    forged.by_coordinator, forged.eager = True, False
    lost(forged)
    if loser == B:
        exchange(forged)
    assert {finding.promise for finding in forged.findings()} == promises


def test_half_a_line_of_a_journal_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "one.journal"
    journal = Journal(path)
    journal.write(A, "began")
    journal.write(B, "delivered", rows=[row(0, 0)])
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at": 1.5, "who"')
    lines = list(read(path))
    assert [(line.who, line.event) for line in lines] == [(A, "began"), (B, "delivered")]
    assert lines[1]["rows"] == [row(0, 0)]
    assert lines[0].at <= lines[1].at
