"""Stores on a real S3: what the service does with conditional writes, first, and then what the store makes of it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import get_session

from kclient.errors import SinkError
from kclient.spark.sink.store import PART_BYTES, ObjectStore, store_of
from tests.s3 import Bucket

WRITERS = 8
ROUNDS = 10


@pytest.fixture
def store(s3: Bucket) -> ObjectStore:
    store = store_of(s3.url("raw"))
    assert isinstance(store, ObjectStore)
    return store


def other_client(s3: Bucket) -> Any:
    """A client that is not ours."""
    sums = Config(request_checksum_calculation="when_required")
    return get_session().create_client("s3", endpoint_url=s3.server.endpoint, config=sums)


def status(call: Callable[..., Any], **arguments: Any) -> int:
    """Return the HTTP status of a call."""
    try:
        answer = call(**arguments)
    except ClientError as exc:
        answer = exc.response
    return int(answer["ResponseMetadata"]["HTTPStatusCode"])


# --- what the service does -------------------------------------------------------------------------------------------


def test_the_service_creates_once_and_compares_etags(s3: Bucket) -> None:
    client, where = other_client(s3), {"Bucket": s3.name, "Key": "a"}
    assert status(client.put_object, **where, Body=b"1", IfNoneMatch="*") == 200
    assert status(client.put_object, **where, Body=b"2", IfNoneMatch="*") == 412
    assert status(client.put_object, **where, Body=b"2", IfMatch='"another"') == 412
    assert client.get_object(**where)["Body"].read() == b"1"
    assert status(client.put_object, **where, Body=b"3", IfMatch=client.head_object(**where)["ETag"]) == 200


def test_the_service_completes_a_multipart_upload_once(s3: Bucket) -> None:
    client, where = other_client(s3), {"Bucket": s3.name, "Key": "a"}

    def complete(body: bytes) -> int:
        upload = client.create_multipart_upload(**where)["UploadId"]
        part = client.upload_part(**where, UploadId=upload, PartNumber=1, Body=body)
        parts = {"Parts": [{"ETag": part["ETag"], "PartNumber": 1}]}
        return status(
            client.complete_multipart_upload,
            **where,
            UploadId=upload,
            MultipartUpload=parts,
            IfNoneMatch="*",
        )

    assert [complete(b"1"), complete(b"2")] == [200, 412]
    assert client.get_object(**where)["Body"].read() == b"1"


# --- what the store does ---------------------------------------------------------------------------------------------


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


def test_objects_are_listed_read_and_deleted(store: ObjectStore, s3: Bucket) -> None:
    key = "topic=a b/date=2026-11-24/é+%41.parquet"
    for number in range(3):
        store.put(f"_manifest/{number}.json", b"12")
    store.put(key, b"1")
    assert sorted(found.key for found in store.list("_manifest")) == [f"_manifest/{n}.json" for n in range(3)]
    assert {found.bytes for found in store.list("_manifest")} == {2}
    assert [(found.key, store.read(found.key)) for found in store.list("topic=a b")] == [(key, b"1")]
    assert len(s3.listed()) == 4
    store.delete(key)
    store.delete(key)
    assert store.read(key) is None


def test_a_list_of_more_than_one_page_is_whole(store: ObjectStore) -> None:
    for number in range(1005):
        store.put(f"many/{number}", b"")
    assert len(list(store.list("many"))) == 1005


@pytest.mark.parametrize("size", [10, 2 * PART_BYTES + 7])
def test_an_object_appears_whole_at_close_or_never(store: ObjectStore, s3: Bucket, size: int) -> None:
    content = os.urandom(size)
    writer = store.open_write("a/b")
    writer.write(content)
    assert s3.listed() == []
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


def test_a_service_that_honours_conditions_passes_the_check(store: ObjectStore, s3: Bucket) -> None:
    store.check_conditional_writes()
    assert s3.listed() == []


def test_a_service_that_ignores_conditions_is_refused(
    store: ObjectStore, s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ignoring:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def put(self, path: str, file: bytes, *, mode: str = "overwrite", **named: Any) -> Any:
            return real.put(path, file, **named)

    real = store.client
    monkeypatch.setattr(ObjectStore, "client", Ignoring())
    with pytest.raises(SinkError, match=r"s3://.*/raw ignores conditional writes \(If-None-Match\)"):
        store.check_conditional_writes()
    assert s3.listed() == []


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
def test_a_bucket_that_is_not_there_is_no_empty_store(s3: Bucket, call: str) -> None:
    store = store_of("s3://no-such-bucket/raw")
    assert isinstance(store, ObjectStore)
    if call == "open_read":
        expected = r"Reading s3://no-such-bucket/raw/a failed: .*not found"
    else:
        expected = r"s3://no-such-bucket/raw.* failed: .*NoSuchBucket\)\. The bucket does not exist"
    with pytest.raises(SinkError, match=expected):
        CALLS[call](store)


@pytest.mark.parametrize("call", CALLS)
def test_wrong_credentials_are_an_error_that_shows_none(
    s3: Bucket, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-secret")
    store = store_of(s3.url("raw"))
    assert isinstance(store, ObjectStore)
    with pytest.raises(
        SinkError, match=r"The credentials of the environment .* lack the permission"
    ) as caught:
        CALLS[call](store)
    assert "canary" not in str(caught.value)
    assert s3.server.access_key not in str(caught.value)
    assert len(str(caught.value)) < 700
