"""Reads a schema file into `codegen.spec` objects and refuses what cannot be, naming file, field and reason.

A schema is data that people edit, so nothing is guessed: an unknown key, a version range that cannot be, a tag
twice, a default that does not fit its type are errors of the file, not of the generator.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import define, field

from codegen.defaults import parse_default
from codegen.errors import SchemaError
from codegen.spec import SCALARS, FieldSpec, MessageSpec, StructSpec
from codegen.versions import NONE, Versions, parse_versions

_MESSAGE_KEYS = frozenset(
    [
        "$schema",
        "apiKey",
        "type",
        "name",
        "listeners",
        "validVersions",
        "removedInKafka4",
        "latestVersionUnstable",
        "flexibleVersions",
        "fields",
        "commonStructs",
        "about",
    ]
)
_STRUCT_KEYS = frozenset(["name", "versions", "fields", "about"])
_FIELD_KEYS = frozenset(
    [
        "name",
        "type",
        "versions",
        "nullableVersions",
        "flexibleVersions",
        "taggedVersions",
        "tag",
        "default",
        "ignorable",
        "mapKey",
        "entityType",
        "fields",
        "about",
    ]
)
_MESSAGE_TYPES = ("request", "response", "header", "data", "coordinator-key", "coordinator-value")
_MAX_TAG = 2**31 - 1

Json = dict[str, Any]


def parse_file(path: Path) -> MessageSpec:
    """Read one schema. Raises SchemaError."""
    try:
        facts = json.loads(path.read_text("utf-8"), object_pairs_hook=_once)
    except ValueError as error:
        raise SchemaError(path.name, "", f"is not JSON: {error}") from error
    return _Parser(path.name, facts).message()


def _once(pairs: list[tuple[str, Any]]) -> Json:
    facts = dict(pairs)
    if len(facts) != len(pairs):
        raise ValueError("a key twice in one object")
    return facts


@define
class _Parser:
    """One file on its way into a MessageSpec; `structs` collects them innermost first."""

    file: str
    facts: Any
    structs: dict[str, StructSpec] = field(factory=dict)
    common: dict[str, Json] = field(factory=dict)
    versions: Versions = NONE
    flexible: Versions = NONE

    def message(self) -> MessageSpec:
        facts = self._object(self.facts, "", _MESSAGE_KEYS)
        name = self._name(facts, "")
        if name != self.file.removesuffix(".json"):
            raise self._refuse("", f"is named {name}: file and message must have the same name")
        if facts.get("type") not in _MESSAGE_TYPES:
            raise self._refuse("", f"type {facts.get('type')!r} is none of {', '.join(_MESSAGE_TYPES)}")
        self.versions = self._range(facts, "validVersions", "")
        if not self.versions or self.versions.open:
            raise self._refuse("", f"validVersions {facts['validVersions']!r} must name its last version")
        self.flexible = self._range(facts, "flexibleVersions", "") & self.versions
        for struct in facts.get("commonStructs", []):
            self._object(struct, "commonStructs", _STRUCT_KEYS)
            self.common[self._name(struct, "commonStructs")] = struct
        body = self._struct(name, facts, self.versions, "")
        if unused := set(self.common) - set(self.structs):
            raise self._refuse("commonStructs", f"{', '.join(sorted(unused))}: no field has this type")
        return MessageSpec(
            file=self.file,
            name=name,
            type=facts["type"],
            api_key=facts.get("apiKey"),
            versions=self.versions,
            flexible=self.flexible,
            body=body,
            structs=tuple(self.structs.values()),
            about=facts.get("about", ""),
        )

    def _struct(self, name: str, facts: Json, versions: Versions, path: str) -> StructSpec:
        if name in self.structs:
            raise self._refuse(path, f"struct {name} is defined twice")
        fields = tuple(self._field(fact, versions, path) for fact in facts["fields"])
        self._no_twins(fields, path)
        struct = StructSpec(name, versions, fields, facts.get("about", ""))
        self.structs[name] = struct
        return struct

    def _no_twins(self, fields: tuple[FieldSpec, ...], path: str) -> None:
        names: set[str] = set()
        tags: set[int] = set()
        for spec in fields:
            here = _join(path, spec.name)
            if spec.python_name in names:
                raise self._refuse(here, f"a second field becomes {spec.python_name}")
            if spec.tag is not None and spec.tag in tags:
                raise self._refuse(here, f"tag {spec.tag} is taken by another field")
            names.add(spec.python_name)
            tags.update([] if spec.tag is None else [spec.tag])

    def _field(self, facts: Json, parent: Versions, path: str) -> FieldSpec:
        name = self._name(facts, path)
        path = _join(path, name)
        self._object(facts, path, _FIELD_KEYS)
        type_ = facts.get("type")
        if not isinstance(type_, str):
            raise self._refuse(path, "type is missing")
        element, array = type_.removeprefix("[]"), type_.startswith("[]")
        versions = self._range(facts, "versions", path) & parent
        if not versions:
            raise self._refuse(
                path, f"versions {facts['versions']!r} lie outside {_text(parent)} of its parent"
            )
        struct = self._struct_of(facts, element, versions, path)
        nullable = self._nullable(facts, element, array, versions, path)
        tagged = self._tagged(facts, versions, path)
        try:
            default, is_null = parse_default(
                facts.get("default"), element, array or struct is not None, nullable
            )
        except ValueError as error:
            raise self._refuse(path, str(error)) from error
        return FieldSpec(
            name=name,
            element=element,
            array=array,
            versions=versions,
            nullable=nullable,
            tagged=tagged,
            tag=facts.get("tag"),
            never_compact=self._never_compact(facts, path),
            default=default,
            default_is_null=is_null,
            ignorable=self._flag(facts, "ignorable", path),
            about=facts.get("about", ""),
            struct=struct,
            map_key=self._flag(facts, "mapKey", path),
            entity_type=facts.get("entityType"),
        )

    def _struct_of(self, facts: Json, element: str, versions: Versions, path: str) -> StructSpec | None:
        if element in SCALARS:
            if "fields" in facts:
                raise self._refuse(path, f"{element} has no fields")
            if element == "records" and facts["type"] != "records":
                raise self._refuse(path, "there are no arrays of records")
            return None
        if "fields" in facts:
            return self._struct(element, facts, versions, path)
        if element not in self.common:
            raise self._refuse(path, f"type {element!r} is neither a scalar nor a struct with fields")
        if element not in self.structs:
            common = self.common[element]
            self._struct(element, common, self._range(common, "versions", element) & self.versions, element)
        return self.structs[element]

    def _nullable(self, facts: Json, element: str, array: bool, versions: Versions, path: str) -> Versions:
        if "nullableVersions" not in facts:
            return NONE
        nullable = self._range(facts, "nullableVersions", path) & versions
        if not nullable:
            raise self._refuse(
                path, f"nullableVersions {facts['nullableVersions']!r} lie outside its versions"
            )
        if (element in SCALARS[:8] or element in ("bool", "float64", "uuid")) and not array:
            raise self._refuse(path, f"{element} cannot be null")
        return nullable

    def _tagged(self, facts: Json, versions: Versions, path: str) -> Versions:
        if ("taggedVersions" in facts) != ("tag" in facts):
            raise self._refuse(path, "tag and taggedVersions belong together")
        if "tag" not in facts:
            return NONE
        tag, tagged = facts["tag"], self._range(facts, "taggedVersions", path) & versions
        if type(tag) is not int or not 0 <= tag <= _MAX_TAG:
            raise self._refuse(path, f"tag {tag!r} is not between 0 and {_MAX_TAG}")
        if not tagged:
            raise self._refuse(path, f"taggedVersions {facts['taggedVersions']!r} lie outside its versions")
        if tagged & self.flexible != tagged:
            raise self._refuse(path, f"taggedVersions {facts['taggedVersions']!r} are not all flexible")
        return tagged

    def _never_compact(self, facts: Json, path: str) -> bool:
        if facts.get("flexibleVersions", "none") != "none":
            raise self._refuse(path, "flexibleVersions of a field can only be none")
        return "flexibleVersions" in facts

    def _object(self, facts: Any, path: str, known: frozenset[str]) -> Json:
        if not isinstance(facts, dict):
            raise self._refuse(path, "is not a JSON object")
        if unknown := [key for key in facts if key not in known]:
            raise self._refuse(path, f"unknown key {unknown[0]!r}")
        if not isinstance(facts.get("fields", []), list):
            raise self._refuse(path, "fields is not a list")
        return facts

    def _name(self, facts: Any, path: str) -> str:
        name = facts.get("name") if isinstance(facts, dict) else None
        if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
            raise self._refuse(path, f"name {name!r} is not a name")
        return name

    def _flag(self, facts: Json, key: str, path: str) -> bool:
        if type(facts.get(key, False)) is not bool:
            raise self._refuse(path, f"{key} is true or false, not {facts[key]!r}")
        return bool(facts.get(key, False))

    def _range(self, facts: Json, key: str, path: str) -> Versions:
        if key not in facts:
            raise self._refuse(path, f"{key} is missing")
        try:
            return parse_versions(facts[key])
        except ValueError as error:
            raise self._refuse(path, f"{key}: {error}") from error

    def _refuse(self, path: str, reason: str) -> SchemaError:
        return SchemaError(self.file, path, reason)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _text(versions: Versions) -> str:
    return f"{versions.lowest}-{versions.highest}"
