"""The coordinator's assignors, held to what any assignor owes its group, over drawn groups and changes of groups."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.embedded.groups.consumer_protocol.assignors import ASSIGNORS, MemberSubscription, Targets
from kclient.embedded.groups.consumer_protocol.member import TopicIdPartition

Topics = dict[bytes, int]

TOPICS = [bytes([number]) * 16 for number in range(1, 5)]
topics_drawn = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7), min_size=1)
wanted = st.lists(st.sampled_from(TOPICS), unique=True).map(tuple)
names = st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1)


@st.composite
def groups(draw: st.DrawFn) -> list[MemberSubscription]:
    """Members with subscriptions of their own, some of them static."""
    return [
        MemberSubscription(name, draw(wanted), instance_id=draw(st.sampled_from([None, f"static-{name}"])))
        for name in draw(names)
    ]


def given_out(found: Targets) -> list[TopicIdPartition]:
    return [partition for partitions in found.values() for partition in partitions]


@pytest.mark.spec("B.17.6")
@pytest.mark.parametrize("name", ["uniform", "range"])
@given(topics_drawn, groups())
def test_every_wanted_partition_goes_to_one_that_wants_it(
    name: str, topics: Topics, members: list[MemberSubscription]
) -> None:
    found = ASSIGNORS[name](topics, members)
    assert found.keys() == {member.member_id for member in members}
    wants = {member.member_id: set(member.topics) for member in members}
    for member_id, partitions in found.items():
        assert list(partitions) == sorted(partitions)
        assert all(partition.topic_id in wants[member_id] for partition in partitions)
    somebodys = set().union(*wants.values())
    everything = [
        TopicIdPartition(topic_id, number)
        for topic_id, count in topics.items()
        if topic_id in somebodys
        for number in range(count)
    ]
    assert sorted(given_out(found)) == sorted(everything)


@given(topics_drawn, groups())
def test_uniform_leaves_no_member_two_partitions_short_of_another_with_its_topics(
    topics: Topics, members: list[MemberSubscription]
) -> None:
    found = ASSIGNORS["uniform"](topics, members)
    for poor in members:
        for rich, partitions in found.items():
            takeable = [one for one in partitions if one.topic_id in poor.topics]
            assert not takeable or len(partitions) - len(found[poor.member_id]) <= 1, (poor.member_id, rich)


@given(topics_drawn, groups(), st.sampled_from("abcdefgh"))
def test_uniform_does_not_move_what_need_not_move(
    topics: Topics, members: list[MemberSubscription], other: str
) -> None:
    before = ASSIGNORS["uniform"](topics, members)
    settled = [attrs.evolve(member, held=before[member.member_id]) for member in members]
    assert ASSIGNORS["uniform"](topics, settled) == before
    left = [member for member in settled if member.member_id != other] or settled
    after = ASSIGNORS["uniform"](topics, left)
    alike = len({member.topics for member in members}) == 1
    if alike and len(left) < len(settled):  # the others only gain
        for member in left:
            assert set(before[member.member_id]) <= set(after[member.member_id])


@given(st.integers(1, 30), st.integers(1, 6))
def test_uniform_moves_to_a_newcomer_only_its_share(count: int, size: int) -> None:
    topics = {TOPICS[0]: count}
    members = [MemberSubscription(f"m{number}", (TOPICS[0],)) for number in range(size)]
    before = ASSIGNORS["uniform"](topics, members)
    grown = [attrs.evolve(member, held=before[member.member_id]) for member in members]
    after = ASSIGNORS["uniform"](topics, [*grown, MemberSubscription("new", (TOPICS[0],))])
    moved = sum(len(set(before[one]) - set(after[one])) for one in before)
    assert moved == len(after["new"]) == count // (size + 1)
    sizes = Counter(map(len, after.values()))
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.spec("B.17.6")
def test_range_cuts_each_topic_into_runs_static_members_first() -> None:
    one, two = TOPICS[:2]
    members = [
        MemberSubscription("a", (one, two)),
        MemberSubscription("z", (one, two), instance_id="1"),
        MemberSubscription("b", (two,)),
    ]
    found = ASSIGNORS["range"]({one: 3, two: 4}, members)
    numbers = {
        member_id: [(one.topic_id[0], one.number) for one in partitions]
        for member_id, partitions in found.items()
    }
    assert numbers == {
        "z": [(1, 0), (1, 1), (2, 0), (2, 1)],
        "a": [(1, 2), (2, 2)],
        "b": [(2, 3)],
    }


def test_of_two_that_had_a_partition_one_keeps_it() -> None:
    topic = TOPICS[0]
    both = (TopicIdPartition(topic, 0),)
    members = [MemberSubscription("b", (topic,), held=both), MemberSubscription("a", (topic,), held=both)]
    assert ASSIGNORS["uniform"]({topic: 2}, members) == {
        "a": both,
        "b": (TopicIdPartition(topic, 1),),
    }
