"""A field that the version lacks: dropped if it is ignorable, else refused with its name and the version."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import protocol
from kclient.errors import ProtocolEncodeError
from kclient.protocol.message import Field, Struct
from kclient.protocol.registry import message_class
from tests.vectors.cases import Case, by_version, vectors

CASES = by_version(vectors("absent_fields"))


def reach(struct: Struct, path: list[str]) -> tuple[Struct, Field]:
    """The field at the path, with one element put into every array on the way."""
    [field] = [field for field in type(struct).FIELDS if field.json_name == path[0]]
    if len(path) == 1:
        return struct, field
    assert field.struct is not None
    child = field.struct()
    setattr(struct, field.name, [child] if field.wire_type.startswith("[]") else child)
    return reach(child, path[1:])


def another_value(field: Field, default: Any) -> Any:
    """A value of the field's type that is not its default."""
    one = {"string": "x", "uuid": bytes(range(16)), "bytes": b"x", "records": b"x"}.get(field.wire_type)
    if field.wire_type.startswith("[]"):
        return [field.struct() if field.struct else 1]
    if field.wire_type == "bool":
        return not default
    if field.struct is not None:
        struct, first = field.struct(), field.struct.FIELDS[0]
        setattr(struct, first.name, another_value(first, getattr(struct, first.name)))
        return struct
    return one or default + 1


def expected_path(path: list[str], message: Struct) -> str:
    """The path in our names, with the index of the one element in every array."""
    kind, names = type(message), []
    for name in path:
        [field] = [field for field in kind.FIELDS if field.json_name == name]
        kind = field.struct or kind
        names.append(field.name + ("[0]" if field.wire_type.startswith("[]") else ""))
    return ".".join(names).removesuffix("[0]")


@pytest.mark.spec("C.1")
@pytest.mark.parametrize("cases", CASES.values(), ids=CASES)
def test_java_drops_and_refuses_the_same_fields(cases: list[Case]) -> None:
    for case in cases:
        version, path = case["version"], case["field"].split(".")
        message = message_class(case["message"])()
        struct, field = reach(message, path)
        without = protocol.encode(message, version)
        setattr(struct, field.name, another_value(field, getattr(struct, field.name)))
        if case["outcome"] == "dropped":
            assert protocol.encode(message, version) == without, case
            continue
        with pytest.raises(ProtocolEncodeError) as refused:
            protocol.encode(message, version)
        error = refused.value
        assert (error.message, error.version) == (case["message"], version)
        assert error.field == expected_path(path, message), case
        assert f"version {version}" in str(error)


def test_every_case_was_tried() -> None:
    assert sum(map(len, CASES.values())) == 667
