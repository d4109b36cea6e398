"""docs/stuck.md: its blocks run as they stand and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "stuck.md").read_text()
BLOCKS = python_blocks(PAGE)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_blocks_run(number: int) -> None:
    exec(compile(BLOCKS[number], "stuck.md", "exec"), {"__name__": "stuck"})


def test_the_ways_of_on_decode_error_are_all_there() -> None:
    assert set(re.findall(r'^\| `"(\w+)"', PAGE, re.MULTILINE)) == {"raise", "skip", "keep", "dlq"}


def test_explain_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(BLOCKS[0], "stuck.md", "exec"), {"__name__": "stuck"})
    shown = "".join(re.findall(r"^    ((?:\d+ partitions|orders-).*\n)", PAGE, re.MULTILINE))
    assert _timeless(capsys.readouterr().out) == _timeless(shown)


def _timeless(text: str) -> str:
    return re.sub(r"\d+\.\d s", "0.0 s", text)
