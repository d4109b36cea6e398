"""S3Proxy: its jar, its settings, and the process."""

from __future__ import annotations

import secrets
import shutil
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from localkafka import maven
from localkafka.errors import LocalKafkaError
from localkafka.jars import QUICK_START, java
from localkafka.launcher import free_ports
from localkafka.processes import Child, Processes
from localkafka.settings import HOST, write

ARTIFACT: Final = "org.gaul:s3proxy:4.1.0:jar-with-dependencies"
"""The first releases with conditional writes are 3.x. Its jars one by one do not fit together: jackson's differ."""

FAST_START: Final = (*QUICK_START, "-Xmx256m")
READY_SECONDS: Final = 60
POLL_SECONDS: Final = 0.05
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


class S3Server:
    """An S3 API on loopback with credentials of its own. As a context manager, which waits until it answers."""

    def __init__(self) -> None:
        self.access_key: Final = f"local{secrets.token_hex(8)}"
        self.secret_key: Final = secrets.token_hex(20)
        self._stack = ExitStack()
        self._port: int = free_ports(1)[0]
        self._child: Child | None = None

    def __enter__(self) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="locals3-"))
        self._processes = self._stack.enter_context(Processes(folder))  # removes the folder
        try:
            self.data: Path = folder / "data"
            self.data.mkdir()
            self._settings = write(self._properties(), folder / "s3proxy.properties")
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def endpoint(self) -> str:
        """The URL of the API."""
        return f"http://{HOST}:{self._port}"

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

    def start(self) -> None:
        """Start it on its port and with the objects that it has."""
        command = [
            java() or "java",
            *FAST_START,
            "-DLOG_LEVEL=warn",
            "-cp",
            f"{fetch()}/*",
            "org.gaul.s3proxy.Main",
            "--properties",
            str(self._settings),
        ]
        self._child = self._processes.start("s3proxy", command)
        self._wait()

    def kill(self) -> None:
        """SIGKILL. Requests that run then get no answer."""
        self._processes.kill(self._running)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, no responses are sent."""
        self._running.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._running.resume()

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise LocalKafkaError("S3Proxy was not started")
        return self._child

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

    def _wait(self) -> None:
        """Wait for an answer: an open port alone proves nothing."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            self._running.check()
            if time.monotonic() > deadline:
                raise LocalKafkaError(
                    f"S3Proxy did not answer in {READY_SECONDS} s:\n{self._running.log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def _answers(self) -> bool:
        try:
            with socket.create_connection((HOST, self._port), timeout=5) as connection:
                connection.sendall(f"GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
                return connection.recv(5) == b"HTTP/"
        except OSError:
            return False
