"""An Iceberg table whose warehouse is a real S3: data and metadata by obstore, or metadata by pyiceberg's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.sink import store
from tests.s3 import Bucket
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed, fill
from tests.spark.jobs.table_support import assert_exactly_once
from tests.spark.jobs.test_kills import producing

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


class LakeOnS3(Lake):
    """The catalog is a file of this machine, the warehouse a bucket."""

    bucket: Bucket
    more: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, root: Path, bucket: Bucket, more: Mapping[str, str] = MappingProxyType({})) -> Self:
        cls.bucket, cls.more = bucket, more
        return cls(root)

    @property
    def properties(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.root / 'catalog.db'}",
            "warehouse": self.bucket.url("warehouse"),
            "s3.endpoint": os.environ["AWS_ENDPOINT_URL"],
            "s3.region": os.environ["AWS_REGION"],
            **self.more,
        }


def keys() -> dict[str, str]:
    """Return properties with which pyiceberg itself reads and writes the metadata."""
    return {
        "s3.access-key-id": os.environ["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": os.environ["AWS_SECRET_ACCESS_KEY"],
    }


def data_files(bucket: Bucket) -> list[str]:
    return [key for key in bucket.listed() if key.endswith(".parquet")]


@pytest.mark.parametrize("is_pyiceberg", [False, True])
def test_a_job_lands_in_a_table_on_s3_once(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, is_pyiceberg: bool
) -> None:
    lake = LakeOnS3.of(tmp_path, s3, keys() if is_pyiceberg else {})
    settings = {"checkpoint": s3.url("checkpoint"), "partition_by": "topic,date(timestamp)"}
    wanted = fill(cluster, 100)
    assert lake.run(cluster, **settings).results[0].rows == 100
    wanted += fill(cluster, 30, first=100)
    assert lake.run(cluster, **settings).results[0].rows == 30
    assert_exactly_once(lake, wanted)
    assert len(data_files(s3)) == len(lake.table.inspect.files())
    secret = s3.server.environment["AWS_SECRET_ACCESS_KEY"].encode()
    assert not [key for key in s3.listed() if secret in (s3.server.data / s3.name / key).read_bytes()]


def test_killed_jobs_leave_only_files_that_gc_finds(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path
) -> None:
    lake, wanted = LakeOnS3.of(tmp_path, s3), list[Landed]()
    job = lake.job(cluster)
    with producing(cluster, wanted):
        for delay in (0.0, 0.1):
            job.killed_at_work(delay)
    job.drain()
    assert_exactly_once(lake, wanted)
    table = lake.open()
    [counted, *_] = data_files(s3)
    stale = counted.replace("-0.parquet", "-9.parquet")
    place = s3.server.data / s3.name
    (place / stale).write_bytes((place / counted).read_bytes())
    found = table.garbage(2**60)
    assert stale.endswith(tuple(each.path for each in found))
    table.remove(found)
    files = lake.table.inspect.all_files().column("file_path").to_pylist()
    assert {s3.url(key) for key in data_files(s3)} == set(files)
    assert_exactly_once(lake, wanted)


def test_credentials_that_are_refused_end_the_run_and_are_not_shown(
    cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = LakeOnS3.of(tmp_path, s3)
    fill(cluster, 10)
    lake.run(cluster)
    fill(cluster, 10, first=10)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    store._remote_store.cache_clear()  # a process reads its credentials once
    with pytest.raises(SinkError) as caught:
        lake.run(cluster)
    store._remote_store.cache_clear()
    assert "wrong" not in str(caught.value)
