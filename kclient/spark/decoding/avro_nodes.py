"""How much an Avro schema makes of a value: counted before names are expanded, which doubles them at each level.

    record R1 {a: R0, b: R0}, record R2 {a: R1, b: R1}, …     60 lines of schema name 2**60 types

A type is counted as often as a value of the schema may hold it: a record's fields, a union's largest branch, an item of
an array once. Each named type is looked at once.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

MAX_NODES: Final = 5_000
MAX_DEPTH: Final = 100
MAX_DEFAULT_CHARACTERS: Final = 16_384
"""Of all defaults of a schema together: a reader puts them into each value."""


def check_size(parsed: Any) -> None:
    """Raise ValueError for a parsed schema, with its names, that would expand to too much or too deep."""
    found = _Counter().size_of(parsed)
    if found.nodes > MAX_NODES:
        raise ValueError(f"it has more than {MAX_NODES:,} types when each name in it is written out")
    if found.depth > MAX_DEPTH:
        raise ValueError(f"it has more than {MAX_DEPTH} types inside each other")


def check_defaults(schema: Any) -> None:
    """Raise ValueError for defaults that are too long to be put into each value."""
    if _default_characters(schema) > MAX_DEFAULT_CHARACTERS:
        raise ValueError(f"its defaults have more than {MAX_DEFAULT_CHARACTERS:,} characters")


class _Size(NamedTuple):
    nodes: int
    depth: int


class _Counter:
    """Measures a schema; a name that is still being measured (a recursion) counts as one type."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Size] = {}

    def size_of(self, schema: Any) -> _Size:
        if isinstance(schema, str):
            return self._by_name.get(schema, LEAF)
        name = schema.get("name") if isinstance(schema, dict) else None
        if name is not None:
            self._by_name[name] = LEAF
        inner = [self.size_of(part) for part in parts_of(schema)]
        found = _Size(
            1 + sum(each.nodes for each in inner), 1 + max((each.depth for each in inner), default=0)
        )
        if name is not None:
            self._by_name[name] = found
        return found


LEAF: Final = _Size(1, 1)


def parts_of(schema: Any) -> list[Any]:
    """The schemas that stand directly inside of one."""
    if isinstance(schema, list):
        return schema
    inner = [schema[part] for part in ("items", "values") if part in schema]
    inner += [field["type"] for field in schema.get("fields", ())]
    return inner if isinstance(schema["type"], str) else [*inner, schema["type"]]


def _default_characters(schema: Any) -> int:
    found, waiting = 0, [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found += len(repr(node.get("default", "")))
            waiting += [value for name, value in node.items() if name != "default"]
        elif isinstance(node, list):
            waiting += node
    return found
