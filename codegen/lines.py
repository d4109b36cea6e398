"""Lines as the formatter leaves them: a call that is too long for one is opened, with a comma behind each argument."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import indent

from codegen.plan import Block, struct_name

WIDTH = 110


def fit(name: str, arguments: Sequence[str], taken: int = 0) -> str:
    """A call in one line if that leaves `taken` columns free for what stands around it, else opened."""
    line = f"{name}({', '.join(arguments)})"
    return line if taken + len(line) <= WIDTH else opened(name, arguments)


def opened(name: str, arguments: Sequence[str]) -> str:
    """A call with one argument on each line."""
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def signature(name: str, arguments: Sequence[str], result: str) -> str:
    """The line that begins a function."""
    line = f"def {name}({', '.join(arguments)}) -> {result}:"
    return line if len(line) <= WIDTH else f"def {opened(name, arguments)} -> {result}:"


def unpack(block: Block) -> str:
    """The lines that read a block's values, `at` moved behind them."""
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
    """The line that writes a block's values."""
    name = f"pack_{struct_name(block.codes)}"
    line = f"add({name}({', '.join(block.expressions)}))"
    if 4 + len(line) <= WIDTH:
        return line
    return f"add(\n{indent(opened(name, block.expressions), '    ')}\n)"
