"""A topic that is deleted and created again: the old position is dropped, whichever broker leads, and logged."""

from __future__ import annotations

import asyncio

import pytest

from kclient.errors import OffsetOutOfRangeError
from kclient.positions.lookup_context import OffsetReset
from kclient.positions.state import FetchPosition
from kclient.types import LeaderAndEpoch, OffsetAndMetadata
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.updater_support import EPOCH, LIST, P0, epoch_ends, lists, updater
from tests.waiting import until

FIRST, SECOND, THIRD = (bytes([n]) * 16 for n in (1, 2, 3))
READ_UP_TO = OffsetAndMetadata(100, 5)


def of_topic(topic_id: bytes) -> FakeCluster:
    """Led by node 1 in epoch 5. Its log is longer than what was read, so that a check of the position would pass."""
    cluster = FakeCluster({("orders", 0): (1, 5)}, topic_ids={"orders": topic_id})
    cluster.answer(EPOCH, epoch_ends(0, 700))
    cluster.answer(LIST, lists(0))
    return cluster


def replace(cluster: FakeCluster, topic_id: bytes, leader: tuple[int, int]) -> None:
    cluster.topic_ids["orders"] = topic_id
    cluster.set_leaders({("orders", 0): leader})


@pytest.mark.parametrize("leader", [(1, 5), (2, 0), (1, 0), (2, 7)])
@pytest.mark.spec("I-14", "D-25")
def test_a_position_in_a_topic_that_is_gone_is_lost_whichever_broker_leads_the_new_one(
    leader: tuple[int, int],
) -> None:
    async def scenario() -> None:
        cluster = of_topic(FIRST)
        async with updater(cluster, jumps=jumps, on_offset_out_of_range="earliest") as (positions, _):
            positions.assign([P0])
            positions.seek(P0, READ_UP_TO, LeaderAndEpoch(1, 5))
            await settle()
            cluster.asked.clear()
            replace(cluster, SECOND, leader)
            await settle()
            assert [type(asked.message).__name__ for asked in cluster.asked] == [LIST]
            assert positions.position(P0) == FetchPosition(0, None, LeaderAndEpoch(*leader))

    jumps: list[OffsetReset] = []
    run(scenario())
    assert jumps == [OffsetReset(P0, 100, 0, "earliest")]


@pytest.mark.spec("I-14", "D-25", "U-01")
def test_without_a_policy_it_is_reported_also_when_the_leader_changes_before_the_poll() -> None:
    async def scenario() -> None:
        cluster = of_topic(FIRST)
        async with updater(cluster) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, READ_UP_TO, LeaderAndEpoch(1, 5))
            await settle()
            for leader in ((1, 5), (2, 6), (3, 7)):
                replace(cluster, SECOND, leader)
                await settle()
                assert not positions.is_fetchable(P0)
            error = one.take_error()
            assert isinstance(error, OffsetOutOfRangeError)
            assert "created again" in error.text

    run(scenario())


@pytest.mark.spec("I-14", "U-01")
def test_a_topic_that_is_recreated_twice_between_two_polls_is_reported_as_it_is_now() -> None:
    """The error of the first recreation is outdated; the second one must still be raised."""

    async def scenario() -> None:
        cluster = of_topic(FIRST)
        async with updater(cluster) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, READ_UP_TO, LeaderAndEpoch(1, 5))
            await settle()
            for topic_id in (SECOND, THIRD):
                replace(cluster, topic_id, (1, 5))
                await settle()
            assert isinstance(one.take_error(), OffsetOutOfRangeError)

    run(scenario())


@pytest.mark.spec("I-14", "U-01", "S0-63")
def test_a_jump_is_reported_though_the_topic_is_recreated_while_its_end_is_looked_up() -> None:
    async def scenario() -> None:
        cluster = of_topic(FIRST)
        async with updater(cluster, jumps=jumps, on_offset_out_of_range="earliest") as (positions, _):
            positions.assign([P0])
            positions.seek(P0, READ_UP_TO, LeaderAndEpoch(1, 5))
            await settle()
            cluster.answer(LIST, lambda node, request: asyncio.sleep(1, lists(0)(node, request)))
            positions.mark_out_of_range(P0)
            await settle()
            replace(cluster, SECOND, (1, 5))
            await until(lambda: positions.position(P0))

    jumps: list[OffsetReset] = []
    run(scenario())
    assert jumps == [OffsetReset(P0, 100, 0, "earliest")]
