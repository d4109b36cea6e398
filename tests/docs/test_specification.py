"""docs/specification: every id that a test names has one paragraph, and what the pages refer to exists."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spec_plugin import PAGES, PARAGRAPH, known_rows

TESTS = Path(__file__).parents[1]
FILES = sorted(PAGES.glob("*.md"))
ID = re.compile(r"\b(?:(?:S[0-4]|[ACDFHIMU]|SP|ST|SG)-\d\d\d?|[BC]\.\d+(?:\.\d+)*|E\d\d?)\b")
SOURCE = re.compile(r"^\*(?:Source|Java|KIP|Kafka|Protocol|Python)\b.*\*$", re.MULTILINE | re.DOTALL)


def ids_of_tests() -> Iterator[tuple[str, str]]:
    """Yield file and id for every literal argument of a `spec` mark."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.spec":
                for argument in node.args:
                    if isinstance(argument, ast.Constant):
                        yield str(path.relative_to(TESTS)), str(argument.value)


def anchor_of(row: str) -> str:
    return row.lower().replace(".", "-")


def test_every_id_that_a_test_names_has_a_paragraph() -> None:
    assert [pair for pair in ids_of_tests() if pair[1] not in known_rows()] == []


def test_every_row_has_one_paragraph() -> None:
    rows = [row for page in FILES for _, row in PARAGRAPH.findall(page.read_text(encoding="utf-8"))]
    assert [row for row, times in Counter(rows).items() if times > 1] == []
    assert [row for row in rows if not ID.fullmatch(row)] == []


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
def test_anchors_are_the_ids(page: Path) -> None:
    found = PARAGRAPH.findall(page.read_text(encoding="utf-8"))
    assert [(anchor, row) for anchor, row in found if anchor != anchor_of(row)] == []


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
def test_what_a_page_refers_to_exists(page: Path) -> None:
    named = set(ID.findall(page.read_text(encoding="utf-8")))
    sections = {row.rpartition(".")[0] for row in known_rows()}  # "B.15" names all rows from B.15.1 on
    assert sorted(named - set(known_rows()) - sections) == []


@pytest.mark.parametrize("page", FILES, ids=lambda page: page.name)
def test_a_page_names_its_source_and_is_in_the_index(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if page.name == "README.md":
        assert set(re.findall(r"\]\(([a-z-]+\.md)\)", text)) == {other.name for other in FILES} - {page.name}
    else:
        assert SOURCE.search(text)
