"""Child processes that do not outlive their starter: each has its own process group, and a reaper watches them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, Self

import attrs

from localkafka.errors import LocalKafkaError

REAPER = Path(__file__).with_name("reaper.py")
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
        """SIGSTOP: connections stay open, no responses are sent. Return when all threads have stopped, or ended."""
        os.killpg(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

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

    As a context manager. The reaper does the same when this process dies without leaving the context.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._children: list[Child] = []

    def __enter__(self) -> Self:
        command = [sys.executable, "-I", "-S", str(REAPER)]
        self._reaper = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
        self._send_to_reaper(f"rm {self._folder}")
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children:
            self.kill(child)
        self._reaper.communicate(timeout=CLEANUP_SECONDS)

    def start(
        self, name: str, command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Child:
        """Start a program, in `cwd` or here, with `env` or our environment; NAME.log gets its output."""
        log = self._folder / f"{name}.log"
        with log.open("ab") as output, deferred_signals():
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            self._send_to_reaper(f"+{process.pid}")
            child = Child(name, log, process)
            self._children.append(child)
        return child

    def kill(self, child: Child) -> None:
        """SIGKILL, and wait until it is gone. A paused child is killed too; an ended one is not signalled."""
        if child.running:
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait(timeout=STOP_SECONDS)
        self._send_to_reaper(f"-{child.process.pid}")

    def _send_to_reaper(self, line: str) -> None:
        if self._reaper.stdin is None:
            raise LocalKafkaError("the reaper has no standard input")
        self._reaper.stdin.write(f"{line}\n")
        self._reaper.stdin.flush()


SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Deliver signals that arrive inside at the end of the outermost block.

    For the start of a child process: one that is not registered yet would outlive this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals interrupt the main thread alone
        return
    came: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        came.append(signum)

    before = {signum: handler for signum in SIGNALS if (handler := signal.getsignal(signum)) is not None}
    try:
        for signum in before:
            signal.signal(signum, note)
        yield
    finally:
        for signum, handler in before.items():
            # Any other is from the previous handler, run as the block began or ended: it may ignore what comes next.
            if signal.getsignal(signum) is note:
                signal.signal(signum, handler)
        for taken in came:
            signal.raise_signal(taken)
