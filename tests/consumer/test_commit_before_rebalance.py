"""The automatic commit before a rebalance leaves enough time to join."""

from __future__ import annotations

import logging

import pytest

from kclient.embedded.observer import LoggedRequest
from tests.scenarios.members import ALL, publishing, team
from tests.scenarios.simulated import Place, simulate
from tests.waiting import until


@pytest.mark.spec("S3-30", "B.13.6", "B.14.8", "I-12")
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_commit_that_never_succeeds_costs_no_membership(assignor: str) -> None:
    """As with partitions that were deleted: the coordinator knows them no more, however often it is asked."""

    async def scenario(place: Place) -> None:
        limits = {
            "max_poll_interval_ms": 30_000,
            "session_timeout_ms": 10_000,
            "heartbeat_interval_ms": 3_000,
        }
        async with (
            team(
                place,
                enable_auto_commit=True,
                auto_commit_interval_ms=1_000,
                partition_assignment_strategy=assignor,
                **limits,
            ) as join,
            publishing(place),
        ):
            first = await join("first")
            await until(lambda: first.partitions == ALL and first.seen)
            place.cluster.fail("OffsetCommit", "UNKNOWN_TOPIC_OR_PARTITION", times=None)
            second = await join("second")
            await until(lambda: len(first.partitions) == len(second.partitions) == 2, 120)
            assert {call.method for call in first.listener_calls} == {"assigned", "revoked"}
            place.cluster.lift()

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("S3-30", "B.13.6")
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_a_commit_that_is_refused_is_logged_and_the_rebalance_continues(
    assignor: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(place: Place) -> None:
        settings = {"enable_auto_commit": True, "auto_commit_interval_ms": 3_600_000}
        async with team(place, partition_assignment_strategy=assignor, **settings) as join, publishing(place):
            first = await join("first")
            await until(lambda: first.partitions == ALL and first.seen)
            place.cluster.fail("OffsetCommit", "INVALID_COMMIT_OFFSET_SIZE", times=1)
            second = await join("second")
            await until(lambda: len(first.partitions) == len(second.partitions) == 2)
            assert [call.method for call in first.listener_calls][:3] == ["assigned", "revoked", "assigned"]
            assert first.errors == []

    with caplog.at_level(logging.WARNING, "kclient.commit"):
        simulate(scenario, topics={"t": 4})
    (warning,) = [line for line in caplog.messages if line.startswith("the automatic commit before the re")]
    assert "INVALID_COMMIT_OFFSET_SIZE" in warning


@pytest.mark.spec("B.14.8", "M-81", "I-12")
def test_a_stale_epoch_costs_a_heartbeat_and_then_the_newest_positions_are_stored() -> None:
    """What another member takes over begins after what was delivered; what stays has moved on meanwhile."""

    async def scenario(place: Place) -> None:
        settings = {
            "group_protocol": "consumer",
            "enable_auto_commit": True,
            "auto_commit_interval_ms": 3_600_000,
        }
        async with team(place, **settings) as join, publishing(place):
            first = await join("first")
            await until(lambda: first.partitions == ALL and len(first.seen) > 40)
            place.cluster.fail("OffsetCommit", "STALE_MEMBER_EPOCH", times=1)
            second = await join("second")
            await until(lambda: len(first.partitions) == len(second.partitions) == 2)
            await until(lambda: second.seen)
            refused, stored = first.asked("OffsetCommit")
            beats = [one for one in first.asked("ConsumerGroupHeartbeat") if refused.at < one.at < stored.at]
            assert len(beats) == 1
            offsets, newest = stored_offsets(refused), stored_offsets(stored)
            assert all(newest[number] > offsets[number] for number in first.partitions)
            assert all(newest[number] == offsets[number] for number in second.partitions)
            delivered = {one.number for one in first.seen}
            assert not [one for one in second.seen if one.number in delivered]

    simulate(scenario, topics={"t": 4}, config={"group.consumer.heartbeat.interval.ms": 2_000})


def stored_offsets(commit: LoggedRequest) -> dict[int, int]:
    """Partition → offset of one OffsetCommit."""
    (topic,) = commit.request.topics
    return {part.partition_index: part.committed_offset for part in topic.partitions}
