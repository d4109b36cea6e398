"""A real S3: what the service does with conditional writes, and what the store makes of one that ignores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import get_session

from kclient.errors import SinkError
from kclient.spark.sink.store import ObjectStore, store_of
from tests.s3 import Bucket


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
