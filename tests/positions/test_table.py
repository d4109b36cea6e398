"""The FetchState table: what each state allows, what is kept, what is ignored."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from kclient.errors import InternalError, NotAssignedError
from kclient.positions.state import EARLIEST, LATEST, TRANSITIONS, FetchPosition, FetchState
from kclient.positions.table import Positions
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition

INITIALIZING, FETCHING, AWAIT_RESET, AWAIT_VALIDATION = FetchState
P0, P1, P2 = (TopicPartition("orders", n) for n in range(3))
LEADER = LeaderAndEpoch(1, 5)
NEW_LEADER = LeaderAndEpoch(2, 6)


def positions(*partitions: TopicPartition) -> Positions:
    table = Positions()
    table.assign(partitions)
    return table


def in_state(state: FetchState) -> Positions:
    table = positions(P0)
    if state is FETCHING:
        table.seek(P0, OffsetAndMetadata(10), LEADER)
    elif state is AWAIT_RESET:
        table.request_offset_reset(P0, LATEST)
    elif state is AWAIT_VALIDATION:
        table.seek(P0, OffsetAndMetadata(10, 4), LEADER)
    assert table.state(P0).fetch_state is state
    return table


@pytest.mark.spec("S0-15", "S0-16", "S0-17", "S0-18")
def test_the_transition_table_forbids_exactly_two_kinds_of_moves() -> None:
    forbidden = {
        (old, new) for old, new in itertools.product(FetchState, FetchState) if new not in TRANSITIONS[old]
    }
    into_initializing = {(old, INITIALIZING) for old in FetchState}
    assert forbidden == into_initializing | {(AWAIT_RESET, AWAIT_VALIDATION)}


@pytest.mark.spec("S0-11", "S0-15")
def test_a_new_partition_is_initializing_without_position_and_not_fetchable() -> None:
    table = positions(P0)
    assert table.state(P0).fetch_state is INITIALIZING
    assert table.position(P0) is None
    assert not table.is_fetchable(P0)
    assert table.partitions_needing_committed() == [P0]
    assert table.all_consumed() == {}


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.spec("S0-16", "S0-17", "S0-18", "S2-09", "D-29")
def test_only_fetching_fetches_delivers_and_commits(state: FetchState) -> None:
    table = in_state(state)
    assert table.is_fetchable(P0) == (state is FETCHING)
    assert (table.position(P0) is not None) == (state is FETCHING)
    assert (P0 in table.all_consumed()) == (state is FETCHING)


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.spec("S0-19", "S0-43", "B.6.3")
def test_each_state_sends_its_own_request(state: FetchState) -> None:
    table = in_state(state)
    questions = (
        bool(table.partitions_needing_committed()),
        bool(table.partitions_needing_reset(0)),
        bool(table.partitions_needing_validation(0)),
    )
    assert questions == (state is INITIALIZING, state is AWAIT_RESET, state is AWAIT_VALIDATION)


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.spec("S0-09", "B.6.3", "B.6.4")
def test_a_seek_leads_to_fetching_from_every_state(state: FetchState) -> None:
    table = in_state(state)
    table.seek(P0, OffsetAndMetadata(77), LEADER)
    assert table.position(P0) == FetchPosition(77, None, LEADER)


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.spec("S0-24", "B.6.3", "B.6.4")
def test_a_seek_with_both_epochs_known_is_validated_first_from_every_state(state: FetchState) -> None:
    table = in_state(state)
    table.seek(P0, OffsetAndMetadata(77, 3), LEADER)
    assert table.state(P0).fetch_state is AWAIT_VALIDATION
    table.complete_validation(P0)
    assert table.position(P0) == FetchPosition(77, 3, LEADER)


@pytest.mark.spec("S0-24", "B.6.4")
def test_a_seek_is_not_validated_while_the_leader_epoch_is_unknown() -> None:
    table = positions(P0)
    table.seek(P0, OffsetAndMetadata(77, 3), LeaderAndEpoch(1, None))
    assert table.state(P0).fetch_state is FETCHING


@pytest.mark.parametrize("state", FetchState)
@pytest.mark.spec("S0-17", "B.6.3")
def test_seek_to_an_end_leads_to_await_reset_from_every_state_and_clears_the_position(
    state: FetchState,
) -> None:
    table = in_state(state)
    table.request_offset_reset(P0, EARLIEST)
    assert table.state(P0).fetch_state is AWAIT_RESET
    assert table.state(P0).position is None
    assert table.state(P0).reset_strategy == EARLIEST


@pytest.mark.spec("S0-04", "S0-18", "B.6.4", "D-40")
def test_a_new_leader_is_validated_with_the_epoch_of_the_data_kept_apart() -> None:
    table = positions(P0)
    table.seek(P0, OffsetAndMetadata(10), LEADER)
    table.advance(P0, 20, 3)
    table.follow_leader(P0, NEW_LEADER, can_validate=True)
    assert table.state(P0).fetch_state is AWAIT_VALIDATION
    assert table.state(P0).position == FetchPosition(20, 3, NEW_LEADER)


@pytest.mark.spec("B.6.4", "D-41")
def test_a_new_leader_is_only_taken_over_where_it_cannot_be_asked_or_an_epoch_is_missing() -> None:
    without_epoch, version_error = positions(P0), positions(P0)
    without_epoch.seek(P0, OffsetAndMetadata(10), LEADER)
    without_epoch.follow_leader(P0, NEW_LEADER, can_validate=True)
    version_error.seek(P0, OffsetAndMetadata(10, 3), LeaderAndEpoch(1, None))
    version_error.follow_leader(P0, NEW_LEADER, can_validate=False)
    assert without_epoch.position(P0) == FetchPosition(10, None, NEW_LEADER)
    assert version_error.position(P0) == FetchPosition(10, 3, NEW_LEADER)


@pytest.mark.parametrize("can_validate", [True, False])
@pytest.mark.spec("B.6.4", "B.10.15")
def test_a_new_leader_ends_the_preference_for_a_replica(can_validate: bool) -> None:
    table = positions(P0)
    table.seek(P0, OffsetAndMetadata(10), LEADER)
    table.state(P0).preferred_read_replica = 3
    table.follow_leader(P0, LEADER, can_validate=can_validate)
    assert table.state(P0).preferred_read_replica == 3
    table.follow_leader(P0, NEW_LEADER, can_validate=can_validate)
    assert table.state(P0).preferred_read_replica is None


@pytest.mark.parametrize("state", [INITIALIZING, AWAIT_RESET])
@pytest.mark.spec("B.6.4")
def test_a_new_leader_means_nothing_without_a_position(state: FetchState) -> None:
    table = in_state(state)
    table.follow_leader(P0, NEW_LEADER, can_validate=True)
    assert table.state(P0).fetch_state is state


@pytest.mark.spec("B.6.4")
def test_an_unknown_leader_changes_nothing() -> None:
    table = in_state(FETCHING)
    table.follow_leader(P0, LeaderAndEpoch(None, 9), can_validate=True)
    assert table.position(P0) == FetchPosition(10, None, LEADER)


@pytest.mark.spec("S0-13", "S0-14", "D-27")
def test_partitions_that_stay_keep_their_whole_state() -> None:
    table = positions(P0, P1)
    table.seek(P0, OffsetAndMetadata(10), LEADER)
    table.pause(P0)
    table.state(P0).high_watermark = 99
    kept = table.state(P0)
    table.assign([P2, P0])
    assert table.state(P0) is kept
    assert (kept.position, kept.paused, kept.high_watermark) == (FetchPosition(10, None, LEADER), True, 99)
    assert table.assigned() == (P2, P0)
    assert P1 not in table
    assert table.partitions_needing_committed() == [P2]
    assert table.assignment_id == 2


@pytest.mark.spec("S0-13", "D-28")
def test_a_partition_that_comes_back_begins_again() -> None:
    table = positions(P0)
    table.seek(P0, OffsetAndMetadata(10), LEADER)
    position_version = table.state(P0).position_version
    table.assign([])
    table.assign([P0])
    assert table.state(P0).fetch_state is INITIALIZING
    assert table.find(P0, position_version) is None


@pytest.mark.spec("S0-14", "B.6.4", "D-27")
def test_the_same_assignment_again_is_no_change() -> None:
    table = positions(P0, P1)
    table.assign([P1, P0, P1])
    assert table.assignment_id == 1
    assert table.assigned() == (P0, P1)


@pytest.mark.spec("S2-08", "S2-09", "B.6.3")
def test_whatever_keeps_a_partition_from_being_fetched() -> None:
    table = in_state(FETCHING)
    table.pause(P0)
    assert not table.is_fetchable(P0)
    assert table.paused() == (P0,)
    table.resume(P0)
    table.mark_pending_revocation([P0, P1])
    assert not table.is_fetchable(P0)
    table.assign([P0])
    assert table.is_fetchable(P0)
    table.mark_out_of_range(P0)
    assert not table.is_fetchable(P0)
    assert P0 in table.all_consumed()
    assert not table.is_fetchable(P1)


@pytest.mark.spec("B.6.3")
def test_a_partition_that_will_be_revoked_is_not_looked_up() -> None:
    table = positions(P0, P1)
    table.mark_pending_revocation([P0])
    assert table.partitions_needing_committed() == [P1]


@pytest.mark.spec("S2-39", "B.9", "D-33")
def test_delivery_moves_the_position_and_keeps_the_leader() -> None:
    table = in_state(FETCHING)
    position_version = table.state(P0).position_version
    table.advance(P0, 25, 4)
    assert table.position(P0) == FetchPosition(25, 4, LEADER)
    assert table.all_consumed() == {P0: OffsetAndMetadata(25, 4)}
    assert table.state(P0).position_version == position_version


def test_delivery_without_a_valid_position_is_a_bug() -> None:
    with pytest.raises(InternalError):
        in_state(AWAIT_VALIDATION).advance(P0, 25, 4)


MOVES: list[Callable[[Positions], None]] = [
    lambda table: table.seek(P0, OffsetAndMetadata(10), LEADER),
    lambda table: table.request_offset_reset(P0, LATEST),
    lambda table: table.follow_leader(P0, NEW_LEADER, can_validate=True),
]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.spec("S0-48", "D-31", "D-43", "D-46")
def test_every_move_but_delivery_makes_old_responses_unusable(move: Callable[[Positions], None]) -> None:
    table = positions(P0)
    table.seek(P0, OffsetAndMetadata(10), LEADER)
    table.advance(P0, 10, 4)
    position_version = table.state(P0).position_version
    move(table)
    assert table.find(P0, position_version) is None


@pytest.mark.spec("S0-48")
def test_the_same_reset_asked_for_twice_keeps_the_response_on_its_way_usable() -> None:
    table = in_state(AWAIT_RESET)
    position_version = table.state(P0).position_version
    table.request_offset_reset(P0, LATEST)
    assert table.find(P0, position_version) is not None
    table.request_offset_reset(P0, EARLIEST)
    assert table.find(P0, position_version) is None


@pytest.mark.spec("S0-43", "S0-46", "S0-47")
def test_a_partition_is_not_asked_for_again_before_its_time() -> None:
    table = in_state(AWAIT_RESET)
    position_version = table.state(P0).position_version
    table.set_next_allowed_retry({P0: position_version}, 5.0)
    assert not table.partitions_needing_reset(4.9)
    assert table.next_retry(4.9) == 5.0
    assert list(table.partitions_needing_reset(5.0)) == [P0]
    table.set_next_allowed_retry({P0: position_version - 1}, 9.0)
    assert list(table.partitions_needing_reset(5.0)) == [P0]


def test_unassigned_partitions_are_named_in_the_error() -> None:
    with pytest.raises(NotAssignedError, match="orders-1") as caught:
        positions(P0).pause(P1)
    assert caught.value.partition == P1
