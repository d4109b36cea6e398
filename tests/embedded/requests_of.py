"""For every API that the embedded cluster serves a request that asks for one of each thing it can ask for."""

from __future__ import annotations

from typing import Any

from kclient.embedded import apis
from kclient.embedded.releases import Release, versions_of
from kclient.protocol.message import Message, Struct
from kclient.protocol.registry import MESSAGES, message_class

NAMES = {"string": "x", "int32": 0}


def served(release: str) -> list[tuple[str, int]]:
    """Every API and version; SASL only belongs at the beginning of a connection."""
    offered = versions_of(Release.parse(release))
    found = []
    for api in apis.MODULES:
        oldest, newest = offered.get(MESSAGES[f"{api}Request"].api_key or 0, (0, -1))
        if api == "Produce":
            oldest = max(oldest, 3)
        found += [(api, version) for version in range(oldest, newest + 1)]
    return found


def request(api: str, version: int) -> Message:
    """One topic, partition, group, member or whatever the request has, nested as it nests them."""
    message = message_class(f"{api}Request")()
    fill(message, version)
    if api == "Produce":
        message.acks = -1  # type: ignore[attr-defined]
    return message


def fill(struct: Struct, version: int) -> None:
    """One element into each array that this version has."""
    for field in struct.FIELDS:
        low, high = field.versions
        if not field.is_array or not low <= version <= high:
            continue
        if field.struct is not None:
            element: Any = field.struct()
            fill(element, version)
        elif field.element in NAMES:
            element = NAMES[field.element]
        else:
            continue
        setattr(struct, field.name, [element])


def codes(struct: Any) -> list[int]:
    """Every error code in a response."""
    found = []
    for field in struct.FIELDS:
        value = getattr(struct, field.name)
        if field.name.endswith("error_code"):
            found.append(value)
        elif field.struct is not None:
            rows = value if field.is_array else [value]
            found += [code for row in rows or () if row is not None for code in codes(row)]
    return found
