"""A Spark of another release in a child process: one request and one response per line, as JSON."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, cast

from localkafka.errors import LocalKafkaError
from localspark.environments import PROJECT

STOP_SECONDS = 30
ANSWER_SECONDS = 600


class Session:
    """Runs `module`, which calls `localspark.serving.serve`, with the Python of an environment. A context manager."""

    def __init__(self, module: str, python: Path | None = None, jars: Sequence[Path] = ()) -> None:
        self._command = [str(python or sys.executable), "-m", module, ",".join(map(str, jars))]

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self._process = subprocess.Popen(
            self._command,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": str(PROJECT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        try:
            self.spark = self._answer()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        cast("IO[str]", self._process.stdout).close()
        self._log.close()

    @property
    def pid(self) -> int:
        """Of the driver's Python; the JVM and the workers are below it."""
        return self._process.pid

    def ask(self, question: Any) -> Any:
        """Return one response. Raise LocalKafkaError with the end of Spark's log if the session ended or hangs."""
        self._stdin.write(json.dumps(question) + "\n")
        self._stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        answers = cast("IO[str]", self._process.stdout)
        ready, _, _ = select.select([answers], [], [], ANSWER_SECONDS)
        line = answers.readline() if ready else ""
        if not line:
            what = "ended" if ready else f"gave no answer in {ANSWER_SECONDS} s"
            self._log.seek(0)
            raise LocalKafkaError(f"a Spark session {what}:\n{self._log.read()[-4000:]}")
        return json.loads(line)

    @property
    def _stdin(self) -> IO[str]:
        return cast("IO[str]", self._process.stdin)
