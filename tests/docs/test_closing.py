"""docs/closing.md: its block runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "closing.md").read_text()


@pytest.mark.spec("B.18", "B.13.10", "I-17")
def test_the_block_runs() -> None:
    (block,) = python_blocks(PAGE)
    exec(compile(block, "closing.md", "exec"), {"__name__": "closing"})
