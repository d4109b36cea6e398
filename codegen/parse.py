"""Reads a schema file into `codegen.spec` objects and refuses invalid schemas with file, field and reason.

A schema is data that people edit, so nothing is guessed: an unknown key, a version range that cannot be, a tag
twice, a default that does not fit its type are errors of the file, not of the generator.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from codegen.defaults import parse_default
from codegen.errors import SchemaError
from codegen.facts import Facts
from codegen.spec import SCALARS, FieldSpec, MessageSpec, StructSpec
from codegen.versions import NONE, Versions

_MESSAGE_KEYS = frozenset(
    {"$schema", "apiKey", "type", "name", "listeners", "validVersions", "removedInKafka4"}
    | {"latestVersionUnstable", "flexibleVersions", "fields", "commonStructs", "about"}
)
_STRUCT_KEYS = frozenset({"name", "versions", "fields", "about"})
_FIELD_KEYS = frozenset(
    {"name", "type", "versions", "nullableVersions", "flexibleVersions", "taggedVersions", "tag", "default"}
    | {"ignorable", "mapKey", "entityType", "sensitive", "fields", "about"}
)
_MESSAGE_TYPES = ("request", "response", "header", "data", "coordinator-key", "coordinator-value")
_CAN_BE_NULL = ("string", "bytes", "records")
_MAX_TAG = 2**31 - 1


def parse_file(path: Path) -> MessageSpec:
    """Read one schema. Raise SchemaError."""
    try:
        values = json.loads(path.read_text("utf-8"), object_pairs_hook=_no_key_twice)
    except ValueError as exc:
        raise SchemaError(path.name, "", f"is not JSON: {exc}") from exc
    if not isinstance(values, dict):
        raise SchemaError(path.name, "", "is not a JSON object")
    return _parse_message(Facts(path.name, "", values))


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a key twice in one object")
    return values


def _parse_message(facts: Facts) -> MessageSpec:
    facts.only(_MESSAGE_KEYS)
    name = facts.name()
    if f"{name}.json" != facts.file:
        raise facts.refuse(f"is named {name}: file and message have the same name")
    if facts.values.get("type") not in _MESSAGE_TYPES:
        raise facts.refuse(f"type {facts.values.get('type')!r} is none of {', '.join(_MESSAGE_TYPES)}")
    if type(facts.values.get("apiKey", 0)) is not int:
        raise facts.refuse(f"apiKey {facts.values['apiKey']!r} is not a number")
    versions = facts.versions("validVersions")
    if not versions or versions.open:
        raise facts.refuse(f"validVersions {facts.values['validVersions']!r} must name the last version")
    flexible = facts.versions("flexibleVersions")
    if flexible and not flexible.open:
        raise facts.refuse(f"flexibleVersions {facts.values['flexibleVersions']!r} ends: write 3+ or none")
    flexible &= versions
    common = {struct.name(): struct for struct in facts.children("commonStructs")}
    structs = _Structs(versions, flexible, common)
    body = structs.parse(facts, name, versions)
    if unused := common.keys() - structs.known.keys():
        raise facts.refuse(f"commonStructs: no field is a {min(unused)}")
    return MessageSpec(
        file=facts.file,
        name=name,
        type=facts.values["type"],
        api_key=facts.values.get("apiKey"),
        versions=versions,
        flexible=flexible,
        body=body,
        structs=tuple(structs.known.values()),
        about=facts.text("about"),
    )


@define
class _Structs:
    """The structs of one message; `known` has each after those that it contains."""

    versions: Versions
    flexible: Versions
    common: dict[str, Facts]
    known: dict[str, StructSpec] = field(factory=dict)
    open: list[str] = field(factory=list)  # being parsed: a struct cannot contain itself

    def parse(self, facts: Facts, name: str, versions: Versions) -> StructSpec:
        if name in self.known or name in self.open:
            raise facts.refuse(f"struct {name} is defined twice or contains itself")
        self.open.append(name)
        fields = tuple(self.parse_field(child, versions) for child in facts.children("fields"))
        self.open.remove(name)
        _refuse_twins(facts, fields)
        self.known[name] = StructSpec(name, versions, fields, facts.text("about"))
        return self.known[name]

    def parse_field(self, facts: Facts, parent: Versions) -> FieldSpec:
        facts.only(_FIELD_KEYS)
        name, kind = facts.name(), _parse_type(facts)
        versions = facts.versions("versions", within=parent)
        struct = self.struct_of(facts, kind, versions)
        nullable = _parse_nullable(facts, kind, versions)
        try:
            composite = kind.array or struct is not None
            default, is_null = parse_default(facts.values.get("default"), kind.element, composite, nullable)
        except ValueError as exc:
            raise facts.refuse(str(exc)) from exc
        return FieldSpec(
            name=name,
            element=kind.element,
            array=kind.array,
            versions=versions,
            nullable=nullable,
            tagged=_parse_tagged(facts, versions, self.flexible),
            tag=facts.values.get("tag"),
            never_compact=_parse_never_compact(facts),
            default=default,
            default_is_null=is_null,
            ignorable=facts.flag("ignorable"),
            about=facts.text("about"),
            struct=struct,
            map_key=facts.flag("mapKey"),
            entity_type=facts.text("entityType"),
            sensitive=facts.flag("sensitive"),
        )

    def struct_of(self, facts: Facts, kind: _Type, versions: Versions) -> StructSpec | None:
        """Return the struct of the field: its own fields, or a common struct; None for a scalar."""
        name, own = kind.element, "fields" in facts.values
        if name in SCALARS:
            if own:
                raise facts.refuse(f"{name} has no fields")
            return None
        if own:
            return self.parse(facts, name, versions)
        if name not in self.common:
            raise facts.refuse(f"type {name!r} is neither a scalar nor a struct")
        if name not in self.known:
            common = self.common[name]
            common.only(_STRUCT_KEYS)
            self.parse(common, name, common.versions("versions", within=self.versions))
        return self.known[name]


@frozen
class _Type:
    element: str
    array: bool


def _parse_type(facts: Facts) -> _Type:
    text = facts.text("type")
    kind = _Type(text.removeprefix("[]"), text.startswith("[]"))
    if not kind.element.isidentifier():
        raise facts.refuse(f"type {text!r} is not a type")
    if kind.array and kind.element in ("bytes", "records"):
        raise facts.refuse(f"there are no arrays of {kind.element}")
    return kind


def _parse_nullable(facts: Facts, kind: _Type, versions: Versions) -> Versions:
    if "nullableVersions" not in facts.values:
        return NONE
    if not kind.array and kind.element in SCALARS and kind.element not in _CAN_BE_NULL:
        raise facts.refuse(f"{kind.element} cannot be null")
    return facts.versions("nullableVersions", within=versions)


def _parse_tagged(facts: Facts, versions: Versions, flexible: Versions) -> Versions:
    if ("taggedVersions" in facts.values) != ("tag" in facts.values):
        raise facts.refuse("tag and taggedVersions belong together")
    if "tag" not in facts.values:
        return NONE
    tag = facts.values["tag"]
    if type(tag) is not int or not 0 <= tag <= _MAX_TAG:
        raise facts.refuse(f"tag {tag!r} is not between 0 and {_MAX_TAG}")
    tagged = facts.versions("taggedVersions", within=versions)
    if tagged & flexible != tagged:
        raise facts.refuse(f"taggedVersions {facts.values['taggedVersions']!r} are not all flexible")
    return tagged


def _parse_never_compact(facts: Facts) -> bool:
    if facts.values.get("flexibleVersions", "none") != "none":
        raise facts.refuse("flexibleVersions of a field can only be none")
    return "flexibleVersions" in facts.values


def _refuse_twins(facts: Facts, fields: tuple[FieldSpec, ...]) -> None:
    names: dict[str, str] = {}
    tags: dict[int, str] = {}
    for spec in fields:
        if spec.python_name in names:
            raise facts.refuse(f"{names[spec.python_name]} and {spec.name} are both {spec.python_name}")
        if spec.tag is not None and spec.tag in tags:
            raise facts.refuse(f"tag {spec.tag} belongs to both {tags[spec.tag]} and {spec.name}")
        names[spec.python_name] = spec.name
        if spec.tag is not None:
            tags[spec.tag] = spec.name
