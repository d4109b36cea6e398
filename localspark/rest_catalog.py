"""Iceberg's REST catalog on loopback: its own servlet, from a source file that Java compiles when it starts."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from localkafka.http_server import HttpServer
from localkafka.jars import QUICK_START, java
from localkafka.processes import Child
from localkafka.settings import HOST
from localspark.jars import ICEBERG_REST

SOURCE: Final = Path(__file__).with_name("RestCatalog.java")


class RestCatalogServer(HttpServer):
    """A REST catalog over SQLite. As a context manager, which waits until it answers. `kill` and `start` keep its data.

    `properties` are those of the catalog behind it: its warehouse, and how files are reached there.
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__("The REST catalog")
        self._properties = properties

    def _prepare(self, folder: Path) -> None:
        self._database = folder / "catalog.db"

    def _launch(self) -> Child:
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
        return self._processes.start("rest-catalog", command)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=5)
        try:
            connection.request("GET", "/v1/config")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()
