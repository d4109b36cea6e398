"""Which rows of the specification (docs/specification) have a passing test.

A test names its rows with `@pytest.mark.spec("S0-09", "D-20")`. An id that no page has is refused at collection, so a
misspelt id never counts as proof. With `--spec-results FILE` the run writes, for every row that a test named,
how that test ended; `tools/spec.py` prints it. `--spec-rows S3-24,S3-25` runs only tests that name one of these rows,
and `--spec-index FILE` writes the test files of each row: `tests/mutations` asks for both.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PAGES = Path(__file__).parents[1] / "docs" / "specification"
PARAGRAPH = re.compile(r'^<a id="([^"]+)"></a>\*\*([^*]+)\*\* ', re.MULTILINE)
COLLECTOR = pytest.StashKey["Collector"]()


class Row(NamedTuple):
    """One row: its id, its group (`S0  Fetch positions`), and the link to its paragraph."""

    id: str
    group: str
    link: str


def rows_of_page(page: Path) -> Iterator[Row]:
    """Yield the rows of one page, in order."""
    text = page.read_text(encoding="utf-8")
    title = text.partition("\n")[0].removeprefix("# ").partition(" (")[0]
    for anchor, row in PARAGRAPH.findall(text):
        group = re.match(r"S\d|[A-Z]+", row)
        yield Row(row, f"{group and group[0]}  {title}", f"docs/specification/{page.name}#{anchor}")


@cache
def known_rows() -> dict[str, Row]:
    """Return every row of the specification by its id: S0 to S4 first, then page by page."""
    rows = [row for page in sorted(PAGES.glob("*.md")) for row in rows_of_page(page)]
    return {
        row.id: row for row in sorted(rows, key=lambda row: row.group[:2] if row.group[1].isdigit() else "~")
    }


def rows_of(item: pytest.Item) -> list[str]:
    """Return the ids that a test names, without repeats."""
    return list(dict.fromkeys(row for mark in item.iter_markers("spec") for row in mark.args))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--spec-results", metavar="FILE", help="write which rows had a passing test")
    parser.addoption(
        "--spec-rows", metavar="ROWS", help="run only tests that name one of these rows (S3-24,S3-25)"
    )
    parser.addoption("--spec-index", metavar="FILE", help="write the test files of each row")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse rows that do not exist and, where all tests are collected, rows that `make test` would not prove."""
    _check_rows(config, items)
    if (wanted := config.getoption("--spec-rows")) is not None:
        rows = set(wanted.split(","))
        left = [item for item in items if not rows.intersection(rows_of(item))]
        items[:] = [item for item in items if rows.intersection(rows_of(item))]
        config.hook.pytest_deselected(items=left)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Write the index when marks and other options have chosen the tests."""
    target = session.config.getoption("--spec-index")
    if target is None:
        return
    index: dict[str, dict[str, None]] = {}
    for item in session.items:
        for row in rows_of(item):
            # Not item.location: that of a stateful test of hypothesis is in the library.
            index.setdefault(row, {})[item.nodeid.partition("::")[0]] = None
    path = Path(session.config.rootpath, target)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({row: list(files) for row, files in index.items()}, indent=1), encoding="utf-8"
    )


def _check_rows(config: pytest.Config, items: list[pytest.Item]) -> None:
    known = known_rows()
    for item in items:
        for row in rows_of(item):
            if row not in known:
                raise pytest.UsageError(f"{item.nodeid}: there is no row {row!r} in docs/specification")
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and (rows := exhaustive_rows(items)):
        raise pytest.UsageError(f"`make test` would prove no row of {rows}: all their tests are `exhaustive`")


def exhaustive_rows(items: list[pytest.Item]) -> list[str]:
    """Return the rows that only tests marked `exhaustive` name."""
    rows = {True: set[str](), False: set[str]()}
    for item in items:
        rows[item.get_closest_marker("exhaustive") is not None].update(rows_of(item))
    return sorted(rows[True] - rows[False])


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COLLECTOR] = collector = Collector()
    config.pluginmanager.register(collector)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.spec_rows = rows_of(item)  # pytest-xdist sends the report with its attributes to the controller
    return report


class Collector:
    """Collects how the tests of each row ended. The controller of pytest-xdist hears of those of its workers."""

    def __init__(self) -> None:
        self.results: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            for row in getattr(report, "spec_rows", ()):
                self.results.setdefault(row, {})[report.nodeid] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    target = session.config.getoption("--spec-results")
    if target is None or session.config.getoption("collectonly") or hasattr(session.config, "workerinput"):
        return
    path = Path(session.config.rootpath, target)
    path.parent.mkdir(parents=True, exist_ok=True)
    run = {
        "at": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": _commit(session.config.rootpath),
        "command": ["pytest", *session.config.invocation_params.args],
        "rows": session.config.stash[COLLECTOR].results,
    }
    path.write_text(json.dumps(run, indent=1, ensure_ascii=False), encoding="utf-8")


def _commit(root: Path) -> str:
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return described.stdout.strip() or "no commit"
