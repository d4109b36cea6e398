"""Runs the query in a child process that starts its session early and waits for the files."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from demo.job import SPARK, Job
from demo.processes import Child
from demo.recorder import Recorder
from demo.recording import Carrier

SECONDS: Final = 120.0
LANES: Final = {SPARK: "SQL", "direct": "Arrow"}


@attrs.frozen
class QueryResult:
    """Rows that were found in the files of the manifest, and the worst carriers."""

    rows: int
    carriers: list[Carrier]


class QueryProcess:
    """Begins to start its session with its `with`, so that it is there when the files are."""

    def __init__(self, job: Job, out: Path, recorder: Recorder) -> None:
        self._chronicle = recorder
        engine = job.engine if job.kind == "parquet" else "direct"
        arguments = [str(job.sink), "--wait", "--engine", engine, "--kind", job.kind]
        arguments += [] if job.endpoint is None else ["--endpoint", job.endpoint]
        self._child = Child("demo.answer", arguments, out / "answer.log")
        self._lane = LANES[engine]

    def __enter__(self) -> Self:
        self._chronicle.begin(self._lane, "starts")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._child.kill()

    def ask(self) -> QueryResult:
        """Look at the files now. Raises RuntimeError."""
        self._child.send({"ask": True})
        asked = self._chronicle.terminal.elapsed()
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            events = self._child.receive(timeout=1.0)
            if events is None:
                raise RuntimeError(f"the query process ended unexpectedly:\n{self._child.log_end()}")
            for event in events:
                if "ready" in event:
                    ready = self._chronicle.since(event["ready"])
                    if ready < asked:
                        self._chronicle.begin(self._lane, "waits", ready)
                    self._chronicle.begin(self._lane, "asks", max(ready, asked))
                if "rows" in event:
                    self._chronicle.finish(self._lane)
                    return QueryResult(event["rows"], [Carrier(*one) for one in event["carriers"]])
        raise RuntimeError(f"the query took longer than {SECONDS:g} s:\n{self._child.log_end()}")
