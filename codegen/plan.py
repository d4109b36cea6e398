"""Turns steps into blocks: adjacent values that share one `struct.Struct`, and the step after each block.

A block is one unpack (or pack) of adjacent fixed-width values and then at most one field of variable length. The
length of that field, where it has a fixed width, is the last value of the block: reading an error code and the
array after it costs one call. Decided here, so that the templates only lay out lines.
"""

from __future__ import annotations

import re

from attrs import frozen

from codegen.layout import CODES, WIDTHS, Layout, Step
from codegen.names import singular
from codegen.spec import FieldSpec

_CODE_NAMES = {
    "b": "i1",
    "B": "u1",
    "h": "i2",
    "H": "u2",
    "i": "i4",
    "I": "u4",
    "q": "i8",
    "?": "bool",
    "d": "f8",
    "16s": "uuid",
}
_CODE_SIZES = {"B": 1, **{code: WIDTHS[element] for element, code in CODES.items()}}
_LOCALS = frozenset(  # names that the functions use for something else
    {
        "message",
        "data",
        "at",
        "size",
        "length",
        "count",
        "end",
        "present",
        "tags",
        "found",
        "value",
        "add",
        "new",
    }
    | {"written", "compact_length", "compact_string_length", "left_over", "read_tags", "write_tags"}
    | {"bytes", "dict", "int", "isinstance", "len", "list", "memoryview", "range", "str"}
)


@frozen
class Value:
    """One fixed-width value: where it goes (or comes from) and its struct code."""

    expression: str
    code: str


@frozen
class Block:
    """Adjacent values, and what follows them."""

    values: tuple[Value, ...]
    step: Step | None = None  # the field of variable length after the values
    tags: bool = False  # the tag section after the values

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(value.code for value in self.values)

    @property
    def expressions(self) -> tuple[str, ...]:
        return tuple(value.expression for value in self.values)

    @property
    def size(self) -> int:
        return sum(_CODE_SIZES[code] for code in self.codes)


def read_blocks(layout: Layout) -> list[Block]:
    """Return the blocks in which a layout is read, the tag section last."""
    blocks: list[Block] = []
    values: list[Value] = []
    for step in layout.steps:
        if step.kind == "fixed":
            values.append(_attribute(step))
            continue
        values += _read_lead(step)
        blocks.append(Block(tuple(values), step))
        values = []
    if layout.flexible:
        blocks.append(Block((*values, Value("tags", "B")), tags=True))
    elif values:
        blocks.append(Block(tuple(values)))
    return blocks


def read_block(step: Step) -> Block:
    """Return the block in which a tagged field's value is read."""
    return (
        Block((Value("value", CODES[step.field.element]),))
        if step.kind == "fixed"
        else Block(tuple(_read_lead(step)), step)
    )


def write_blocks(layout: Layout) -> list[Block]:
    """Return the blocks in which a layout is written; nullable and compact values are not packed with others."""
    blocks: list[Block] = []
    values: list[Value] = []
    for step in layout.steps:
        if step.kind == "fixed":
            values.append(_attribute(step))
            continue
        if not step.compact and not step.nullable and step.kind != "struct":
            values.append(Value(f"len({local(step.field)})", length_code(step)))
        blocks.append(Block(tuple(values), step))
        values = []
    if values:
        blocks.append(Block(tuple(values)))
    return blocks


def length_code(step: Step) -> str:
    """Return the struct code of the length before the field."""
    return "B" if step.compact else "h" if step.kind == "string" else "i"


def length_name(step: Step) -> str:
    return "count" if step.kind == "array" else "length"


def local(spec: FieldSpec) -> str:
    """Return the local variable of a field."""
    return f"{spec.python_name}_" if spec.python_name in _LOCALS else spec.python_name


def element(spec: FieldSpec) -> str:
    """Return the local variable of one element of an array."""
    return singular(spec.python_name, _LOCALS)


def struct_name(codes: tuple[str, ...]) -> str:
    """i4_i2_i8x3 for one int32, one int16 and three int64: the suffix of the bound pack or unpack."""
    names = [_CODE_NAMES[code] for code in codes]
    runs = re.sub(r"\b(\w+)((?: \1\b)+)", lambda m: f"{m[1]}x{m[2].count(' ') + 1}", " ".join(names))
    return runs.replace(" ", "_")


def _attribute(step: Step) -> Value:
    return Value(f"message.{step.field.python_name}", CODES[step.field.element])


def _read_lead(step: Step) -> list[Value]:
    if step.kind == "struct":
        return [Value("present", "b")] if step.nullable else []
    return [Value(length_name(step), length_code(step))]
