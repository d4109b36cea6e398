"""A Delta table on a real S3: files and log by two libraries, and a commit that only one of several writers gets."""

from __future__ import annotations

import threading
from pathlib import Path

import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.sink import tables
from kclient.spark.sink.delta import DeltaSink, storage_options
from kclient.spark.sink.store import ObjectStore
from kclient.spark.sink.tables import TableProgress
from tests.s3 import Bucket
from tests.spark.delta_support import JOB, LAYOUT, TP, written
from tests.spark.jobs.support import Landed, fill, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def by_delta_rs(url: str) -> list[Landed]:
    table = DeltaTable(url, storage_options=storage_options(url))
    columns = ["_topic", "_partition", "_offset", "value"]
    rows = pa.table(table.scan(columns).read_all()).select(columns).to_pylist()
    return sorted(Landed(*row.values()) for row in rows)


def test_a_job_lands_in_a_table_on_s3_once(cluster: EmbeddedCluster, s3: Bucket, tmp_path: Path) -> None:
    url = s3.url("lake/orders")
    settings = {
        "sink": f"delta:{url}",
        "checkpoint": s3.url("checkpoint"),
        "partition_by": "topic,date(timestamp)",
    }
    wanted = fill(cluster, 100)
    assert run(cluster, tmp_path, **settings).results[0].rows == 100
    wanted += fill(cluster, 30, first=100)
    assert run(cluster, tmp_path, **settings).results[0].rows == 30
    assert by_delta_rs(url) == sorted(wanted)
    frame = polars.read_delta(url, storage_options={"allow_http": "true"})
    assert frame.height == frame.select("_partition", "_offset").unique().height == len(wanted)
    secret = s3.server.environment["AWS_SECRET_ACCESS_KEY"].encode()
    assert not [key for key in s3.listed() if secret in (s3.server.data / s3.name / key).read_bytes()]


def test_of_runs_at_the_same_time_one_commits_each_batch(s3: Bucket) -> None:
    sink = DeltaSink(s3.url("orders"))
    sink.prepare(LAYOUT.schema(), ("topic",), evolves=False)
    runs = [[written(sink, batch) for batch in range(4)] for _ in range(4)]
    start = threading.Barrier(len(runs))

    def commit_all(batches: list[tables.TableCommit]) -> None:
        mine = DeltaSink(sink.url)
        for wanted in batches:
            start.wait()
            tables.commit(mine, wanted)

    threads = [threading.Thread(target=commit_all, args=(batches,)) for batches in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [row.offset for row in by_delta_rs(sink.url)] == list(range(40))
    assert sink.load().version() == 4
    assert sink.progress(sink.load(), JOB) == TableProgress(batch=3, offsets={TP: 40}, first={TP: 0})


def test_files_that_no_version_names_are_found_and_removed_on_s3(s3: Bucket) -> None:
    sink = DeltaSink(s3.url("orders"))
    sink.prepare(LAYOUT.schema(), ("topic",), evolves=False)
    tables.commit(sink, written(sink, 0))
    left = written(sink, 1).files
    found = sink.garbage(2**42)
    assert [file.path for file in found] == [file.path for file in left]
    sink.remove(found)
    assert sink.garbage(2**42) == []
    assert [row.offset for row in by_delta_rs(sink.url)] == list(range(10))


def test_a_service_that_ignores_conditional_writes_is_refused(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ObjectStore, "put_if_absent", lambda self, key, content: self.put(key, content) is None
    )
    sink = DeltaSink(s3.url("orders"))
    with pytest.raises(SinkError, match="ignores conditional writes"):
        sink.prepare(LAYOUT.schema(), ("topic",), evolves=False)
    assert s3.listed() == []


def test_wrong_credentials_are_an_error_at_once(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = DeltaSink(s3.url("orders"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(SinkError, match="The table, the permissions or the credentials do not allow it"):
        sink.find()
