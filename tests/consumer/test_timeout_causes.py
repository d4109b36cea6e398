"""A call that runs out of time names the error of its last attempt."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kclient import OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import DeadlineError
from tests.scenarios.support import T0, consumer_of, play, read

QUICK: dict[str, Any] = {"group_id": "g", "retry_backoff_ms": 50, "retry_backoff_max_ms": 50}
LOADING = "COORDINATOR_LOAD_IN_PROGRESS"


@pytest.mark.spec("B.14.1")
def test_a_commit_and_a_lookup_that_time_out_report_the_last_error() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            cluster.produce("t", ["v"], partition=0)
            consumer = consumer_of(cluster, "t", **QUICK)
            await read(consumer, 1)
            for api in ("OffsetCommit", "OffsetFetch"):
                cluster.fail(api, LOADING, times=None)
            with pytest.raises(
                DeadlineError, match=f"the commit took longer than 2 s. The last try: .*{LOADING}"
            ):
                await consumer.commit({T0: OffsetAndMetadata(1)}, timeout=2)
            with pytest.raises(DeadlineError, match=f"committed offsets took .* The last try: .*{LOADING}"):
                await consumer.committed([T0], timeout=2)
            await consumer.close(timeout=3)

    play(scenario)


@pytest.mark.spec("B.18")
def test_the_commit_on_close_reports_why_it_could_not_be_done(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            cluster.produce("t", ["v"], partition=0)
            consumer = consumer_of(cluster, "t", enable_auto_commit=True, **QUICK)
            await read(consumer, 1)
            await consumer.poll(0)
            cluster.fail("OffsetCommit", LOADING, times=None)
            await consumer.close(timeout=3)

    with caplog.at_level(logging.WARNING, "kclient.commit"):
        play(scenario)
    assert any("on close" in text and LOADING in text for text in caplog.messages), caplog.messages
