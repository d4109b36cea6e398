"""The list of what shows on a real Kafka is whole, and every test it names exists, bears the row and runs on one."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.kafka.fixtures import CLUSTERS
from tests.kafka.spec_rows import NOT_SEEN, SEEN
from tests.spec_plugin import known_rows

TESTS = Path(__file__).parents[1]
ON_A_REAL_KAFKA = CLUSTERS | {"broker", "target", "asker", "group", "topic", "request", "topics"}


@cache
def functions(path: str) -> dict[str, ast.FunctionDef]:
    """The test functions of a file, by name."""
    body = ast.parse((TESTS / path).read_text(encoding="utf-8")).body
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def rows_of(function: ast.FunctionDef) -> set[str]:
    """What its `spec` markers name."""
    marks = [one for one in function.decorator_list if isinstance(one, ast.Call)]
    return {
        argument.value
        for mark in marks
        if ast.unparse(mark.func) == "pytest.mark.spec"
        for argument in mark.args
        if isinstance(argument, ast.Constant)
    }


def test_every_row_is_seen_or_has_its_reason() -> None:
    wanted = [row for row in known_rows() if row.startswith(("S0-", "S1-", "S2-", "S3-", "S4-"))]
    assert len(wanted) == 63 + 38 + 53 + 54 + 60
    assert sorted([*SEEN, *NOT_SEEN]) == sorted(wanted)
    assert all(len(reason.split()) > 3 for reason in NOT_SEEN.values())


@pytest.mark.parametrize("row", SEEN)
def test_the_test_of_a_row_exists_and_runs_on_a_real_kafka(row: str) -> None:
    path, name = SEEN[row].split("::")
    function = functions(path)[name]
    assert row in rows_of(function)
    assert path.split("/")[0] in ("kafka", "brokers", "conformance")
    assert {argument.arg for argument in function.args.args} & ON_A_REAL_KAFKA


def test_a_row_is_written_once() -> None:
    """A dict would keep the last of two silently."""
    text = (TESTS / "kafka" / "spec_rows.py").read_text(encoding="utf-8")
    assert all(text.count(f'"{row}":') == 1 for row in [*SEEN, *NOT_SEEN])
