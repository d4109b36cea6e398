"""Which rows of the behaviour specification have a passing test.

A test names its rows with `@pytest.mark.spec("S0-09", "D-20")`. An id that cannot exist is refused at collection, so a
slip of the pen never counts as proof. With `--spec-results FILE` the run writes, for every row that a test named,
how that test ended; `tools/spec.py` prints it.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

ROWS = Path(__file__).parent / "spec_rows.txt"
OTHER_ID = re.compile(r"(?:[A-IMU]|SP|ST|SG)-\d\d|E\d\d?|[BC]\.\d+(?:\.\d+)*")
RESULTS = pytest.StashKey[dict[str, dict[str, str]]]()


def known_rows() -> dict[str, str]:
    """Every row id of the behaviour specification, with the name of its group, in order."""
    rows: dict[str, str] = {}
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        if match := re.match(r"(S\d)-(\d\d)…\1-(\d\d) +(.+)", line):
            group, first, last, title = match.groups()
            rows.update({f"{group}-{n:02}": f"{group}  {title}" for n in range(int(first), int(last) + 1)})
    return rows


def rows_of(item: pytest.Item) -> list[str]:
    """The ids a test names, without repeats."""
    return list(dict.fromkeys(row for mark in item.iter_markers("spec") for row in mark.args))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--spec-results", metavar="FILE", help="write which rows had a passing test")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = known_rows()
    for item in items:
        for row in rows_of(item):
            if row not in known and not OTHER_ID.fullmatch(row):
                raise pytest.UsageError(f"{item.nodeid}: there is no row {row!r} (tests/spec_rows.txt)")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        for row in rows_of(item):
            item.config.stash[RESULTS].setdefault(row, {})[item.nodeid] = report.outcome
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    target = session.config.getoption("--spec-results")
    if target is None or session.config.getoption("collectonly"):
        return
    path = Path(session.config.rootpath, target)
    path.parent.mkdir(parents=True, exist_ok=True)
    run = {
        "at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": _commit(session.config.rootpath),
        "command": ["pytest", *session.config.invocation_params.args],
        "rows": session.config.stash[RESULTS],
    }
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False), encoding="utf-8")


def _commit(root: Path) -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "no commit"
