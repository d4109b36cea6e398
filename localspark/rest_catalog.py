"""Iceberg's REST catalog on loopback: its own servlet, from a source file that Java compiles when it starts."""

from __future__ import annotations

import http.client
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from localkafka.errors import LocalKafkaError
from localkafka.jars import QUICK_START, java
from localkafka.launcher import free_ports
from localkafka.processes import Child, Processes
from localkafka.settings import HOST
from localspark.jars import ICEBERG_REST

SOURCE: Final = Path(__file__).with_name("RestCatalog.java")
READY_SECONDS: Final = 60
POLL_SECONDS: Final = 0.05


class RestCatalogServer:
    """A REST catalog over SQLite. As a context manager, which waits until it answers. `kill` and `start` keep its data.

    `properties` are those of the catalog behind it: its warehouse, and how files are reached there.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._stack = ExitStack()
        self._port: int = free_ports(1)[0]
        self._child: Child | None = None

    def __enter__(self) -> Self:
        folder = Path(tempfile.mkdtemp(prefix="localrest-"))
        self._processes = self._stack.enter_context(Processes(folder))  # removes the folder
        self._database = folder / "catalog.db"
        try:
            self.start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def endpoint(self) -> str:
        """The URI of the catalog."""
        return f"http://{HOST}:{self._port}"

    def start(self) -> None:
        """Start it on its port and with the tables that it has."""
        jdbc = {"type": "jdbc", "uri": f"jdbc:sqlite:{self._database}", "jdbc.schema-version": "V1"}
        properties = [f"{name}={value}" for name, value in {**jdbc, **self._properties}.items()]
        jars = ":".join(map(str, ICEBERG_REST.jars()))
        command = [
            java() or "java",
            *QUICK_START,
            "-Xmx256m",
            "-cp",
            jars,
            str(SOURCE),
            str(self._port),
            *properties,
        ]
        self._child = self._processes.start("rest-catalog", command)
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            self._running.check()
            if time.monotonic() > deadline:
                raise LocalKafkaError(f"The REST catalog did not answer:\n{self._running.log_tail()}")
            time.sleep(POLL_SECONDS)

    def kill(self) -> None:
        """SIGKILL. Requests that run then get no answer."""
        self._processes.kill(self._running)

    @property
    def _running(self) -> Child:
        if self._child is None:
            raise LocalKafkaError("The REST catalog was not started")
        return self._child

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=5)
        try:
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()
