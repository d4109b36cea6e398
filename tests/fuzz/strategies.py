"""Hypothesis strategies for every message and version, derived from the schema files.

They are made from what `codegen.parse` reads, not from the generated classes' own description of themselves, so a
field that the generator dropped is missed by the round trip.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import strategies as st

from codegen.parse import parse_file
from codegen.spec import INTEGERS, FieldSpec, MessageSpec, StructSpec
from kclient.protocol.message import Message
from kclient.protocol.registry import message_class

SCHEMAS = pathlib.Path(__file__).parents[2] / "schemas"
Draw = Callable[[st.SearchStrategy[Any]], Any]

TEXTS = st.sampled_from(
    ["", "a", "orders", "x" * 126, "y" * 127, "z" * 128, "\x00", "\u00e9", "\U0001f600"]
) | st.text(max_size=4)
BYTES = st.sampled_from([b"", b"\x00", b"\x01" * 127, b"\x02" * 128]) | st.binary(max_size=6)
COUNTS = st.integers(0, 2)
COINS = st.integers(0, 3)
UUIDS = st.binary(min_size=16, max_size=16)
UNKNOWN_TAGS = st.dictionaries(st.integers(100, 2**31 - 2), st.binary(max_size=4), min_size=1, max_size=2)


def integer_bounds(name: str) -> tuple[int, int]:
    bits = 8 * INTEGERS[name]
    return (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


SCALARS: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(*integer_bounds(name)) for name in INTEGERS},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": TEXTS,
    "bytes": BYTES,
    "records": BYTES,
    "uuid": UUIDS,
}


@cache
def specs() -> dict[str, MessageSpec]:
    """Every schema file, by the message's name."""
    files = sorted(path for path in SCHEMAS.glob("*.json") if path.name != "dialect.schema.json")
    return {spec.name: spec for spec in map(parse_file, files)}


def pairs() -> list[tuple[str, int]]:
    """Every message and version."""
    return [(name, version) for name, spec in specs().items() for version in spec.versions.numbers()]


def struct_classes(spec: MessageSpec) -> dict[str, type[Any]]:
    module = import_module(message_class(spec.name).__module__)
    return {struct.name: getattr(module, struct.name) for struct in spec.structs}


@cache
def messages(name: str, version: int) -> st.SearchStrategy[Message]:
    """Messages of one version: any value in each field that the version has, the default in all others."""
    spec = specs()[name]
    kind = message_class(name)
    classes = struct_classes(spec)
    flexible = version in spec.flexible

    def build(draw: Draw, struct: StructSpec, kind: type[Any]) -> Any:
        built = kind(
            **{field.python_name: value(draw, field) for field in struct.fields if version in field.versions}
        )
        if flexible and draw(COINS) == 0:
            built.unknown_tags = tuple(sorted(draw(UNKNOWN_TAGS).items()))
        return built

    def value(draw: Draw, field: FieldSpec) -> Any:
        if version in field.nullable and draw(COINS) == 0:
            return None
        if field.array:
            return [element(draw, field) for _ in range(draw(COUNTS))]
        drawn = element(draw, field)
        if field.lazy and drawn == classes[field.element]():
            return None  # a tagged struct at its defaults is not written: None stands for it
        return drawn

    def element(draw: Draw, field: FieldSpec) -> Any:
        if field.struct is None:
            return draw(SCALARS[field.element])
        return build(draw, field.struct, classes[field.element])

    @st.composite
    def whole(draw: Draw) -> Message:
        built: Message = build(draw, spec.body, kind)
        return built

    return whole()


def crowded(name: str, version: int, elements: int, tag: int | None = None) -> Iterator[Message]:
    """For each array of the message, at any depth: the message with that many smallest elements in it, alone."""
    spec = specs()[name]
    classes = struct_classes(spec)

    def smallest(field: FieldSpec) -> Any:
        if field.struct is None:
            return {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16), "bool": False}.get(
                field.element, 0
            )
        fields = {each.python_name: least(each) for each in field.struct.fields if version in each.versions}
        unknown_tags = () if tag is None else ((tag, b""),)
        return classes[field.element](**fields, unknown_tags=unknown_tags)

    def least(field: FieldSpec) -> Any:
        if field.lazy or version in field.nullable:
            return None
        return [] if field.array else smallest(field)

    def fill(struct: StructSpec, put: Callable[[dict[str, Any]], Message]) -> Iterator[Message]:
        for field in struct.fields:
            if version not in field.versions or not (field.array or field.struct):
                continue
            if field.array:
                yield put({field.python_name: [smallest(field)] * elements})
            if field.struct is not None:

                def deeper(values: dict[str, Any], field: FieldSpec = field) -> Message:
                    inner = smallest(field)
                    for attribute, each in values.items():
                        setattr(inner, attribute, each)
                    return put({field.python_name: [inner] if field.array else inner})

                yield from fill(field.struct, deeper)

    def top(values: dict[str, Any]) -> Message:
        fields = {each.python_name: least(each) for each in spec.body.fields if version in each.versions}
        return message_class(name)(**(fields | values))

    yield from fill(spec.body, top)
