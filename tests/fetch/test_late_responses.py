"""A response that comes when its partition is gone."""

from __future__ import annotations

import logging
import random

import pytest

from kclient.fetch.response import FetchResponseHandler
from kclient.fetch.session import FetchSession, PartitionFetch
from kclient.runtime import Runtime
from tests.fetch.fetch_support import P0, P1, DeliveryPipeline, answer, batch, data
from tests.positions.fake_cluster import FakeCluster


@pytest.mark.spec("S2-24", "S2-37", "S3-32")
def test_records_of_a_revoked_partition_are_dropped_and_the_others_kept() -> None:
    """A rebalance while a Fetch is out: the order of service does not know the revoked partition any more."""
    pipeline = DeliveryPipeline(P0, P1)
    cluster = FakeCluster({("orders", 0): (1, 5), ("orders", 1): (1, 5)})
    runtime = Runtime(rng=random.Random(1))
    responses = FetchResponseHandler(cluster, pipeline.positions, pipeline.buffer, pipeline.config, runtime)
    responses.follow_positions()
    wanted = {
        tp: PartitionFetch(tp, 0, 5, None, pipeline.positions.state(tp).position_version) for tp in (P0, P1)
    }
    session = FetchSession()
    session.next_request(wanted)
    pipeline.positions.assign([P1])
    responses.follow_positions()
    assert responses.handle(1, session, answer(data(P0, batch(0, 1)), data(P1, batch(0, 1))))
    assert pipeline.offsets() == [(1, 0), (1, 1)]


@pytest.mark.spec("S2-53", "S2-40")
def test_a_response_with_data_that_is_already_buffered_is_dropped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The leader moved while a Fetch was out, and both leaders answered."""
    caplog.set_level(logging.DEBUG, "kclient.fetch")
    pipeline = DeliveryPipeline(P0)
    cluster = FakeCluster({("orders", 0): (1, 5)})
    responses = FetchResponseHandler(
        cluster, pipeline.positions, pipeline.buffer, pipeline.config, Runtime(rng=random.Random(1))
    )
    responses.follow_positions()
    wanted = {P0: PartitionFetch(P0, 0, 5, None, pipeline.positions.state(P0).position_version)}
    for node_id in (1, 2):
        session = FetchSession()
        session.next_request(wanted)
        assert responses.handle(node_id, session, answer(data(P0, batch(0, 1))))
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    logged = [(one.levelno, one.getMessage()) for one in caplog.records if "Dropping" in one.getMessage()]
    assert logged == [(logging.DEBUG, f"Dropping a fetch of {P0} at 0: 2 is next")]
