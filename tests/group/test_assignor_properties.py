"""What must hold of the assignors for every group: complete, even, sticky, the same again, and safe to hand over.

Hypothesis looks for groups that break it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.group.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    Member,
    StickyAssignor,
    Subscription,
    Topics,
    resolve_assignors,
)
from kclient.group.assignors.sticky import StickyUserData, encode_sticky
from kclient.types import TopicPartition

STICKY = (StickyAssignor, CooperativeStickyAssignor)
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
TOPICS = ("a", "b", "c", "d")
RACKS = ("x", "y", "z")
Given = dict[str, tuple[TopicPartition, ...]]

sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
member_ids = st.lists(st.text(max_size=4), min_size=1, max_size=8, unique=True)
wishes = st.lists(st.sampled_from(TOPICS), unique=True).map(tuple)


@st.composite
def topics_and_racks(draw: st.DrawFn) -> Topics:
    replicas = (
        st.frozensets(st.sampled_from(RACKS), max_size=3) if draw(st.booleans()) else st.just(frozenset())
    )
    return {topic: [draw(replicas) for _ in range(size)] for topic, size in draw(sizes).items()}


@st.composite
def groups(draw: st.DrawFn, *, alike: bool, racks: bool = False) -> tuple[Topics, list[Member]]:
    """A group whose members have nothing yet."""
    topics = (
        draw(topics_and_racks()) if racks else {t: [frozenset[str]()] * n for t, n in draw(sizes).items()}
    )
    rack = st.sampled_from((None, *RACKS)) if racks else st.none()
    members = [
        Member(each, Subscription(TOPICS if alike else draw(wishes), rack_id=draw(rack)))
        for each in draw(member_ids)
    ]
    return topics, members


def assign(assignor: Assignor, topics: Topics, members: Sequence[Member]) -> Given:
    return {name: part.partitions for name, part in assignor.assign(topics, members).items()}


def after(
    members: Iterable[Member], given: Mapping[str, tuple[TopicPartition, ...]], generation: int
) -> list[Member]:
    """The members at the next rebalance: each reports its partitions as members of either assignor do."""
    return [
        attrs.evolve(
            member,
            subscription=attrs.evolve(
                member.subscription,
                owned_partitions=given.get(member.member_id, ()),
                generation_id=generation,
                user_data=encode_sticky(StickyUserData(given.get(member.member_id, ()), generation)),
            ),
        )
        for member in members
    ]


def settle(assignor: Assignor, topics: Topics, members: Sequence[Member]) -> tuple[Given, int]:
    """Rebalance until nothing is held back: the last result and how many rebalances it took."""
    for rounds in range(1, 20):
        found = assign(assignor, topics, members)
        had = {member.member_id: member.subscription.owned_partitions for member in members}
        members = after(members, found, rounds + 10)
        if rounds > 1 and {name: set(each) for name, each in found.items()} == {
            n: set(e) for n, e in had.items()
        }:
            return found, rounds
    raise AssertionError("the group never comes to rest")


def wanted(topics: Topics, members: Iterable[Member]) -> set[TopicPartition]:
    return {
        TopicPartition(topic, number)
        for member in members
        for topic in member.subscription.topics
        for number in range(len(topics.get(topic, ())))
    }


def could_take(members: Sequence[Member], given: Given) -> list[tuple[str, str]]:
    """Pairs of members where the second could take a partition of the first, which has at least two more."""
    return [
        (one.member_id, other.member_id)
        for one, other in itertools.permutations(members, 2)
        if len(given[one.member_id]) - len(given[other.member_id]) >= 2
        and any(each.topic in other.subscription.topics for each in given[one.member_id])
    ]


@pytest.mark.spec("B.16.3", "B.16.4", "B.16.5")
@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None)
@given(data=st.data())
def test_every_wanted_partition_goes_once_to_a_member_that_wants_it(name: str, data: st.DataObject) -> None:
    topics, members = data.draw(groups(alike=data.draw(st.booleans()), racks=True))
    (assignor,) = resolve_assignors([name])
    found = assign(assignor, topics, members)
    assert found.keys() == {member.member_id for member in members}
    assert Counter(itertools.chain(*found.values())) == Counter(wanted(topics, members))
    for member in members:
        assert {each.topic for each in found[member.member_id]} <= set(member.subscription.topics)


@pytest.mark.spec("B.16.4", "B.16.6")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_members_that_want_the_same_get_the_same_number_or_one_more(
    kind: type[Assignor], data: st.DataObject
) -> None:
    topics, members = data.draw(groups(alike=True, racks=True))
    found = assign(kind(), topics, members)
    small, over = divmod(len(wanted(topics, members)), len(members))
    expected = Counter([small + 1] * over + [small] * (len(members) - over))
    assert Counter(len(partitions) for partitions in found.values()) == expected


@pytest.mark.spec("B.16.5")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_no_member_could_take_a_partition_of_one_that_has_two_more(
    kind: type[Assignor], data: st.DataObject
) -> None:
    topics, members = data.draw(groups(alike=False))
    assert could_take(members, assign(kind(), topics, members)) == []


@pytest.mark.spec("B.16.4", "B.16.5", "B.16.7")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_without_a_change_nothing_moves(kind: type[Assignor], data: st.DataObject) -> None:
    topics, members = data.draw(groups(alike=data.draw(st.booleans())))
    first = assign(kind(), topics, members)
    again = assign(kind(), topics, data.draw(st.permutations(after(members, first, 1))))
    assert {name: set(each) for name, each in again.items()} == {
        name: set(each) for name, each in first.items()
    }


@pytest.mark.spec("B.16.4", "B.16.3")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_when_a_member_leaves_the_others_keep_everything(kind: type[Assignor], data: st.DataObject) -> None:
    topics, members = data.draw(groups(alike=True))
    first = assign(kind(), topics, members)
    rest = members[1:]
    later, _ = settle(kind(), topics, after(rest, first, 1)) if rest else ({}, 0)
    for member in rest:
        assert set(first[member.member_id]) <= set(later[member.member_id])


@pytest.mark.spec("B.16.4", "B.16.3")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_when_members_join_no_more_moves_than_they_get(kind: type[Assignor], data: st.DataObject) -> None:
    topics, members = data.draw(groups(alike=True))
    old = members[: data.draw(st.integers(1, len(members)))]
    first = assign(kind(), topics, old)
    later, _ = settle(kind(), topics, after(members, first, 1))
    lost = sum(len(set(first[member.member_id]) - set(later[member.member_id])) for member in old)
    new = sum(len(later[member.member_id]) for member in members[len(old) :])
    assert lost == new


@pytest.mark.spec("B.16.5", "B.16.3")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None)
@given(data=st.data())
def test_when_a_member_with_another_subscription_leaves_the_rest_stays_balanced_and_sticky(
    kind: type[Assignor], data: st.DataObject
) -> None:
    topics, members = data.draw(groups(alike=False))
    first = assign(kind(), topics, members)
    rest = members[1:]
    if not rest:
        return
    later, _ = settle(kind(), topics, after(rest, first, 1))
    assert could_take(rest, later) == []
    kept = {member.member_id: first[member.member_id] for member in rest}
    moved = sum(len(set(kept[name]) - set(later[name])) for name in kept)
    freed = len(wanted(topics, rest)) - sum(map(len, kept.values()))
    assert moved == 0 or freed > 0


@pytest.mark.spec("B.16.5", "S3-44")
@settings(deadline=None)
@given(data=st.data())
def test_no_partition_goes_to_a_member_while_another_still_has_it(data: st.DataObject) -> None:
    topics, members = data.draw(groups(alike=data.draw(st.booleans()), racks=True))
    first = assign(CooperativeStickyAssignor(), topics, members)
    changed = [
        attrs.evolve(each, subscription=attrs.evolve(each.subscription, topics=data.draw(wishes)))
        if data.draw(st.booleans())
        else each
        for each in after(members, first, 1)
    ]
    newcomers = [Member(f"new-{n}", Subscription(TOPICS)) for n in range(data.draw(st.integers(0, 3)))]
    present = changed[data.draw(st.integers(0, 1)) :] + newcomers
    owner = {each: member.member_id for member in present for each in member.subscription.owned_partitions}
    if present:
        for name, partitions in assign(CooperativeStickyAssignor(), topics, present).items():
            assert {owner.get(each, name) for each in partitions} <= {name}


@pytest.mark.spec("B.16.4", "B.16.5", "S3-44")
@settings(deadline=None)
@given(data=st.data())
def test_a_cooperative_group_comes_to_rest_complete_and_even(data: st.DataObject) -> None:
    alike = data.draw(st.booleans())
    topics, members = data.draw(groups(alike=alike))
    old = members[: data.draw(st.integers(1, len(members)))]
    first = assign(CooperativeStickyAssignor(), topics, old)
    later, rounds = settle(CooperativeStickyAssignor(), topics, after(members, first, 1))
    assert rounds <= (3 if alike else 8)  # the last one shows that nothing moves any more
    assert set(itertools.chain(*later.values())) == wanted(topics, members)
    assert could_take(members, later) == []


@pytest.mark.spec("B.16.3")
@pytest.mark.parametrize("kind", STICKY)
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_claims_that_contradict_each_other_or_the_cluster_do_no_harm(
    kind: type[Assignor], data: st.DataObject
) -> None:
    topics, members = data.draw(groups(alike=data.draw(st.booleans()), racks=True))
    partition = st.builds(TopicPartition, st.sampled_from((*TOPICS, "gone")), st.integers(-2, 12))
    claimed = [
        after([each], {each.member_id: tuple(data.draw(st.lists(partition)))}, data.draw(st.integers(-1, 3)))[
            0
        ]
        for each in members
    ]
    found = assign(kind(), topics, claimed)
    everything = list(itertools.chain(*found.values()))
    assert len(everything) == len(set(everything))
    assert set(everything) <= wanted(topics, members)
    if kind is StickyAssignor:
        assert set(everything) == wanted(topics, members)
