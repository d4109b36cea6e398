"""Parts of the Kafka harness that need no Kafka: the cache of jars, the tool's table, and ending what was started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from localkafka import CommittedOffset, LocalKafkaError, command_line, jars
from localkafka.fetch import chosen
from localkafka.processes import Processes, deferred_signals

MVN = """#!/bin/sh
echo fetch >> "$LOG"
for word; do case "$word" in -DoutputDirectory=*) touch "${word#*=}/kafka.jar";; esac; done
exit "$STATUS"
"""


@pytest.fixture
def mvn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An mvn that writes one jar and a line into a log; the log's path."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(MVN)
    program.chmod(0o755)
    log = tmp_path / "mvn.log"
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    monkeypatch.setenv("KCLIENT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LOG", str(log))
    monkeypatch.setenv("STATUS", "0")
    return log


def fetches(log: Path) -> int:
    return log.read_text().count("fetch") if log.exists() else 0


def test_jars_are_fetched_once(mvn: Path) -> None:
    folder = jars.fetch("2.8.2")
    assert (folder / "kafka.jar").exists()
    assert jars.fetch("2.8.2") == folder
    assert fetches(mvn) == 1


def test_a_half_filled_folder_counts_as_absent(mvn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATUS", "1")
    with pytest.raises(LocalKafkaError, match=r"mvn could not fetch .*kafka_2\.13:2\.8\.2"):
        jars.fetch("2.8.2")
    monkeypatch.setenv("STATUS", "0")
    jars.fetch("2.8.2")
    assert fetches(mvn) == 2


def test_another_list_of_artifacts_is_fetched_again(mvn: Path) -> None:
    (jars.fetch("2.8.2") / ".complete").write_text("the pom of last year")
    jars.fetch("2.8.2")
    assert fetches(mvn) == 2


@pytest.mark.parametrize(("ci", "status"), [("", 0), ("true", 1)])
def test_without_java_fetching_says_so_and_fails_only_in_ci(tmp_path: Path, ci: str, status: int) -> None:
    command = [sys.executable, "-m", "localkafka.fetch", "4.3.1"]
    environment = {"PATH": str(tmp_path), "KCLIENT_CACHE": str(tmp_path), "CI": ci}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (status, "Kafka 4.3.1 is left out: java is not installed\n")


def test_an_unknown_release_is_refused_and_the_known_ones_named() -> None:
    assert chosen("2.1.1,0.10.2.2") == ["2.1.1", "0.10.2.2"]
    assert len(chosen("all")) == 9
    with pytest.raises(LocalKafkaError, match=r"known are 4\.4\.0, .* and all, not 2\.1"):
        chosen("2.8.2,2.1")


def test_the_tools_table_is_read_by_its_column_names() -> None:
    table = """
        Consumer group 'g' has no active members.

        GROUP  TOPIC  PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID
        g      t      0          10              12              2    -            -     -
        g      t      1          -               5               -    -            -     -
    """
    assert command_line.parse_offsets(textwrap.dedent(table)) == {
        ("t", 0): CommittedOffset(10, 12, 2),
        ("t", 1): CommittedOffset(None, 5, None),
    }


def gone(pid: int) -> bool:
    """Whether a process has ended, waiting up to 10 s. A zombie counts as ended."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_leaving_the_context_ends_the_children_and_nothing_else(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    with Processes(tmp_path) as processes:
        child = processes.start("sleeper", ["sleep", "60"])
        child.pause()  # a stopped process has to end too
    assert gone(child.process.pid)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_signal_while_a_child_starts_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        """Started, and its starter does not know it yet."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            signal.raise_signal(signal.SIGINT)

    started: list[int] = []
    with Processes(tmp_path) as processes:
        monkeypatch.setattr(subprocess, "Popen", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            processes.start("sleeper", ["sleep", "60"])
    assert len(started) == 1
    assert gone(started[0])


def test_signals_that_are_held_take_effect_after_the_outermost_block() -> None:
    came: list[str] = []
    before = signal.signal(signal.SIGHUP, lambda signum, frame: came.append("told"))
    try:
        with deferred_signals():
            with deferred_signals():
                signal.raise_signal(signal.SIGHUP)
            came.append("over")
        assert came == ["over", "told"]
        signal.raise_signal(signal.SIGHUP)
        assert came == ["over", "told", "told"]
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("moment", [1, 2, 3, 4, 5, 6])
def test_a_handler_that_runs_at_the_edge_of_the_block_keeps_what_it_sets(
    moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first signal ends the program and has the others ignored: one that comes while it ends must not kill it."""
    handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    changes, change = 0, signal.signal

    def end(signum: int, frame: object) -> None:
        for other in handled:
            change(other, signal.SIG_IGN)
        raise KeyboardInterrupt

    def interrupted(signum: int, handler: Any) -> Any:
        """Change a handler; the signal that takes effect at its end comes before one of these changes."""
        nonlocal changes
        changes += 1
        if changes == moment:
            signal.raise_signal(signal.SIGHUP)
        return change(signum, handler)

    before = {signum: change(signum, end) for signum in handled}
    try:
        monkeypatch.setattr(signal, "signal", interrupted)
        with pytest.raises(KeyboardInterrupt), deferred_signals():
            pass
        assert [signal.getsignal(signum) for signum in handled] == [signal.SIG_IGN] * 3
    finally:
        monkeypatch.undo()
        for signum, handler in before.items():
            signal.signal(signum, handler)


STARTER = """
import sys, time
from pathlib import Path
from localkafka.processes import Processes
with Processes(Path(sys.argv[1])) as processes:
    print(processes.start("sleeper", ["sleep", "60"]).process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_children_and_folder_go_even_when_the_starter_is_killed(tmp_path: Path, how: signal.Signals) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", STARTER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        child = int(starter.stdout.readline())
        starter.send_signal(how)
    assert gone(child)
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not folder.exists()
