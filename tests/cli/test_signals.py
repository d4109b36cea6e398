"""A running job as its surroundings see it: signals, a terminal, Prometheus. Always a real child process."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.spark.sink import manifest
from tests.cli.support import COMMAND, PATIENCE, job, run

RECORDS = 6_000


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1, "stuck": 1}) as cluster:
        cluster.produce("orders", ["x" * 50] * RECORDS)
        cluster.produce("stuck", ["x"])
        yield cluster


class Job:
    """A job that writes its events to a pipe."""

    def __init__(self, arguments: list[str]) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *arguments, "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def until(self, event: str) -> dict[str, Any]:
        """Wait for an event."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if (found := json.loads(line))["event"] == event:
                return dict(found)
        raise AssertionError(self.process.communicate()[1])

    def end(self) -> tuple[int, list[dict[str, Any]], str]:
        """Wait for the end: exit code, the events that were left, standard error."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGTERM, 1), (signal.SIGINT, 1), (signal.SIGINT, 2)])
def test_a_signal_ends_the_job_after_the_batch_at_work(
    number: signal.Signals, workers: int, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    arguments = job(cluster.bootstrap_servers, tmp_path, "--max-per-trigger", "20")
    arguments[arguments.index("--parallelism") + 1] = str(workers)
    with Job(arguments) as running:
        running.until("batch")
        os.killpg(running.process.pid, number)  # as Ctrl-C in a terminal reaches every process of the job
        code, events, err = running.end()
    *_, finished = events
    assert (code, finished["ended"], finished["signal"], err) == (130, "stopped", number, "")
    assert 0 < finished["total_rows"] < RECORDS
    assert manifest.count(tmp_path / "raw") == finished["total_rows"]
    rest = run(*arguments[:-1], "100000")
    assert rest.code == 0, rest.err
    assert manifest.count(tmp_path / "raw") == RECORDS


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_job_without_an_end_is_ended_in_order_by_sigterm(
    number: signal.Signals, code: int, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with Job(job(cluster.bootstrap_servers, tmp_path, "--trigger", "60s")) as running:
        assert running.until("batch")["lag_records"] == 0
        running.process.send_signal(number)
        ended, [finished], _ = running.end()
    assert (ended, finished["ended"], finished["total_rows"]) == (code, "stopped", RECORDS)


@pytest.mark.spec("SP-85")
def test_a_second_signal_ends_it_at_once(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    rule = cluster.delay("Fetch", 60_000)
    try:
        with Job(job(cluster.bootstrap_servers, tmp_path, topic="stuck")) as running:
            running.until("plan")
            running.process.send_signal(signal.SIGTERM)
            with pytest.raises(subprocess.TimeoutExpired):
                running.process.wait(2)
            running.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            code, [failed], _ = running.end()
    finally:
        cluster.lift(rule)
    assert (code, failed["event"], failed["exit_code"]) == (130, "failed", 130)
    assert time.monotonic() - began < 20
    assert run(*job(cluster.bootstrap_servers, tmp_path, topic="stuck")).code == 0
    assert manifest.count(tmp_path / "raw") == 1


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize("places", [(), ("raw/_manifest", "checkpoint/kclient")])
@pytest.mark.parametrize("more", [(), ("--backfill",)])
def test_ctrl_c_does_not_wait_for_a_broker_that_says_nothing(
    more: tuple[str, ...], places: tuple[str, ...], tmp_path: Path
) -> None:
    for place in places:  # as an earlier run left them
        (tmp_path / place).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(PATIENCE)
        servers = f"127.0.0.1:{mute.getsockname()[1]}"
        patient = ("--set", "socket.connection.setup.timeout.ms=20000")
        with Job(job(servers, tmp_path, *more, *patient)) as running:
            asking, _ = mute.accept()
            with asking:
                assert asking.recv(1)
                running.process.send_signal(signal.SIGINT)
                code, [failed], err = running.end()
    assert (code, failed["event"], failed["exit_code"], err) == (130, "failed", 130, "")


# --- Prometheus


def get(port: int, path: str = "/metrics", method: str = "GET") -> tuple[int, str, str]:
    """Status, content type and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, "", exc.read().decode()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.spec("SP-84")
def test_prometheus_scrapes_a_running_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    port = free_port()
    more = ("--trigger", "60s", "--metrics", f"prometheus:{port}")
    with Job(job(cluster.bootstrap_servers, tmp_path, *more)) as running:
        running.until("plan")
        assert 'kclient_lag{topic="orders",partition="0"} ' in get(port)[2]
        running.until("batch")
        status, kind, page = get(port)
        assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
        assert 'kclient_lag{topic="orders",partition="0"} 0\n' in page
        assert "kclient_batch_seconds_count 1\n" in page
        assert f"kclient_rows_total {RECORDS}\n" in page
        assert "kclient_bad_records_total 0\n" in page
        assert (get(port, "/")[0], get(port, method="POST")[0]) == (404, 405)
        taken = run(*job(cluster.bootstrap_servers, tmp_path / "other", *more))
        assert taken.code == 2
        assert "cannot listen there" in taken.err
        running.process.send_signal(signal.SIGTERM)
        assert running.end()[0] == 0
    with pytest.raises(OSError, match="refused"):
        get(port)


# --- a terminal


def on_a_terminal(arguments: list[str], **environment: str) -> tuple[int, str]:
    """The exit code, and all that the terminal was sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"PATH": os.environ["PATH"], "COLUMNS": "160", "TERM": "xterm", **environment},
        cwd=Path(__file__).parents[2],
        start_new_session=True,
    )
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 1)[0]:
                seen += os.read(ours, 65_536)
    except OSError:  # the other end is closed: the child has ended
        pass
    finally:
        os.close(ours)
    return process.wait(10), seen.decode()


COLOUR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")


@pytest.mark.spec("SP-84")
def test_a_terminal_has_one_line_that_changes(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    code, shown = on_a_terminal(job(cluster.bootstrap_servers, tmp_path, "--max-per-trigger", "2000"))
    assert code == 0, shown
    assert "\x1b[2K" in shown  # the line is cleared before it is written again
    assert "━" * 20 in shown
    assert COLOUR.search(shown)
    assert "drained  3 batches  6,000 rows" in shown.splitlines()[-1]
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h")  # the cursor is given back


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(setting: dict[str, str], cluster: EmbeddedCluster, tmp_path: Path) -> None:
    code, shown = on_a_terminal(job(cluster.bootstrap_servers, tmp_path), **setting)
    assert code == 0, shown
    assert not re.search(r"\x1b\[[0-9;]*3[1-7]m", shown)
    if "TERM" in setting:
        assert "\x1b" not in shown
    assert "drained  1 batch  6,000 rows" in shown
