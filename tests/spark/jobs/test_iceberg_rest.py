"""An Iceberg table in a REST catalog, whose files are on a real S3: killed jobs, lost answers, a catalog that fails."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from localspark.jars import ICEBERG_REST
from localspark.rest_catalog import RestCatalogServer
from tests.faulty_http import FaultyProxy, Kind
from tests.s3 import Bucket
from tests.spark.jobs.support import fill
from tests.spark.jobs.table_support import assert_exactly_once, killed_at_random
from tests.spark.jobs.test_iceberg_s3 import LakeOnS3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMIT = ("POST", "/v1/namespaces/db/tables/orders")
RANDOM_KILLS = 30


class LakeOnRest(LakeOnS3):
    """The catalog answers behind a proxy that can fail."""

    endpoint: str

    @property
    def properties(self) -> dict[str, str]:
        warehouse = {name: value for name, value in super().properties.items() if name.startswith("s3.")}
        return {"type": "rest", "uri": self.endpoint, **warehouse}


def rest_catalog(bucket: Bucket) -> RestCatalogServer:
    """A REST catalog whose warehouse is the bucket."""
    if reason := ICEBERG_REST.unavailable():
        if os.environ.get("CI") == "true":
            pytest.fail(f"the catalog must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no REST catalog: {reason}")
    environment = bucket.server.environment
    return RestCatalogServer(
        {
            "warehouse": bucket.url("warehouse"),
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": environment["AWS_ENDPOINT_URL"],
            "s3.path-style-access": "true",
            "client.region": environment["AWS_REGION"],
        }
    )


@pytest.fixture
def server(s3: Bucket) -> Iterator[RestCatalogServer]:
    with rest_catalog(s3) as running:
        yield running


@pytest.fixture
def proxy(server: RestCatalogServer) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.endpoint) as running:
        yield running


@pytest.fixture
def lake(proxy: FaultyProxy, s3: Bucket, tmp_path: Path) -> LakeOnRest:
    LakeOnRest.endpoint = proxy.endpoint
    return LakeOnRest.of(tmp_path, s3)


FAULTS: tuple[Kind, ...] = ("500", "503", "500 after", "drop", "drop after", "late", "slow")


def test_each_commit_counts_once_whatever_its_answer_is(
    cluster: EmbeddedCluster, lake: LakeOnRest, proxy: FaultyProxy
) -> None:
    wanted = fill(cluster, 100)
    lake.run(cluster)
    before = lake.batches()
    for number, fault in enumerate(FAULTS, 1):
        wanted += fill(cluster, 10, first=90 + 10 * number)
        rule = proxy.fail(*COMMIT, fault)
        assert lake.run(cluster).results[0].rows == 10, fault
        assert rule.seen == 1, fault
    assert_exactly_once(lake, wanted)
    assert lake.batches() == before + len(FAULTS)


def test_killed_jobs_beside_other_writers_land_each_record_once(
    cluster: EmbeddedCluster, lake: LakeOnRest
) -> None:
    killed_at_random(cluster, lake, 3, pause=1.0)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_jobs_that_are_killed_again_and_again_land_each_record_once(
    cluster: EmbeddedCluster, lake: LakeOnRest
) -> None:
    killed_at_random(cluster, lake, RANDOM_KILLS, pause=1.0)


def test_a_catalog_that_is_killed_and_comes_back_is_waited_for(
    cluster: EmbeddedCluster, lake: LakeOnRest, server: RestCatalogServer
) -> None:
    wanted = fill(cluster, 50)
    lake.run(cluster)
    wanted += fill(cluster, 50, first=50)
    server.kill()
    back = threading.Timer(1.0, server.start)
    back.start()
    try:
        assert lake.run(cluster).results[0].rows == 50
    finally:
        back.join()
    assert_exactly_once(lake, wanted)


def test_a_catalog_that_stays_away_ends_the_job_and_loses_nothing(
    cluster: EmbeddedCluster, lake: LakeOnRest, server: RestCatalogServer
) -> None:
    wanted = fill(cluster, 50)
    server.kill()
    begun = time.monotonic()
    job = lake.job(cluster).start("--trigger", "availableNow")
    assert job.wait(120) == 8
    assert time.monotonic() - begun < 60
    assert "lake.db.orders cannot be used" in (lake.root / "log").read_text()
    server.start()
    assert lake.run(cluster).results[0].rows == 50
    assert_exactly_once(lake, wanted)
