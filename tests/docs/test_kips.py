"""docs/kips.md: the code and tests that it names exist, and every KIP that code or documentation names is in it."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "kips.md"
ROWS = re.findall(
    r"^\| (KIP-.*?) \| (.*?) \| (.*?) \| \*\*(\w+)\*\*(.*?) \| `(.*?)`, `(.*?)` \|$",
    PAGE.read_text(),
    re.MULTILINE,
)
KIPS = re.compile(r"KIP-\d+")


def listed() -> list[str]:
    return [kip for names, *_ in ROWS for kip in KIPS.findall(names)]


def test_every_row_has_the_same_form() -> None:
    assert len(ROWS) == len(re.findall(r"^\| KIP-", PAGE.read_text(), re.MULTILINE))
    assert len(set(listed())) == len(listed())


@pytest.mark.parametrize(("kips", "code", "test"), [(row[0], row[5], row[6]) for row in ROWS])
def test_the_code_and_the_test_exist(kips: str, code: str, test: str) -> None:
    pkgutil.resolve_name(f"kclient.{code}")
    assert (ROOT / "tests" / test).is_file()


def test_a_row_says_what_is_missing() -> None:
    states = {"yes", "partly", "no", "broker"}
    assert {state for *_, state, _, _, _ in ROWS} == states
    assert [row[0] for row in ROWS if row[3] in ("partly", "no") and not row[4].startswith(": ")] == []


def test_every_kip_that_is_named_elsewhere_is_listed() -> None:
    sources = [
        *(ROOT / "kclient").rglob("*.py"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "schemas").iterdir(),
    ]
    named = {kip for path in sources for kip in KIPS.findall(path.read_text())}
    assert named - set(listed()) == set()
