"""A store that answers that it stored an object, and did not: the run says so, and the next one lands what is missing.

One object of a second batch is lost, of each kind and in each sink. `pyiceberg` is an Iceberg table whose catalog names
credentials: pyiceberg itself writes its metadata.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kclient.embedded import EmbeddedCluster
from tests.faulty_http import FaultyProxy
from tests.s3 import Bucket
from tests.spark.jobs.iceberg_support import IDENTIFIER
from tests.spark.jobs.support import Landed, fill, rows
from tests.spark.jobs.table_support import assert_exactly_once
from tests.spark.jobs.test_delta_s3 import by_delta_rs
from tests.spark.jobs.test_iceberg_s3 import LakeOnS3, keys

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

OF_A_RUN = ("/kclient/runs/", "/offsets/1", ".parquet", "/_manifest/", "/commits/1")


@pytest.fixture
def proxy(s3: Bucket) -> Iterator[FaultyProxy]:
    with FaultyProxy(s3.server.endpoint) as running:
        yield running


@pytest.fixture
def wanted(cluster: EmbeddedCluster) -> list[Landed]:
    return fill(cluster, 20)


class Job:
    """A job in a process of its own, which asks the store through the proxy.

    pyiceberg and delta-rs hold the GIL while they wait for the store, and a proxy in their process would wait for it.
    """

    def __init__(
        self, cluster: EmbeddedCluster, s3: Bucket, proxy: FaultyProxy, root: Path, kind: str
    ) -> None:
        self.kind, self.sink, self.url = kind.removeprefix("py"), s3.url("raw"), proxy.endpoint
        with self._behind_the_proxy():
            self.lake = LakeOnS3.of(root, s3, keys() if kind == "pyiceberg" else {})
        options = {"-b": cluster.bootstrap_servers, "--topics": "orders", "--engine": "direct"}
        options |= {"--sink": f"{self.kind}:{self.sink}", "--checkpoint": s3.url("checkpoint")}
        if self.kind == "iceberg":
            options |= {f"--{name}": value for name, value in self.lake.settings().items()}
        self.command = [sys.executable, "-m", "kclient", "ingest"]
        self.command += [part for pair in options.items() for part in pair]

    @contextmanager
    def _behind_the_proxy(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AWS_ENDPOINT_URL", self.url)
            yield

    def run(self) -> str:
        """Run it to its end, and return what it says if it fails."""
        with self._behind_the_proxy():
            done = subprocess.run(self.command, capture_output=True, text=True, timeout=90, check=False)
        assert bool(done.returncode) == ("KC-710" in done.stderr), done.stderr
        return done.stderr

    def assert_landed_once(self, wanted: list[Landed]) -> None:
        if self.kind == "iceberg":
            assert_exactly_once(self.lake, wanted)
        else:
            assert (rows if self.kind == "parquet" else by_delta_rs)(self.sink) == sorted(wanted)


@pytest.fixture
def job(cluster: EmbeddedCluster, s3: Bucket, proxy: FaultyProxy, tmp_path: Path, kind: str) -> Job:
    return Job(cluster, s3, proxy, tmp_path, kind)


def lose(
    cluster: EmbeddedCluster,
    job: Job,
    wanted: list[Landed],
    proxy: FaultyProxy,
    part: str,
    method: str = "PUT",
) -> str:
    """Land a batch; lose an object of the next one. Return what the run says."""
    job.run()
    wanted += fill(cluster, 20, first=len(wanted))
    rule = proxy.fail(method, part, "lie")
    text = job.run()
    assert rule.seen == 1
    return text


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        *(("parquet", part) for part in OF_A_RUN),
        ("delta", ".parquet"),
        *(("iceberg", part) for part in (".parquet", "/metadata/snap-", "-m0.avro", "/metadata/00002-")),
    ],
)
def test_what_a_lost_object_was_to_hold_lands_in_the_next_run(
    cluster: EmbeddedCluster, job: Job, wanted: list[Landed], proxy: FaultyProxy, part: str
) -> None:
    text = lose(cluster, job, wanted, proxy, part)
    assert re.search(rf"The service answered that it stored.*{re.escape(part)}", text)
    job.run()
    job.assert_landed_once(wanted)


IN_PARTS = ".*uploadId="
"""pyarrow uploads even small files in parts: the last request for one names the upload."""


@pytest.mark.parametrize("kind", ["pyiceberg"])
@pytest.mark.parametrize(
    ("part", "told"),
    [
        ("/metadata/snap-", "The service answered that it stored"),
        ("-m0.avro", "FileNotFoundError"),  # pyiceberg asks for the size of each manifest that it has written
    ],
)
def test_the_same_of_metadata_that_pyiceberg_writes(
    cluster: EmbeddedCluster, job: Job, wanted: list[Landed], proxy: FaultyProxy, part: str, told: str
) -> None:
    text = lose(cluster, job, wanted, proxy, f"{part}{IN_PARTS}", "POST")
    assert re.search(rf"{told}.*{re.escape(part)}", text)
    job.run()
    job.assert_landed_once(wanted)


@pytest.mark.parametrize("kind", ["delta"])
def test_a_commit_that_delta_rs_does_not_find_again_is_made_again(
    cluster: EmbeddedCluster, job: Job, wanted: list[Landed], proxy: FaultyProxy
) -> None:
    job.run()
    wanted += fill(cluster, 20, first=len(wanted))
    rule = proxy.fail("PUT", "/_delta_log/", "lie")
    job.run()
    assert rule.seen == 1
    job.assert_landed_once(wanted)


@pytest.mark.parametrize("kind", ["pyiceberg"])
def test_a_table_whose_metadata_was_lost_goes_on_from_the_file_that_the_error_names(
    cluster: EmbeddedCluster, job: Job, wanted: list[Landed], proxy: FaultyProxy, s3: Bucket
) -> None:
    text = lose(cluster, job, wanted, proxy, f"/metadata/00002-{IN_PARTS}", "POST")
    (before,) = [key for key in s3.listed() if "/metadata/00001-" in key and s3.url(key) in text]
    job.lake.catalog.drop_table(IDENTIFIER)
    job.lake.catalog.register_table(IDENTIFIER, s3.url(before))
    job.run()
    job.assert_landed_once(wanted)


@pytest.mark.parametrize("kind", ["parquet"])
def test_a_store_that_lost_its_first_object_is_not_used(
    job: Job, wanted: list[Landed], proxy: FaultyProxy, s3: Bucket
) -> None:
    proxy.fail("PUT", "", "lie", times=1000)
    assert "The service answered that it stored" in job.run()
    assert s3.listed() == []
