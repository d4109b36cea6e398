"""Schemas, error codes and settings against what Kafka 4.4.0's own classes say (`tools/record_java_facts.py`)."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.parse import parse_file
from codegen.spec import FieldSpec, MessageSpec, StructSpec
from kclient.protocol.registry import MESSAGES
from tests.vectors.cases import DATA

SCHEMAS = Path(__file__).parents[2] / "schemas"


def facts(kind: str) -> list[list[str]]:
    """The lines of one kind, without their first column."""
    with gzip.open(DATA / "java_facts.tsv.gz", "rt", encoding="ascii") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [row[1:] for row in rows if row[0] == kind]


def layouts() -> dict[str, dict[int, str]]:
    """Message → version → layout, as Java has them."""
    found: dict[str, dict[int, str]] = {}
    for name, version, layout in facts("message"):
        found.setdefault(name, {})[int(version)] = layout
    return found


JAVA = layouts()


# --- our layouts in Java's words --------------------------------------------------------------------------------------


def layout(struct: StructSpec, spec: MessageSpec, version: int) -> str:
    """A struct's fields in a version: untagged ones, then the tagged ones in angle brackets."""
    present = [field for field in struct.fields if version in field.versions]
    plain = [
        f"{field.python_name}:{kind(field, spec, version)}" for field in present if not tagged(field, version)
    ]
    if version in spec.flexible:
        extra = sorted(
            (field for field in present if tagged(field, version)), key=lambda field: field.tag or 0
        )
        rows = [f"{field.tag}={field.python_name}:{kind(field, spec, version)}" for field in extra]
        plain.append(f"_tagged_fields:<{' '.join(rows)}>")
    return "{" + " ".join(plain) + "}"


def tagged(field: FieldSpec, version: int) -> bool:
    return version in field.tagged


def kind(field: FieldSpec, spec: MessageSpec, version: int) -> str:
    """A field's type."""
    compact = version in spec.flexible and not field.never_compact
    nullable = version in field.nullable
    if field.array:
        element = scalar(field, spec, version, compact, nullable=False)
        return ("COMPACT" if compact else "") + f"[{element}]" + ("?" if nullable else "")
    return scalar(field, spec, version, compact, nullable)


def scalar(field: FieldSpec, spec: MessageSpec, version: int, compact: bool, nullable: bool) -> str:
    if field.struct is not None:
        return layout(field.struct, spec, version) + ("?" if nullable else "")
    if field.element not in ("string", "bytes", "records"):
        return {"bool": "BOOLEAN"}.get(field.element, field.element.upper())
    words = ["COMPACT"] * compact + ["NULLABLE"] * nullable
    return "_".join([*words, field.element.upper()]) + ("?" if nullable else "")


def ours() -> Iterator[tuple[str, int, str]]:
    for path in sorted(SCHEMAS.glob("*.json")):
        if path.name == "dialect.schema.json":
            continue
        spec = parse_file(path)
        for version in spec.versions.numbers():
            yield spec.name, version, layout(spec.body, spec, version)


# --- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("C.1")
def test_every_layout_is_that_of_java() -> None:
    different = [
        (name, version, mine, JAVA[name][version])
        for name, version, mine in ours()
        if version in JAVA[name] and JAVA[name][version] != mine
    ]
    assert different == []


@pytest.mark.spec("C.1", "C.2")
def test_every_message_has_the_newest_version_of_java() -> None:
    for name, entry in MESSAGES.items():
        assert entry.highest == max(JAVA[name]), name


def test_every_error_code_is_one_of_java() -> None:
    with (SCHEMAS / "errors.tsv").open(encoding="ascii") as lines:
        mine = [list(row.values()) for row in csv.DictReader(lines, delimiter="\t")]
    assert sorted(mine) == sorted(facts("error"))
