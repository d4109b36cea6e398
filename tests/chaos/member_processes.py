"""The member processes of a cycle: started, killed or stopped, started again, ended. A journal lists the faults."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from localkafka.processes import Child, Processes
from tests.chaos.journal import Journal
from tests.chaos.member_settings import Order
from tests.chaos.plan import KINDS, PROCESSES

ROOT = Path(__file__).parents[2]
END_SECONDS = 40  # of close() at most 30


class CrewError(AssertionError):
    """A member process exited unexpectedly, or does not exit."""


class Crew:
    """The processes by their names. A process that is started again has new members, with the next number."""

    def __init__(self, processes: Processes, folder: Path, journal: Journal, order: Order) -> None:
        self._processes = processes
        self._folder = folder
        self._journal = journal
        self._order = order
        self._children: dict[str, Child] = {}
        self._lives = dict.fromkeys(PROCESSES, 0)

    @property
    def names(self) -> list[str]:
        return list(PROCESSES)

    @property
    def journals(self) -> list[Path]:
        """Of all processes that there ever were."""
        return sorted(self._folder.glob("*.journal"))

    def start(self, name: str) -> None:
        """Start a process for the first time, or again."""
        if self._lives[name]:
            self._journal.write("chaos", "go on", target=name)
        self._lives[name] += 1
        life = f"{name}#{self._lives[name]}"
        order = Order(
            KINDS[name],
            [f"{name}.{number}#{self._lives[name]}" for number in range(PROCESSES[name])],
            self._order.topic,
            self._order.settings,
            self._order.commits,
            self._order.static,
            str(self._folder / f"{life}.journal"),
        )
        command = [sys.executable, "-m", "tests.chaos.member", order.to_json()]
        self._children[name] = self._processes.start(life, command, cwd=ROOT)

    def kill(self, name: str) -> None:
        """SIGKILL. The line comes after it: until it is dead, a process does what it may do."""
        self.check([name])
        self._processes.kill(self._children[name])
        self._journal.write("chaos", "kill", target=name, life=self._lives[name])

    def stop(self, name: str) -> None:
        """SIGSTOP."""
        self.check([name])
        self._journal.write("chaos", "stop", target=name)
        self._children[name].pause()

    def go_on(self, name: str) -> None:
        """SIGCONT."""
        self._children[name].resume()
        self._journal.write("chaos", "go on", target=name)

    def check(self, names: Iterable[str] = PROCESSES) -> None:
        """Raise CrewError for a process that has exited unexpectedly."""
        for name in names:
            child = self._children[name]
            if not child.running:
                raise CrewError(f"{name} ended with {child.process.returncode}:\n{child.log_tail()}")

    def close(self) -> None:
        """SIGTERM to all at once, and wait until each has closed its members."""
        for child in self._children.values():
            os.killpg(child.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while any(child.running for child in self._children.values()):
            if time.monotonic() > deadline:
                late = [child for child in self._children.values() if child.running]
                raise CrewError("\n".join(f"{one.name} does not close:\n{one.log_tail()}" for one in late))
            time.sleep(0.05)
        for name, child in self._children.items():
            if child.process.returncode != 0:
                raise CrewError(f"{name} ended with {child.process.returncode}:\n{child.log_tail()}")
