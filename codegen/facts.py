"""One JSON object of a schema, and errors with its place: file, field, reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from codegen.errors import SchemaError
from codegen.names import RESERVED
from codegen.versions import Versions, parse_versions


@frozen
class Facts:
    """The object `values` at `path` inside the message of `file`; an empty path is the message itself."""

    file: str
    path: str
    values: dict[str, Any]

    def refuse(self, reason: str) -> SchemaError:
        return SchemaError(self.file, self.path, reason)

    def only(self, known: frozenset[str]) -> None:
        """Raise SchemaError for unknown keys."""
        if unknown := [key for key in self.values if key not in known]:
            raise self.refuse(f"unknown key {unknown[0]!r}")

    def name(self) -> str:
        name = self.values.get("name")
        if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
            raise self.refuse(f"name {name!r} is not a name")
        if name in RESERVED:
            raise self.refuse(f"name {name!r} means something else in generated modules")
        return name

    def text(self, key: str) -> str:
        text = self.values.get(key, "")
        if not isinstance(text, str):
            raise self.refuse(f"{key} is not text")
        return text

    def flag(self, key: str) -> bool:
        flag = self.values.get(key, False)
        if not isinstance(flag, bool):
            raise self.refuse(f"{key} is true or false, not {flag!r}")
        return flag

    def versions(self, key: str, within: Versions | None = None) -> Versions:
        """Return the version range of `key`, intersected with `within`. Raise SchemaError if that is empty."""
        if key not in self.values:
            raise self.refuse(f"{key} is missing")
        try:
            versions = parse_versions(self.values[key])
        except ValueError as exc:
            raise self.refuse(f"{key}: {exc}") from exc
        if within is None:
            return versions
        if not versions & within:
            raise self.refuse(f"{key} {self.values[key]!r} has no version of {within}")
        return versions & within

    def children(self, key: str) -> Iterator[Facts]:
        """Return the objects of the list under `key`, each with its own path."""
        children = self.values.get(key, [])
        if not isinstance(children, list):
            raise self.refuse(f"{key} is not a list")
        for child in children:
            if not isinstance(child, dict):
                raise self.refuse(f"{key} holds {child!r}, which is not a JSON object")
            name = str(child.get("name", "?"))
            yield Facts(self.file, f"{self.path}.{name}" if self.path else name, child)
