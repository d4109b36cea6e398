"""Parts of a module besides its functions: docstrings, the rows of FIELDS, the line in the index."""

from __future__ import annotations

from textwrap import indent, wrap

from codegen.lines import WIDTH, fit
from codegen.spec import FieldSpec, MessageSpec, StructSpec
from codegen.versions import Versions


def docstring(struct: StructSpec, message: MessageSpec) -> str:
    """Return a class's docstring: the description, then the attributes that the schema describes."""
    lines = wrap(_about(struct, message), WIDTH - 7)
    described = [spec for spec in struct.fields if spec.about]
    if described:
        lines += ["", "Attributes:"]
    for spec in described:
        text = f"{spec.python_name}: {spec.about}"
        lines += wrap(text, WIDTH - 4, initial_indent="    ", subsequent_indent="        ")
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', "'''")
    return f'"""{text}"""' if len(lines) == 1 else f'"""{text}\n"""'


def _about(struct: StructSpec, message: MessageSpec) -> str:
    if struct is message.body:
        return message.about or f"{message.name}, versions {message.versions}."
    return struct.about or f"{struct.name} of {message.name}."


def field_table(struct: StructSpec) -> str:
    """Return the assignment of a struct's FIELDS; a tuple of one stays on one line, as the formatter requires."""
    rows = [f"{_field_row(spec)}," for spec in struct.fields]
    line = f"{struct.name}.FIELDS = ({' '.join(rows)})"
    if len(rows) < 2 and len(line) <= WIDTH and "\n" not in line:
        return line
    body = "\n".join(rows)
    return f"{struct.name}.FIELDS = (\n{indent(body, '    ')}\n)"


def _field_row(spec: FieldSpec) -> str:
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
    return fit("Field", arguments, taken=5)


def index_row(message: MessageSpec) -> str:
    """Return the message's line in the index."""
    since = message.flexible.lowest if message.flexible else None
    numbers = (message.api_key, message.versions.lowest, message.versions.highest, since)
    row = [f'"{message.module}"', f'"{message.type}"', *map(str, numbers)]
    key = f'"{message.name}": '
    return fit(key, row, taken=5) + ","


def _interval(versions: Versions) -> str:
    return f"({versions.lowest}, {versions.highest})"
