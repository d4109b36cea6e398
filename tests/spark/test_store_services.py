"""What the store makes of a service: the same on S3, on Azure and on Google's XML API."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.sink import manifest
from kclient.spark.sink import store as stores
from kclient.spark.sink.delta import storage_options
from kclient.spark.sink.store import PART_BYTES, ObjectStore, store_of
from tests.clouds import ServiceBucket
from tests.faulty_http import FaultyProxy, Kind
from tests.spark.jobs.support import fill, run

pytestmark = pytest.mark.timeout(120)

WRITERS = 8
ROUNDS = 10


@pytest.fixture
def store(bucket: ServiceBucket) -> ObjectStore:
    store = store_of(bucket.url("raw"))
    assert isinstance(store, ObjectStore)
    return store


def test_one_of_many_writers_at_once_creates_an_object(store: ObjectStore) -> None:
    for attempt in range(ROUNDS):
        start, won = threading.Barrier(WRITERS), list[bytes]()

        def write(name: bytes, key: str, start: threading.Barrier = start, won: list[bytes] = won) -> None:
            start.wait()
            if store.put_if_absent(key, name):
                won.append(name)

        names = [f"writer {number}".encode() for number in range(WRITERS)]
        threads = [threading.Thread(target=write, args=(name, f"_manifest/{attempt}.json")) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == [store.read(f"_manifest/{attempt}.json")]


def test_objects_are_listed_read_and_deleted(store: ObjectStore, bucket: ServiceBucket) -> None:
    key = "topic=a b/date=2026-11-24/é+%41.parquet"
    for number in range(3):
        store.put(f"_manifest/{number}.json", b"12")
    store.put(key, b"1")
    assert sorted(found.key for found in store.list("_manifest")) == [f"_manifest/{n}.json" for n in range(3)]
    assert {found.bytes for found in store.list("_manifest")} == {2}
    assert [(found.key, store.read(found.key)) for found in store.list("topic=a b")] == [(key, b"1")]
    assert len(bucket.listed()) == 4
    store.delete(key)
    store.delete(key)
    assert store.read(key) is None


@pytest.mark.parametrize("bucket", ["s3"], indirect=True)  # a page of Azure has 5000
def test_a_list_of_more_than_one_page_is_whole(store: ObjectStore) -> None:
    for number in range(1005):
        store.put(f"many/{number}", b"")
    assert len(list(store.list("many"))) == 1005


@pytest.mark.parametrize("size", [10, 2 * PART_BYTES + 7])
def test_an_object_appears_whole_at_close_or_never(
    store: ObjectStore, bucket: ServiceBucket, size: int
) -> None:
    content = os.urandom(size)
    writer = store.open_write("a/b")
    writer.write(content)
    assert bucket.listed() == []
    assert list(store.list()) == []
    writer.close()
    assert store.read("a/b") == content
    with store.open_read("a/b") as file:
        file.seek(size - 3)
        assert file.read() == content[-3:]
    other = store.open_write("a/c")
    other.write(content)
    other.discard()
    assert store.read("a/c") is None


def test_a_store_is_used_in_another_process_with_its_own_credentials(store: ObjectStore) -> None:
    code = (
        "import pickle, sys; store = pickle.load(sys.stdin.buffer); print(store.put_if_absent('a', b'child'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(store), capture_output=True, check=True, timeout=60
    )
    assert run.stdout == b"True\n"
    assert store.read("a") == b"child"


def test_a_service_that_honours_conditions_passes_the_check(
    store: ObjectStore, bucket: ServiceBucket
) -> None:
    store.check_conditional_writes()
    assert bucket.listed() == []


# --- errors ----------------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[ObjectStore], Any]] = {
    "put_if_absent": lambda store: store.put_if_absent("a", b"1"),
    "put": lambda store: store.put("a", b"1"),
    "read": lambda store: store.read("a"),
    "list": lambda store: list(store.list()),
    "open_write": lambda store: store.open_write("a").close(),
    "open_read": lambda store: store.open_read("a"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_bucket_that_is_not_there_is_no_empty_store(bucket: ServiceBucket, call: str) -> None:
    url = bucket.url("raw").replace(bucket.name, "no-such-bucket")
    store = store_of(url)
    assert isinstance(store, ObjectStore)
    if call == "open_read":
        expected = rf"Reading {re.escape(url)}/a failed: .*not found"
    else:
        expected = (
            rf"{re.escape(url)}.* failed: .*(NoSuchBucket|ContainerNotFound)\)\. The bucket does not exist"
        )
    with pytest.raises(SinkError, match=expected):
        CALLS[call](store)


@pytest.mark.parametrize("call", CALLS)
def test_wrong_credentials_are_an_error_that_shows_none(
    bucket: ServiceBucket, call: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in bucket.wrong(tmp_path).items():
        monkeypatch.setenv(name, value)
    store = store_of(bucket.url("raw"))
    assert isinstance(store, ObjectStore)
    with pytest.raises(
        SinkError, match=r"The credentials of the environment .* lack the permission"
    ) as caught:
        CALLS[call](store)
    assert not [secret for secret in ["canary", *bucket.secrets] if secret in str(caught.value)]
    assert len(str(caught.value)) < 700


# --- answers that are lost: tests/spark/test_store_faults.py has more, on S3 -----------------------------------------


@pytest.fixture
def proxy(bucket: ServiceBucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """The service behind a proxy, and bounds that a test can wait for."""
    monkeypatch.setattr(stores, "REQUEST_SECONDS", 2)
    monkeypatch.setattr(stores, "RETRIES", 2)
    with FaultyProxy(bucket.endpoint) as running:
        for name, value in bucket.through(running.endpoint).items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.mark.parametrize("kind", ["500", "500 after", "drop after", "late"])
@pytest.mark.parametrize("other", [None, b"theirs"])
def test_a_create_whose_answer_is_lost_says_whose_the_object_is(
    proxy: FaultyProxy, store: ObjectStore, kind: Kind, other: bytes | None
) -> None:
    if other is not None:
        store.put("zz", other)
    rule = proxy.fail("PUT", "zz", kind)
    assert store.put_if_absent("zz", b"ours") == (other is None)
    assert rule.seen == 1
    assert store.read("zz") == (other or b"ours")


@pytest.mark.parametrize("times", [1, 100])
def test_an_upload_that_loses_answers_is_whole_or_an_error(
    proxy: FaultyProxy, store: ObjectStore, times: int
) -> None:
    """Of the request that ends it: Azure's has another form than those of the others."""
    content = os.urandom(2 * PART_BYTES + 1000)
    rules = [proxy.fail("POST", "uploadId=", "500", times), proxy.fail("PUT", "comp=blocklist", "500", times)]
    writer = store.open_write("zz")
    writer.write(content)
    if times == 1:
        writer.close()
    else:
        with pytest.raises(SinkError, match=r"Writing .*/raw/zz failed"):
            writer.close()
    assert sum(rule.seen for rule in rules) == (1 if times == 1 else 1 + stores.RETRIES)
    assert store.read("zz") == (content if times == 1 else None)


# --- a job -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_job_lands_each_record_once_with_the_credentials_of_the_environment(
    bucket: ServiceBucket, tmp_path: Path, kind: str
) -> None:
    url = bucket.url("lake/orders")
    places: dict[str, Any] = {"sink": f"{kind}:{url}", "checkpoint": bucket.url("checkpoint")}
    with EmbeddedCluster(topics={"orders": 3}) as cluster:
        wanted = fill(cluster, 100)
        assert run(cluster, tmp_path, **places, partition_by="topic,date(timestamp)").results[0].rows == 100
        wanted += fill(cluster, 30, first=100)
        assert run(cluster, tmp_path, **places, partition_by="topic,date(timestamp)").results[0].rows == 30
    assert offsets(kind, url, bucket) == sorted((row.partition, row.offset) for row in wanted)
    assert os.listdir(tmp_path) == []
    for key in bucket.listed():
        content = bucket.content(key)
        assert not [secret for secret in bucket.secrets if secret.encode() in content]


def offsets(kind: str, url: str, bucket: ServiceBucket) -> list[tuple[int, int]]:
    """The coordinates of the rows that count, by delta-rs or by the manifests."""
    columns = ["_partition", "_offset"]
    if kind == "delta":
        table = DeltaTable(url, storage_options=storage_options(url))
        found = pa.table(table.scan(columns).read_all())
    else:
        keys = [file.removeprefix(f"{bucket.url()}/") for file in manifest.files(url)]
        found = pa.concat_tables(
            pq.read_table(io.BytesIO(bucket.content(key)), columns=columns) for key in keys
        )
    return sorted(zip(found["_partition"].to_pylist(), found["_offset"].to_pylist(), strict=True))
