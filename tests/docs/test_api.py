"""docs/api.md: its block runs, and its tables hold every call with its parameters."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, Record, Records
from tests.docs.blocks import python_blocks

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
CONSUMERS, RECORDS, _ = PAGE.split("\n## ")[1:]


def shown(section: str) -> dict[str, list[str]]:
    """Call → its parameters, from the first column of a table."""
    rows = re.findall(r"^\| `(\w+)(?:\((.*?)\))?` \|", section, re.MULTILINE)
    return {name: [word for word in parameters.split(", ") if word] for name, parameters in rows}


def public(kind: type) -> dict[str, list[str]]:
    """What a class offers: call or property → its parameters."""
    found = {}
    for name, member in inspect.getmembers_static(kind):
        if not name.startswith("_"):
            parameters = inspect.signature(member).parameters if callable(member) else {}
            found[name] = [parameter for parameter in parameters if parameter != "self"]
    return found


def test_the_block_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = python_blocks(PAGE)
    exec(compile(block, "api.md", "exec"), {"__name__": "api"})
    assert capsys.readouterr().out == "3 0 b'a'\n"
    assert "# 3 0 b'a'" in block


def test_every_call_of_both_consumers_is_in_the_table() -> None:
    assert shown(CONSUMERS) == public(Consumer)
    assert shown(CONSUMERS).items() <= public(AsyncConsumer).items()


def test_the_calls_that_are_awaited_are_marked() -> None:
    marked = set(re.findall(r"^\| `(\w+)\(.*?\)` \| `await` \|", CONSUMERS, re.MULTILINE))
    assert marked == {name for name in shown(CONSUMERS) if returns_a_coroutine(getattr(AsyncConsumer, name))}


def returns_a_coroutine(call: Any) -> bool:
    """A coroutine function, or one that looks at who calls and returns the coroutine of another."""
    returned = inspect.signature(call).return_annotation
    return inspect.iscoroutinefunction(call) or returned.startswith("Coroutine[")


def test_what_records_offer_is_in_the_tables() -> None:
    calls, fields = RECORDS.split("\nA record is")
    assert shown(calls) == public(Records)
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \| ", fields, re.MULTILINE)))
    assert tuple(named) == Record._fields


@pytest.mark.parametrize(
    ("name", "seconds", "words"),
    [
        ("poll", 1.0, "one second for `poll`"),
        ("close", 30.0, "30 for `close`"),
        ("explain", 5.0, "five for `explain`"),
    ],
)
def test_the_defaults_of_timeouts(name: str, seconds: float, words: str) -> None:
    for kind in (Consumer, AsyncConsumer):
        assert inspect.signature(getattr(kind, name)).parameters["timeout"].default == seconds
    assert words in PAGE
