"""Child processes that talk in JSON lines, each in a session of its own so that its whole family can be ended."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

ROOT: Final = Path(__file__).resolve().parent.parent
END_SECONDS: Final = 10.0


class Child:
    """`python -m MODULE ARGUMENTS` with pipes to its input and output; what it logs goes to a file.

    One that does not talk has no pipes: all that it says goes to the file.
    """

    def __init__(self, module: str, arguments: Sequence[str], log: Path, *, talks: bool = True) -> None:
        self.module = module
        self.log = log
        self._unread = b""
        with log.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else errors,
                stderr=errors,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def output(self) -> int:
        """The file descriptor to wait on."""
        descriptor: int = _opened(self.process.stdout).fileno()
        return descriptor

    def send(self, message: dict[str, Any]) -> None:
        """Send one JSON line to its input. Raise RuntimeError if it has ended."""
        stream = _opened(self.process.stdin)
        try:
            stream.write(json.dumps(message).encode() + b"\n")
            stream.flush()
        except BrokenPipeError:
            raise RuntimeError(f"{self.module} ended unexpectedly:\n{self.log_end()}") from None

    def receive(self, timeout: float) -> list[dict[str, Any]] | None:
        """Return new lines, waiting for some; None at the end. An incomplete line is ignored."""
        if not select.select([self.output], [], [], timeout)[0]:
            return []
        data = os.read(self.output, 1 << 20)
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self, seconds: float = END_SECONDS) -> int:
        """SIGTERM, and its exit code. Raises subprocess.TimeoutExpired."""
        self.process.terminate()
        return self.process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL to it and to whatever it started, and wait until they are gone.

        Raises TimeoutError when one of them outlives the signal.
        """
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(END_SECONDS)
        end_session(self.process.pid)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def log_end(self, characters: int = 3000) -> str:
        """Return the end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-characters:]


class Tail:
    """A file of JSON lines that a child writes: `read` gives what came since the last time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Return the new complete lines; none while the file does not exist."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return []
        self._offset += len(whole) + len(newline)
        return [json.loads(line) for line in whole.splitlines()]


def end_session(leader: int) -> None:
    """SIGKILL to all of a session, again until none is left: Spark's Python workers leave their parent's process group.

    Raises TimeoutError.
    """
    deadline = time.monotonic() + END_SECONDS
    while left := members(leader):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} outlived SIGKILL for {END_SECONDS:g} s")
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def members(leader: int) -> list[int]:
    """Return the running processes of a session; none on a system without /proc."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it ended while we looked
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


def _opened(stream: Any) -> Any:
    if stream is None:
        raise RuntimeError("the child has no such pipe")
    return stream
