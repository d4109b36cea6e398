"""Target and owned assignment of a member: the steps of a reconciliation."""

from __future__ import annotations

import pytest

from kclient.generated.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kclient.group.consumer_protocol.assignment import AssignmentTracker
from kclient.types import TopicPartition

T, U = b"t" * 16, b"u" * 16


# --- what it owns


def assignment_of(**rows: list[int]) -> Assignment:
    """An assignment of the topics t and u."""
    ids = {"t": T, "u": U}
    return Assignment([TopicPartitions(topic_id=ids[name], partitions=some) for name, some in rows.items()])


NAMES = {T: "t", U: "u"}


@pytest.mark.spec("B.17.3")
def test_an_assignment_becomes_a_step_and_then_what_is_owned() -> None:
    ours = AssignmentTracker()
    assert ours.settled
    assert not ours.update_target(None)
    assert ours.update_target(assignment_of(t=[1, 0], u=[]))
    assert not ours.update_target(assignment_of(t=[0, 1]))
    assert not ours.settled
    step = ours.next_step(NAMES.get)
    assert step is not None
    assert (step.partitions, step.same) == ((TopicPartition("t", 0), TopicPartition("t", 1)), False)
    ours.mark_reconciled(step)
    assert ours.settled
    assert ours.next_step(NAMES.get) is None


@pytest.mark.spec("B.17.3")
def test_an_empty_assignment_is_one() -> None:
    ours = AssignmentTracker()
    ours.update_target(assignment_of(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    assert ours.update_target(assignment_of())
    step = ours.next_step(NAMES.get)
    assert step is not None
    assert step.partitions == ()


@pytest.mark.spec("B.17.3", "A-14")
def test_what_has_a_name_is_taken_first_and_the_rest_when_it_has_one() -> None:
    ours = AssignmentTracker()
    ours.update_target(assignment_of(t=[0], u=[3]))
    only_t = {T: "t"}
    assert ours.unresolved_topic_ids(only_t.get) == (U,)
    step = ours.next_step(only_t.get)
    assert step is not None
    assert step.partitions == (TopicPartition("t", 0),)
    ours.mark_reconciled(step)
    assert ours.next_step(only_t.get) is None
    assert not ours.settled
    rest = ours.next_step(NAMES.get)
    assert rest is not None
    assert rest.partitions == (TopicPartition("t", 0), TopicPartition("u", 3))
    ours.mark_reconciled(rest)
    assert ours.settled


@pytest.mark.spec("B.17.3")
def test_where_nothing_new_has_a_name_what_is_owned_is_reported_once_more() -> None:
    ours = AssignmentTracker()
    ours.update_target(assignment_of(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.update_target(assignment_of(t=[0], u=[1]))
    step = ours.next_step({T: "t"}.get)
    assert step is not None
    assert step.same
    ours.mark_reconciled(step)
    assert ours.next_step({T: "t"}.get) is None


@pytest.mark.spec("B.17.3")
def test_a_topic_that_is_owned_keeps_its_name_when_metadata_forgets_it() -> None:
    ours = AssignmentTracker()
    ours.update_target(assignment_of(t=[0, 1]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.update_target(assignment_of(t=[0]))
    step = ours.next_step(lambda topic_id: None)
    assert step is not None
    assert step.partitions == (TopicPartition("t", 0),)


@pytest.mark.spec("B.17.3", "B.17.4")
def test_a_consumer_that_is_not_a_member_any_more_owns_nothing_and_takes_the_same_target_again() -> None:
    ours = AssignmentTracker()
    ours.update_target(assignment_of(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.forget()
    assert ours.settled
    assert ours.owned.partitions == {}
    assert ours.update_target(assignment_of(t=[0]))
    assert ours.next_step(NAMES.get) is not None
