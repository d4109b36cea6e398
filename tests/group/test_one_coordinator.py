"""One broker coordinates a group: its members, their offsets, who may commit. Clients find it and ask no other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import CommitFailedError
from tests.scenarios.support import T0, asked, consumer_of, play

OF_THE_GROUP = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "OffsetCommit", "LeaveGroup")
GROUPS = ("g", "delays", "billing")
QUICK = {"heartbeat_interval_ms": 50, "session_timeout_ms": 6_000}


async def share(members: Iterable[AsyncConsumer]) -> None:
    """Poll until each of them has two of the four partitions."""
    members = list(members)
    async with asyncio.timeout(15):
        while {len(member.assignment()) for member in members} != {2}:
            await asyncio.gather(*(member.poll(0.05) for member in members))


@pytest.mark.spec("S3-23", "S3-24", "S3-25", "S1-25")
@pytest.mark.parametrize("group", GROUPS)
def test_every_member_finds_the_one_coordinator_and_asks_no_other(group: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(3, topics={"t": 4}) as cluster:
            one, two = (consumer_of(cluster, "t", group_id=group, client_id=each, **QUICK) for each in "ab")
            await share((one, two))
            for member in (one, two):
                await member.commit({member.assignment()[0]: OffsetAndMetadata(1)})
            await asyncio.sleep(0.2)
            await one.close()
            await two.close()

            home = cluster.coordinator_of(group)
            for client in "ab":
                found = [r for r in asked(cluster, "FindCoordinator") if r.client_id == client]
                reported = [c.node_id for r in found for c in r.response.coordinators if c.error_code == 0]
                assert reported == [home]
                joined = [r for r in asked(cluster, "JoinGroup") if r.client_id == client]
                assert found[0].at <= joined[0].at
                for api in OF_THE_GROUP:
                    assert {r.node for r in asked(cluster, api) if r.client_id == client} == {home}, api
            assert len({r.node for r in asked(cluster, "Fetch")}) > 1  # records come from the leaders

    play(scenario)


@pytest.mark.spec("S3-24", "I-09")
def test_the_coordinator_protects_the_offsets_of_its_members() -> None:
    """From outside, and from a generation that is over, nothing is stored."""

    async def scenario() -> None:
        async with EmbeddedCluster(3, topics={"t": 4}) as cluster:
            member = consumer_of(cluster, "t", group_id="g", **QUICK)
            outsider = consumer_of(cluster, group_id="g")
            async with asyncio.timeout(15):
                while len(member.assignment()) < 4:
                    await member.poll(0.05)
            await member.commit({T0: OffsetAndMetadata(3)})
            await outsider.assign([T0])
            with pytest.raises(CommitFailedError) as refused:
                await outsider.commit({T0: OffsetAndMetadata(1)})
            assert refused.value.reason == "occupied"
            cluster.expire_member("g", member.group_metadata().member_id)
            with pytest.raises(CommitFailedError) as evicted:
                await member.commit({T0: OffsetAndMetadata(9)})
            assert evicted.value.reason == "evicted"
            assert cluster.committed("g") == {T0: 3}
            await member.close()
            await outsider.close()

    play(scenario)


@pytest.mark.spec("S3-25", "S1-23")
def test_when_the_group_moves_all_members_move_with_it() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(3, topics={"t": 4}) as cluster:
            members = [consumer_of(cluster, "t", group_id="g", client_id=each, **QUICK) for each in "ab"]
            await share(members)
            before = cluster.coordinator_of("g")
            after = next(node for node in cluster.state.brokers if node != before)
            cluster.move_coordinator("g", after)
            cluster.forget_requests()
            async with asyncio.timeout(15):
                while {r.client_id for r in asked(cluster, "Heartbeat") if r.node == after} != {"a", "b"}:
                    await asyncio.gather(*(member.poll(0.05) for member in members))
            since = max(r.at for r in asked(cluster, "FindCoordinator"))
            assert {r.node for api in OF_THE_GROUP for r in asked(cluster, api) if r.at > since} == {after}
            for member in members:
                await member.close()

    play(scenario)
