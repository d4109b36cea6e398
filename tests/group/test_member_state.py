"""The table of a member's states, cell by cell."""

from __future__ import annotations

import itertools
import random

import pytest

from kclient.errors import BrokerError, InternalError
from kclient.group.classic.state import ClassicMemberState, MembershipEvent, MemberStatus, RejoinPolicy
from kclient.group.membership import Generation
from kclient.network.backoff import Backoff

UNJOINED, PREPARING, COMPLETING, STABLE = ClassicMemberState
TABLE = {
    (UNJOINED, MembershipEvent.JOINING): PREPARING,
    (PREPARING, MembershipEvent.JOINING): PREPARING,
    (COMPLETING, MembershipEvent.JOINING): PREPARING,
    (STABLE, MembershipEvent.JOINING): PREPARING,
    (PREPARING, MembershipEvent.JOINED): COMPLETING,
    (COMPLETING, MembershipEvent.SYNCED): STABLE,
    **{(state, MembershipEvent.RESET): UNJOINED for state in ClassicMemberState},
}


@pytest.mark.spec("S4-28", "S4-49", "B.13.1")
@pytest.mark.parametrize(("state", "event"), list(itertools.product(ClassicMemberState, MembershipEvent)))
def test_every_cell(state: ClassicMemberState, event: MembershipEvent) -> None:
    standing = MemberStatus(state=state)
    seen = standing.changed.count
    if (state, event) in TABLE:
        standing.advance(event)
        assert standing.state is TABLE[state, event]
        assert standing.changed.count > seen
    else:
        with pytest.raises(InternalError):
            standing.advance(event)
        assert standing.state is state


@pytest.mark.spec("B.13.1")
def test_heartbeats_belong_to_two_states() -> None:
    assert [MemberStatus(state=state).heartbeating for state in ClassicMemberState] == [
        False,
        False,
        True,
        True,
    ]


@pytest.mark.spec("S3-31", "E10")
@pytest.mark.parametrize(
    ("generation", "lost"),
    [
        (Generation(), True),
        (Generation(4, ""), True),
        (Generation(-1, "m-1"), True),
        (Generation(4, "m-1"), False),
        (Generation(0, "m-1"), False),
    ],
)
def test_partitions_are_lost_without_a_generation_or_without_a_member_id(
    generation: Generation, lost: bool
) -> None:
    assert generation.lost is lost


@pytest.mark.spec("B.13.9", "S3-52")
def test_a_reset_keeps_the_member_id_where_it_should_and_asks_for_a_prepared_join() -> None:
    standing = MemberStatus(ClassicMemberState.STABLE, Generation(4, "m-1", "range"), None, prepare_due=False)
    standing.reset("why", keep_member_id=True)
    assert (standing.generation, standing.rejoin_reason) == (Generation(-1, "m-1"), "why")
    assert standing.prepare_due
    standing.reset("again")
    assert standing.generation == Generation()


@pytest.mark.spec("S3-52")
def test_request_rejoin_changes_nothing_else() -> None:
    standing = MemberStatus(ClassicMemberState.STABLE, Generation(4, "m-1", "range"), None, prepare_due=False)
    standing.request_rejoin("why")
    assert (standing.state, standing.generation) == (ClassicMemberState.STABLE, Generation(4, "m-1", "range"))
    assert not standing.prepare_due
    standing.request_rejoin("another reason")
    assert standing.rejoin_reason == "another reason"  # which the broker's log will show


@pytest.mark.spec("B.13.5")
def test_of_several_errors_the_first_is_reported_and_each_once() -> None:
    policy = RejoinPolicy("delays", Backoff(5, 40, random.Random(1)))
    first, second = BrokerError("one", code=24), BrokerError("two", code=26)
    policy.store_error(first)
    policy.store_error(second)
    assert (policy.take_error(), policy.take_error()) == (first, None)
