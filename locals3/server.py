"""S3Proxy: its jar, its settings, and the process."""

from __future__ import annotations

import secrets
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from localkafka import maven
from localkafka.http_server import HttpServer
from localkafka.jars import QUICK_START, java
from localkafka.processes import Child
from localkafka.settings import HOST, write

ARTIFACT: Final = "org.gaul:s3proxy:4.1.0:jar-with-dependencies"
"""The first releases with conditional writes are 3.x. Its jars one by one do not fit together: jackson's differ."""

FAST_START: Final = (*QUICK_START, "-Xmx256m")
REGION: Final = "us-east-1"


def unavailable() -> str | None:
    """Return why no S3 can be started here, in a few words, or None if it can."""
    if java() is None:
        return "java is not installed"
    if not maven.is_complete(_folder(), [ARTIFACT]) and shutil.which("mvn") is None:
        return f"mvn is not installed and {ARTIFACT} is not in {maven.cache()}"
    return None


def fetch() -> Path:
    """Return the folder with the jar; fetch it if the cache lacks it. Raise LocalKafkaError."""
    return maven.fetch(_folder(), [ARTIFACT])


def _folder() -> Path:
    return maven.cache() / "s3proxy" / ARTIFACT.split(":")[2]


class S3Server(HttpServer):
    """An S3 API on loopback with credentials of its own. As a context manager, which waits until it answers.

    `jvm_options` default to a quick start. A benchmark wants `("-Xmx512m",)`, the whole compiler: half of it has no
    intrinsics for SHA-256 and MD5, and takes an object of 2 MB in 28 ms of CPU instead of 11.
    """

    def __init__(self, jvm_options: Sequence[str] = FAST_START) -> None:
        super().__init__("S3Proxy")
        self._jvm_options = tuple(jvm_options)
        self.access_key: Final = f"local{secrets.token_hex(8)}"
        self.secret_key: Final = secrets.token_hex(20)

    def _prepare(self, folder: Path) -> None:
        self.data: Path = folder / "data"
        self.data.mkdir()
        self._settings = write(self._properties(), folder / "s3proxy.properties")

    @property
    def environment(self) -> dict[str, str]:
        """The variables from which clients take endpoint, region and credentials."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
        }

    def create_bucket(self, name: str) -> None:
        """Create an empty bucket: a directory."""
        (self.data / name).mkdir()

    def delete_bucket(self, name: str) -> None:
        """Delete a bucket and its objects."""
        shutil.rmtree(self.data / name)

    def _launch(self) -> Child:
        command = [
            java() or "java",
            *self._jvm_options,
            "-DLOG_LEVEL=warn",
            "-cp",
            f"{fetch()}/*",
            "org.gaul.s3proxy.Main",
            "--properties",
            str(self._settings),
        ]
        return self._processes.start("s3proxy", command)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, no responses are sent."""
        self._running.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._running.resume()

    def _properties(self) -> dict[str, str]:
        return {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": self.access_key,
            "s3proxy.credential": self.secret_key,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self.data),
            "jclouds.identity": "unused",
            "jclouds.credential": "unused",
        }

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self._port), timeout=5) as connection:
                connection.sendall(f"GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
                return connection.recv(5) == b"HTTP/"
        except OSError:
            return False
