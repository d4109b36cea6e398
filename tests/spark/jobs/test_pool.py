"""Workers whose parent is killed: no other run may write their files, and they end without it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kclient.errors import SinkError
from kclient.spark.sink.atomic_files import locked

pytestmark = pytest.mark.timeout(60)

DEAF = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})"
"""A worker does this that is deep in the system and hears of nothing."""


def orphan(directory: Path, order: str, *, at_work: bool = True) -> int:
    """The pid of a worker with a minute of work, whose parent was just killed."""
    text = (
        f"{order}; import pathlib, time; pathlib.Path({str(directory / 'begun')!r}).touch(); time.sleep(60)"
    )
    command = [sys.executable, "-m", "tests.spark.jobs.orphans", str(directory), text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        deadline = time.monotonic() + 30
        while at_work and not (directory / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        parent.kill()
    return pid


def ended(pid: int) -> bool:
    """Whether a process that is not a child of this one has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.mark.spec("SP-82")
def test_a_worker_that_outlives_its_parent_keeps_the_lock(tmp_path: Path) -> None:
    worker = orphan(tmp_path, DEAF)
    try:
        with pytest.raises(SinkError, match="in use: another process"), locked(tmp_path, "A new run"):
            pass
    finally:
        os.kill(worker, signal.SIGKILL)
    with locked(tmp_path, "A new run"):
        pass


@pytest.mark.spec("SP-82")
@pytest.mark.parametrize("at_work", [True, False])
def test_a_worker_ends_when_its_parent_is_killed(tmp_path: Path, at_work: bool) -> None:
    """In the middle of an order, or before it can hear of one: the next run need not wait for it."""
    worker = orphan(tmp_path, "pass", at_work=at_work)
    deadline = time.monotonic() + 30
    while not ended(worker):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with locked(tmp_path, "A new run"):
        pass
