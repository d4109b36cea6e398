"""Azure and Google's store for any test, as `tests.s3` has S3: a server for the whole run, a bucket for each test.

`bucket` is one of a service, by parameter: a test that asks for it runs on each.
"""

from __future__ import annotations

import base64
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import attrs
import pytest

from localazure import AzureServer, unavailable
from locals3 import S3Server
from tests.gcs import account_file, translated
from tests.s3 import Bucket

SERVICES = ("s3", "azure", "gcs")
VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")


class ServiceBucket(Protocol):
    """What `Bucket` does, and the others do too."""

    @property
    def name(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def secrets(self) -> list[str]: ...

    def url(self, prefix: str = "") -> str: ...

    def listed(self) -> list[str]: ...

    def content(self, key: str) -> bytes: ...

    def through(self, endpoint: str) -> dict[str, str]: ...

    def wrong(self, root: Path) -> dict[str, str]: ...


@attrs.frozen
class Container:
    """An empty container of Azure."""

    server: AzureServer
    name: str

    @property
    def endpoint(self) -> str:
        return self.server.endpoint

    @property
    def secrets(self) -> list[str]:
        return [self.server.key]

    def url(self, prefix: str = "") -> str:
        """Return `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX`."""
        return f"abfss://{self.name}@{self.server.account}.dfs.core.windows.net/{prefix}".rstrip("/")

    def listed(self) -> list[str]:
        return self.server.listed(self.name)

    def content(self, key: str) -> bytes:
        return self.server.content(self.name, key)

    def through(self, endpoint: str) -> dict[str, str]:
        return {"AZURE_STORAGE_ENDPOINT": f"{endpoint}/{self.server.account}"}

    def wrong(self, root: Path) -> dict[str, str]:
        return {"AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"canary").decode()}


@attrs.frozen
class GoogleBucket:
    """An empty bucket of Google's XML API, which is a bucket of S3 behind it."""

    behind: Bucket
    endpoint: str
    account: Path

    @property
    def name(self) -> str:
        return self.behind.name

    @property
    def secrets(self) -> list[str]:
        return [*self.behind.secrets, *self.account.read_text(encoding="utf-8").split("\\n")[1:3]]

    def url(self, prefix: str = "") -> str:
        """Return `gs://BUCKET/PREFIX`."""
        return f"gs://{self.behind.name}/{prefix}".rstrip("/")

    def listed(self) -> list[str]:
        return self.behind.listed()

    def content(self, key: str) -> bytes:
        return self.behind.content(key)

    def through(self, endpoint: str) -> dict[str, str]:
        return {"GOOGLE_BASE_URL": endpoint}

    def wrong(self, root: Path) -> dict[str, str]:
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(account_file(root / "canary.json"))}


@pytest.fixture(scope="session")
def azure_server() -> Iterator[AzureServer]:
    if reason := unavailable():
        pytest.skip(f"no Azure: {reason}")
    with AzureServer() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_front(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The endpoint, and the file of an account."""
    account = account_file(tmp_path_factory.mktemp("gcs") / "account.json")
    with translated(s3_server, account) as endpoint:
        yield endpoint, account


@pytest.fixture
def azure(azure_server: AzureServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Container]:
    """A container, and AZURE_* in the environment for it alone."""
    replace(monkeypatch, azure_server.environment)
    container = Container(azure_server, f"container-{secrets.token_hex(6)}")
    azure_server.create_container(container.name)
    yield container
    azure_server.delete_container(container.name)


@pytest.fixture
def gcs(
    s3_server: S3Server, gcs_front: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[GoogleBucket]:
    """A bucket, and GOOGLE_* in the environment for it alone."""
    endpoint, account = gcs_front
    replace(monkeypatch, {"GOOGLE_BASE_URL": endpoint, "GOOGLE_APPLICATION_CREDENTIALS": str(account)})
    bucket = GoogleBucket(Bucket(s3_server, f"bucket-{secrets.token_hex(6)}"), endpoint, account)
    s3_server.create_bucket(bucket.behind.name)
    yield bucket
    s3_server.delete_bucket(bucket.behind.name)


@pytest.fixture(params=SERVICES)
def bucket(request: pytest.FixtureRequest) -> ServiceBucket:
    found: ServiceBucket = request.getfixturevalue(request.param)
    return found


def replace(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Set these variables of clouds, and no others."""
    for name in [name for name in os.environ if name.startswith(VARIABLES)]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
