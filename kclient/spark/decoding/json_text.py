"""Where values in JSON text end, and what is in them: at any depth, and with the numbers that Arrow's parser takes.

Python's reader is fast. It does not read `Inf` and `-NaN`, nor what is nested deeper than its stack allows, and it
makes an object of each two characters of a long text. There the text is looked at token by token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import Any, Final, cast

MOST_READ: Final = 2_000_000
"""Characters of a text that Python may read into objects: some 100 MB."""
SPACE: Final = re.compile(r"[ \t\r\n]*")

TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?(\s*:)?|[\[\]{}]', re.DOTALL)
"""A string, with the colon behind a name, or a bracket. A string without end takes the rest, so that time is linear."""

WORD: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s,:\[\]{}"\0]+', re.DOTALL)
"""A string, or what stands between signs: a number, `true`, `-Inf`."""
STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}

REFUSALS: Final = (ValueError, StopIteration, RecursionError)
"""What a scanner raises for a value that it does not read."""


def scanner(**hooks: Any) -> Callable[[str, int], tuple[Any, int]]:
    """Return what reads a value and where it ends. Not `raw_decode`, which calls this and takes as much time again."""
    decoder: Any = json.JSONDecoder(parse_float=str, parse_int=str, **hooks)
    scan_once: Callable[[str, int], tuple[Any, int]] = decoder.scan_once
    return scan_once


scan: Final = scanner(parse_constant=str)


def is_document(text: str) -> bool:
    """Return whether the text is one value and nothing else, if it is JSON."""
    try:
        return past_space(text, past_value(text, past_space(text, 0))) == len(text)
    except ValueError:
        return False


def past_value(text: str, at: int) -> int:
    """Return where the value at `at` ends. Raises ValueError if none does."""
    if len(text) <= MOST_READ:
        with suppress(*REFUSALS):
            return scan(text, at)[1]
    return end_of(text, at)


def past_space(text: str, at: int) -> int:
    """Return where the white space at `at` ends."""
    if text[at : at + 1] > " ":
        return at
    return cast("re.Match[str]", SPACE.match(text, at)).end()


def end_of(text: str, at: int) -> int:
    """Return where the value at `at` ends, if it is JSON; of other text anywhere. Raises ValueError."""
    if text[at : at + 1] not in ("[", "{"):
        if (word := WORD.match(text, at)) is None:
            raise ValueError("no value")
        return word.end()
    depth = 0
    for token in TOKEN.finditer(text, at):
        depth += STEPS.get(text[token.start()], 0)
        if not depth:
            return token.end()
    raise ValueError("a value without end")


def depth_of(text: str) -> int:
    """Return how many arrays and objects are inside each other at most."""
    signs = (text[token.start()] for token in TOKEN.finditer(text))
    return max(accumulate(STEPS.get(sign, 0) for sign in signs), default=0)


def names_of(text: str) -> list[str]:
    """Return the names in the outermost object, or in the objects that an outermost array holds."""
    names, objects = dict[str, None](), 0
    for token in TOKEN.finditer(text):
        sign = text[token.start()]
        objects += (sign == "{") - (sign == "}")
        if objects == 1 and token[1] is not None:
            names[json.loads(text[token.start() : token.start(1)])] = None
    return list(names)
