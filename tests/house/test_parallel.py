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

    def note(text):
        with LOG.open("a") as log:
            log.write(f"{os.environ['PYTEST_XDIST_WORKER']} {text}\\n")

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
        note("begins")
        time.sleep(0.02)
        note("ends")

    @pytest.mark.exclusive
    @pytest.mark.spec("S0-10")
    @pytest.mark.parametrize("number", range(3))
    def test_runs_alone(number):
        note("begins")
        time.sleep(0.05)
        note("ends")
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
    # The group of the cluster comes first, and the tests that run alone last.
    assert len(lines) - lines[::-1].index("kafka1 ends") < lines.index("begins", -6)
    assert len({line.split()[0] for line in log}) == 2
    written = json.loads((pytester.path / "spec.json").read_text(encoding="utf-8"))["rows"]
    assert {row: len(tests) for row, tests in written.items()} == {"S0-09": 40, "S0-10": 6}


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
    told = " ".join(re.sub(r"^[ab] ", "", event) for event in events)
    assert told == "ends ends alone begins alone ends again again"
