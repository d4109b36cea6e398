"""What a control method is given is looked at before anything is done.

A test that kills broker "2" is told so, and does not find the work half done. Only plain types are looked at (text,
numbers, and None where it may be); the methods themselves read everything else.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from kclient.errors import ArgumentError

KINDS: Final[dict[str, tuple[type, str]]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "float": (float, "a number"),
    "None": (type(None), "None"),
}


def check(method: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raise ArgumentError for an argument that is none of the plain types it is annotated with."""
    signature, kinds = _signature(method)
    given = signature.bind(*args, **options).arguments
    for name, words in kinds.items():
        if name in given and not any(_fits(given[name], word) for word in words):
            wanted = " or ".join(KINDS[word][1] for word in words)
            raise ArgumentError(
                f"{method.__name__}({name}={given[name]!r}): {name} is {wanted}, not "
                f"{type(given[name]).__name__}; nothing was done."
            )


@cache
def _signature(method: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, list[str]]]:
    """The signature, and the plain types of those parameters that have no others."""
    signature = inspect.signature(method)
    annotated = {
        parameter.name: str(parameter.annotation).split(" | ") for parameter in signature.parameters.values()
    }
    return signature, {name: words for name, words in annotated.items() if set(words) <= set(KINDS)}


def _fits(value: Any, word: str) -> bool:
    if word == "float":
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, KINDS[word][0])
