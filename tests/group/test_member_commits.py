"""A fenced instance, and commits of a member: under which name, and what a refusal means."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.errors import BrokerError, CommitFailedError, GroupAuthorizationError, UsageError
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.join_group_response import JoinGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.group.assignors import Assignor
from kclient.group.classic.state import ClassicMemberState
from kclient.group.offset_commit import OffsetCommitter
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata
from tests.group.offset_requests import stored
from tests.group.scripted_group import (
    F,
    Running,
    config,
    join_then_sync,
    joined,
    play,
    refused,
    scripted,
    synced,
    wants,
)
from tests.scripted_broker import On

# --- a fenced instance (B.13.10)


@pytest.mark.spec("D-11", "B.13.10", "B.15.3", "B.15.4", "B.15.5", "B.14.2", "A-04")
@pytest.mark.parametrize("where", ["join", "sync", "heartbeat"])
def test_a_fenced_instance_is_reported_by_every_poll_and_commit_and_never_joins_again(where: str) -> None:
    async def scene(running: Running) -> None:
        error = await running.polled_error()
        assert isinstance(error, BrokerError)
        assert error.code == 82
        for _ in range(3):
            running.membership.poll_started()
            await asyncio.sleep(0.05)
            assert getattr(running.membership.take_error(), "code", 0) == 82
            with pytest.raises(BrokerError, match="FENCED_INSTANCE_ID"):
                running.membership.commit_identity()
        assert len(peer.of("JoinGroupRequest")) == 1

    fenced: dict[str, list[On]] = {
        "join": [On("JoinGroupRequest", JoinGroupResponse(error_code=82))],
        "sync": [On("JoinGroupRequest", joined(1)), On("SyncGroupRequest", SyncGroupResponse(error_code=82))],
        "heartbeat": [
            *join_then_sync(("flights", 1)),
            On("HeartbeatRequest", HeartbeatResponse(error_code=82)),
        ],
    }
    peer = scripted(*fenced[where])
    play(peer, scene, group_instance_id="east", heartbeat_interval_ms=20)


# --- committing as a member


@pytest.mark.spec("B.14.3", "A-12")
def test_a_member_commits_under_its_generation_and_only_while_it_is_stable() -> None:
    async def scene(running: Running) -> None:
        with pytest.raises(CommitFailedError) as early:
            running.membership.commit_identity()
        assert early.value.reason == "not_joined"
        await running.until(lambda: peer.of("JoinGroupRequest"))
        with pytest.raises(CommitFailedError) as joining:
            running.membership.commit_identity()
        assert joining.value.reason == "rebalancing"
        await running.stable()
        identity = running.membership.commit_identity()
        assert (identity.generation_id, identity.member_id, identity.group_instance_id) == (1, "m-1", None)

    peer = scripted(
        On("JoinGroupRequest", joined(1), delay=0.05), On("SyncGroupRequest", synced(("flights", 1)))
    )
    play(peer, scene)


@pytest.mark.spec("B.15.8", "D-06", "D-17")
@pytest.mark.parametrize(("code", "member_id"), [(22, "m-1"), (25, "")])
def test_a_commit_that_is_refused_ends_the_membership_and_leads_to_a_join(code: int, member_id: str) -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        sent = running.membership.commit_identity()
        error = running.membership.commit_refused(code, sent)
        assert isinstance(error, CommitFailedError)
        assert error.reason == "evicted"
        assert "max_poll_interval_ms" in str(error)
        assert "max_poll_records" in str(error)
        assert running.membership.lost
        await running.stable(2)
        assert running.user.prepared == [True, True]
        assert running.membership.take_error() is None

    peer = scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 1), generation=2))
    play(peer, scene)
    assert peer.of("JoinGroupRequest")[1].member_id == member_id


@pytest.mark.spec("B.15.8", "B.13.9")
def test_a_refused_commit_of_an_earlier_generation_does_not_touch_the_present_one() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        old = running.membership.commit_identity()
        running.membership.request_rejoin("test")
        await running.stable(2)
        for code in (22, 25, 27, 82):
            error = running.membership.commit_refused(code, old)
            assert isinstance(error, CommitFailedError)
        await asyncio.sleep(0.05)
        assert running.membership.state is ClassicMemberState.STABLE
        assert running.membership.take_error() is None

    play(scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 1), generation=2)), scene)


@pytest.mark.spec("B.15.8", "A-12")
def test_a_commit_during_a_rebalance_asks_for_the_join_and_keeps_the_membership() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        error = running.membership.commit_refused(27, running.membership.commit_identity())
        assert isinstance(error, CommitFailedError)
        assert error.reason == "rebalancing"
        assert not running.membership.lost
        await running.stable(2)

    play(scripted(*join_then_sync(("flights", 1)), *join_then_sync(("flights", 1), generation=2)), scene)


@pytest.mark.spec("B.15.8", "B.13.10", "D-11")
def test_a_commit_that_is_fenced_is_reported_by_the_next_poll_too() -> None:
    async def scene(running: Running) -> None:
        await running.stable()
        error = running.membership.commit_refused(82, running.membership.commit_identity())
        assert isinstance(error, BrokerError)
        assert getattr(running.membership.take_error(), "code", 0) == 82
        await asyncio.sleep(0.1)

    peer = play(scripted(*join_then_sync(("flights", 1))), scene, group_instance_id="east")
    assert len(peer.of("JoinGroupRequest")) == 1


@pytest.mark.spec("U-07")
def test_a_group_that_may_not_be_found_is_reported_again_and_again_until_it_may() -> None:
    async def scene(running: Running) -> None:
        for _ in range(2):
            assert isinstance(await running.polled_error(), GroupAuthorizationError)
            running.membership.poll_started()
        await running.stable()

    denied = On("FindCoordinatorRequest", refused(30))
    play(scripted(denied, denied, *join_then_sync(("flights", 1))), scene)


class Picky(Assignor):
    """An assignor of a user's own, with the mistakes that a test gives it."""

    name = "picky"

    def assign(self, topics: Any, members: Any) -> Any:
        raise ValueError("no")


class Careless(Picky):
    def assign(self, topics: Any, members: Any) -> Any:
        return {member.member_id: ["flights-0"] for member in members}


class Speechless(Picky):
    def subscription_user_data(self, topics: Any) -> bytes | None:
        raise ValueError("no")


class Leaving(Picky):
    def subscription_user_data(self, topics: Any) -> bytes | None:
        raise SystemExit(3)


class Wordy(Picky):
    def subscription_user_data(self, topics: Any) -> Any:
        return "text"


@pytest.mark.spec("S4-24", "B.16.8")
@pytest.mark.parametrize(
    ("assignor", "message", "cause"),
    [
        (Picky(), "'picky' raised ValueError while assigning", ValueError),
        (Careless(), "'picky' made a plan that cannot be: it gives m-0 list, not Assignment", type(None)),
        (Wordy(), "'picky' returned str from subscription_user_data. Return bytes", type(None)),
        (Speechless(), "'picky' raised ValueError in subscription_user_data", ValueError),
        (Leaving(), "'picky' raised SystemExit in subscription_user_data", SystemExit),
    ],
)
def test_an_assignor_that_fails_is_reported_and_the_flow_continues(
    assignor: Assignor, message: str, cause: type[object]
) -> None:
    async def scene(running: Running) -> None:
        for _ in range(2):
            error = await running.polled_error()
            assert isinstance(error, UsageError)
            assert message in str(error)
            assert isinstance(error.__cause__, cause)
            running.membership.poll_started()

    response = joined(1, "m-0", leader="m-0", members=(wants("m-0", "flights"),), protocol_name="picky")
    peer = scripted()
    peer.default_responses["JoinGroupRequest"] = response
    play(peer, scene, partition_assignment_strategy=(assignor,))


@pytest.mark.spec("B.14.1", "B.15.8", "D-06", "D-17", "A-12")
def test_a_commit_of_an_evicted_member_says_what_was_not_stored_and_the_member_joins_again() -> None:
    async def scene(running: Running) -> None:
        await running.stable(1)
        membership = running.membership
        commits = OffsetCommitter(
            running.coordinator,
            config(peer),
            Runtime(),
            membership.commit_identity,
            membership.commit_refused,
        )
        with pytest.raises(CommitFailedError) as failed:
            await commits.commit({F[1]: OffsetAndMetadata(5)}, retry=True)
        assert (failed.value.reason, failed.value.uncommitted) == ("evicted", {F[1]: OffsetAndMetadata(5)})
        with pytest.raises(CommitFailedError) as early:
            await commits.commit({F[1]: OffsetAndMetadata(5)}, retry=True)
        assert early.value.uncommitted == {F[1]: OffsetAndMetadata(5)}
        await running.stable(2)
        await commits.commit({F[1]: OffsetAndMetadata(6)}, retry=True)

    peer = scripted(
        *join_then_sync(("flights", 1)),
        On("OffsetCommitRequest", stored({F[1]: 25})),
        *join_then_sync(("flights", 1), generation=2),
        On("OffsetCommitRequest", stored({F[1]: 0})),
    )
    play(peer, scene)
    sent = [
        (commit.generation_id_or_member_epoch, commit.member_id) for commit in peer.of("OffsetCommitRequest")
    ]
    assert sent == [(1, "m-1"), (2, "m-1")]


@pytest.mark.spec("B.13.9", "I-08", "D-17")
def test_a_commit_is_not_carried_into_the_next_generation() -> None:
    """Its partitions may be another member's by then, who has committed more."""

    async def scene(running: Running) -> None:
        await running.stable(1)
        membership = running.membership
        patient = config(peer, retry_backoff_ms=200, retry_backoff_max_ms=200)
        commits = OffsetCommitter(
            running.coordinator, patient, Runtime(), membership.commit_identity, membership.commit_refused
        )
        commit = asyncio.create_task(commits.commit({F[1]: OffsetAndMetadata(5)}, retry=True))
        await running.until(lambda: peer.of("OffsetCommitRequest"))
        membership.request_rejoin("test")
        await running.stable(2)
        assert not commit.done()
        with pytest.raises(CommitFailedError) as failed:
            await commit
        assert failed.value.reason == "rebalancing"
        assert failed.value.uncommitted == {F[1]: OffsetAndMetadata(5)}

    peer = scripted(
        *join_then_sync(("flights", 1)),
        On("OffsetCommitRequest", stored({F[1]: 14})),
        *join_then_sync(("flights", 1), generation=2),
    )
    play(peer, scene)
