"""A child's family ends with it, also those of it that left its process group, as Spark's Python workers do."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from demo.job import Job
from demo.pipeline import Pipeline
from demo.processes import Child, members
from demo.recorder import Recorder
from demo.terminal import Terminal
from tests.demo.runs import a_run

RUNAWAY = "import os, time; os.setpgid(0, 0); os.write(1, b'{}\\n'); time.sleep(60)"
PARENT = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {RUNAWAY!r}])
time.sleep(60)
"""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="needs /proc to look at the processes of a session"
)
def test_a_grandchild_in_a_process_group_of_its_own_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parent.py").write_text(PARENT)
    monkeypatch.setattr("demo.processes.ROOT", tmp_path)
    with Child("parent", [], tmp_path / "log") as child:
        assert child.receive(30) == [{}]  # said by the grandchild, after it left the group
        assert len(members(child.pid)) == 2
    assert members(child.pid) == []


def test_an_interrupt_while_the_job_is_started_again_ends_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        """Started, and its starter does not know it yet."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            signal.raise_signal(signal.SIGINT)

    started: list[subprocess.Popen[bytes]] = []
    job = Job("127.0.0.1:1", "flights", "landed", tmp_path, 600, "direct")
    with Pipeline(job, Recorder(a_run(), Terminal())) as pipeline:
        pipeline._kill()
        monkeypatch.setattr(subprocess, "Popen", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            pipeline._start()
    assert [process.returncode for process in started] == [-signal.SIGKILL]
