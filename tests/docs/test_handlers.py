"""docs/handlers.md: its blocks run, and its table has the options with their defaults."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from kclient import handlers
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "handlers.md").read_text()
BLOCKS = python_blocks(PAGE)


@pytest.mark.spec("I-01")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_a_block_runs(number: int) -> None:
    exec(compile(BLOCKS[number], f"handlers.md, block {number}", "exec"), {"__name__": "handlers"})


def test_the_options_are_those_of_both_functions() -> None:
    table = PAGE.split("## Options")[1].split("\n\n")[1]
    named = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    for function in (handlers.run, handlers.run_async):
        parameters = inspect.signature(function).parameters
        assert [name for name in parameters if name not in ("consumer", "handler")] == named


@pytest.mark.parametrize("name", ["concurrency", "retries", "commit_interval", "drain_timeout"])
def test_the_defaults_are_those_of_the_page(name: str) -> None:
    default = inspect.signature(handlers.run).parameters[name].default
    assert f"| `{name}` | {default} |" in PAGE
