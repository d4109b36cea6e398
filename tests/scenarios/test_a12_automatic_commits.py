"""Scenario A-12, automatic commits: their times, their offsets, and their failures."""

from __future__ import annotations

import asyncio
import itertools
import logging
from typing import Any

import pytest

from kclient import AsyncConsumer
from kclient.embedded.observer import LoggedRequest
from kclient.errors import BrokerError, ConfigError
from kclient.protocol.errors import INVALID_GROUP_ID
from tests.scenarios.members import ALL, GROUP, GroupMember, publishing, shared_out, team
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0
from tests.waiting import until

INTERVAL = 5.0
AUTOMATIC: dict[str, Any] = {
    "group_id": GROUP,
    "enable_auto_commit": True,
    "auto_commit_interval_ms": int(INTERVAL * 1000),
    "retry_backoff_ms": 200,
}


def committed(one: LoggedRequest) -> dict[int, int]:
    """Partition → offset of one OffsetCommit."""
    (topic,) = one.request.topics
    return {part.partition_index: part.committed_offset for part in topic.partitions}


async def ten_read(place: Place) -> AsyncConsumer:
    """A consumer that has read ten records of one partition, and has its position in the other."""
    place.cluster.produce("t", [str(number) for number in range(10)], partition=0)
    consumer = place.consumer("t", **AUTOMATIC)
    await place.read(consumer, 10)
    return consumer


@pytest.mark.spec("A-12", "S3-18", "S3-19", "S4-44", "S4-47", "D-30")
def test_a12_the_first_poll_after_the_interval_commits_what_earlier_polls_returned() -> None:
    """Of every partition with a position, and not yet what this poll returns."""

    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        await place.poll_until(consumer, lambda: place.now > 3)
        await asyncio.sleep(INTERVAL)
        place.cluster.produce("t", ["10", "11"], partition=0)
        await asyncio.sleep(1)  # they are fetched meanwhile
        assert place.asked("OffsetCommit") == []
        polled = place.now
        assert len(await place.on_member(consumer.poll(1.0))) == 2
        await until(lambda: place.asked("OffsetCommit"))
        (first,) = place.asked("OffsetCommit")
        assert first.at - polled < 0.5
        assert committed(first) == {0: 10, 1: 0}
        await place.poll_until(consumer, lambda: len(place.asked("OffsetCommit")) > 1)
        second = place.asked("OffsetCommit")[1]
        assert committed(second) == {0: 12, 1: 0}
        assert second.at - first.at == pytest.approx(INTERVAL, abs=0.3)

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("S3-05", "I-26")
def test_a12_an_interval_of_nothing_commits_no_faster_than_what_failed_is_tried_again() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0"], partition=0)
        consumer = place.consumer("t", **{**AUTOMATIC, "auto_commit_interval_ms": 0})
        await place.read(consumer, 1)
        await place.on_member(consumer.poll(0.5))
        assert place.cluster.committed(GROUP)[T0] == 1
        began = place.now
        await place.on_member(consumer.poll(10.0))
        commits = [one.at for one in place.asked("OffsetCommit", began)]
        assert commits
        assert min(later - one for one, later in itertools.pairwise(commits)) >= 0.2

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "S4-43", "S0-21")
def test_a12_without_a_coordinator_the_commit_follows_as_soon_as_one_is_found() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        assigned = place.asked("SyncGroup")[-1].at
        await place.poll_until(consumer, lambda: place.now > assigned + 2.5)
        place.cluster.fail("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=None)
        place.cluster.fail("Heartbeat", "NOT_COORDINATOR", times=None)
        await place.poll_until(consumer, lambda: place.now > assigned + 1.4 * INTERVAL)
        assert place.asked("OffsetCommit") == []
        place.cluster.lift()
        found = place.now
        await place.poll_until(consumer, lambda: place.asked("OffsetCommit"))
        assert place.now - found < INTERVAL / 4
        assert place.cluster.committed(GROUP)[T0] == 10

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("A-12", "S3-18", "S3-20", "S4-45", "B.14.5", "B.15.8")
@pytest.mark.parametrize("code", [14, 3, 15, 16, 7])
def test_a12_what_passes_automatically_is_tried_again_soon_and_nothing_is_raised(code: int) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        place.cluster.fail("OffsetCommit", code, times=1)
        await place.on_member(consumer.poll(1.5 * INTERVAL))  # one poll that waits does not oversleep it
        refused, again = place.asked("OffsetCommit")
        assert 0.15 < again.at - refused.at < 1.0
        assert len(place.asked("FindCoordinator", refused.at)) == (1 if code in (15, 16, 7) else 0)
        assert place.cluster.committed(GROUP)[T0] == 10

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("A-12", "S3-21", "B.15.8")
@pytest.mark.parametrize("code", [12, 28, 29, 30, 42])
def test_a12_what_does_not_pass_is_logged_and_the_interval_continues(
    code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        place.cluster.fail("OffsetCommit", code, times=1)
        await place.poll_until(consumer, lambda: len(place.asked("OffsetCommit")) > 1)
        refused, again = place.asked("OffsetCommit")
        assert again.at - refused.at == pytest.approx(INTERVAL, abs=0.3)
        assert place.cluster.committed(GROUP)[T0] == 10

    with caplog.at_level(logging.WARNING, "kclient.commit"):
        simulate(scenario, topics={"t": 2})
    assert "automatic commit failed" in caplog.text


@pytest.mark.spec("A-12", "S3-30", "B.15.8", "D-06")
@pytest.mark.parametrize(("code", "member_id_goes_on"), [(22, True), (25, False)])
def test_a12_a_member_that_is_thrown_out_gets_no_error_and_joins_again(
    code: int, member_id_goes_on: bool
) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        member_id = consumer.group_metadata().member_id
        place.cluster.fail("OffsetCommit", code, times=1)
        await place.poll_until(consumer, lambda: place.asked("OffsetCommit"))
        refused = place.asked("OffsetCommit")[0].at
        await place.poll_until(consumer, lambda: place.asked("JoinGroup", refused))
        join = place.asked("JoinGroup", refused)[0].request
        assert join.member_id == (member_id if member_id_goes_on else "")
        await place.poll_until(consumer, lambda: len(consumer.assignment()) == 2)

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("A-12", "S4-58")
def test_a12_while_nothing_has_a_position_nothing_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(place: Place) -> None:
        place.cluster.fail("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS", times=None)
        consumer = place.consumer("t", **AUTOMATIC)
        await place.poll_until(consumer, lambda: place.now > 3 * INTERVAL)
        assert len(consumer.assignment()) == 2
        assert place.asked("OffsetCommit") == []
        place.cluster.lift()

    with caplog.at_level(logging.WARNING):
        simulate(scenario, topics={"t": 2})
    assert caplog.records == []


# --- before partitions go


class Auditor(GroupMember):
    """A member that notes, whenever partitions go, what is committed at that moment."""

    committed_then: dict[int, int]

    async def on_partitions_revoked(self, partitions: Any) -> None:
        committed_now = self.place.cluster.committed(GROUP)
        self.committed_then = {tp.partition: committed_now[tp] for tp in partitions}
        await super().on_partitions_revoked(partitions)


@pytest.mark.spec("A-12", "S3-30", "B.13.6")
def test_a12_before_a_rebalance_what_was_delivered_is_committed_and_nothing_more_is_delivered() -> None:
    async def scenario(place: Place) -> None:
        settings = {**AUTOMATIC, "auto_commit_interval_ms": 3_600_000}
        async with team(place, **settings) as join, publishing(place, every=0.01):
            a = await join("a", kind=Auditor)
            await until(lambda: a.partitions == ALL)
            await asyncio.sleep(3)
            place.cluster.delay("OffsetCommit", ms=500, times=1)
            b = await join("b")
            await until(lambda: shared_out(a, b))
            assert isinstance(a, Auditor)
            revoked = next(call.at for call in a.listener_calls if call.method == "revoked")
            (last_commit,) = a.asked("OffsetCommit")
            for number in ALL:
                offsets = [one.offset for one in a.seen if one.partition == number and one.at <= revoked]
                assert a.committed_then[number] == offsets[-1] + 1 == committed(last_commit)[number]
            assert not [one for one in a.seen if last_commit.at < one.at <= revoked]

    simulate(scenario, topics={"t": 4})


@pytest.mark.spec("A-12", "B.18", "S3-19")
def test_a12_close_commits_before_it_leaves() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        await place.on_member(consumer.close())
        (commit,), (leave,) = place.asked("OffsetCommit"), place.asked("LeaveGroup")
        assert committed(commit) == {0: 10, 1: 0}
        assert commit.at < leave.at

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("A-12", "S3-19")
def test_a12_a_commit_carries_the_epoch_of_what_was_read_and_not_that_of_the_leader() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        place.cluster.move_leader("t", 0)
        began = place.now
        await place.poll_until(consumer, lambda: place.now > began + 1)
        assert await place.on_member(consumer.position(T0)) == 10  # checked with the new leader
        await place.on_member(consumer.commit())
        [topic] = place.asked("OffsetCommit")[-1].request.topics
        assert sorted(
            (row.partition_index, row.committed_offset, row.committed_leader_epoch)
            for row in topic.partitions
        ) == [(0, 10, 0), (1, 0, -1)]

    simulate(scenario, brokers=2, topics={"t": 2})


@pytest.mark.spec("A-12", "B.18")
def test_a12_unsubscribing_commits_nothing() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        await place.on_member(consumer.unsubscribe())
        await asyncio.sleep(2 * INTERVAL)
        assert len(place.asked("LeaveGroup")) == 1
        assert place.asked("OffsetCommit") == []

    simulate(scenario, topics={"t": 2})


# --- without a group


@pytest.mark.spec("A-12", "S3-01", "S3-03")
@pytest.mark.parametrize("settings", [{}, {"enable_auto_commit": False}])
def test_a12_without_a_group_nothing_is_committed_and_commit_says_why(settings: dict[str, Any]) -> None:
    async def scenario(place: Place) -> None:
        servers = {"bootstrap_servers": "broker-1:9092", "auto_offset_reset": "earliest"}
        consumer = AsyncConsumer(runtime=place.runtime, **servers, **settings)
        place.opened.append(consumer)
        place.cluster.produce("t", ["0"], partition=0)
        await place.on_member(consumer.assign([T0]))
        await place.poll_until(consumer, lambda: place.now > 3 * INTERVAL)
        with pytest.raises(BrokerError) as caught:
            await place.on_member(consumer.commit())
        assert caught.value.code == INVALID_GROUP_ID
        assert place.asked("FindCoordinator") == place.asked("OffsetCommit") == []

    simulate(scenario, topics={"t": 2})


@pytest.mark.spec("A-12", "S3-02")
def test_a12_without_a_group_automatic_commits_are_refused_at_construction() -> None:
    with pytest.raises(ConfigError, match="enable_auto_commit"):
        AsyncConsumer(bootstrap_servers="broker-1:9092", enable_auto_commit=True)
