"""docs/how-it-is-tested.md: its figures are those of their sources, its commands are targets of make."""

from __future__ import annotations

import ast
import gzip
import re
from collections import Counter
from pathlib import Path

from localkafka.releases import RELEASES as KAFKA
from localspark.environments import RELEASES as SPARK
from tests.lakehouse.plan import KINDS as OF_TABLES
from tests.mutations.edit import load_edits
from tests.simulation.faults import KINDS
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.hunt import SEEDS
from tests.spec_plugin import known_rows

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-it-is-tested.md").read_text()
AREAS = {
    "classic": "classic group",
    "closing": "closing",
    "commits": "commits",
    "connections": "connections",
    "consumer_protocol": "consumer protocol",
    "facade": "sync facade",
    "fetching": "fetching",
    "gradual": "gradual (leaks)",
    "handlers": "handlers",
    "lakehouse": "lakehouse",
    "polling": "polling",
    "positions": "positions",
    "records": "records",
    "sessions": "fetch sessions",
    "sockets": "sockets",
    "spark": "Spark source",
    "surroundings": "surroundings",
    "tokens": "tokens",
    "truncation": "truncation",
}


def figure(what: str) -> int:
    """The number in the row of the table that begins with these words."""
    [number] = re.findall(rf"^\| {re.escape(what)}.*? \| ([\d,]+) \| ", PAGE, re.MULTILINE)
    return int(number.replace(",", ""))


def cases(*files: str) -> int:
    """The lines of files that Java's classes wrote."""
    return sum(len(gzip.decompress((ROOT / "tests" / file).read_bytes()).splitlines()) for file in files)


def questions() -> int:
    """The tests of conformance that take a target."""
    functions = [
        node
        for path in (ROOT / "tests" / "conformance").glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return sum("target" in {argument.arg for argument in one.args.args} for one in functions)


def test_the_figures_are_those_of_their_sources() -> None:
    rows = known_rows()
    figures = {
        "rows of the": len(rows),
        "invariants": sum(row.startswith("I-") for row in rows),
        "kinds of faults": len(KINDS),
        "planted bugs": len(MUTANTS),
        "edits": len(list(load_edits())),
        "questions": questions(),
        "releases of Apache Kafka": len(KAFKA),
        "releases of Apache Spark": len(SPARK),
        "messages": cases("vectors/data/messages.jsonl.gz"),
        "plans": cases("group/data/assignors.jsonl.gz", "group/data/assignors_random.jsonl.gz"),
    }
    assert {what: figure(what) for what in figures} == figures
    assert len(re.findall(r"^\| .* \| [\d,]+ \| .* \| `make", PAGE, re.MULTILINE)) == len(figures)


def test_the_planted_bugs_are_counted_by_their_area() -> None:
    counted = Counter(AREAS[bug.plant.__module__.rpartition(".")[2]] for bug in MUTANTS.values())
    [table] = re.findall(r"^\| area \| bugs .*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    shown = {name: int(number) for name, number in re.findall(r"\| ([A-Za-z ()]+) \| (\d+)", table)}
    assert shown == counted
    assert f"within {SEEDS} seeds" in PAGE
    assert set(re.findall(r"M-\d+", PAGE)) <= set(MUTANTS)


def test_the_faults_of_tables_are_counted() -> None:
    [count] = re.findall(r"There are (\d+) kinds of faults", PAGE)
    assert int(count) == len(OF_TABLES)


def test_the_commands_are_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", PAGE)) <= targets
    assert {path for path in re.findall(r"`(tests/[\w/.]+)`", PAGE) if not (ROOT / path).exists()} == set()


def test_the_releases_that_the_page_names_are_read_from() -> None:
    minors = [".".join(release.split(".")[: 3 if release.startswith("0") else 2]) for release in KAFKA]
    assert f"from {minors[-1]} to {minors[0]}" in " ".join(PAGE.split())
