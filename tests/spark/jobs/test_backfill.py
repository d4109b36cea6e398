"""A backfill beside a job: what each of the two lands, so that no record counts twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from tests.spark.jobs import killing
from tests.spark.jobs.support import Landed, assert_exactly_once, fill, given, run

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}) as running:
        yield running


@pytest.mark.spec("SP-82", "SP-89")
@pytest.mark.parametrize("topics", ["orders", "order.*"])
def test_a_partition_that_appears_is_the_jobs(cluster: EmbeddedCluster, tmp_path: Path, topics: str) -> None:
    wanted = fill(cluster, 5)
    run(cluster, tmp_path, topics=topics)
    cluster.add_partitions("orders", 2)
    cluster.produce("orders", [b"new"] * 5, partition=1)
    assert run(cluster, tmp_path, topics=topics, backfill=True).results[0].rows == 0
    ends = tmp_path / "ends.json"
    ends.write_text(json.dumps({"orders": {"0": 0, "1": 3}}))
    with pytest.raises(SinkError, match="The job of this checkpoint lands orders-1 from 0 on"):
        run(cluster, tmp_path, topics=topics, backfill=True, end=str(ends))
    run(cluster, tmp_path, topics=topics)
    assert_exactly_once(tmp_path / "sink", wanted + [Landed("orders", 1, n, b"new") for n in range(5)])


@pytest.mark.spec("SP-89")
def test_a_backfill_of_a_topic_that_the_job_does_not_read(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 5)
    run(cluster, tmp_path)
    cluster.create_topic("clicks", 1)
    wanted += fill(cluster, 5, topic="clicks")
    run(cluster, tmp_path, topics="clicks", backfill=True)
    assert_exactly_once(tmp_path / "sink", wanted)


@pytest.mark.spec("SP-82", "SP-89")
def test_a_job_that_was_killed_before_its_start_was_kept(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 5)
    settings = given(cluster.bootstrap_servers, tmp_path)
    assert killing.killed(settings, "after the job is claimed", 0) == -9
    run(cluster, tmp_path, backfill=True)
    with pytest.raises(SinkError, match="would count twice"):
        run(cluster, tmp_path)
    assert_exactly_once(tmp_path / "sink", wanted)
    wanted += fill(cluster, 5, first=5)
    starts = tmp_path / "starts.json"
    starts.write_text(json.dumps({"orders": {"0": 5}}))
    run(cluster, tmp_path, start=str(starts))
    assert_exactly_once(tmp_path / "sink", wanted)
