"""Child processes that do not outlive their starter: each has its own process group, and a warden watches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import attrs

from localkafka.errors import LocalKafkaError
from localkafka.held import signals_held

WARDEN = Path(__file__).with_name("warden.py")
STOP_SECONDS = 10
CLEANUP_SECONDS = 60  # the logs of thousands of partitions are tens of thousands of files


@attrs.define
class Child:
    """One started program: its name for messages, its log, and the signals a test sends it."""

    name: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def pause(self) -> None:
        """SIGSTOP: connections stay open, no responses are sent."""
        os.killpg(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.killpg(self.process.pid, signal.SIGCONT)

    def log_tail(self, size: int = 3000) -> str:
        """Return the end of the program's output."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-size:]

    def check(self) -> None:
        """Raise LocalKafkaError with the end of the log if the program has ended."""
        if not self.running:
            raise LocalKafkaError(f"{self.name} ended with {self.process.returncode}:\n{self.log_tail()}")


class Processes:
    """Starts children in a temporary folder, ends exactly those, and removes the folder.

    As a context manager. The warden does the same when this process dies without leaving the context.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-I", "-S", str(WARDEN)]
        self._warden = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
        self._tell(f"rm {self._folder}")
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            self.kill(child)
        self._warden.communicate(timeout=CLEANUP_SECONDS)

    def start(
        self, name: str, command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Child:
        """Start a program, in `cwd` or here, with `env` or our environment; NAME.log gets its output."""
        log = self._folder / f"{name}.log"
        with log.open("ab") as output, signals_held():
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._tell(f"+{process.pid}")
            child = Child(name, log, process)
            self._children.append(child)
        return child

    def kill(self, child: Child) -> None:
        """SIGKILL, and wait until it is gone. A paused child is killed too; an ended one is not signalled."""
        if child.running:
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait(timeout=STOP_SECONDS)
        self._tell(f"-{child.process.pid}")

    def _tell(self, line: str) -> None:
        if self._warden.stdin is None:
            raise LocalKafkaError("the warden has no standard input")
        self._warden.stdin.write(f"{line}\n")
        self._warden.stdin.flush()
