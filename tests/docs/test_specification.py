"""docs/specification: every id that a test names has one paragraph, references resolve, and C.2 is the code's table."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.embedded.releases import KNOWN, NEWEST, OLDEST_SINCE_4, Release, versions_of
from kclient.protocol.registry import MESSAGES
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


# --- the table of C.2


VERSION_ROW = re.compile(
    r"^\| (?P<api>[A-Za-z]+) \((?P<key>\d+)\) \| (?P<newest>\d+) \| (?P<oldest>\d+) \| (?P<flexible>\d+|never) "
    r"\| (?P<history>[\d:., ]+) \|$",
    re.MULTILINE,
)


def version_rows() -> dict[str, re.Match[str]]:
    """Return the rows of the table in C.2, by API."""
    text = (PAGES / "wire-format.md").read_text(encoding="utf-8")
    return {row["api"]: row for row in VERSION_ROW.finditer(text)}


def history_of(row: re.Match[str]) -> list[tuple[int, str]]:
    pairs = (pair.split(": ") for pair in row["history"].split(", "))
    return [(int(version), release) for version, release in pairs]


@pytest.mark.spec("C.2")
def test_the_table_of_versions_names_every_api_once() -> None:
    text = (PAGES / "wire-format.md").read_text(encoding="utf-8")
    table = text[text.index('id="c-2"') : text.index('id="c-2-1"')]
    assert list(version_rows()) == list(NEWEST)
    assert len(re.findall(r"^\| [A-Z][A-Za-z]+ \(\d", table, re.MULTILINE)) == len(NEWEST)


@pytest.mark.spec("C.2")
@pytest.mark.parametrize("api", NEWEST)
def test_a_row_of_the_table_of_versions_is_that_of_the_code(api: str) -> None:
    row, request = version_rows()[api], MESSAGES[f"{api}Request"]
    assert int(row["key"]) == request.api_key
    assert " ".join(f"{version}:{release}" for version, release in history_of(row)) == NEWEST[api]
    assert int(row["newest"]) == history_of(row)[-1][0]
    assert int(row["oldest"]) == OLDEST_SINCE_4.get(api, 0)
    since = request.flexible_since
    assert row["flexible"] == ("never" if since is None else str(max(since, request.lowest)))


@pytest.mark.spec("C.2")
@pytest.mark.parametrize("release", KNOWN)
def test_an_embedded_broker_advertises_the_versions_of_the_table(release: str) -> None:
    played = Release.parse(release)
    expected = {}
    for api, row in version_rows().items():
        known = [version for version, since in history_of(row) if Release.parse(since) <= played]
        if known:
            oldest = int(row["oldest"]) if played >= Release.parse("4.0") else 0
            highest = min(max(known), MESSAGES[f"{api}Request"].highest)
            expected[int(row["key"])] = max(oldest, MESSAGES[f"{api}Request"].lowest), highest
    assert versions_of(played) == expected
