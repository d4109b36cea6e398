"""The states of a member of the consumer protocol, its epoch and its member id."""

from __future__ import annotations

import re

import pytest

from kclient.errors import InternalError
from kclient.group.consumer_protocol.state import (
    HEARTBEAT_SCHEDULE,
    PREDECESSORS,
    ConsumerMemberState,
    ConsumerMemberStatus,
    HeartbeatSchedule,
    new_member_id,
)
from kclient.runtime import Runtime

S = ConsumerMemberState

# --- states

TABLE = """
UNSUBSCRIBED     PREPARE_LEAVING LEAVING FENCED
JOINING          FENCED UNSUBSCRIBED STALE
RECONCILING      STABLE JOINING ACKNOWLEDGING RECONCILING
ACKNOWLEDGING    RECONCILING
STABLE           JOINING ACKNOWLEDGING RECONCILING
FENCED           JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING
PREPARE_LEAVING  JOINING STABLE RECONCILING ACKNOWLEDGING UNSUBSCRIBED
LEAVING          PREPARE_LEAVING
STALE            LEAVING
FATAL            JOINING STABLE RECONCILING ACKNOWLEDGING PREPARE_LEAVING LEAVING UNSUBSCRIBED
"""
LEGAL = {
    (S[before], S[after]) for after, *befores in map(str.split, TABLE.split("\n")[1:-1]) for before in befores
}


@pytest.mark.spec("B.17.1")
@pytest.mark.parametrize("after", S)
@pytest.mark.parametrize("before", S)
def test_a_state_follows_only_those_that_it_may(
    before: ConsumerMemberState, after: ConsumerMemberState
) -> None:
    standing = ConsumerMemberStatus("m", state=before)
    if (before, after) in LEGAL:
        standing.transition_to(after)
        assert standing.state is after
    else:
        with pytest.raises(InternalError, match=f"is {before.value} cannot become {after.value}"):
            standing.transition_to(after)
        assert standing.state is before


@pytest.mark.spec("B.17.1")
def test_every_state_has_its_rhythm_and_its_predecessors() -> None:
    assert set(PREDECESSORS) == set(HEARTBEAT_SCHEDULE) == set(S)
    at_once = {
        state for state, schedule in HEARTBEAT_SCHEDULE.items() if schedule is HeartbeatSchedule.AT_ONCE
    }
    on_interval = {
        state for state, schedule in HEARTBEAT_SCHEDULE.items() if schedule is HeartbeatSchedule.ON_INTERVAL
    }
    assert at_once == {S.JOINING, S.ACKNOWLEDGING}
    assert on_interval == {S.RECONCILING, S.STABLE, S.PREPARE_LEAVING}


@pytest.mark.spec("B.17.1", "B.17.4")
def test_whose_membership_ends_has_no_epoch_and_the_next_one_counts_again() -> None:
    standing = ConsumerMemberStatus("m", state=S.STABLE, epoch=7, joined=1)
    assert standing.generation.generation_id == 7
    standing.end(S.FENCED, "why")
    assert (standing.epoch, standing.member, standing.ended) == (0, False, "why")
    assert standing.generation.lost
    standing.transition_to(S.JOINING)
    assert (standing.joined, standing.member_id) == (2, "m")


@pytest.mark.spec("B.17.2")
def test_a_member_id_is_a_uuid_of_22_letters_that_never_begins_with_a_dash() -> None:
    ids = {new_member_id(Runtime.seeded(seed)) for seed in range(300)}
    assert len(ids) == 300
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", one) for one in ids)
