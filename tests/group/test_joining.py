"""The way into a group: what is sent, in which order, and what the leader shares out."""

from __future__ import annotations

import asyncio

import pytest

from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.membership import Generation
from kclient.group.subscription_codec import decode_assignment, decode_subscription
from kclient.types import TopicPartition
from tests.group.scripted_group import (
    GROUP,
    F,
    Running,
    join_then_sync,
    joined,
    names,
    play,
    scripted,
    synced,
    wants,
)
from tests.scripted_broker import On


@pytest.mark.spec("S4-02", "S4-22", "S4-25", "S4-50", "S4-51", "S3-26", "S3-51", "B.13.4")
def test_the_two_step_join_of_a_follower() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        assert running.membership.generation.member_id == "m-1"
        assert not running.membership._subscription.assignment_snapshot

    peer = play(
        scripted(
            On("JoinGroupRequest", JoinGroupResponse(error_code=79, member_id="m-1")),
            *join_then_sync(("flights", 1), ("flights", 3)),
        ),
        scene,
        session_timeout_ms=7_000,
        max_poll_interval_ms=9_000,
        partition_assignment_strategy=("range", "roundrobin"),
        client_rack="east",
    )
    assert names(peer) == ["FindCoordinator", "JoinGroup", "JoinGroup", "SyncGroup"]
    first, second = peer.of("JoinGroupRequest")
    assert (first.member_id, second.member_id) == ("", "m-1")
    for join in (first, second):
        assert (join.group_id, join.protocol_type, join.group_instance_id) == (GROUP, "consumer", None)
        assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (7_000, 9_000)
        assert [protocol.name for protocol in join.protocols] == ["range", "roundrobin"]
        subscription = decode_subscription(join.protocols[0].metadata)
        assert (subscription.topics, subscription.owned_partitions, subscription.rack_id) == (
            ("flights",),
            (),
            "east",
        )
    (sync,) = peer.of("SyncGroupRequest")
    assert (sync.generation_id, sync.member_id, sync.assignments) == (1, "m-1", [])
    assert (sync.protocol_type, sync.protocol_name) == ("consumer", "range")


@pytest.mark.spec("S3-39", "S4-19", "S4-21", "S4-27", "B.13.3", "B.13.6")
def test_the_handler_prepares_once_and_receives_the_assignment() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        assert running.user.prepared == [True]
        (complete,) = [call for call in running.user.calls if call[0] == "complete"]
        assert complete[1:3] == ("range", (F[1], F[3]))
        assert complete[3] == running.membership.generation

    required = On("JoinGroupRequest", JoinGroupResponse(error_code=79, member_id="m-1"))
    play(scripted(required, *join_then_sync(("flights", 1), ("flights", 3))), scene)


@pytest.mark.spec("S4-19")
def test_every_rebalance_is_prepared_by_the_user() -> None:
    """The first one gives up what is lost, for there is no membership yet; the second one revokes."""

    async def scene(running: Running) -> None:
        await running.stable()
        running.membership.request_rejoin("a test")
        await running.stable(2)
        assert running.user.prepared == [True, False]
        assert running.user.assignments == [(F[1],), (F[3],)]

    play(scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 3), generation=2)), scene)


@pytest.mark.spec("S4-23", "B.13.1", "B.15.4")
def test_the_join_response_sets_the_generation_and_the_sync_ends_the_need_to_rejoin() -> None:
    async def scene(running: Running) -> None:
        await running.until(lambda: peer.of("SyncGroupRequest"))
        assert running.membership.generation == Generation(1, "m-1", "range")
        assert not running.membership.stable
        await running.stable(2)
        await asyncio.sleep(0.1)
        assert len(peer.of("JoinGroupRequest")) == 2

    peer = scripted(
        On("JoinGroupRequest", joined(1)),
        On("SyncGroupRequest", SyncGroupResponse(error_code=27), delay=0.05),
        *join_then_sync(("flights", 1), generation=2),
    )
    play(peer, scene)
    again = peer.of("JoinGroupRequest")[1]
    subscription = decode_subscription(again.protocols[0].metadata)
    assert (again.member_id, subscription.generation_id) == ("m-1", 1)
    assert again.reason.startswith("rebalance failed")


@pytest.mark.spec("S4-24", "S4-32", "B.13.4", "B.16.1", "D-09")
def test_the_leader_shares_out_the_topics_of_all_members() -> None:
    members = (wants("m-0", "flights"), wants("m-1", "flights", "planes"), wants("m-2"))
    peer = play(
        scripted(
            On("JoinGroupRequest", joined(3, "m-0", leader="m-0", members=members)),
            On("SyncGroupRequest", synced(("flights", 0))),
            topics={"flights": 3, "planes": 2},
        ),
        lambda running: _leader_scene(running, 3),
    )
    (sync,) = peer.of("SyncGroupRequest")
    plan = {part.member_id: decode_assignment(part.assignment).partitions for part in sync.assignments}
    assert plan == {
        "m-0": (F[0], F[1]),
        "m-1": (F[2], TopicPartition("planes", 0), TopicPartition("planes", 1)),
        "m-2": (),
    }


@pytest.mark.spec("S4-24")
def test_the_leader_shares_out_with_the_assignor_that_the_group_has_chosen() -> None:
    """Range would give flights-0 and flights-1 to m-0."""
    members = (wants("m-0", "flights"), wants("m-1", "flights"))
    response = synced(("flights", 0), ("flights", 2))
    response.protocol_name = "roundrobin"
    peer = play(
        scripted(
            On(
                "JoinGroupRequest",
                joined(3, "m-0", leader="m-0", members=members, protocol_name="roundrobin"),
            ),
            On("SyncGroupRequest", response),
            topics={"flights": 4},
        ),
        lambda running: _leader_scene(running, 3),
        partition_assignment_strategy=("range", "roundrobin"),
    )
    (sync,) = peer.of("SyncGroupRequest")
    plan = {part.member_id: decode_assignment(part.assignment).partitions for part in sync.assignments}
    assert plan == {"m-0": (F[0], F[2]), "m-1": (F[1], F[3])}


async def _leader_scene(running: Running, generation: int) -> None:
    await running.stable(generation)
    assert running.membership._subscription.assignment_snapshot


@pytest.mark.spec("B.13.4", "D-16", "A-02")
def test_a_topic_that_does_not_exist_leads_to_empty_assignments() -> None:
    members = (wants("m-0", "flihgts"),)
    peer = play(
        scripted(
            On("JoinGroupRequest", joined(3, "m-0", leader="m-0", members=members)),
            On("SyncGroupRequest", synced()),
        ),
        lambda running: _leader_scene(running, 3),
        topics=("flihgts",),
    )
    (sync,) = peer.of("SyncGroupRequest")
    assert [decode_assignment(part.assignment).partitions for part in sync.assignments] == [()]


@pytest.mark.spec("B.13.4", "B.13.10", "A-04")
def test_a_leader_with_skip_assignment_sends_none_and_still_watches_metadata() -> None:
    async def scene(running: Running) -> None:
        await _leader_scene(running, 3)
        peer.topics["flights"] = 6
        running.cluster.request_update("test")
        await running.until(lambda: len(peer.of("JoinGroupRequest")) == 2)

    members = (wants("m-0", "flights"),)
    peer = scripted(
        On("JoinGroupRequest", joined(3, "m-0", leader="m-0", members=members, skip_assignment=True)),
        On("SyncGroupRequest", synced(("flights", 0))),
        On("JoinGroupRequest"),
    )
    play(peer, scene)
    assert peer.of("SyncGroupRequest")[0].assignments == []


@pytest.mark.spec("H-19")
def test_a_damaged_subscription_and_a_double_member_do_not_stop_the_leader() -> None:
    damaged = wants("m-2", "flights")
    damaged.metadata = damaged.metadata[:5]
    members = (wants("m-0", "flights"), damaged, wants("m-0", "flights"))
    peer = play(
        scripted(
            On("JoinGroupRequest", joined(3, "m-0", leader="m-0", members=members)),
            On("SyncGroupRequest", synced(*F)),
        ),
        lambda running: _leader_scene(running, 3),
    )
    (sync,) = peer.of("SyncGroupRequest")
    plan = [(part.member_id, decode_assignment(part.assignment).partitions) for part in sync.assignments]
    assert plan == [("m-0", tuple(F)), ("m-2", ())]
