"""A child's family ends with it, also those of it that left its process group, as Spark's Python workers do."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo.processes import Child, members

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
