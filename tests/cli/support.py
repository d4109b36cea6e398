"""What the tests of the command line share: a command as a child, and a job on the embedded cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from kclient.cli.main import main

PATIENCE = 90
COMMAND = (sys.executable, "-m", "kclient")


class Done(NamedTuple):
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def call(capsys: Any, *arguments: str) -> Done:
    """A command in this process."""
    code = main(list(arguments))
    output = capsys.readouterr()
    return Done(code, output.out, output.err)


def run(*arguments: str, **environment: str) -> Done:
    """A command as a process of its own."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def job(servers: str, folder: Path, *more: str, topic: str = "orders") -> list[str]:
    """The arguments of an ingest job without Spark."""
    return [
        *("ingest", "-b", servers, "--topics", topic, "--engine", "direct", "--parallelism", "1"),
        *("--sink", f"parquet:{folder / 'raw'}", "--checkpoint", str(folder / "checkpoint"), *more),
    ]
