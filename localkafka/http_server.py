"""What the servers beside Kafka share: one process with a port on loopback, which lives in a folder of its own."""

from __future__ import annotations

import tempfile
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from localkafka.errors import LocalKafkaError
from localkafka.launcher import free_ports
from localkafka.processes import Child, Processes
from localkafka.settings import HOST

READY_SECONDS: Final = 60
POLL_SECONDS: Final = 0.05


class HttpServer(ABC):
    """A server on loopback, called `name` in errors. As a context manager, which waits until it answers."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stack = ExitStack()
        self._port: int = free_ports(1)[0]
        self._child: Child | None = None

    def __enter__(self) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="localserver-"))
        self._processes = self._stack.enter_context(Processes(folder))  # removes the folder
        try:
            self._prepare(folder)
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

    def start(self) -> None:
        """Start it on its port and with what it has kept, and wait for an answer: an open port alone proves nothing."""
        self._child = self._launch()
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            self._running.check()
            if time.monotonic() > deadline:
                raise LocalKafkaError(
                    f"{self._name} did not answer in {READY_SECONDS} s:\n{self._running.log_tail()}"
                )
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """SIGKILL. Requests that run then get no answer."""
        self._processes.kill(self._running)

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise LocalKafkaError(f"{self._name} was not started")
        return self._child

    @abstractmethod
    def _prepare(self, folder: Path) -> None:
        """Write what the process needs before its first start."""

    @abstractmethod
    def _launch(self) -> Child:
        """Start the process."""

    @abstractmethod
    def _answers(self) -> bool:
        """Return whether it answers a request."""
