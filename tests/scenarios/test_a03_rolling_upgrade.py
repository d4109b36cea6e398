"""Scenario A-03: a group goes from range to cooperative-sticky in two rolling steps, while records are written.

Here all members are kclient's own; with a Java member it is played on a real Kafka.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from kclient.errors import BrokerError
from kclient.group.assignors import Subscription
from kclient.group.subscription_codec import decode_subscription
from kclient.protocol.errors import INCONSISTENT_GROUP_PROTOCOL
from tests.scenarios.members import GroupMember, Joining, all_seen, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until

TWELVE = range(12)
RANGE, COOPERATIVE = "range", "cooperative-sticky"
OLD, BOTH, NEW = [RANGE], [COOPERATIVE, RANGE], [COOPERATIVE]
NAMES = ("a", "b", "c")


async def settled(members: Sequence[GroupMember]) -> None:
    """Everything is shared out, and stays so for a while."""
    await until(lambda: shared_out(*members, of=TWELVE))
    await asyncio.sleep(3)
    assert shared_out(*members, of=TWELVE)


async def restart(join: Joining, members: list[GroupMember], name: str, strategy: list[str]) -> None:
    """One member ends cleanly and comes back with other assignors."""
    number = NAMES.index(name)
    await members[number].close()
    for member in members:
        member.take_calls()
    members[number] = await join(name, partition_assignment_strategy=strategy)
    await settled(members)


def chosen(place: Place) -> str:
    """The protocol of the newest generation."""
    responses = [
        one.response for one in place.asked("JoinGroup") if one.response and one.response.error_code == 0
    ]
    return str(responses[-1].protocol_name)


def told_the_group(member: GroupMember) -> Subscription:
    """What the newest JoinGroup of a member said to the leader, under cooperative-sticky."""
    protocols = member.asked("JoinGroup")[-1].request.protocols
    (metadata,) = [protocol.metadata for protocol in protocols if protocol.name == COOPERATIVE]
    return decode_subscription(metadata)


@pytest.mark.spec("A-03", "S4-22", "S4-24", "S3-32", "S3-33", "B.13.4", "B.13.11", "D-16")
def test_a03_two_rolling_steps_lead_from_range_to_cooperative_sticky() -> None:
    async def scenario(place: Place) -> None:
        async with (
            team(place, enable_auto_commit=True, heartbeat_interval_ms=500) as join,
            publishing(place, partitions=len(TWELVE)) as written,
        ):
            members = [await join(name, partition_assignment_strategy=OLD) for name in NAMES]
            earlier = list(members)
            await settled(members)
            for name in NAMES:
                assert chosen(place) == RANGE  # while one member knows nothing else
                await restart(join, members, name, BOTH)
                earlier += members
            assert chosen(place) == COOPERATIVE
            for name in NAMES:
                await restart(join, members, name, NEW)
                earlier += members
                for member in members[NAMES.index(name) + 1 :]:  # one of their assignors knows only EAGER
                    revoked = next(call for call in member.listener_calls if call.method == "revoked")
                    assert set(revoked.assignment) == set(revoked.partitions)
                    assert told_the_group(member).owned_partitions == ()
                assert chosen(place) == COOPERATIVE
            await check_that_only_what_moves_is_revoked(join, members)
            await asyncio.sleep(1)
            total = len(written) - 20
            every_member = {id(member): member for member in earlier + members}.values()
            counted = Counter(all_seen(*every_member))
            assert set(range(total)) <= set(counted)
            assert not any(member.errors for member in every_member)
            codes = {one.response.error_code for one in place.asked("JoinGroup") if one.response}
            assert INCONSISTENT_GROUP_PROTOCOL not in codes

    simulate(scenario, topics={"t": len(TWELVE)})


async def check_that_only_what_moves_is_revoked(join: Joining, members: list[GroupMember]) -> None:
    """A fourth member joins; the others keep the rest, and their JoinGroup requests have the owned partitions."""
    before = {member: set(member.partitions) for member in members}
    for member in members:
        member.take_calls()
    members.append(await join("d", partition_assignment_strategy=NEW))
    await settled(members)
    moved: set[int] = set()
    for member, had in before.items():
        revoked = [call.partitions for call in member.listener_calls if call.method == "revoked"]
        gone = {number for partitions in revoked for number in partitions}
        assert gone == had - set(member.partitions)
        assert {tp.partition for tp in told_the_group(member).owned_partitions} == set(member.partitions)
        assert told_the_group(member).generation_id == member.consumer.group_metadata().generation_id - 1
        moved |= gone
    assert moved == set(members[-1].partitions)


@pytest.mark.spec("A-03", "B.15.3", "B.21")
def test_a03_a_member_that_shares_no_assignor_is_notified_and_the_others_continue() -> None:
    async def scenario(place: Place) -> None:
        async with team(place) as join, publishing(place, partitions=len(TWELVE)):
            members = [await join(name, partition_assignment_strategy=BOTH) for name in NAMES]
            await settled(members)
            for member in members:
                member.take_calls()
            stranger = await join("d", partition_assignment_strategy=["roundrobin"])
            await until(lambda: stranger.errors)
            error = stranger.errors[0]
            assert isinstance(error, BrokerError)
            assert error.code == INCONSISTENT_GROUP_PROTOCOL
            await asyncio.sleep(5)
            assert shared_out(*members, of=TWELVE)
            assert not any(member.errors or member.listener_calls for member in members)
            assert stranger.listener_calls == []

    simulate(scenario, topics={"t": len(TWELVE)})
