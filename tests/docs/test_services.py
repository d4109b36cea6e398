"""docs/services.md: its blocks run."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "services.md").read_text()
BLOCKS = python_blocks(PAGE)


@pytest.mark.spec("I-01", "U-02")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(number: int) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        exec(compile(BLOCKS[number], f"services.md, block {number}", "exec"), {"__name__": "services"})
    finally:
        signal.signal(signal.SIGTERM, before)
