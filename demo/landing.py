"""The Spark job as the demo sees it: a child that is ordered to land the topic, tells its stages, and answers."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import attrs

from demo.processes import Child
from demo.terminal import Terminal

SECONDS: Final = 240.0
STAGES: Final = {
    "session": "Spark: the session is up",
    "landing": "Spark: reading the topic with format('kclient'), writing Parquet",
    "asking": "Spark: landed; asking the Parquet with SQL",
}


@attrs.frozen
class Landed:
    """Rows that the Parquet holds, and the worst carriers: code, airline, flights, mean departure and arrival delay."""

    rows: int
    worst: list[list[Any]]


class SparkJob:
    """Starts at once, so that its session comes up beside everything else."""

    def __init__(self, terminal: Terminal, logs: Path) -> None:
        self._terminal = terminal
        self._child = Child("demo.spark_job", [], logs / "spark.log")
        self._landed: Landed | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._child.kill()

    def order(self, servers: str, topic: str, parquet: Path, airlines: Path) -> None:
        """Land the topic there, and name the worst carriers."""
        self._child.send(
            {"servers": servers, "topic": topic, "out": str(parquet.resolve()), "airlines": str(airlines)}
        )

    def listen(self, timeout: float = 0.0) -> None:
        """Print what it told. Raises RuntimeError when it ended without an answer."""
        if self._landed is not None:
            return
        events = self._child.receive(timeout)
        if events is None:
            raise RuntimeError(f"the Spark job ended by itself:\n{self._child.last_words()}")
        for event in events:
            if "rows" in event:
                self._landed = Landed(event["rows"], event["worst"])
            else:
                self._terminal.say(STAGES[event["stage"]])

    def result(self) -> Landed:
        """Wait for the answer. Raises RuntimeError."""
        deadline = time.monotonic() + SECONDS
        while self._landed is None:
            self.listen(timeout=1.0)
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"the Spark job took longer than {SECONDS:g} s:\n{self._child.last_words()}"
                )
        return self._landed
