"""Lines in the formatter's style: a call that is too long for a line gets one argument per line."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from codegen.plan import Block, struct_name

WIDTH = 110


def fit(name: str, arguments: Sequence[str], taken: int = 0) -> str:
    """Return a call in one line if that leaves `taken` columns free for the surrounding text, otherwise in several."""
    line = f"{name}({', '.join(arguments)})"
    return line if taken + len(line) <= WIDTH else opened(name, arguments)


def opened(name: str, arguments: Sequence[str]) -> str:
    """Return a call with one argument on each line."""
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def signature(name: str, arguments: Sequence[str], result: str) -> str:
    """Return the first line of a function."""
    line = f"def {name}({', '.join(arguments)}) -> {result}:"
    return line if len(line) <= WIDTH else f"def {opened(name, arguments)} -> {result}:"


def unpack(block: Block) -> str:
    """Return the lines that read a block's values and move `at` past them."""
    if block.codes == ("B",):
        return f"{block.expressions[0]} = data[at]\nat += 1"
    call = f"unpack_{struct_name(block.codes)}(data, at)"
    targets = ", ".join(block.expressions)
    if len(block.values) == 1:
        targets = f"({targets},)"
    elif 4 + len(f"{targets} = {call}") > WIDTH:
        targets = opened("", block.expressions)
    return f"{targets} = {call}\nat += {block.size}"


def pack(block: Block) -> str:
    """Return the line that writes a block's values."""
    name = f"pack_{struct_name(block.codes)}"
    line = f"add({name}({', '.join(block.expressions)}))"
    if 4 + len(line) <= WIDTH:
        return line
    return f"add(\n{indent(opened(name, block.expressions), '    ')}\n)"
