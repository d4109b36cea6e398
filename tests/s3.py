"""A real S3 for any test: one server for the whole run, and a bucket of its own for each test.

Where Java or mvn is missing the tests are skipped with the reason; with CI=true that is a failure instead.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from locals3 import S3Server, unavailable


@attrs.frozen
class Bucket:
    """An empty bucket. The environment has the endpoint and the credentials, so children have them too."""

    server: S3Server
    name: str

    def url(self, prefix: str = "") -> str:
        """Return `s3://BUCKET/PREFIX`."""
        return f"s3://{self.name}/{prefix}".rstrip("/")

    @property
    def endpoint(self) -> str:
        """The URL of the service."""
        return self.server.endpoint

    @property
    def secrets(self) -> list[str]:
        """What no message and no object may hold."""
        return [self.server.access_key, self.server.secret_key]

    def through(self, endpoint: str) -> dict[str, str]:
        """Return the variables that lead clients over a proxy."""
        return {"AWS_ENDPOINT_URL": endpoint}

    def wrong(self, root: Path) -> dict[str, str]:
        """Return variables with wrong credentials, in which `canary` stands."""
        return {"AWS_SECRET_ACCESS_KEY": "canary-secret"}

    def content(self, key: str) -> bytes:
        """Return an object, without asking the API."""
        return (self.server.data / self.name / key).read_bytes()

    def listed(self) -> list[str]:
        """Return the keys of all objects, without asking the API. Parts of uploads are not objects."""
        root = self.server.data / self.name
        found = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
        return sorted(key for key in found if not key.startswith((".mpus-", ".s3proxy-mpu-")))


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    if reason := unavailable():
        if os.environ.get("CI") == "true":
            pytest.fail(f"S3 must run in CI: {reason}", pytrace=False)
        pytest.skip(f"no S3: {reason}")
    with S3Server() as server:
        yield server


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket, and AWS_* in the environment for it alone."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    bucket = Bucket(s3_server, f"bucket-{secrets.token_hex(6)}")
    s3_server.create_bucket(bucket.name)
    yield bucket
    s3_server.delete_bucket(bucket.name)
