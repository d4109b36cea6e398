"""What a Spark session costs, read from /proc: the CPU of its JVM and of its Python processes, the workers' memory and
connections. Linux only.

    benchmark's child (driver, Python) → java → pyspark.daemon → a worker for each running task
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import attrs

TICKS: Final = os.sysconf("SC_CLK_TCK")
ESTABLISHED: Final = "01"


@attrs.frozen
class Process:
    """CPU seconds of a process, and of those of its children that are gone and were waited for."""

    pid: int
    parent: int
    name: str
    own: float
    gone: float

    @classmethod
    def read(cls, pid: int) -> Self:
        """From /proc/PID/stat. Raises OSError when it has ended."""
        head, _, tail = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")
        fields = tail.split()
        own, gone = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
        return cls(pid, int(fields[1]), head.partition("(")[2], own, gone)


@attrs.frozen
class Cpu:
    """Seconds of CPU, the JVM apart from everything in Python."""

    jvm: float
    python: float

    @property
    def total(self) -> float:
        return self.jvm + self.python


def tree(root: int) -> list[Process]:
    """A process and everything below it."""
    children: dict[int, list[Process]] = {}
    for process in _everything():
        children.setdefault(process.parent, []).append(process)
    found = [Process.read(root)]
    for process in found:
        found += children.get(process.pid, [])
    return found


def used(before: list[Process], after: list[Process]) -> Cpu:
    """The CPU between two looks at a tree.

    A child that has ended counts with its whole life where its parent waited for it: what it had used before the first
    look is taken off again. Whatever ended below the JVM was Python.
    """
    then, now = ({process.pid: process for process in look} for look in (before, after))
    jvm = python = ended = 0.0
    for process in after:
        old = then.get(process.pid)
        own = process.own - (old.own if old else 0.0)
        ended += process.gone - (old.gone if old else 0.0)
        jvm, python = (jvm + own, python) if process.name == "java" else (jvm, python + own)
    ended -= sum(process.own + process.gone for process in before if process.pid not in now)
    return Cpu(jvm, python + max(0.0, ended))


def workers(root: int) -> list[int]:
    """The Python processes that read: those below the daemon, which is the JVM's child."""
    processes = {process.pid: process for process in tree(root)}
    return [
        process.pid
        for process in processes.values()
        if process.name.startswith("python")
        if (daemon := processes.get(process.parent)) is not None and daemon.name.startswith("python")
        if (jvm := processes.get(daemon.parent)) is not None and jvm.name == "java"
    ]


def peak_bytes(pid: int) -> int:
    """The most memory that a process had resident; 0 when it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def connections(pids: Iterable[int], port: int) -> frozenset[int]:
    """The sockets that these processes have open to a port, by inode."""
    held = {inode for pid in pids for inode in _sockets(pid)}
    return frozenset(inode for inode in _connected_to(port) if inode in held)


def _everything() -> Iterator[Process]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError):
                yield Process.read(int(entry))


def _sockets(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                if target.startswith("socket:["):
                    yield int(target[8:-1])


def _connected_to(port: int) -> Iterator[int]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == ESTABLISHED and int(fields[2].rpartition(":")[2], 16) == port:
                    yield int(fields[9])
