"""Scenario A-12, the commits that an application asks for: which are tried again, what fails, when callbacks run."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.errors import ArgumentError, BrokerError, CommitFailedError, DeadlineError, KclientError
from tests.scenarios.members import GROUP
from tests.scenarios.simulated import Place, simulate
from tests.scenarios.support import T0
from tests.waiting import until

AT_3 = {T0: OffsetAndMetadata(3)}


async def ten_read(place: Place, **settings: Any) -> AsyncConsumer:
    """A member that has read ten records."""
    place.cluster.produce("t", [str(number) for number in range(10)])
    consumer = place.consumer("t", group_id=GROUP, retry_backoff_ms=200, **settings)
    await place.read(consumer, 10)
    return consumer


# --- commit


@pytest.mark.spec("A-12", "B.14.1", "B.15.8")
@pytest.mark.parametrize("code", [14, 3, 15, 16, 7])
def test_a12_commit_tries_again_what_passes_automatically(code: int) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        place.cluster.fail("OffsetCommit", code, times=3)
        await place.on_member(consumer.commit(timeout=30.0))
        sent = [one.at for one in place.asked("OffsetCommit")]
        assert len(sent) == 4
        assert all(after - before > 0.15 for before, after in itertools.pairwise(sent))
        assert place.cluster.committed(GROUP) == {T0: 10}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "B.14.1")
def test_a12_commit_gives_up_at_its_timeout() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        place.cluster.fail("OffsetCommit", 14, times=None)
        began = place.now
        with pytest.raises(DeadlineError):
            await place.on_member(consumer.commit(timeout=5.0))
        assert place.now - began == pytest.approx(5.0, abs=0.1)
        place.cluster.lift()
        sent = len(place.asked("OffsetCommit"))
        await place.poll_until(consumer, lambda: place.now > began + 20)
        assert len(place.asked("OffsetCommit")) == sent

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "B.15.8", "B.13.9")
@pytest.mark.parametrize(("code", "member_id_goes_on"), [(22, True), (25, False)])
def test_a12_commit_of_a_member_thrown_out_fails_and_a_rejoin_follows(
    code: int, member_id_goes_on: bool
) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        member_id = consumer.group_metadata().member_id
        place.cluster.fail("OffsetCommit", code, times=1)
        with pytest.raises(CommitFailedError) as caught:
            await place.on_member(consumer.commit())
        assert caught.value.reason == "evicted"
        assert caught.value.uncommitted[T0].offset == 10
        failed = place.asked("OffsetCommit")[0].at
        await place.poll_until(consumer, lambda: place.asked("SyncGroup", failed))
        join = place.asked("JoinGroup", failed)[0].request
        assert join.member_id == (member_id if member_id_goes_on else "")
        await place.poll_until(consumer, consumer.assignment)
        await place.on_member(consumer.commit())

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "B.15.8", "B.14.3")
def test_a12_commit_during_a_rebalance_says_so_and_is_not_sent_while_a_join_is_out() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        member_id = consumer.group_metadata().member_id
        place.cluster.fail("OffsetCommit", "REBALANCE_IN_PROGRESS", times=1)
        with pytest.raises(CommitFailedError) as caught:
            await place.on_member(consumer.commit())
        assert caught.value.reason == "rebalancing"
        assert "poll()" in str(caught.value)
        failed = place.asked("OffsetCommit")[0].at
        place.cluster.delay("JoinGroup", ms=3_000, times=1)
        await place.poll_until(consumer, lambda: place.asked("JoinGroup", failed))
        assert place.asked("JoinGroup", failed)[0].request.member_id == member_id
        with pytest.raises(CommitFailedError) as joining:
            await place.on_member(consumer.commit(AT_3))
        assert joining.value.reason == "rebalancing"
        assert len(place.asked("OffsetCommit")) == 1
        await place.poll_until(consumer, consumer.assignment)
        await place.on_member(consumer.commit(AT_3))
        assert place.cluster.committed(GROUP) == {T0: 3}

    simulate(scenario, topics={"t": 1})


# --- commit_async


@pytest.mark.spec("A-12", "B.14.2", "S4-46", "B.3.1")
def test_a12_callbacks_run_in_order_inside_the_next_call_and_nothing_is_tried_again() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        responses: list[tuple[int, KclientError | None]] = []

        def answered(offsets: Any, error: KclientError | None) -> None:
            responses.append((offsets[T0].offset, error))

        place.cluster.fail("OffsetCommit", 14, times=1)
        for offset in (3, 4, 5):
            consumer.commit_async({T0: OffsetAndMetadata(offset)}, answered)
        await until(lambda: len(place.asked("OffsetCommit")) == 3)
        await asyncio.sleep(5)
        assert responses == []
        await place.on_member(consumer.poll(0))
        assert [offset for offset, _ in responses] == [3, 4, 5]
        first, *others = [error for _, error in responses]
        assert isinstance(first, CommitFailedError)
        assert (first.reason, first.retriable) == ("retriable", True)
        assert others == [None, None]
        assert len(place.asked("OffsetCommit")) == 3
        assert place.cluster.committed(GROUP) == {T0: 5}

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "B.14.2", "B.15.8")
@pytest.mark.parametrize(
    ("code", "reason"), [(25, "evicted"), (22, "evicted"), (27, "rebalancing"), (12, "")]
)
def test_a12_what_refuses_a_commit_in_the_background_is_reported_to_its_callback_alone(
    code: int, reason: str
) -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        responses: list[KclientError | None] = []
        place.cluster.fail("OffsetCommit", code, times=1)
        consumer.commit_async(AT_3, lambda offsets, error: responses.append(error))
        await place.poll_until(consumer, lambda: responses)
        (error,) = responses
        if reason:
            assert isinstance(error, CommitFailedError)
            assert error.reason == reason
        else:
            assert isinstance(error, BrokerError)
            assert error.code == code
        await place.poll_until(consumer, consumer.assignment)
        assert len(place.asked("OffsetCommit")) == 1

    simulate(scenario, topics={"t": 1})


# --- without membership


@pytest.mark.spec("A-12", "B.14.3", "S1-31")
def test_a12_a_manual_assignment_commits_without_a_member() -> None:
    async def scenario(place: Place) -> None:
        place.cluster.produce("t", ["0", "1"])
        consumer = place.consumer(group_id=GROUP)
        await place.on_member(consumer.assign([T0]))
        await place.read(consumer, 2)
        await place.on_member(consumer.commit())
        (sent,) = place.asked("OffsetCommit")
        request = sent.request
        assert (request.generation_id_or_member_epoch, request.member_id, request.group_instance_id) == (
            -1,
            "",
            None,
        )
        assert place.cluster.committed(GROUP) == {T0: 2}
        assert place.asked("JoinGroup") == []

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "B.14.1")
def test_a12_a_negative_offset_is_refused_before_anything_is_sent() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        below = {T0: OffsetAndMetadata(-1)}
        with pytest.raises(ArgumentError, match="t-0"):
            await place.on_member(consumer.commit(below))
        with pytest.raises(ArgumentError, match="t-0"):
            consumer.commit_async(below)
        await asyncio.sleep(1)
        assert place.asked("OffsetCommit") == []

    simulate(scenario, topics={"t": 1})


@pytest.mark.spec("A-12", "D-62", "B.14.4")
def test_a12_metadata_and_leader_epoch_come_back_as_they_were_committed() -> None:
    async def scenario(place: Place) -> None:
        consumer = await ten_read(place)
        offset = OffsetAndMetadata(3, 0, "a\0b")
        await place.on_member(consumer.commit({T0: offset}))
        assert await place.on_member(consumer.committed([T0])) == {T0: offset}

    simulate(scenario, topics={"t": 1})
