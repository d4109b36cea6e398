"""A store whose service fails: what was applied is found, what was not is tried again, and nothing goes on forever."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import SinkError
from kclient.spark.sink import iceberg_io, manifest
from kclient.spark.sink import store as stores
from kclient.spark.sink.iceberg_io import StoreFileIO, _kept, is_stored
from kclient.spark.sink.store import ObjectStore, StoreUnavailable, store_of
from tests.faulty_http import FaultyProxy, Kind
from tests.s3 import Bucket
from tests.spark.jobs.support import Landed, fill, run
from tests.spark.test_store_services import CALLS

pytestmark = pytest.mark.timeout(120)

BEFORE: tuple[Kind, ...] = ("500", "503", "429", "drop")
AFTER: tuple[Kind, ...] = ("500 after", "drop after", "late")


@pytest.fixture
def proxy(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyProxy]:
    """The service behind a proxy, and bounds that a test can wait for."""
    monkeypatch.setattr(stores, "REQUEST_SECONDS", 2)
    monkeypatch.setattr(stores, "RETRIES", 2)
    with FaultyProxy(s3.server.endpoint) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        yield running


@pytest.fixture
def store(s3: Bucket, proxy: FaultyProxy) -> ObjectStore:
    store = store_of(s3.url("raw"))
    assert isinstance(store, ObjectStore)
    return store


@pytest.mark.parametrize("kind", [*BEFORE, "409", *AFTER])
def test_a_create_that_failed_once_is_done_once(store: ObjectStore, proxy: FaultyProxy, kind: Kind) -> None:
    rule = proxy.fail("PUT", "/a", kind)
    assert store.put_if_absent("a", b"ours")
    assert rule.seen == 1
    assert store.read("a") == b"ours"
    assert not store.put_if_absent("a", b"theirs")


@pytest.mark.parametrize("kind", [*BEFORE, "409", *AFTER])
def test_a_create_that_lost_and_failed_is_told_so(store: ObjectStore, proxy: FaultyProxy, kind: Kind) -> None:
    """Another writer was first: whatever becomes of the request, the object is not ours."""
    store.put("a", b"theirs")
    rule = proxy.fail("PUT", "/a", kind)
    assert not store.put_if_absent("a", b"ours")
    assert rule.seen == 1
    assert store.read("a") == b"theirs"


@pytest.mark.parametrize("kind", ["409", "429"])
def test_a_create_that_is_refused_for_now_each_time_may_succeed_later(
    store: ObjectStore, proxy: FaultyProxy, kind: Kind
) -> None:
    """S3's 409: another conditional write of the key is under way, and nothing is there yet."""
    proxy.fail("PUT", "/a", kind, times=100)
    with pytest.raises(
        StoreUnavailable, match=f"Writing s3://.*/raw/a failed: .*{kind}.* Start again when it"
    ):
        store.put_if_absent("a", b"ours")


def test_an_unknown_outcome_that_cannot_be_looked_up_is_an_error(
    store: ObjectStore, proxy: FaultyProxy
) -> None:
    proxy.fail("PUT", "/a", "drop after")
    proxy.fail("GET", "/a", "503", times=100)
    with pytest.raises(SinkError, match=r"Reading s3://.*/raw/a failed: .*503"):
        store.put_if_absent("a", b"ours")


@pytest.mark.parametrize("kind", ["500 after", "drop after"])
def test_a_create_whose_every_answer_is_lost_is_found(
    store: ObjectStore, proxy: FaultyProxy, kind: Kind
) -> None:
    proxy.fail("PUT", "/a", kind, times=100)
    assert store.put_if_absent("a", b"ours")


@pytest.mark.parametrize("kind", ["500", "drop", "late"])
@pytest.mark.parametrize("call", CALLS)
def test_a_service_that_always_fails_ends_in_an_error_after_few_requests(
    store: ObjectStore, proxy: FaultyProxy, call: str, kind: Kind
) -> None:
    for method in ("GET", "HEAD", "PUT", "POST"):
        proxy.fail(method, "", "drop" if kind == "late" and method == "PUT" else kind, times=10_000)
    with pytest.raises(
        SinkError, match=r"s3://.* failed: .*Start again when it answers: nothing will count"
    ) as caught:
        CALLS[call](store)
    assert caught.value.path
    assert len(proxy.requests) <= (1 + stores.RETRIES) * 2 * stores.PUT_TRIES


@pytest.mark.parametrize("kind", [*BEFORE, *AFTER, "slow"])
@pytest.mark.parametrize(
    ("method", "part"), [("PUT", "partNumber=2"), ("POST", "uploadId="), ("POST", "uploads")]
)
def test_an_upload_in_parts_survives_one_failure(
    store: ObjectStore, proxy: FaultyProxy, kind: Kind, method: str, part: str
) -> None:
    """Of a part, of the end, and of the beginning."""
    content = os.urandom(2 * stores.PART_BYTES + 1000)
    proxy.delay = 0.3 if kind == "slow" else proxy.delay
    rule = proxy.fail(method, part, kind)
    with store.open_write("a") as writer:
        writer.write(content)
    assert rule.seen == 1
    assert store.read("a") == content


def test_an_upload_that_cannot_end_is_an_error_and_no_object(store: ObjectStore, proxy: FaultyProxy) -> None:
    proxy.fail("POST", "uploadId=", "500", times=100)
    writer = store.open_write("a")
    writer.write(bytes(2 * stores.PART_BYTES))
    with pytest.raises(SinkError, match=r"Writing s3://.*/raw/a failed"):
        writer.close()
    assert store.read("a") is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_job_whose_store_fails_at_random_lands_each_record_once(
    s3: Bucket, proxy: FaultyProxy, tmp_path: Path, seed: int
) -> None:
    """Every eighth request fails in some way. A run that gives up is started again."""
    moments, proxy.delay = random.Random(seed), 2.5

    def choose(method: str, path: str) -> Kind | None:
        return moments.choice([*BEFORE, *AFTER]) if moments.random() < 0.12 else None

    places: dict[str, Any] = {"sink": f"parquet:{s3.url('raw')}", "checkpoint": s3.url("checkpoint")}
    wanted: list[Landed] = []
    with EmbeddedCluster(topics={"orders": 3}) as cluster:
        proxy.choose = choose
        for _ in range(3):
            wanted += fill(cluster, 60, first=len(wanted))
            for _ in range(5):
                try:
                    run(cluster, tmp_path, **places)
                    break
                except SinkError as exc:
                    failed = exc
            else:
                raise failed
    proxy.choose = lambda method, path: None
    assert manifest.count(s3.url("raw")) == len(wanted)
    found = landed(s3)
    assert found == sorted((row.partition, row.offset) for row in wanted)


def landed(s3: Bucket) -> list[tuple[int, int]]:
    """The coordinates of all rows that count, read from the disk of the service."""
    import pyarrow.parquet as pq

    found: list[tuple[int, int]] = []
    for url in manifest.files(s3.url("raw")):
        table = pq.read_table(s3.server.data / url.removeprefix("s3://"), partitioning=None)
        found += zip(table["_partition"].to_pylist(), table["_offset"].to_pylist(), strict=True)
    return sorted(found)


# --- how often a service is asked


NAMED_ONCE = "metadata/00001-7fd3ef73-3a6e-4b0f-947e-3548acd203a6.metadata.json"


def test_a_file_of_icebergs_metadata_is_asked_for_once(s3: Bucket, proxy: FaultyProxy) -> None:
    """After it was written not at all: the writer has asked whether it is there."""
    url = s3.url(NAMED_ONCE)
    with StoreFileIO().new_output(url).create(overwrite=True) as stream:
        stream.write(b"table")
    assert [method for method, _ in proxy.requests] == ["PUT", "HEAD"]
    file = StoreFileIO().new_input(url)
    assert (file.open().read(), len(file), is_stored(StoreFileIO(), url)) == (b"table", 5, True)
    assert len(proxy.requests) == 2

    _kept.forget((url,))  # as in another process
    assert is_stored(StoreFileIO(), url)
    assert StoreFileIO().new_input(url).open().read() == b"table"
    assert StoreFileIO().new_input(url).open().read() == b"table"
    assert [method for method, _ in proxy.requests[2:]] == ["HEAD", "GET"]

    StoreFileIO().delete(url)
    assert not is_stored(StoreFileIO(), url)
    with pytest.raises(SinkError, match="The object was deleted"):
        StoreFileIO().new_input(url).open()


def test_a_file_of_metadata_whose_name_may_be_written_twice_is_read_each_time(
    s3: Bucket, proxy: FaultyProxy
) -> None:
    url = s3.url("metadata/v1.metadata.json")
    for content in (b"one", b"another"):
        with StoreFileIO().new_output(url).create(overwrite=True) as stream:
            stream.write(content)
        assert StoreFileIO().new_input(url).open().read() == content


def test_a_file_of_metadata_that_was_given_up_is_not_taken_for_written(
    s3: Bucket, proxy: FaultyProxy
) -> None:
    url = s3.url(NAMED_ONCE)
    given_up = StoreFileIO().new_output(url).create(overwrite=True)
    given_up.write(b"half")
    given_up.__exit__(KeyError, KeyError(), None)
    assert not is_stored(StoreFileIO(), url)
    proxy.fail("PUT", NAMED_ONCE, "lie")
    lost = StoreFileIO().new_output(url).create(overwrite=True)
    lost.write(b"lost")
    with pytest.raises(SinkError, match="has nothing there"):
        lost.close()
    assert not is_stored(StoreFileIO(), url)


def test_only_the_newest_metadata_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iceberg_io, "MOST_KEPT_BYTES", 10)
    kept = iceberg_io._Kept()
    for name, size in (("a", 4), ("b", 4), ("a", 4), ("c", 4)):
        kept.keep(name, bytes(size))
    assert [kept.get(name) is not None for name in "abc"] == [True, False, True]
    kept.keep("d", bytes(11))
    assert [kept.get(name) is not None for name in "acd"] == [True, True, False]
    for number in range(100):
        kept.keep(number, b"")
    assert kept.get(99) is not None
    assert kept.get("c") is None


def test_a_large_file_of_metadata_is_read_in_ranges(
    s3: Bucket, store: ObjectStore, proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "LARGEST_READ", 3)
    store.client.put("a", b"more")
    del proxy.requests[:]
    assert store.open_whole("a").read() == b"more"
    assert [method for method, _ in proxy.requests] == ["GET", "HEAD", "GET"]
