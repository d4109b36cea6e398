"""docs/how-to/logging.md: its blocks run, and it names every logger and every field of a log record."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kclient.log import THROTTLE_SECONDS, TRACE
from tests.docs.blocks import python_blocks

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "logging.md").read_text()
CODE = "".join(path.read_text() for path in (ROOT / "kclient").rglob("*.py"))


@pytest.fixture(autouse=True)
def _levels() -> Iterator[None]:
    """What the blocks set is undone."""
    loggers = [logging.getLogger(name) for name in ("kclient", *named())]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


def named() -> set[str]:
    return set(re.findall(r"^\| `(kclient\.\w+)` \|", PAGE, re.MULTILINE))


@pytest.mark.parametrize("number", range(3))
def test_a_block_runs(number: int) -> None:
    blocks = python_blocks(PAGE)
    assert len(blocks) == 3
    exec(compile(blocks[number], f"logging.md, block {number}", "exec"), {"__name__": "logging_page"})


def test_every_logger_is_named() -> None:
    assert named() == set(re.findall(r'get_logger\(\s*"(kclient[a-z._]*)"', CODE))


def test_every_field_of_a_log_record_is_named() -> None:
    fields = {
        field for group in re.findall(r"extra=\{(.*?)\}", CODE) for field in re.findall(r'"(\w+)":', group)
    }
    assert fields
    assert {field for field in fields if f"`{field}`" not in PAGE} == set()


def test_the_numbers_are_those_of_the_code() -> None:
    assert (THROTTLE_SECONDS, TRACE) == (10.0, 5)
