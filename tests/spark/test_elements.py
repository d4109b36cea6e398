"""How many elements a value may hold: counted alike in every format, and never where the length says that it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.deserializers.avro import AvroReader, elements_of
from kclient.deserializers.elements import BadValueError, ElementBudget
from kclient.network import schema_registry as registry_module
from tests.spark.decoder_support import decoder, raw
from tests.spark.registry import registry_server
from tests.spark.test_decoding_avro import FLIGHT, FLOWN, SMALL, by_fastavro

TOLD = "it holds more than {} elements (maxElementsPerValue)"


def allowed(value: bytes, elements: int, **options: str) -> bool:
    """Whether a value is good where so many elements are the limit."""
    made = decoder(**options, badRecords="column", maxElementsPerValue=str(elements))
    (row,) = made.decode(raw([value])).to_pylist()
    assert row["_error"] is None or row["_error"].endswith(TOLD.format(f"{elements:,}"))
    return row["_error"] is None


def assert_holds(value: bytes, elements: int, **options: str) -> None:
    """Exactly so many and no more."""
    assert allowed(value, elements, **options)
    assert not allowed(value, elements - 1, **options)


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("schema", "document", "elements"),
    [
        ("a ARRAY<INT>", '{"a": [1, 2, 3, 4, 5, 6]}', 6),
        ("a ARRAY<STRING>", r'{"a": ["[,{", "\",\"", "\\", "x\\\",", ",", ""]}', 6),
        ("a ARRAY<STRUCT<x: INT, y: INT>>", '{"a": [{"x": 1}, null, {}, {"y": 2, "x": 3}]}', 12),
        ("a ARRAY<STRUCT<x: INT>>", r'{"\u0061": [{}, {}, {}]}', 6),
        ("a ARRAY<STRUCT<b: ARRAY<INT>>>", '{"a": [{"b": [1, 2]}, {"b": [ ]}, {"b": [3]}]}', 9),
        ("a ARRAY<ARRAY<INT>>", '{"a": [[1, 2], [], [[3]]]}'.replace("[[3]]", "[3]"), 6),
        ("s STRUCT<a: ARRAY<INT>>, t ARRAY<INT>", '{"t": [1, 2], "s": {"a": [3, 4, 5, 6]}}', 6),
        ("ARRAY<INT>", "[1, 2, 3, 4, 5]", 5),
    ],
)
def test_json(schema: str, document: str, elements: int) -> None:
    assert_holds(document.encode(), elements, valueFormat="json", valueSchema=schema)


@pytest.mark.spec("SP-76")
def test_json_that_makes_no_column_is_not_counted() -> None:
    for schema, document in (
        ("a INT, b ARRAY<INT>", '{"c": [1, 2, 3, {"b": [1, 2, 3, 4]}], "b": [1]}'),
        ("a INT", '{"a": 1, "b": [' + "1, " * 500 + "1]}"),
    ):
        assert allowed(document.encode(), 1, valueFormat="json", valueSchema=schema)


def record(**fields: Any) -> dict[str, Any]:
    name = "".join(fields)
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": n, "type": kind} for n, kind in fields.items()],
    }


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("schema", "value", "elements"),
    [
        (array("int"), [1, 2, 3], 3),
        (array("double"), [1.0, 2.0, 3.0], 3),
        (array(["null", "string"]), ["a", None, "bcd"], 3),
        (array(record(x="int", y=["null", "long"])), [{"x": 1, "y": None}, {"x": 300, "y": 2**40}], 6),
        (array(record(x=array("int"))), [{"x": [1, 2]}, {"x": []}, {"x": [3]}], 9),
        ({"type": "map", "values": "boolean"}, {"a": True, "b": False}, 4),
        (record(x=array(record(y={"type": "fixed", "name": "F", "size": 2}))), {"x": [{"y": b"ab"}] * 3}, 6),
    ],
)
def test_avro(schema: Any, value: Any, elements: int) -> None:
    assert_holds(by_fastavro(schema, value), elements, valueFormat="avro", valueSchema=json.dumps(schema))


@pytest.mark.spec("SP-76")
def test_what_a_reader_adds_to_each_item_counts(tmp_path: Path) -> None:
    """The writer's items have one field; the reader's two more, with defaults."""
    more = [{"name": name, "type": "int", "default": 0} for name in "yz"]
    item = record(x="int")
    wider = {**item, "fields": [*item["fields"], *more]}
    registry_module._schemas.clear()
    with registry_server() as registry:
        frame = b"\0\0\0\0" + bytes([registry.add("x", array(item))])
        options = {"schema.registry.url": registry.url, "schema.registry.allowHttp": "true"}
        value = frame + by_fastavro(array(item), [{"x": 1}] * 5)
        assert_holds(
            value,
            20,
            valueFormat="avro",
            valueSchema=json.dumps(array(wider)),
            **{name.replace(".", "__"): text for name, text in options.items()},
        )


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), st.lists(st.text(), max_size=5))
def test_a_value_of_avro_is_walked_over_to_its_end(numbers: list[int], texts: list[str]) -> None:
    walk = elements_of(json.dumps(FLIGHT), None).walk
    value = {
        **FLOWN,
        "tags": [*texts, None],
        "distance": sum(numbers) % 2**63,
        "seats": dict.fromkeys(texts, 3),
    }
    data = by_fastavro(FLIGHT, value)
    assert walk(data + b"more", 0, ElementBudget(1_000)) == len(data)


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("left_out", "good", "bad"),
    [
        (ENUM, b"\x02", b"\x04"),
        (ENUM, b"\x00", b"\x01"),
        (["null", ENUM], b"\x02\x02", b"\x02\x06"),
        (array(ENUM), b"\x02\x02\0", b"\x02\x08\0"),
        (record(x=ENUM), b"\x02", b"\x05"),
    ],
)
def test_an_enum_that_the_reader_leaves_out_is_looked_at(left_out: Any, good: bytes, bad: bytes) -> None:
    registry_module._schemas.clear()
    with registry_server() as registry:
        written = {**SMALL, "fields": [{"name": "e", "type": left_out}, *SMALL["fields"]]}
        frame = b"\0\0\0\0" + bytes([registry.add("x", written)])
        made = decoder(
            valueFormat="avro",
            valueSchema=json.dumps(SMALL),
            schema__registry__url=registry.url,
            schema__registry__allowHttp="true",
            badRecords="column",
        )
        rows = made.decode(raw([frame + good + b"\x02\x02x", frame + bad + b"\x02\x02x"])).to_pylist()
    assert rows[0]["value"] == {"a": 1, "b": "x"}
    why = "it does not follow its schema: it ends too early, or has a branch or symbol that its schema lacks"
    assert rows[1]["_error"] == f"value: avro with schema id 1: {why}"


@pytest.mark.spec("SP-76")
def test_an_enum_whose_name_an_alias_has_taken_is_looked_at() -> None:
    writer = json.dumps(record(old="int", a=ENUM))
    reader = json.dumps({**record(olda="int"), "fields": [{"name": "a", "type": "int", "aliases": ["old"]}]})
    assert AvroReader.of(writer, reader).value(b"\x0e\x02", 0, 10, "") == {"a": 7}
    with pytest.raises(BadValueError, match="does not follow its schema"):
        AvroReader.of(writer, reader).value(b"\x0e\x04", 0, 10, "")


Field = descriptor_pb2.FieldDescriptorProto
TYPES = {"Inner": Field.TYPE_MESSAGE, "Group": Field.TYPE_GROUP}


@pytest.fixture
def schema(tmp_path: Path) -> str:
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="p", syntax="proto2")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=Field.TYPE_INT32, label=Field.LABEL_OPTIONAL)
    inner.field.add(name="y", number=2, type=Field.TYPE_SINT64, label=Field.LABEL_REPEATED)
    outer = file.message_type.add(name="Outer")
    group = outer.nested_type.add(name="Group")
    group.field.add(name="z", number=1, type=Field.TYPE_FLOAT, label=Field.LABEL_REPEATED)
    for number, (name, kind, named) in enumerate(
        (
            ("inner", Field.TYPE_MESSAGE, ".p.Inner"),
            ("texts", Field.TYPE_STRING, None),
            ("group", Field.TYPE_GROUP, ".p.Outer.Group"),
            ("flags", Field.TYPE_BOOL, None),
        ),
        1,
    ):
        outer.field.add(name=name, number=number, type=kind, type_name=named, label=Field.LABEL_REPEATED)
    path = tmp_path / "a.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
    return f"{path}#p.Outer"


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("message", "elements"),
    [
        (b"\x0a\0" * 4, 12),  # four messages, each of two fields
        (b"\x0a\x04\x08\x01\x10\x02" * 3, 12),  # and one number in the second
        (b"\x0a\x05\x12\x03\x81\x01\x02" * 3, 15),  # two numbers, packed
        (b"\x12\x01a\x12\0" * 4, 8),
        (b"\x1b\x1c" * 5, 10),
        (b"\x1b\x0a\x08" + bytes(8) + b"\x1c" + b"\x22\x03\x01\x00\x01", 7),
        (b"\x0a\0" * 4 + b"\x2a\x02\x0a\0" * 9 + b"\x2b\x33\x34\x2c" * 9, 12),  # fields that nothing names
    ],
)
def test_protobuf(schema: str, message: bytes, elements: int) -> None:
    assert_holds(message, elements, valueFormat="protobuf", valueSchema=schema)


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    "message", [b"\x0a\x05\0", b"\x0a", b"\xff" * 12, b"\x2e" * 9, b"\x2b" * 9_000, b"\x29"]
)
def test_a_message_that_is_none_is_bad_however_long(schema: str, message: bytes) -> None:
    made = decoder(valueFormat="protobuf", valueSchema=schema, badRecords="column", maxElementsPerValue="1")
    (row,) = made.decode(raw([message])).to_pylist()
    assert row["_error"] == "value: protobuf: it is not a p.Outer"
