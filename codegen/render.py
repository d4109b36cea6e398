"""Turns messages into the text of their modules. Templates mirror the output; every choice is made before them.

The output is formatted by construction: a call that is too long for a line is opened with a trailing comma, which
the formatter then leaves as it is.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from codegen import plan
from codegen.error_codes import ErrorSpec
from codegen.layout import CODES, Layout, Layouts, Step, layouts
from codegen.names import snake_case
from codegen.spec import FieldSpec, MessageSpec, StructSpec
from codegen.versions import Versions

WIDTH = 110
_PYTHON_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "Uuid",
    "records": "bytes | memoryview",
}


@frozen
class Function:
    """A read and write pair: the layout it is for and the end of its name."""

    layout: Layout
    suffix: str
    is_body: bool


@frozen
class TagFunction:
    """A pair for the value of one tagged field that is not simply a struct."""

    step: Step
    suffix: str


def environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters |= {
        "annotation": annotation,
        "default": default,
        "is_default": is_default,
        "literal": repr,
        "local": plan.local,
        "element": plan.element,
        "struct_name": plan.struct_name,
        "docstring": docstring,
        "field_table": field_table,
        "snake": snake_case,
        "signature": signature,
        "index_row": index_row,
    }
    env.globals |= {
        "fit": fit,
        "unpack": unpack,
        "pack": pack,
        "read_blocks": plan.read_blocks,
        "read_block": plan.read_block,
        "write_blocks": plan.write_blocks,
        "length_name": plan.length_name,
        "length_code": plan.length_code,
        "codes": CODES,
        "reader_of": reader_of,
    }
    return env


def render_index(env: Environment, messages: Sequence[MessageSpec]) -> str:
    """The table of all messages, which is all that most of the client needs to import."""
    return env.get_template("index.py.j2").render(messages=messages)


def render_error_codes(env: Environment, errors: Sequence[ErrorSpec]) -> str:
    """The table of error codes and a constant for each."""
    return env.get_template("error_codes.py.j2").render(errors=errors)


def render_message(env: Environment, message: MessageSpec) -> str:
    """The module of one message."""
    found = layouts(message)
    functions = [_function(layout, message) for layout in found.distinct]
    classes = env.get_template("classes.py.j2").render(message=message)
    body = env.get_template("functions.py.j2").render(
        message=message, functions=functions, tag_functions=_tag_functions
    )
    structs = _bound_structs(found, body)
    return env.get_template("module.py.j2").render(
        message=message,
        classes=classes,
        functions=body,
        table={version: layout.version for version, layout in found.bodies.items()},
        structs=structs,
        attrs_names=[name for name in ("Factory", "define") if f"{name}(" in classes],
        primitives=_used_primitives(classes + body),
    )


def _function(layout: Layout, message: MessageSpec) -> Function:
    is_body = layout.struct is message.body
    name = "" if is_body else f"{snake_case(layout.struct.name)}_"
    return Function(layout, f"{name}v{layout.version}", is_body)


def reader_of(step: Step, owner: Layout, message: MessageSpec) -> str:
    """The suffix of the functions that read and write a tagged field's value."""
    if step.kind == "struct" and not step.nullable and step.layout is not None:
        return f"{snake_case(step.layout.struct.name)}_v{step.layout.version}"
    struct = "" if owner.struct is message.body else f"{snake_case(owner.struct.name)}_"
    return f"{struct}{step.field.python_name}_tag_v{owner.version}"


def _tag_functions(function: Function, message: MessageSpec) -> list[TagFunction]:
    return [
        TagFunction(step, reader_of(step, function.layout, message))
        for step in function.layout.tagged
        if step.kind != "struct" or step.nullable
    ]


_PRIMITIVES = (
    "ZERO_UUID",
    "Add",
    "Buffer",
    "Codec",
    "Malformed",
    "Unwritable",
    "Uuid",
    *(f"{element}_array" for element in sorted(CODES) if element != "uuid"),
    "compact_length",
    "compact_string_length",
    "left_over",
    "new",
    "read_compact_strings",
    "read_strings",
    "read_tags",
    "read_uvarint",
    "read_whole",
    "write_tags",
    "written",
)


def _used_primitives(text: str) -> list[str]:
    words = set(_words(text))
    return sorted((name for name in _PRIMITIVES if name in words or name == "Codec"), key=_import_order)


def _import_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions, as the linter sorts them."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name


def _words(text: str) -> Iterable[str]:
    return "".join(char if char.isalnum() or char == "_" else " " for char in text).split()


def _bound_structs(found: Layouts, body: str) -> list[tuple[str, str, str]]:
    """(name, format, method) of every bound pack and unpack that the functions use, in order of name."""
    formats: dict[str, str] = {}
    for layout in found.distinct:
        blocks = [*plan.read_blocks(layout), *plan.write_blocks(layout)]
        blocks += [plan.read_block(step) for step in layout.tagged]
        for codes in (block.codes for block in blocks if block.values):
            formats[plan.struct_name(codes)] = ">" + "".join(codes)
    formats |= {"i1": ">b", "i2": ">h", "i4": ">i"}
    words = set(_words(body))
    return [
        (f"{verb}_{name}", formats[name], method)
        for verb, method in (("pack", "pack"), ("unpack", "unpack_from"))
        for name in sorted(formats)
        if f"{verb}_{name}" in words
    ]


def annotation(spec: FieldSpec) -> str:
    """The field's Python type."""
    one = spec.element if spec.struct else _PYTHON_TYPES.get(spec.element, "int")
    type_ = f"list[{one}]" if spec.array else one
    return f"{type_} | None" if spec.optional else type_


def default(spec: FieldSpec, in_class: bool = False) -> str:
    """The expression of the field's default; in a class, where it is shared, a factory for what can be changed."""
    if spec.default_is_null or spec.lazy:
        return "None"
    if spec.array:
        return "Factory(list)" if in_class else "[]"
    if spec.struct is not None:
        return f"Factory({spec.struct.name})" if in_class else f"{spec.struct.name}()"
    if spec.element == "uuid":
        return "ZERO_UUID"
    return quoted(spec.default)


def is_default(spec: FieldSpec, negate: bool = False) -> str:
    """The condition under which the field is at its default (or not)."""
    name = f"message.{spec.python_name}"
    if spec.lazy:
        made = f"{spec.struct.name}()" if spec.struct else ""
        return f"{name} is not None and {name} != {made}" if negate else f"{name} is None or {name} == {made}"
    if spec.default_is_null:
        return f"{name} is {'not ' if negate else ''}None"
    if spec.element == "bool" and not spec.array:
        return name if spec.default is not negate else f"not {name}"
    return f"{name} {'!=' if negate else '=='} {default(spec)}"


def quoted(value: object) -> str:
    """A literal as the formatter writes it: double quotes."""
    if isinstance(value, str):
        return '"' + repr("'" + value)[2:-1].replace('"', '\\"') + '"'
    return repr(value).replace("b''", 'b""')


def unpack(block: plan.Block) -> str:
    """The lines that read a block's values."""
    if block.codes == ("B",):
        return f"{block.expressions[0]} = data[at]\nat += 1"
    call = f"unpack_{plan.struct_name(block.codes)}(data, at)\nat += {block.size}"
    if len(block.values) == 1:
        return f"({block.expressions[0]},) = {call}"
    line = f"{', '.join(block.expressions)} = {call}"
    if len(line.partition("\n")[0]) + 4 <= WIDTH:
        return line
    return f"{opened('', block.expressions)} = {call}"


def pack(block: plan.Block) -> str:
    """The lines that write a block's values."""
    name = f"pack_{plan.struct_name(block.codes)}"
    line = f"add({name}({', '.join(block.expressions)}))"
    if len(line) + 4 <= WIDTH:
        return line
    return f"add(\n{textwrap.indent(opened(name, block.expressions), '    ')}\n)"


def opened(name: str, arguments: Sequence[str]) -> str:
    """A call with one argument on each line."""
    return f"{name}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"


def fit(name: str, arguments: Sequence[str], indent: int) -> str:
    """A call in one line if that is short enough, else opened."""
    line = f"{name}({', '.join(arguments)})"
    return (
        line
        if len(line) + indent <= WIDTH
        else textwrap.indent(opened(name, arguments), " " * indent).lstrip()
    )


def signature(name: str, arguments: Sequence[str], result: str) -> str:
    line = f"def {name}({', '.join(arguments)}) -> {result}:"
    return line if len(line) <= WIDTH else f"def {opened(name, arguments)} -> {result}:"


def field_row(spec: FieldSpec) -> str:
    """The Field(…) of a struct's FIELDS."""
    arguments = [f'"{spec.python_name}"', f'"{spec.json_name}"', f'"{spec.type}"', _interval(spec.versions)]
    if spec.nullable:
        arguments.append(f"nullable={_interval(spec.nullable)}")
    if spec.tagged:
        arguments += [f"tagged={_interval(spec.tagged)}", f"tag={spec.tag}"]
    if spec.struct is not None:
        arguments.append(f"struct={spec.struct.name}")
    if spec.ignorable:
        arguments.append("ignorable=True")
    if spec.never_compact:
        arguments.append("never_compact=True")
    line = f"Field({', '.join(arguments)}),"
    return line if len(line) + 4 <= WIDTH else f"{opened('Field', arguments)},"


def field_table(struct: StructSpec) -> str:
    """The assignment of a struct's FIELDS; a tuple of one stays on its line, as the formatter wants it."""
    rows = [field_row(spec) for spec in struct.fields]
    line = f"{struct.name}.FIELDS = ({' '.join(rows)})"
    if len(rows) <= 1 and len(line) <= WIDTH and "\n" not in line:
        return line
    return f"{struct.name}.FIELDS = (\n{textwrap.indent(chr(10).join(rows), '    ')}\n)"


def index_row(message: MessageSpec) -> str:
    """The message's line in the index."""
    arguments = [
        f'"{message.module}"',
        f'"{message.type}"',
        str(message.api_key),
        *map(str, (message.versions.lowest, message.versions.highest)),
        str(message.flexible.lowest if message.flexible else None),
    ]
    head = f'"{message.name}": '
    line = f"{head}({', '.join(arguments)}),"
    return line if len(line) + 4 <= WIDTH else f"{opened(head, arguments)},"


def _interval(versions: Versions) -> str:
    return f"({versions.lowest}, {versions.highest})"


def docstring(struct: StructSpec, message: MessageSpec) -> str:
    """A class's docstring: what it is, then its attributes as far as the schema describes them."""
    about = (message.about if struct is message.body else struct.about) or _headline(struct, message)
    lines = textwrap.wrap(about, WIDTH - 7)
    described = [spec for spec in struct.fields if spec.about]
    if described:
        lines += ["", "Attributes:"]
        for spec in described:
            lines += textwrap.wrap(
                f"{spec.python_name}: {spec.about}",
                WIDTH - 4,
                initial_indent="    ",
                subsequent_indent="        ",
            )
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"""')
    return f'"""{text}"""' if len(lines) == 1 else f'"""{text}\n"""'


def _headline(struct: StructSpec, message: MessageSpec) -> str:
    if struct is message.body:
        return f"{message.name}, versions {message.versions.lowest} to {message.versions.highest}."
    return f"{struct.name} of {message.name}."
