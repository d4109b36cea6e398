"""The log lines of data that are dropped because they are not those at the position: DEBUG, with the reason."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import pytest

from kclient.fetch.response import FetchResponseHandler
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata
from tests.fetch.fetch_support import ON_1, P0, P1, DeliveryPipeline, batch
from tests.positions.fake_cluster import FakeCluster

Lines = Callable[[], list[tuple[int, str]]]


@pytest.fixture
def dropped(caplog: pytest.LogCaptureFixture) -> Lines:
    """The levels and texts of the lines about dropped data."""
    caplog.set_level(logging.DEBUG, "kclient.fetch")
    return lambda: [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if record.getMessage().startswith("Dropping")
    ]


@pytest.mark.spec("S2-53", "S2-40")
def test_debug_reports_where_dropped_data_begin_and_where_the_position_is(dropped: Lines) -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P0, batch(5, 6), at=5)
    assert pipeline.offsets(2) == [(0, 0), (0, 1)]
    assert pipeline.poll() is None
    text = f"Dropping the fetched data of {P0}: it begins at 5, the position is 2"
    assert dropped() == [(logging.DEBUG, text)]


@pytest.mark.spec("S2-53")
def test_buffered_data_of_a_position_that_was_moved_before_the_poll(dropped: Lines) -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.positions.seek(P0, OffsetAndMetadata(40), ON_1)
    assert pipeline.poll() is None
    reason = "the position was moved or the partition revoked meanwhile"
    assert dropped() == [(logging.DEBUG, f"Dropping the fetched data of {P0}: {reason}")]


@pytest.mark.spec("S2-53")
def test_data_of_a_position_that_was_moved_while_they_were_decoded(dropped: Lines) -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    task = pipeline.delivery.begin(2)
    assert task is not None
    task.decode()
    pipeline.positions.seek(P0, OffsetAndMetadata(40), ON_1)
    assert len(pipeline.delivery.finish(task)) == 0
    reason = "seek, pause or revocation came while it was decoded"
    assert dropped() == [(logging.DEBUG, f"Dropping the fetched data of {P0}: {reason}")]


@pytest.mark.spec("S2-53")
def test_buffered_data_of_many_partitions_are_one_line(dropped: Lines) -> None:
    """The fetcher drops them without a poll, as soon as positions change."""
    pipeline = DeliveryPipeline(P0, P1)
    cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5)})
    responses = FetchResponseHandler(
        cluster, pipeline.positions, pipeline.buffer, pipeline.config, Runtime(rng=random.Random(1))
    )
    responses.follow_positions()
    for tp in (P0, P1):
        pipeline.arrive(tp, batch(0, 1))
    pipeline.positions.assign([])
    responses.follow_positions()
    assert len(pipeline.buffer) == 0
    text = "Dropping the fetched data of 2 partitions that were moved or revoked"
    assert dropped() == [(logging.DEBUG, text)]
