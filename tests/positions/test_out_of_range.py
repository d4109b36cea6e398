"""OFFSET_OUT_OF_RANGE: raised with the offsets, or reset by the policy."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kclient.errors import (
    OffsetOutOfRangeError,
    PortClosedError,
)
from kclient.positions.lookup_context import OffsetReset
from kclient.positions.state import FetchPosition
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.positions.fake_cluster import FakeCluster, run, settle
from tests.positions.updater_support import LIST, ON_1, P0, P1, led_by_1, lists, updater


def bounds(start: int, end: int) -> Callable[[int, Any], Any]:
    return lambda node, request: lists(start if request.topics[0].partitions[0].timestamp == -2 else end)(
        node, request
    )


@pytest.mark.parametrize("keys", [{}, {"auto_offset_reset": "none"}], ids=["unset", "none"])
@pytest.mark.spec("S0-41", "U-01", "S2-32")
def test_a_lost_position_is_reported_with_its_numbers_when_no_policy_is_set(keys: dict[str, Any]) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster, **keys) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            assert not positions.is_fetchable(P0)
            error = one.take_error()
            assert isinstance(error, OffsetOutOfRangeError)
            assert (error.partitions, error.positions) == ((P0,), {P0: 100})
            assert (error.partition, error.position) == (P0, 100)
            assert (error.log_start, error.log_end, error.missing) == (500, 900, 400)
            assert positions.is_fetchable(P0)
            assert positions.position(P0) == FetchPosition(100, None, ON_1)

    run(scenario())


@pytest.mark.spec("U-01", "S2-32")
def test_a_lost_position_is_reported_without_numbers_when_the_broker_does_not_give_them() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, lambda node, request: PortClosedError("gone"))
        async with updater(cluster) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            error = one.take_error()
            assert isinstance(error, OffsetOutOfRangeError)
            assert (error.log_start, error.log_end, error.missing) == (None, None, None)

    run(scenario())


@pytest.mark.spec("U-01", "S2-32")
def test_a_lost_position_is_reported_while_its_partition_has_no_leader_to_ask_for_the_numbers() -> None:
    async def scenario() -> None:
        cluster = FakeCluster({("orders", 0): (-1, 5)})
        async with updater(cluster) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            error = one.take_error()
            assert isinstance(error, OffsetOutOfRangeError)
            assert (error.positions, error.log_start, error.log_end) == ({P0: 100}, None, None)
            assert cluster.of(LIST) == []

    run(scenario())


@pytest.mark.spec("U-01", "S2-32")
def test_each_lost_position_is_an_error_of_its_own() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster) as (positions, one):
            positions.assign([P0, P1])
            for tp, offset in ((P0, 100), (P1, 1_000)):
                positions.seek(tp, OffsetAndMetadata(offset), ON_1)
                positions.mark_out_of_range(tp)
            await settle()
            errors = [one.take_error(), one.take_error()]
            assert [getattr(error, "positions", None) for error in errors] == [{P0: 100}, {P1: 1_000}]
            assert one.take_error() is None

    run(scenario())


@pytest.mark.spec("S2-31")
def test_all_lost_positions_of_one_response_are_reset() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster, on_offset_out_of_range="earliest") as (positions, _):
            positions.assign([P0, P1])
            for tp in (P0, P1):
                positions.seek(tp, OffsetAndMetadata(100), ON_1)
                positions.mark_out_of_range(tp)
            await settle()
            assert [positions.position(tp) for tp in (P0, P1)] == [FetchPosition(500, None, ON_1)] * 2

    run(scenario())


@pytest.mark.parametrize("key", ["auto_offset_reset", "on_offset_out_of_range"])
@pytest.mark.parametrize(("policy", "position", "skipped"), [("earliest", 500, 400), ("latest", 900, 800)])
@pytest.mark.spec("U-01", "S2-31", "D-26", "S0-63")
def test_a_lost_position_follows_the_configured_policy_and_reports_what_was_skipped(
    caplog: pytest.LogCaptureFixture, key: str, policy: str, position: int, skipped: int
) -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster, jumps=jumps, **{key: policy}) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            assert positions.position(P0) == FetchPosition(position, None, ON_1)
            assert one.take_error() is None
            assert len(cluster.of(LIST)) == 1

    jumps: list[OffsetReset] = []
    run(scenario())
    assert jumps == [OffsetReset(P0, 100, position, policy)]
    assert jumps[0].skipped == skipped
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert f"{skipped} records skipped" in warning.getMessage()
    assert warning.offset_resets == tuple(jumps)  # type: ignore[attr-defined]


@pytest.mark.spec("U-01", "S0-63", "U-28")
def test_lost_positions_of_one_response_are_one_line_and_an_event_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        cluster = led_by_1(100)
        cluster.answer(LIST, lists(150))
        many = [TopicPartition("orders", n) for n in range(100)]
        async with updater(cluster, jumps=jumps, on_offset_out_of_range="earliest") as (positions, _):
            positions.assign(many)
            for tp in many:
                positions.seek(tp, OffsetAndMetadata(tp.partition * 10), ON_1)
                positions.mark_out_of_range(tp)
            await settle()
            assert {position.offset for tp in many if (position := positions.position(tp))} == {150}

    jumps: list[OffsetReset] = []
    run(scenario())
    assert [jump.skipped for jump in jumps] == [max(0, 150 - 10 * n) for n in range(100)]
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.endswith("and 95 more. 1200 records skipped in all")


@pytest.mark.spec("U-01", "S2-31")
def test_only_a_commit_that_is_missing_follows_on_no_committed_offset() -> None:
    """A partition without a committed offset begins at the earliest; a lost position still raises."""

    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster, P0, on_no_committed_offset="earliest") as (positions, one):
            assert positions.position(P0) == FetchPosition(500, None, ON_1)
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            assert isinstance(one.take_error(), OffsetOutOfRangeError)
            assert positions.position(P0) == FetchPosition(100, None, ON_1)

    run(scenario())


@pytest.mark.spec("S2-30", "S2-52")
def test_an_out_of_range_error_is_forgotten_when_the_user_seeks_before_it_was_reported() -> None:
    async def scenario() -> None:
        cluster = led_by_1()
        cluster.answer(LIST, bounds(500, 900))
        async with updater(cluster) as (positions, one):
            positions.assign([P0])
            positions.seek(P0, OffsetAndMetadata(100), ON_1)
            positions.mark_out_of_range(P0)
            await settle()
            positions.seek(P0, OffsetAndMetadata(600), ON_1)
            assert one.take_error() is None
            assert positions.is_fetchable(P0)

    run(scenario())
