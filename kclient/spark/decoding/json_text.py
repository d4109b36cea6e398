"""What JSON text says, found token by token: at any depth, where readers that call themselves give up."""

from __future__ import annotations

import json
import re
from typing import Final

TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?(\s*:)?|[\[\]{}]', re.DOTALL)
"""A string, with the colon behind a name, or a bracket. A string without end takes the rest, so that time is linear."""


def names_of(text: str) -> list[str]:
    """Return the names in the outermost object, or in the objects that an outermost array holds."""
    names, objects = dict[str, None](), 0
    for token in TOKEN.finditer(text):
        sign = text[token.start()]
        objects += (sign == "{") - (sign == "}")
        if objects == 1 and token[1] is not None:
            names[json.loads(text[token.start() : token.start(1)])] = None
    return list(names)
