"""What the schema tests share: every schema file, a walk over its structs, and the layout of one version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[2] / "schemas"
DIALECT = SCHEMAS / "dialect.schema.json"

Node = dict[str, Any]


def schema_files() -> list[Path]:
    return sorted(path for path in SCHEMAS.glob("*.json") if path != DIALECT)


def load(path: Path) -> Node:
    node: Node = json.loads(path.read_text(encoding="utf-8"))
    return node


def all_messages() -> dict[str, Node]:
    """Message by file name, in the order of the files."""
    return {path.stem: load(path) for path in schema_files()}


def structs(message: Node) -> Iterator[tuple[str, list[Node]]]:
    """Every struct of a message as (dotted path, its fields), the message itself first."""
    yield from _structs(message["name"], message["fields"])
    for common in message.get("commonStructs", []):
        yield from _structs(f"{message['name']}.{common['name']}", common["fields"])


def _structs(path: str, fields: list[Node]) -> Iterator[tuple[str, list[Node]]]:
    yield path, fields
    for field in fields:
        if "fields" in field:
            yield from _structs(f"{path}.{field['name']}", field["fields"])


def bounds(versions: str) -> tuple[int, float]:
    """First and last version of a range; "none" is empty, an open range ends at infinity."""
    if versions == "none":
        return 0, -1
    match = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", versions)
    if match is None:
        raise ValueError(f"not a version range: {versions!r}")
    first = int(match[1])
    return first, float("inf") if match[2] else int(match[3] or first)


def covers(versions: str, version: int) -> bool:
    first, last = bounds(versions)
    return first <= version <= last


def layout(message: Node, version: int) -> list[str]:
    """What stands on the wire in one version, a line per field: its type, null and tag marks, and its default."""
    commons = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", [])}
    flexible = covers(message["flexibleVersions"], version)
    return ["flexible" if flexible else "plain", *_layout(message["fields"], version, commons, "")]


def _layout(fields: list[Node], version: int, commons: dict[str, list[Node]], indent: str) -> Iterator[str]:
    for field in fields:
        if not covers(field["versions"], version):
            continue
        yield indent + " ".join(filter(None, _marks(field, version)))
        struct = field.get("fields") or commons.get(field["type"].removeprefix("[]"), [])
        yield from _layout(struct, version, commons, indent + "  ")


def _marks(field: Node, version: int) -> Iterator[str]:
    yield f"{field['name']}: {field['type']}"
    if covers(field.get("nullableVersions", "none"), version):
        yield "nullable"
    if covers(field.get("taggedVersions", "none"), version):
        yield f"tag {field['tag']}"
    if field.get("flexibleVersions") == "none":
        yield "never compact"
    default = str(field.get("default", "")).lower()
    yield "" if default in {"", "0", "false"} else f"default {default}"
