"""Fields as Python: their type, their default, and the condition that they differ from it."""

from __future__ import annotations

from codegen.layout import Layout
from codegen.spec import FieldSpec, Scalar

_TYPES = {
    "bool": "bool",
    "float64": "float",
    "string": "str",
    "bytes": "bytes",
    "uuid": "Uuid",
    "records": "bytes | memoryview",
}


def annotation(spec: FieldSpec) -> str:
    """Return the field's type."""
    one = spec.element if spec.struct else _TYPES.get(spec.element, "int")
    type_ = f"list[{one}]" if spec.array else one
    return f"{type_} | None" if spec.optional else type_


def initial(spec: FieldSpec) -> str:
    """Return the field's assignment in a class: its default, and for a sensitive field a repr that hides the value."""
    value = default(spec, shared=True)
    return f"field(default={value}, repr=hidden)" if spec.sensitive else value


def default(spec: FieldSpec, shared: bool = False) -> str:
    """Return the default as an expression; if it is `shared`, in a class, a factory for a mutable value."""
    if spec.default_is_null or spec.lazy:
        return "None"
    if spec.array:
        return "Factory(list)" if shared else "[]"
    if spec.struct is not None:
        return f"Factory({spec.struct.name})" if shared else f"{spec.struct.name}()"
    if spec.element == "uuid":
        return "ZERO_UUID"
    return quoted(spec.default)


def differs(spec: FieldSpec) -> str:
    """Return the condition that the field differs from its default."""
    name = f"message.{spec.python_name}"
    if spec.lazy:
        return f"{name} is not None and {name} != {spec.element}()"
    if spec.default_is_null:
        return f"{name} is not None"
    if spec.element == "bool" and not spec.array:
        return f"not {name}" if spec.default else name
    return f"{name} != {default(spec)}"


def tags_of(layout: Layout) -> str:
    """Return the tags of a layout as a tuple."""
    return repr(tuple(step.field.tag for step in layout.tagged))


def quoted(value: Scalar | None) -> str:
    """Return a literal as the formatter writes it: in double quotes, unless it contains some."""
    text = repr(value)
    if text.endswith("'") and '"' not in text:
        return text.replace("'", '"')
    return text
