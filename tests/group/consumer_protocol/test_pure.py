"""The parts of a member that wait for nothing: its states, what it says, what answers mean, what it owns."""

from __future__ import annotations

import re

import pytest

from kclient.config import Config
from kclient.errors import BrokerError, GroupAuthorizationError, InternalError, VersionError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import Assignment, TopicPartitions
from kclient.group.consumer_protocol.assignment import AssignmentTracker, LocalAssignment
from kclient.group.consumer_protocol.heartbeat import (
    ACTIONS,
    HeartbeatAction,
    HeartbeatRequests,
    action_for,
    heartbeat_error,
)
from kclient.group.consumer_protocol.member import leave_epoch
from kclient.group.consumer_protocol.state import (
    HEARTBEAT_SCHEDULE,
    PREDECESSORS,
    ConsumerMemberState,
    ConsumerMemberStatus,
    ConsumerSubscription,
    HeartbeatSchedule,
    new_member_id,
)
from kclient.group.coordinator import VersionedRequest
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.types import TopicPartition

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
        standing.enter(after)
        assert standing.state is after
    else:
        with pytest.raises(InternalError, match=f"is {before.value} cannot become {after.value}"):
            standing.enter(after)
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
def test_whose_membership_ends_has_no_epoch_and_the_next_one_counts_anew() -> None:
    standing = ConsumerMemberStatus("m", state=S.STABLE, epoch=7, joined=1)
    assert standing.generation.generation_id == 7
    standing.end(S.FENCED, "why")
    assert (standing.epoch, standing.member, standing.ended) == (0, False, "why")
    assert standing.generation.lost
    standing.enter(S.JOINING)
    assert (standing.joined, standing.member_id) == (2, "m")


@pytest.mark.spec("B.17.2")
def test_a_member_id_is_a_uuid_of_22_letters_that_never_begins_with_a_dash() -> None:
    ids = {new_member_id(Runtime.seeded(seed)) for seed in range(300)}
    assert len(ids) == 300
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", one) for one in ids)


# --- what it says


def config(**keys: object) -> Config:
    return Config(bootstrap_servers=("h:1",), group_id="g", group_protocol="consumer", **keys)  # type: ignore[arg-type]


def requests(**keys: object) -> HeartbeatRequests:
    return HeartbeatRequests(config(**keys), "g")


def said(form: VersionedRequest) -> dict[str, object]:
    """The fields that a heartbeat does not leave unsaid, but for those of every heartbeat."""
    request = form.message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    fields = {
        "rack": request.rack_id,
        "timeout": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
        "topics": request.subscribed_topic_names,
        "regex": request.subscribed_topic_regex,
        "assignor": request.server_assignor,
        "owned": request.topic_partitions,
    }
    return {name: value for name, value in fields.items() if value is not None}


T, U = b"t" * 16, b"u" * 16
WANTED = ConsumerSubscription(("a", "b"))


@pytest.mark.spec("B.17.2", "A-14")
def test_the_first_heartbeat_says_everything_and_the_next_nothing() -> None:
    heartbeats = requests(client_rack="r", max_poll_interval_ms=5_000, group_remote_assignor="uniform")
    first = heartbeats.join("m", 0, WANTED)
    everything = {"rack": "r", "timeout": 5_000, "topics": ["a", "b"], "assignor": "uniform", "owned": []}
    assert said(first) == everything
    later = heartbeats.stay("m", 3, WANTED, LocalAssignment())
    assert said(later) == {}
    assert (later.message.member_id, later.message.member_epoch) == ("m", 3)  # type: ignore[attr-defined]


@pytest.mark.spec("B.17.2")
def test_a_change_is_said_once() -> None:
    heartbeats = requests()
    heartbeats.join("m", 0, WANTED)
    owned = LocalAssignment(1, {T: (0, 2)})
    assert said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), LocalAssignment())) == {"topics": ["c"]}
    (row,) = said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), owned))["owned"]  # type: ignore[misc, attr-defined]
    assert (row.topic_id, row.partitions) == (T, [0, 2])
    assert said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), owned)) == {}
    assert set(
        said(heartbeats.stay("m", 1, ConsumerSubscription(("c",)), LocalAssignment(2, {T: (0, 2)})))
    ) == {"owned"}


@pytest.mark.spec("B.17.2")
def test_after_a_failure_everything_is_said_again_but_the_rack() -> None:
    heartbeats = requests(client_rack="r", group_remote_assignor="range")
    heartbeats.join("m", 0, WANTED)
    heartbeats.forget()
    again = said(heartbeats.stay("m", 1, WANTED, LocalAssignment(1, {T: (0,)})))
    assert set(again) == {"timeout", "topics", "assignor", "owned"}


@pytest.mark.spec("B.17.2")
def test_a_pattern_needs_version_1_and_an_empty_one_takes_it_back_also_after_a_failure() -> None:
    heartbeats = requests()
    first = heartbeats.join("m", 0, ConsumerSubscription(regex="a.*"))
    assert (said(first)["regex"], said(first)["topics"], first.lowest) == ("a.*", [], 1)
    assert heartbeats.stay("m", 1, ConsumerSubscription(regex="a.*"), LocalAssignment()).lowest == 0
    assert said(heartbeats.stay("m", 1, WANTED, LocalAssignment())) == {"topics": ["a", "b"], "regex": ""}
    heartbeats.forget()
    assert said(heartbeats.stay("m", 1, WANTED, LocalAssignment()))["regex"] == ""


@pytest.mark.spec("B.17.2")
def test_what_is_unset_is_null_and_never_empty() -> None:
    request = requests().join("m", 0, WANTED).message
    assert isinstance(request, ConsumerGroupHeartbeatRequest)
    assert (request.instance_id, request.rack_id, request.server_assignor) == (None, None, None)
    static = requests(group_instance_id="i").leave("m", -2).message
    assert isinstance(static, ConsumerGroupHeartbeatRequest)
    assert (static.instance_id, static.member_epoch) == ("i", -2)


@pytest.mark.spec("B.17.2", "B.18")
@pytest.mark.parametrize(
    ("leave", "instance_id", "epoch"),
    [
        (None, None, -1),
        (True, None, -1),
        (False, None, None),
        (None, "i", -2),
        (True, "i", -1),
        (False, "i", -2),
    ],
)
def test_the_epoch_of_the_last_heartbeat(
    leave: bool | None, instance_id: str | None, epoch: int | None
) -> None:
    assert leave_epoch(leave, instance_id) == epoch


# --- what answers mean


@pytest.mark.spec("B.17.4")
def test_every_code_has_its_action_and_what_is_not_listed_is_fatal() -> None:
    expected = {
        0: "ACCEPT",
        15: "FIND_COORDINATOR",
        16: "FIND_COORDINATOR",
        14: "RETRY",
        29: "RAISE_ON_POLL",
        25: "REJOIN",
        110: "REJOIN",
    }
    assert {code: action.name for code, action in ACTIONS.items()} == expected
    for code in (30, 42, 81, 112, 128, 35, 111, 82, 69, 7, -1, 9_999):
        assert action_for(code) is HeartbeatAction.FATAL


@pytest.mark.spec("B.17.4")
def test_refusals_are_typed_and_say_what_to_do() -> None:
    assert isinstance(heartbeat_error(codes.GROUP_AUTHORIZATION_FAILED, "g", None), GroupAuthorizationError)
    unsupported = heartbeat_error(codes.UNSUPPORTED_VERSION, "g", None)
    assert isinstance(unsupported, VersionError)
    assert "group_protocol" in unsupported.text
    double = heartbeat_error(codes.UNRELEASED_INSTANCE_ID, "g", "held by x")
    assert isinstance(double, BrokerError)
    assert double.code == 111
    assert "held by x" in double.text
    assert "group_instance_id" in double.text
    assert "group_remote_assignor" in heartbeat_error(codes.UNSUPPORTED_ASSIGNOR, "g", None).text
    assert "RE2" in heartbeat_error(codes.INVALID_REGULAR_EXPRESSION, "g", None).text


# --- what it owns


def told(**rows: list[int]) -> Assignment:
    """An assignment of the topics t and u."""
    ids = {"t": T, "u": U}
    return Assignment([TopicPartitions(topic_id=ids[name], partitions=some) for name, some in rows.items()])


NAMES = {T: "t", U: "u"}


@pytest.mark.spec("B.17.3")
def test_an_assignment_becomes_a_step_and_then_what_is_owned() -> None:
    ours = AssignmentTracker()
    assert ours.settled
    assert not ours.update_target(None)
    assert ours.update_target(told(t=[1, 0], u=[]))
    assert not ours.update_target(told(t=[0, 1]))
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
    ours.update_target(told(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    assert ours.update_target(told())
    step = ours.next_step(NAMES.get)
    assert step is not None
    assert step.partitions == ()


@pytest.mark.spec("B.17.3", "A-14")
def test_what_has_a_name_is_taken_first_and_the_rest_when_it_has_one() -> None:
    ours = AssignmentTracker()
    ours.update_target(told(t=[0], u=[3]))
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
def test_where_nothing_new_has_a_name_what_is_owned_is_told_once_more() -> None:
    ours = AssignmentTracker()
    ours.update_target(told(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.update_target(told(t=[0], u=[1]))
    step = ours.next_step({T: "t"}.get)
    assert step is not None
    assert step.same
    ours.mark_reconciled(step)
    assert ours.next_step({T: "t"}.get) is None


@pytest.mark.spec("B.17.3")
def test_a_topic_that_is_owned_keeps_its_name_when_metadata_forgets_it() -> None:
    ours = AssignmentTracker()
    ours.update_target(told(t=[0, 1]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.update_target(told(t=[0]))
    step = ours.next_step(lambda topic_id: None)
    assert step is not None
    assert step.partitions == (TopicPartition("t", 0),)


@pytest.mark.spec("B.17.3", "B.17.4")
def test_who_is_no_member_any_more_owns_nothing_and_takes_the_same_target_anew() -> None:
    ours = AssignmentTracker()
    ours.update_target(told(t=[0]))
    ours.mark_reconciled(ours.next_step(NAMES.get))  # type: ignore[arg-type]
    ours.forget()
    assert ours.settled
    assert ours.owned.partitions == {}
    assert ours.update_target(told(t=[0]))
    assert ours.next_step(NAMES.get) is not None
