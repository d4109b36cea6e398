"""Renders messages as Python modules. The templates mirror the output and contain no decisions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen import expressions, lines, plan, tables
from codegen.error_codes import ErrorSpec
from codegen.layout import CODES, Layout, Layouts, Step, layouts
from codegen.names import natural_order, snake_case
from codegen.spec import MessageSpec

# names that a module may import from kclient.protocol.primitives
_PRIMITIVES = frozenset(
    {"BYTES", "ZERO_UUID", "Add", "Buffer", "Codec", "Malformed", "Unwritable", "Uuid", "compact_length"}
    | {
        "compact_string_length",
        "left_over",
        "new",
        "read_compact_strings",
        "read_strings",
        "read_string_length",
        "read_tags",
    }
    | {"read_uvarint", "read_whole", "write_tags", "written"}
    | {f"{element}_array" for element in CODES if element != "uuid"}
)


@frozen
class Pair:
    """A read and a write function for a struct's layout: `read_<name>` and `write_<name>`."""

    layout: Layout
    name: str
    is_body: bool
    versions: str  # in words: 4–6, 9


@frozen
class TagPair:
    """A read and a write function for the value of one tagged field, unless that is a struct."""

    step: Step
    name: str


@frozen
class Names:
    """The names of one message's functions."""

    message: MessageSpec

    def of(self, layout: Layout) -> str:
        return f"{self._prefix(layout)}v{layout.version}"

    def of_tag(self, step: Step, owner: Layout) -> str:
        """Return the pair for a tagged field's value: that of its struct, or its own."""
        if step.kind == "struct" and not step.nullable and step.layout is not None:
            return self.of(step.layout)
        return f"{self._prefix(owner)}{step.field.python_name}_tag_v{owner.version}"

    def _prefix(self, layout: Layout) -> str:
        return "" if layout.struct is self.message.body else f"{snake_case(layout.struct.name)}_"


def environment() -> Environment:
    """Return the templates with the functions that they call."""
    env = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    functions = (
        *(
            expressions.annotation,
            expressions.default,
            expressions.differs,
            expressions.initial,
            expressions.tags_of,
        ),
        *(lines.fit, lines.pack, lines.signature, lines.unpack),
        *(plan.element, plan.length_code, plan.length_name, plan.local, plan.struct_name),
        *(plan.read_block, plan.read_blocks, plan.write_blocks),
        *(tables.docstring, tables.field_table, tables.index_row),
    )
    env.globals |= {"codes": CODES, **{function.__name__: function for function in functions}}
    return env


def render_index(env: Environment, messages: Sequence[MessageSpec]) -> str:
    """Return the table of all messages; most of the client imports only this."""
    return env.get_template("index.py.j2").render(messages=messages)


def render_error_codes(env: Environment, errors: Sequence[ErrorSpec]) -> str:
    """Return the table of error codes and a constant for each."""
    return env.get_template("error_codes.py.j2").render(errors=errors)


def render_message(env: Environment, message: MessageSpec) -> str:
    """Return the module of one message."""
    found, names = layouts(message), Names(message)
    pairs = [pair for layout in found.distinct for pair in _pairs(layout, names, found.versions_of(layout))]
    classes = env.get_template("classes.py.j2").render(message=message)
    functions = env.get_template("functions.py.j2").render(pairs=pairs, names=names)
    words = frozenset(re.findall(r"\w+", classes + functions)) | {"Codec"}
    return env.get_template("module.py.j2").render(
        message=message,
        classes=classes,
        functions=functions,
        table={version: layout.version for version, layout in found.bodies.items()},
        structs=_bound_structs(found, words),
        bases=_bases(message),
        attrs_names=sorted({"Factory", "define", *_hiding(message, "field")} & words),
        primitives=sorted(_PRIMITIVES & words, key=natural_order),
    )


def _bases(message: MessageSpec) -> list[str]:
    """Return the names that the module imports from kclient.protocol.message."""
    fields = ["Field"] if any(struct.fields for struct in message.structs) else []
    structs = ["Struct"] if len(message.structs) > 1 else []
    return [*fields, "Message", *structs, *_hiding(message, "hidden")]


def _hiding(message: MessageSpec, name: str) -> list[str]:
    """Return a name that the module needs if one of its fields is sensitive."""
    sensitive = any(spec.sensitive for struct in message.structs for spec in struct.fields)
    return [name] if sensitive else []


def _pairs(layout: Layout, names: Names, versions: list[int]) -> list[Pair | TagPair]:
    """Yield the pairs for the tagged values of a layout, then the pair of the layout itself."""
    tagged = [step for step in layout.tagged if step.kind != "struct" or step.nullable]
    return [
        *(TagPair(step, names.of_tag(step, layout)) for step in tagged),
        Pair(layout, names.of(layout), layout.struct is names.message.body, _in_words(versions)),
    ]


def _in_words(versions: list[int]) -> str:
    """Return ascending versions as ranges: 4–6, 9."""
    text = ""
    for version in versions:
        if version - 1 not in versions:
            text += f", {version}"
        elif version + 1 not in versions:
            text += f"–{version}"
    return text.removeprefix(", ")


def _bound_structs(found: Layouts, words: frozenset[str]) -> list[tuple[str, str, str]]:
    """(name, format, method) of every bound pack and unpack that the functions use."""
    blocks = [block for layout in found.distinct for block in _blocks(layout)]
    formats = {plan.struct_name(block.codes): ">" + "".join(block.codes) for block in blocks if block.values}
    formats |= {"i2": ">h", "i4": ">i", "uuid": ">16s"}  # lengths and array elements, written separately
    return [
        (f"{verb}_{name}", formats[name], method)
        for verb, method in (("pack", "pack"), ("unpack", "unpack_from"))
        for name in sorted(formats)
        if f"{verb}_{name}" in words
    ]


def _blocks(layout: Layout) -> list[plan.Block]:
    values = [plan.read_block(step) for step in layout.tagged]
    return plan.read_blocks(layout) + plan.write_blocks(layout) + values
