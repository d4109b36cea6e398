"""What the leader of a group checks and watches beyond what its assignor does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kclient.errors import UsageError
from kclient.generated.join_group_response import JoinGroupResponseMember
from kclient.group.assignors import COOPERATIVE, EAGER, Assignment, Assignor, Member, Subscription, Topics
from kclient.group.assignors.validate import validate_cooperative_assignment
from kclient.group.subscription_codec import decode_assignment, encode_subscription
from kclient.types import TopicPartition
from tests.group.scripted_group import F, Running, joined, play, scripted, synced, wants
from tests.scripted_broker import On


class Planned(Assignor):
    """Gives out what the test says."""

    name = "planned"

    def __init__(self, plan: dict[str, list[TopicPartition]], protocols: Sequence[str] = (EAGER,)) -> None:
        self.plan, self.supported_protocols = plan, protocols

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        return {member_id: Assignment(tuple(part)) for member_id, part in self.plan.items()}


def has(member: str, *partitions: TopicPartition) -> JoinGroupResponseMember:
    blob = encode_subscription(Subscription(("flights",), owned_partitions=partitions, generation_id=2))
    return JoinGroupResponseMember(member_id=member, metadata=blob)


def leads(*members: JoinGroupResponseMember) -> On:
    return On("JoinGroupRequest", joined(3, "m-0", leader="m-0", members=members, protocol_name="planned"))


def planned(response: Any) -> Any:
    response.protocol_name = "planned"
    return response


# --- topics that only the assignor knows


@pytest.mark.spec("B.13.4", "S4-24")
def test_topics_that_an_assignor_adds_of_its_own_are_watched_as_the_others_are() -> None:
    async def scene(running: Running) -> None:
        await running.stable(3)
        await asyncio.sleep(0.1)
        assert len(peer.of("JoinGroupRequest")) == 1
        peer.topics["extra"] = 5
        running.cluster.request_update("test")
        await running.until(lambda: len(peer.of("JoinGroupRequest")) == 2)

    extra = TopicPartition("extra", 1)
    peer = scripted(
        leads(wants("m-0", "flights"), wants("m-1", "flights")),
        On("SyncGroupRequest", planned(synced(("flights", 0)))),
        On("JoinGroupRequest"),
        topics={"flights": 4, "extra": 2},
    )
    assignor = Planned({"m-0": [F[0]], "m-1": [F[1], extra]})
    play(peer, scene, partition_assignment_strategy=(assignor,))
    (sync,) = peer.of("SyncGroupRequest")
    assert decode_assignment(sync.assignments[1].assignment).partitions == (F[1], extra)
    assert "topic extra from 2 to 5 partitions" in peer.of("JoinGroupRequest")[1].reason


@pytest.mark.spec("B.13.4")
def test_a_member_that_an_assignor_forgets_gets_an_empty_part() -> None:
    async def scene(running: Running) -> None:
        await running.stable(3)

    peer = scripted(
        leads(wants("m-0", "flights"), wants("m-1", "flights")),
        On("SyncGroupRequest", planned(synced(("flights", 0)))),
    )
    play(peer, scene, partition_assignment_strategy=(Planned({"m-0": F}),))
    (sync,) = peer.of("SyncGroupRequest")
    plan = {part.member_id: decode_assignment(part.assignment).partitions for part in sync.assignments}
    assert plan == {"m-0": tuple(F), "m-1": ()}


# --- cooperative plans


@pytest.mark.spec("B.16.5", "B.13.4", "S4-24")
@pytest.mark.parametrize("protocol", [COOPERATIVE, EAGER])
def test_a_plan_that_moves_a_partition_at_once_is_refused_in_a_cooperative_group(protocol: str) -> None:
    async def scene(running: Running) -> None:
        if protocol == EAGER:
            await running.stable(3)
            return
        error = await running.polled_error()
        assert isinstance(error, UsageError)
        assert "'planned' gives flights-1 to member m-1 while member m-0 still has it" in str(error)
        assert peer.of("SyncGroupRequest") == []

    allowed = [On("SyncGroupRequest", planned(synced(("flights", 0))))] if protocol == EAGER else []
    peer = scripted(leads(has("m-0", F[0], F[1]), has("m-1")), *allowed)
    assignor = Planned({"m-0": [F[0]], "m-1": [F[1]]}, (protocol,))
    play(peer, scene, partition_assignment_strategy=(assignor,))


def member_of(member_id: str, *owned: TopicPartition) -> Member:
    return Member(member_id, Subscription(("flights",), owned_partitions=owned))


def plan_of(**parts: list[TopicPartition]) -> dict[str, Assignment]:
    return {member_id: Assignment(tuple(part)) for member_id, part in parts.items()}


@pytest.mark.spec("B.16.5")
def test_what_is_free_kept_left_out_or_claimed_by_both_may_be_given() -> None:
    members = [member_of("a", F[0], F[1], F[2]), member_of("b", F[0])]
    validate_cooperative_assignment("own", plan_of(a=[F[1]], b=[F[0], F[3]]), members)


@pytest.mark.spec("B.16.5")
def test_the_built_in_assignor_may_overrule_a_claim_that_is_out_of_date() -> None:
    members, plan = [member_of("a", F[0]), member_of("b")], plan_of(a=[], b=[F[0]])
    validate_cooperative_assignment("cooperative-sticky", plan, members)
    with pytest.raises(UsageError, match="flights-0"):
        validate_cooperative_assignment("own", plan, members)
