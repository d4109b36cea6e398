"""An Iceberg table whose warehouse is on Azure or Google Cloud Storage: data and metadata by the store of kclient."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Self

import attrs
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.io.pyarrow import PyArrowFile

from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, SinkError
from kclient.spark.sink import iceberg_io
from kclient.spark.sink import store as stores
from kclient.spark.sink.iceberg_catalog import table_errors
from kclient.spark.sink.iceberg_io import IMPLEMENTATION, StoreFileIO
from kclient.spark.sink.store import store_of
from kclient.spark.sink.tables import TableUnavailable
from tests.clouds import ServiceBucket
from tests.faulty_http import FaultyProxy, Kind
from tests.spark.jobs.iceberg_support import Lake
from tests.spark.jobs.support import Landed, fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

on_clouds = pytest.mark.parametrize("bucket", ["azure", "gcs"], indirect=True)


@attrs.frozen
class LakeOnCloud(Lake):
    """The catalog is a file of this machine, the warehouse a bucket. Its readers must be told what kclient takes."""

    warehouse: str = ""

    @classmethod
    def of(cls, root: Path, bucket: ServiceBucket) -> Self:
        return cls(root, warehouse=bucket.url("warehouse"))

    @property
    def properties(self) -> dict[str, str]:
        return {
            "type": "sql",
            "uri": f"sqlite:///{self.root / 'catalog.db'}",
            "warehouse": self.warehouse,
        }

    @property
    def catalog(self) -> Catalog:
        name = f"{StoreFileIO.__module__}.{StoreFileIO.__name__}"
        return load_catalog("lake", **self.properties, **{IMPLEMENTATION: name})


@on_clouds
def test_a_job_lands_in_a_table_once(cluster: EmbeddedCluster, bucket: ServiceBucket, tmp_path: Path) -> None:
    lake = LakeOnCloud.of(tmp_path, bucket)
    settings = {"checkpoint": bucket.url("checkpoint"), "partition_by": "topic,date(timestamp)"}
    wanted = fill(cluster, 100)
    assert lake.run(cluster, **settings).results[0].rows == 100
    wanted += fill(cluster, 30, first=100)
    assert lake.run(cluster, **settings).results[0].rows == 30
    assert lake.by_pyiceberg() == sorted(wanted)
    named = [path.removeprefix(f"{bucket.url()}/") for path in lake.counted_files()]
    assert named == [key for key in bucket.listed() if key.endswith(".parquet")]
    parts = [
        pq.read_table(io.BytesIO(bucket.content(key)), columns=["_kafka_partition", "_offset"])
        for key in named
    ]
    found = [(row["_kafka_partition"], row["_offset"]) for part in parts for row in part.to_pylist()]
    assert sorted(found) == sorted((row.partition, row.offset) for row in wanted)
    for key in bucket.listed():
        assert not [secret for secret in bucket.secrets if secret.encode() in bucket.content(key)]


@on_clouds
def test_files_that_no_snapshot_names_are_found_and_removed(
    cluster: EmbeddedCluster, bucket: ServiceBucket, tmp_path: Path
) -> None:
    lake, wanted = LakeOnCloud.of(tmp_path, bucket), fill(cluster, 20)
    lake.run(cluster)
    table = lake.open()
    [counted, *_] = [key for key in bucket.listed() if key.endswith(".parquet")]
    stale = counted.replace("-0.parquet", "-9.parquet")
    store_of(bucket.url()).put(stale, b"1")
    found = table.garbage(2**60)
    assert [f"warehouse/db/orders/data/{each.path}" for each in found] == [stale]
    table.remove(found)
    assert stale not in bucket.listed()
    assert lake.by_pyiceberg() == sorted(wanted)


@on_clouds
def test_metadata_is_read_and_written_as_pyiceberg_asks(bucket: ServiceBucket) -> None:
    files, url = StoreFileIO(), bucket.url("metadata/é a.json")
    made = files.new_output(url)
    assert not made.exists()
    with pytest.raises(FileNotFoundError, match="is not there"):
        len(made)
    with made.create() as stream:
        stream.write(b"12")
    assert (len(made), made.to_input_file().open().read()) == (2, b"12")
    with pytest.raises(FileExistsError, match="there already"):
        made.create()
    with made.create(overwrite=True) as stream:
        stream.write(b"3")
    assert files.new_input(url).open().read() == b"3"
    files.delete(made)
    files.delete(url)
    assert bucket.listed() == []
    with pytest.raises(SinkError, match="The object was deleted"):
        files.new_input(url).open()


@pytest.mark.parametrize(
    ("url", "properties"),
    [
        ("s3://bucket/a", {"s3.region": "us-east-1", "s3.profile-name": "other"}),
        ("s3a://bucket/a", {"client.region": "us-east-1", "client.role-arn": "arn:aws:iam::1:role/a"}),
        ("gs://bucket/a", {"gcs.service.host": "http://127.0.0.1:1"}),
        ("file:///a", {}),
    ],
)
def test_other_stores_and_the_properties_of_pyiceberg_are_left_to_it(
    url: str, properties: dict[str, str]
) -> None:
    files = StoreFileIO({IMPLEMENTATION: "ours", **properties})
    first, second = files.new_input(url), files.new_output(url)
    assert isinstance(first, PyArrowFile)
    assert isinstance(second, PyArrowFile)
    assert first._filesystem is second._filesystem, "it keeps connections"


def test_an_s3_of_the_catalog_is_reached_by_the_store() -> None:
    properties = {"client.region": "eu-west-1", "s3.region": "us-east-2", "s3.endpoint": "http://127.0.0.1:1"}
    made = StoreFileIO({**properties, "gcs.service.host": "http://127.0.0.1:2"}).new_input("s3://bucket/a/b")
    assert isinstance(made, iceberg_io._StoreFile)
    assert made._store.options == {"region": "us-east-2", "endpoint": "http://127.0.0.1:1"}
    assert made._store is iceberg_io._StoreFile("s3://bucket/c", made._store.options)._store, (
        "it keeps connections"
    )


def test_a_store_that_does_not_answer_is_asked_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "RETRIES", 0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    files = StoreFileIO({"s3.endpoint": "http://127.0.0.1:1", "s3.region": "us-east-1"})
    with (
        pytest.raises(TableUnavailable, match="The service was not reachable"),
        table_errors("t", "Reading", {}),
    ):
        files.new_input("s3://bucket/a").exists()


def test_properties_for_a_package_that_is_missing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_io, "find_spec", lambda name: None)
    files = StoreFileIO({"adls.account-key": "canary"})
    with pytest.raises(
        ConfigError, match=r"properties adls\.account-key are for adlfs.* is not installed"
    ) as caught:
        files.new_input("abfss://box@account.dfs.core.windows.net/a")
    assert "canary" not in str(caught.value)


@on_clouds
def test_a_job_whose_store_fails_at_random_lands_each_record_once(
    cluster: EmbeddedCluster, bucket: ServiceBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every eighth request fails in some way, those of the metadata too. A run that gives up is started again."""
    monkeypatch.setattr(stores, "REQUEST_SECONDS", 2)
    monkeypatch.setattr(stores, "RETRIES", 2)
    moments = random.Random(1)
    kinds: list[Kind] = ["500", "503", "drop", "500 after", "drop after", "late"]
    lake, wanted = LakeOnCloud.of(tmp_path, bucket), list[Landed]()
    with FaultyProxy(bucket.endpoint, delay=2.5) as proxy:
        for name, value in bucket.through(proxy.endpoint).items():
            monkeypatch.setenv(name, value)
        proxy.choose = lambda method, path: moments.choice(kinds) if moments.random() < 0.12 else None
        for _ in range(3):
            wanted += fill(cluster, 60, first=len(wanted))
            until_done(lambda: lake.run(cluster))
        proxy.choose = lambda method, path: None
        assert lake.by_pyiceberg() == sorted(wanted)


def until_done(run: Callable[[], object], tries: int = 8) -> None:
    """Call it until it raises no SinkError."""
    for left in reversed(range(tries)):
        try:
            run()
            return
        except SinkError:
            if not left:
                raise
