"""AWAIT_VALIDATION: after a change of leader the position is checked against its log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kclient.errors import (
    LogTruncatedError,
    OffsetOutOfRangeError,
    TopicAuthorizationError,
)
from kclient.positions.lookup_context import OffsetReset
from kclient.positions.state import EpochEnd, FetchPosition
from kclient.positions.table import Positions
from kclient.types import LeaderAndEpoch, OffsetAndMetadata
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.updater_support import (
    AWAIT_VALIDATION,
    EPOCH,
    LIST,
    ON_1,
    P0,
    P1,
    P2,
    epoch_ends,
    led_by_1,
    lists,
    updater,
)
from tests.waiting import until


async def consumed_under_epoch_3(cluster: FakeCluster, positions: Positions) -> None:
    """P0 stands at 100 after a batch of epoch 3; node 2 leads now in epoch 6."""
    positions.assign([P0])
    positions.seek(P0, OffsetAndMetadata(90), ON_1)
    positions.advance(P0, 100, 3)
    await settle()
    cluster.set_leaders({("orders", 0): (2, 6)})
    await settle()


@pytest.mark.spec("S0-04", "S0-18", "B.9", "D-40")
def test_after_a_change_of_leader_the_position_is_checked_and_kept() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(3, 100))
        async with updater(cluster) as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            assert positions.position(P0) == FetchPosition(100, 3, LeaderAndEpoch(2, 6))
            (asked,) = cluster.of(EPOCH)
            partition = asked.message.topics[0].partitions[0]
            assert (asked.node_id, asked.min_version, asked.message.replica_id) == (2, 3, -1)
            assert (partition.leader_epoch, partition.current_leader_epoch) == (3, 6)
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("B.9", "U-01")
def test_a_truncation_goes_back_to_the_common_end_under_a_policy() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(2, 90))
        async with updater(cluster, jumps=jumps, auto_offset_reset="latest") as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            assert positions.position(P0) == FetchPosition(90, 2, LeaderAndEpoch(2, 6))
            assert cluster.of(LIST) == []
            assert one.take_error() is None

    jumps: list[OffsetReset] = []
    run(scenario())
    assert jumps == [OffsetReset(P0, 100, 90, "truncated")]
    assert jumps[0].skipped == 0


@pytest.mark.parametrize("keys", [{}, {"auto_offset_reset": "none"}], ids=["unset", "none"])
@pytest.mark.spec("B.9", "U-01")
def test_a_truncation_is_reported_without_a_policy_and_the_position_stays(keys: dict[str, str]) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(2, 90))
        async with updater(cluster, **keys) as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            error = one.take_error()
            assert isinstance(error, LogTruncatedError)
            assert isinstance(error, OffsetOutOfRangeError)
            assert error.positions == {P0: 100}
            assert error.divergent == {P0: OffsetAndMetadata(90, 2)}
            assert positions.state(P0).fetch_state is AWAIT_VALIDATION
            await asyncio.sleep(2)
            assert isinstance(one.take_error(), LogTruncatedError)
            positions.seek(P0, OffsetAndMetadata(90), LeaderAndEpoch(2, 6))
            await settle()
            assert one.take_error() is None

    run(scenario())


@pytest.mark.parametrize(("epoch", "end"), [(-1, -1), (-1, 50), (3, -1)])
@pytest.mark.spec("B.9")
def test_an_unknown_epoch_is_a_lost_position(epoch: int, end: int) -> None:
    async def scenario(policy: str) -> Any:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(epoch, end))
        cluster.answer(LIST, lists(55))
        async with updater(cluster, auto_offset_reset=policy) as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            return one.take_error(), positions.position(P0)

    error, position = run(scenario("none"))
    assert isinstance(error, LogTruncatedError)
    assert error.divergent == {P0: None}
    assert position is None
    error, position = run(scenario("earliest"))
    assert error is None
    assert position == FetchPosition(55, None, LeaderAndEpoch(2, 6))


@pytest.mark.parametrize("code", [6, 9, 56, 78, 5, 74, 75, 3, 12])
@pytest.mark.spec("B.15.10", "D-61")
def test_other_errors_of_a_validation_are_retried(code: int) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(-1, -1, code))
        async with updater(cluster) as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            assert positions.state(P0).fetch_state is AWAIT_VALIDATION
            assert cluster.updates
            cluster.answer(EPOCH, epoch_ends(3, 100))
            await until(lambda: positions.position(P0))
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("S0-04", "B.15.10", "D-44")
def test_a_refused_validation_is_reported_once_and_moves_nothing() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(-1, -1, 29))
        async with updater(cluster, auto_offset_reset="earliest") as (positions, one):
            await consumed_under_epoch_3(cluster, positions)
            assert isinstance(one.take_error(), TopicAuthorizationError)
            assert one.take_error() is None
            assert positions.state(P0).position == FetchPosition(100, 3, LeaderAndEpoch(2, 6))
            assert positions.state(P0).fetch_state is AWAIT_VALIDATION

    run(scenario())


@pytest.mark.spec("B.6.4", "B.9")
def test_a_broker_too_old_to_be_asked_ends_the_validation() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.versions["OffsetForLeaderEpochRequest"] = 2
        async with updater(cluster) as (positions, _):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(90, 3), ON_1)
            await settle()
            assert positions.position(P0) == FetchPosition(90, 3, ON_1)
            cluster.set_leaders({("orders", 0): (2, 6)})
            await settle()
            assert positions.position(P0) == FetchPosition(90, 3, LeaderAndEpoch(2, 6))
            assert cluster.of(EPOCH) == []

    run(scenario())


@pytest.mark.spec("B.9", "D-46")
def test_a_seek_during_a_validation_makes_its_response_worthless() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        cluster.answer(EPOCH, lambda node, request: reply)
        async with updater(cluster, auto_offset_reset="earliest") as (positions, _):
            await consumed_under_epoch_3(cluster, positions)
            positions.seek(P0, OffsetAndMetadata(95), LeaderAndEpoch(2, 6))
            reply.set_result(epoch_ends(2, 90)(2, cluster.of(EPOCH)[0].message))
            await settle()
            assert positions.position(P0) == FetchPosition(95, None, LeaderAndEpoch(2, 6))

    run(scenario())


@pytest.mark.spec("D-27")
def test_a_metadata_update_without_news_changes_nothing() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(10))
        async with updater(cluster, P0) as (positions, _):
            positions.advance(P0, 20, 5)
            cluster.set_leaders({("orders", n): (1, 5) for n in range(3)})
            await settle()
            assert positions.position(P0) == FetchPosition(20, 5, ON_1)
            assert len(cluster.asked) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("policy", "end", "expected"),
    [
        ("earliest", EpochEnd(2, 90), FetchPosition(90, 2, LeaderAndEpoch(1, 5))),
        ("earliest", EpochEnd(-1, -1), FetchPosition(55, None, LeaderAndEpoch(1, 5))),
        ("none", EpochEnd(2, 120), FetchPosition(100, 2, LeaderAndEpoch(1, 5))),
        ("none", EpochEnd(2, 90), None),
    ],
    ids=["cut", "unknown", "still there", "told"],
)
@pytest.mark.spec("B.10.16", "B.9")
def test_a_divergence_from_a_fetch_is_judged_without_another_request(
    policy: str, end: EpochEnd, expected: FetchPosition | None
) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lists(55))
        async with updater(cluster, auto_offset_reset=policy) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(90), ON_1)
            positions.advance(P0, 100, 3)
            positions.mark_diverging(P0, end.epoch, end.end_offset)
            await settle()
            assert positions.position(P0) == expected
            assert cluster.of(EPOCH) == []
            error = one.take_error()
            assert isinstance(error, LogTruncatedError) == (expected is None)
            if isinstance(error, LogTruncatedError):
                assert (error.partition, error.position) == (P0, 100)
                assert error.divergent == {P0: OffsetAndMetadata(90, 2)}
                cluster.answer(EPOCH, epoch_ends(3, 100))
                # Seen, not acted on: the leader is asked once more.
                await until(lambda: positions.position(P0))

    run(scenario())


@pytest.mark.spec("B.9")
def test_all_truncations_of_a_response_are_one_error() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(EPOCH, epoch_ends(2, 90))
        async with updater(cluster, on_offset_out_of_range="error") as (positions, one):
            positions.assign([P0, P1, P2])
            for tp, offset in ((P0, 100), (P1, 110), (P2, 90)):
                positions.seek(tp, OffsetAndMetadata(offset - 1), ON_1)
                positions.advance(tp, offset, 3)
            cluster.set_leaders({("orders", n): (2, 6) for n in range(3)})
            await settle()
            error = one.take_error()
            assert isinstance(error, LogTruncatedError)
            assert error.positions == {P0: 100, P1: 110}
            assert error.divergent == dict.fromkeys((P0, P1), OffsetAndMetadata(90, 2))
            assert one.take_error() is None
            assert positions.position(P2) == FetchPosition(90, 3, LeaderAndEpoch(2, 6))

    run(scenario())
