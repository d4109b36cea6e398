"""ConsumerGroupHeartbeat: what is refused, and how members join, share, give up and leave, epoch by epoch."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.protocol import errors
from tests.conformance.consumer import Member, described, progress, refused
from tests.conformance.target import Target, eventually

pytestmark = [pytest.mark.since("4.0"), pytest.mark.spec("B.17.6")]

AHEAD = "greater member epoch ({}) than the one known by the group coordinator ({})"
BEHIND = "smaller member epoch ({}) than the one known by the group coordinator ({})"


def fenced(how: str, sent: int, known: int) -> Any:
    text = f"The consumer group member has a {how.format(sent, known)}."
    return refused(
        errors.FENCED_MEMBER_EPOCH, f"{text} The member must abandon all its partitions and rejoin."
    )


# --- form


@pytest.mark.parametrize(
    ("spoken", "fields", "message"),
    [
        (1, {"group_id": ""}, "GroupId can't be empty."),
        (1, {"member_id": ""}, "MemberId can't be empty."),
        (0, {"member_id": "", "epoch": 1}, "MemberId can't be empty."),
        (0, {"member_id": "", "epoch": -1}, "MemberId can't be empty."),
        (0, {"member_id": "", "epoch": -2}, "InstanceId can't be null."),
        (1, {"instance_id": ""}, "InstanceId can't be empty."),
        (1, {"rack_id": ""}, "RackId can't be empty."),
        (1, {"epoch": -3}, "MemberEpoch is invalid."),
        (1, {"epoch": -2}, "InstanceId can't be null."),
        (1, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (1, {"owned": None}, "TopicPartitions must be empty when (re-)joining."),
        (1, {"owned": {b"\1" * 16: [0]}}, "TopicPartitions must be empty when (re-)joining."),
        (
            1,
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    ],
)
def test_a_heartbeat_without_form_is_refused_in_words(
    target: Target, group: str, topic: str, spoken: int, fields: dict[str, Any], message: str
) -> None:
    said = {"epoch": 0, "rebalance_timeout_ms": 1000, "subscribed_topic_names": [topic], "owned": {}}
    response = Member(target, group, "m", version=spoken).beat(**{**said, **fields})
    assert response == refused(errors.INVALID_REQUEST, message)


def test_an_unknown_assignor_is_refused(target: Target, group: str, topic: str) -> None:
    text = "ServerAssignor nope is not supported. Supported assignors: uniform, range."
    response = Member(target, group, "m").join(topic, server_assignor="nope")
    assert response == refused(errors.UNSUPPORTED_ASSIGNOR, text)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "missing closing )"),
        ("[", "missing closing ]"),
        ("a**", "invalid nested repetition operator"),
        ("*a", "missing argument to repetition operator"),
        ("\\", "trailing backslash at end of expression"),
        ("[z-a]", "invalid character class range"),
        ("(?=x)", "invalid or unsupported Perl syntax"),
        ("\\1", "invalid escape sequence"),
        ("a{2,1}", "invalid repeat count"),
        ("(?<x", "invalid named capture"),
    ],
)
def test_a_pattern_that_is_none_is_refused(target: Target, group: str, pattern: str, problem: str) -> None:
    response = Member(target, group, "m").join(subscribed_topic_names=None, subscribed_topic_regex=pattern)
    text = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {problem}."
    assert response == refused(errors.INVALID_REGULAR_EXPRESSION, text)


# --- who is unknown


def test_only_a_join_makes_a_group(target: Target, group: str) -> None:
    member = Member(target, group, "m")
    assert member.beat(5) == refused(errors.GROUP_ID_NOT_FOUND, f"Consumer group {group} not found.")
    assert member.beat(-1) == refused(errors.GROUP_ID_NOT_FOUND, f"Group {group} not found.")


def test_a_stranger_is_refused(target: Target, group: str, topic: str) -> None:
    Member(target, group, "m").join(topic)
    stranger = Member(target, group, "stranger")
    text = f"Member stranger is not a member of group {group}."
    for epoch in (2, -1):
        assert stranger.beat(epoch) == refused(errors.UNKNOWN_MEMBER_ID, text)


def test_in_version_0_the_coordinator_chooses_the_member_id(target: Target, group: str, topic: str) -> None:
    member = Member(target, group, "", version=0)
    response = member.join(topic)
    assert response.error_code == errors.NONE
    assert len(response.member_id) == 22
    member.member_id = response.member_id
    assert member.beat().error_code == errors.NONE


def test_a_full_group_takes_no_other(target: Target, group: str, topic: str) -> None:
    members = [Member(target, group, f"m{number}") for number in range(3)]
    for member in members:
        member.join(topic)
    text = "The consumer group has reached its maximum capacity of 3 members."
    assert Member(target, group, "m3").join(topic) == refused(errors.GROUP_MAX_SIZE_REACHED, text)
    assert members[0].beat().error_code == errors.NONE


# --- two members share


@pytest.mark.spec("A-14")
def test_partitions_move_only_when_they_were_given_up(target: Target, group: str) -> None:
    topic = target.topic(4)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    assert one.join(topic) == one.answer(2, {topic_id: [0, 1, 2, 3]})
    assert one.beat(owned={topic_id: [0, 1, 2, 3]}) == one.answer(2)
    assert two.join(topic) == two.answer(3, {})
    assert progress(target, group) == ("Reconciling", 3, 3, {"m1": 2, "m2": 3})
    assert one.beat() == one.answer(2, {topic_id: [0, 1]})
    assert one.beat() == one.answer(2)
    assert two.beat() == two.answer(3)
    assert one.beat(owned={topic_id: [0, 1, 2]}) == one.answer(2)  # it still has one of the two
    assert two.beat() == two.answer(3)
    assert one.beat(owned={topic_id: [0, 1]}) == one.answer(3)
    assert two.beat() == two.answer(3, {topic_id: [2, 3]})
    assert two.beat(owned={topic_id: [2, 3]}) == two.answer(3)
    assert progress(target, group) == ("Stable", 3, 3, {"m1": 3, "m2": 3})


def test_a_full_heartbeat_gets_the_assignment_again(target: Target, group: str, topic: str) -> None:
    topic_id = target.topic_id(topic)
    member = Member(target, group, "m")
    member.join(topic)
    assert member.beat(owned={topic_id: [0]}) == member.answer(2)
    full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": [topic], "owned": {topic_id: [0]}}
    assert member.beat(**full) == member.answer(2, {topic_id: [0]})


def test_a_member_that_leaves_frees_its_partitions_for_the_others(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    one.join(topic)
    two.join(topic)
    one.beat()
    one.beat(owned={topic_id: [0]})
    assert two.beat() == two.answer(3, {topic_id: [1]})
    assert one.beat(-1) == one.answer(-1)
    assert progress(target, group) == ("Assigning", 4, 3, {"m2": 3})
    assert two.beat() == two.answer(4, {topic_id: [0, 1]})
    assert two.beat(-1) == two.answer(-1)
    assert progress(target, group)[:2] == ("Empty", 5)


# --- epochs


def test_the_epoch_must_be_the_current_one_or_that_of_a_lost_response(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    one.join(topic)
    assert one.beat(9) == fenced(AHEAD, 9, 2)
    assert one.beat(1) == fenced(BEHIND, 1, 2)
    two.join(topic)
    one.beat()
    assert one.beat(owned={topic_id: [0]}) == one.answer(3)
    assert one.beat(2, owned={topic_id: [0]}) == one.answer(3)  # the response with epoch 3 was lost
    assert one.beat(2) == fenced(BEHIND, 2, 3)  # it does not say what it owns
    assert one.beat(2, owned={topic_id: [0, 1]}) == fenced(BEHIND, 2, 3)  # it owns what it should not


def test_a_fenced_member_may_begin_again_with_epoch_0(target: Target, group: str, topic: str) -> None:
    member = Member(target, group, "m")
    joined = member.join(topic)
    assert member.join(topic) == joined
    assert progress(target, group) == ("Stable", 2, 2, {"m": 2})


# --- subscriptions


def test_another_subscription_is_another_epoch(target: Target, group: str) -> None:
    old, new = target.topic(2), target.topic(1)
    old_id, new_id = target.topic_id(old), target.topic_id(new)
    member = Member(target, group, "m")
    member.join(old)
    assert member.beat(subscribed_topic_names=[new]) == member.answer(2, {})
    assert progress(target, group) == ("Reconciling", 3, 3, {"m": 2})
    assert member.beat(owned={old_id: [0, 1]}) == member.answer(2)
    assert member.beat(owned={}) == member.answer(3, {new_id: [0]})


def test_a_member_without_topics_is_in_the_first_epoch(target: Target, group: str, topic: str) -> None:
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    assert one.join() == one.answer(1, {})
    assert two.join() == two.answer(1, {})
    assert progress(target, group) == ("Stable", 1, 1, {"m1": 1, "m2": 1})
    assert Member(target, group, "m3").join("there-is-none").member_epoch == 2


def test_a_pattern_is_resolved_after_the_heartbeat(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    member = Member(target, group, "m")
    joined = member.join(subscribed_topic_names=None, subscribed_topic_regex=f"{topic[:-1]}[{topic[-1]}]")
    assert joined == member.answer(1, {})
    eventually(lambda: progress(target, group), lambda seen: seen[:3] == ("Assigning", 2, 1))
    assert member.beat() == member.answer(2, {topic_id: [0, 1]})
    assert member.beat(subscribed_topic_regex="") == member.answer(2, {})


def test_patterns_are_resolved_together_and_see_internal_topics(target: Target, group: str) -> None:
    one, two = Member(target, group, "m1"), Member(target, group, "m2")
    one.join(subscribed_topic_names=None, subscribed_topic_regex="__consumer_of.*")
    offsets_id = target.topic_id("__consumer_offsets")
    eventually(lambda: progress(target, group), lambda seen: seen[:3] == ("Assigning", 2, 1))
    two.join(subscribed_topic_names=None, subscribed_topic_regex="__consumer_off.*")
    [row] = one.beat().assignment.topic_partitions
    assert row.topic_id == offsets_id
    assert two.beat() == two.answer(2)  # its pattern waits for the next time, ten seconds later
    assert progress(target, group) == ("Stable", 2, 2, {"m1": 2, "m2": 2})


@pytest.mark.parametrize(("named", "shown"), [("range", "range"), ("uniform", "uniform"), (None, "uniform")])
def test_the_members_choose_the_assignor(
    target: Target, group: str, topic: str, named: str | None, shown: str
) -> None:

    Member(target, group, "m").join(topic, server_assignor=named)
    assert described(target, group).assignor_name == shown


# --- static members


def test_an_instance_id_has_one_member(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one = Member(target, group, "m1", instance_id="i")
    two = Member(target, group, "m2", instance_id="i")
    assert one.join(topic) == one.answer(2, {topic_id: [0, 1]})
    owned = "Static member m2 with instance id i cannot join the group because the instance id is owned by m1 member."
    assert two.join(topic) == refused(errors.UNRELEASED_INSTANCE_ID, owned)
    text = "Static member m2 with instance id i was fenced by member m1."
    for epoch in (2, -1, -2):
        assert two.beat(epoch) == refused(errors.FENCED_INSTANCE_ID, text)
    unknown = refused(errors.UNKNOWN_MEMBER_ID, "Instance id other is unknown.")
    for epoch in (2, -1, -2):
        assert one.beat(epoch, instance_id="other") == unknown
    assert one.beat(2, instance_id=None) == one.answer(2)


def test_a_static_member_leaves_for_a_while_and_is_replaced(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one = Member(target, group, "m1", instance_id="i")
    two = Member(target, group, "m2", instance_id="i")
    one.join(topic)
    assert one.beat(-2) == one.answer(-2)
    assert progress(target, group) == ("Reconciling", 2, 2, {"m1": -2})
    assert one.beat(2) == fenced(AHEAD, 2, -2)
    assert two.join(topic) == two.answer(2, {topic_id: [0, 1]})
    assert progress(target, group) == ("Stable", 2, 2, {"m2": 2})
    assert one.beat(2).error_code == errors.FENCED_INSTANCE_ID
    assert two.beat() == two.answer(2)
    assert two.beat(-1) == two.answer(-1)
    assert progress(target, group)[0] == "Empty"


def test_a_static_member_that_is_away_frees_what_it_had_to_give_up(target: Target, group: str) -> None:
    topic = target.topic(2)
    topic_id = target.topic_id(topic)
    one, two = Member(target, group, "m1", instance_id="i"), Member(target, group, "m2")
    one.join(topic)
    two.join(topic)
    assert one.beat() == one.answer(2, {topic_id: [0]})
    one.beat(-2)
    assert two.beat() == two.answer(3, {topic_id: [1]})
    heir = Member(target, group, "m3", instance_id="i")
    assert heir.join(topic) == heir.answer(3, {topic_id: [0]})
    assert progress(target, group) == ("Stable", 3, 3, {"m2": 3, "m3": 3})
