"""Each program in examples/ runs as a user runs it, in a process of its own, on an embedded cluster."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import pytest

from kclient.embedded import EmbeddedCluster

EXAMPLES = Path(__file__).parents[2] / "examples"
VALUES = ["on time", "late", "on time", "cancelled", "on time", "late"]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"flights": 3}) as cluster:
        yield cluster


def command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / name), *arguments]


def run(name: str, *arguments: str) -> tuple[int, list[str]]:
    """Run a program that ends; its exit code and its lines."""
    done = subprocess.run(command(name, *arguments), capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def run_until(name: str, *arguments: str, lines: int, stop: signal.Signals) -> list[str]:
    """Run a program that goes on, stop it after so many lines, and return all of them."""
    with subprocess.Popen(command(name, *arguments), stdout=subprocess.PIPE, text=True) as process:
        output = stdout_of(process)
        found = [output.readline().rstrip("\n") for _ in range(lines)]
        process.send_signal(stop)
        found += output.read().splitlines()
        assert process.wait(timeout=30) == 0
    return found


def stdout_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def test_a_member_of_a_group_prints_and_commits(cluster: EmbeddedCluster) -> None:
    cluster.produce("flights", VALUES, partition=0)
    servers = cluster.bootstrap_servers
    lines = run_until("group_consumer.py", servers, "flights", "delays", lines=7, stop=signal.SIGINT)
    assert lines[0] == "assigned: flights-0 flights-1 flights-2"
    assert lines[1:7] == [f"0 {offset} None {value.encode()!r}" for offset, value in enumerate(VALUES)]
    assert "revoked: flights-0 flights-1 flights-2" in lines
    assert lines[-1].startswith("closed")
    assert cluster.committed("delays")["flights", 0] >= 5


def test_the_service_ends_on_sigterm_and_commits_what_it_has_handled(cluster: EmbeddedCluster) -> None:
    cluster.produce("flights", VALUES, partition=1)
    arguments = (cluster.bootstrap_servers, "flights", "delays")
    lines = run_until("asyncio_service.py", *arguments, lines=6, stop=signal.SIGTERM)
    assert lines == [*(f"handled 1 {offset}" for offset in range(6)), "closed"]
    assert cluster.committed("delays")["flights", 1] in (5, 6)  # the last one: if the loop had asked for more


def test_counts_and_offsets_stay_together(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    arguments = (cluster.bootstrap_servers, "flights", str(tmp_path / "counts.db"))
    cluster.produce("flights", VALUES)
    assert run("exactly_once_sqlite.py", *arguments) == (0, ["3 on time", "2 late", "1 cancelled"])
    cluster.produce("flights", ["late"])
    assert run("exactly_once_sqlite.py", *arguments) == (0, ["3 late", "3 on time", "1 cancelled"])


def test_columns_go_to_duckdb_and_polars(cluster: EmbeddedCluster) -> None:
    cluster.produce("flights", VALUES, partition=2)
    code, lines = run("columns.py", cluster.bootstrap_servers, "flights")
    assert code == 0
    assert lines == [
        "DuckDB: records of each partition",
        "  2: 6",
        "Polars: the most frequent values",
        "  on time: 3",
        "  late: 2",
        "  cancelled: 1",
    ]


def test_the_check_of_lag_knows_three_answers(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    cluster.produce("flights", VALUES, partition=0)
    servers = cluster.bootstrap_servers
    code, lines = run("lag_check.py", servers, "delays", "3")
    assert (code, lines[0].split()[0]) == (2, "UNKNOWN")
    run_until("group_consumer.py", servers, "flights", "delays", lines=7, stop=signal.SIGINT)
    done = cluster.committed("delays")["flights", 0]
    cluster.produce("flights", VALUES, partition=0)
    for limit, expected in (("6", 0 if done == 6 else 1), ("7", 0), ("5", 1)):
        code, lines = run("lag_check.py", servers, "delays", limit)
        assert (code, lines[-1]) == (
            expected,
            f"{'CRITICAL' if expected else 'OK'} delays: {12 - done} records",
        )


def test_a_replay_begins_and_ends_at_its_times(cluster: EmbeddedCluster) -> None:
    cluster.produce("flights", VALUES[:2], partition=0)
    begin = cluster.clock.wall_ms()
    cluster.clock.advance("1h")
    cluster.produce("flights", VALUES[2:4], partition=0)
    cluster.clock.advance("1h")
    cluster.produce("flights", VALUES[4:], partition=0)
    times = (iso(begin + 1_800_000), iso(begin + 5_400_000))
    code, lines = run("replay_by_time.py", cluster.bootstrap_servers, "flights", *times)
    assert code == 0
    assert [line.split(maxsplit=1)[1] for line in lines] == ["0 2 b'on time'", "0 3 b'cancelled'"]
    assert run("replay_by_time.py", cluster.bootstrap_servers, "flights", iso(0), iso(1)) == (0, [])


def iso(wall_ms: int) -> str:
    return datetime.fromtimestamp(wall_ms / 1000, UTC).isoformat()


def test_what_is_no_flight_goes_to_the_file(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    flights = ['{"carrier": "AA", "delay": 3}', "{", '{"carrier": "UA"}', '{"carrier": "B6", "delay": -2}']
    cluster.produce("flights", flights, partition=0)
    bad = tmp_path / "bad.jsonl"
    arguments = (cluster.bootstrap_servers, "flights", "delays", str(bad))
    assert run_until("dead_letters.py", *arguments, lines=2, stop=signal.SIGINT) == [
        "AA 3",
        "B6 -2",
        "closed",
    ]
    letters = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [(letter["partition"], letter["offset"]) for letter in letters] == [(0, 1), (0, 2)]


def test_every_program_is_listed_and_tested() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    listed = (EXAMPLES / "README.md").read_text()
    tests = Path(__file__).read_text()
    assert {
        name for name in programs if f"[{name}]({name})" not in listed or f'"{name}"' not in tests
    } == set()


def test_the_simulation_finds_the_service_that_bills_twice() -> None:
    code, lines = run_module("pytest", str(EXAMPLES / "test_bill_once.py"), "-q", "-p", "no:cacheprovider")
    assert (code, lines[-1].partition(" in ")[0]) == (0, "2 passed")


def run_module(name: str, *arguments: str) -> tuple[int, list[str]]:
    """Run a module of Python that ends; its exit code and its lines."""
    whole = [sys.executable, "-m", name, *arguments]
    done = subprocess.run(whole, cwd=EXAMPLES, capture_output=True, text=True, timeout=110, check=False)
    return done.returncode, done.stdout.splitlines()
