"""On several workers: the groups of the tests, the lock of an exclusive test, and the results of the spec rows."""

from __future__ import annotations

import json
import re
import threading
import time
from pathlib import Path

import pytest

from tests.parallel import TestLock

pytest.importorskip("xdist")

MARKERS = """
    [pytest]
    markers =
        spec(*ids): rows
        exclusive: alone
        spread: anywhere
        since(release): first release
"""
TESTS = """
    import os, pathlib, time
    import pytest

    LOG = pathlib.Path(__file__).parent / "log.txt"

    WORKER = os.environ["PYTEST_XDIST_WORKER"]

    def note(text):
        with LOG.open("a") as log:
            log.write(f"{WORKER} {text}\\n")

    @pytest.fixture(scope="session")
    def _kafka1():
        note("kafka1 starts")
        yield
        note("kafka1 ends")

    @pytest.fixture
    def kafka1(_kafka1):
        pass

    @pytest.mark.parametrize("number", range(6))
    def test_shares_a_cluster(_kafka1, number):
        note("shares")

    @pytest.mark.parametrize("cluster", ["kafka1"])
    def test_names_a_cluster(request, cluster):
        request.getfixturevalue(cluster)
        note("shares")

    @pytest.mark.spread
    @pytest.mark.spec("S0-09")
    @pytest.mark.parametrize("number", range(20))
    def test_runs_anywhere(number):
        note("waits")
        until = time.monotonic() + 60
        while LOG.read_text().count("kafka1 ends") < 2 and time.monotonic() < until:
            time.sleep(0.01)
        note("begins")
        time.sleep(0.02)
        note("ends")

    @pytest.mark.exclusive
    @pytest.mark.spec("S0-10")
    @pytest.mark.parametrize("number", range(3))
    def test_runs_alone(number):
        note("alone begins")
        time.sleep(0.05)
        note("alone ends")
"""

FAILING_END = """
    import pathlib
    import pytest

    LOG = pathlib.Path(__file__).parent / "log.txt"

    @pytest.fixture(scope="session")
    def _kafka1():
        yield
        LOG.write_text("kafka1 ends")

    @pytest.fixture(scope="session")
    def _kafka3(_kafka1):
        yield
        raise TimeoutError("kafka3 still runs")

    @pytest.fixture(scope="session")
    def spark():
        yield
        raise TimeoutError("Spark still runs")

    def test_takes_clusters(_kafka3, spark):
        pass

    def test_of_the_next_group():
        assert LOG.read_text() == "kafka1 ends"
"""


def run(pytester: pytest.Pytester) -> tuple[pytest.RunResult, list[str]]:
    for name in ("a", "b"):
        pytester.makepyfile(**{f"test_{name}": TESTS})
    pytester.makeini(MARKERS)
    plugins = ("-p", "tests.parallel", "-p", "tests.spec_plugin")
    result = pytester.runpytest_subprocess(
        *plugins, "-n", "2", "--spec-results", "spec.json", "-p", "no:cacheprovider"
    )
    return result, (pytester.path / "log.txt").read_text().splitlines()


def test_groups_locks_and_results(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    result, log = run(pytester)
    result.assert_outcomes(passed=2 * (7 + 20 + 3))
    lines = [line.split(maxsplit=1)[1] for line in log]
    assert (
        lines.count("kafka1 starts") == lines.count("kafka1 ends") == 2
    )  # each file has a fixture of its own
    assert len({line.split()[0] for line in log if line.endswith("shares")}) == 1
    # The group of the cluster comes first: its end is what the tests that run anywhere wait for.
    assert (
        len(lines) - lines[::-1].index("kafka1 ends") <= lines.index("begins") < lines.index("alone begins")
    )
    alone = [at for at, line in enumerate(lines) if line == "alone begins"]
    assert [lines[at + 1] for at in alone] == ["alone ends"] * 6
    assert len({line.split()[0] for line in log}) == 2
    written = json.loads((pytester.path / "spec.json").read_text(encoding="utf-8"))["rows"]
    assert {row: len(tests) for row, tests in written.items()} == {"S0-09": 40, "S0-10": 6}


def test_an_error_while_a_cluster_ends_is_an_error_of_the_last_test_of_its_group(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makepyfile(FAILING_END)
    pytester.makeini(MARKERS)
    result = pytester.runpytest_subprocess("-p", "tests.parallel", "-n", "1", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_takes_clusters*"])
    for cluster in ("kafka3", "Spark"):
        result.stdout.fnmatch_lines([f"*TimeoutError: {cluster} still runs*"])


def test_an_exclusive_test_waits_for_the_others_and_these_wait_for_it(tmp_path: Path) -> None:
    events: list[str] = []
    inside = threading.Barrier(3)

    def ordinary(name: str) -> None:
        lock = TestLock(tmp_path)
        with lock.held(exclusive=False):
            inside.wait(10)
            time.sleep(0.2)
            events.append(f"{name} ends")
        with lock.held(exclusive=False):
            events.append(f"{name} again")
        lock.close()

    workers = [threading.Thread(target=ordinary, args=(name,)) for name in ("a", "b")]
    for worker in workers:
        worker.start()
    inside.wait(10)
    lock = TestLock(tmp_path)
    with lock.held(exclusive=True):
        events.append("alone begins")
        time.sleep(0.2)
        events.append("alone ends")
    lock.close()
    for worker in workers:
        worker.join()
    order = " ".join(re.sub(r"^[ab] ", "", event) for event in events)
    assert order == "ends ends alone begins alone ends again again"
