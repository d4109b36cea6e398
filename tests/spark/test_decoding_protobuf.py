"""Protobuf as typed columns, written by protobuf's own library and by Confluent's serializer.

The descriptors are built here, field by field, as protoc would write them to a file.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import ConfigError, DecodeError
from tests.spark.decoder_support import decoder, raw, values_of

File = descriptor_pb2.FileDescriptorProto
Field = descriptor_pb2.FieldDescriptorProto
Message = descriptor_pb2.DescriptorProto

TIMESTAMP_FILE = File.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb)


def field(message: Message, number: int, name: str, kind: str, **more: Any) -> Field:
    """A field of a kind as .proto files call it: `sint32`, `repeated string`, `.nyc.Leg`, or `enum .nyc.Carrier`."""
    label, _, rest = kind.rpartition(" ")
    made = message.field.add(name=name, number=number, **more)
    made.label = {"repeated": Field.LABEL_REPEATED, "required": Field.LABEL_REQUIRED}.get(
        label, Field.LABEL_OPTIONAL
    )
    if rest.startswith("."):
        made.type = Field.TYPE_ENUM if label == "enum" else Field.TYPE_MESSAGE
        made.type_name = rest
    else:
        made.type = Field.Type.Value(f"TYPE_{rest.upper()}")
    return made


def map_field(message: Message, number: int, name: str, full_name: str, key: str, value: str) -> None:
    """`map<key, value>`, which is a repeated message with an option."""
    entry = message.nested_type.add(name=f"{name.title()}Entry")
    entry.options.map_entry = True
    field(entry, 1, "key", key)
    field(entry, 2, "value", value)
    field(message, number, name, f"repeated .{full_name}.{entry.name}")


def flights() -> tuple[File, ...]:
    """Two files of proto3: the second has all that a message may have."""
    parts = File(name="parts.proto", package="nyc", syntax="proto3")
    carrier = parts.enum_type.add(name="Carrier")
    for number, name in enumerate(("NONE", "UA", "AA")):
        carrier.value.add(name=name, number=number)
    leg = parts.message_type.add(name="Leg")
    field(leg, 1, "to", "string")
    field(leg, 2, "by", "enum .nyc.Carrier")
    file = File(name="flights.proto", package="nyc", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "parts.proto"])
    file.message_type.add(name="Airport").field.add(name="code", number=1, type=9, label=1)
    flight = file.message_type.add(name="Flight")
    kinds = "double float int64 uint64 int32 fixed64 fixed32 bool string bytes uint32 sfixed32 sfixed64 sint32 sint64"
    for number, kind in enumerate(kinds.split(), 1):
        field(flight, number, f"f_{kind}", kind)
    field(flight, 20, "carrier", "enum .nyc.Carrier")
    field(flight, 21, "first", ".nyc.Leg")
    field(flight, 22, "legs", "repeated .nyc.Leg")
    field(flight, 23, "tags", "repeated string")
    field(flight, 24, "codes", "repeated int32")
    field(flight, 25, "at", ".google.protobuf.Timestamp")
    field(flight, 26, "stops", "repeated .google.protobuf.Timestamp")
    map_field(flight, 27, "seats", "nyc.Flight", "string", "int32")
    map_field(flight, 28, "by_row", "nyc.Flight", "int32", ".nyc.Leg")
    flight.oneof_decl.add(name="cause")
    field(flight, 29, "weather", "string", oneof_index=0)
    field(flight, 30, "minutes", "int32", oneof_index=0)
    flight.oneof_decl.add(name="_delay")
    field(flight, 31, "delay", "double", oneof_index=1, proto3_optional=True)
    flight.nested_type.add(name="Inner").field.add(name="n", number=1, type=5, label=1)
    return TIMESTAMP_FILE, parts, file


def one(*fields: tuple[str, str], syntax: str = "proto3") -> File:
    """A file with the message p.M, whose fields are numbered from 1."""
    file = File(name="m.proto", package="p", syntax=syntax)
    message = file.message_type.add(name="M")
    for number, (name, kind) in enumerate(fields, 1):
        field(message, number, name, kind)
    return file


def written_to(tmp_path: Path, files: Sequence[File], message: str) -> str:
    """The option for a file of descriptors."""
    path = tmp_path / "schema.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    return f"{path}#{message}"


def message_class(files: Sequence[File], message: str) -> Any:
    """As generated code has it."""
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))


def filled() -> Any:
    """A flight with every field set."""
    flight = message_class(flights(), "nyc.Flight")()
    flight.f_double, flight.f_float, flight.f_bool = -0.5, 1.5, True
    flight.f_int64 = flight.f_sfixed64 = flight.f_sint64 = -(2**63)
    flight.f_uint64 = flight.f_fixed64 = 2**64 - 1
    flight.f_int32 = flight.f_sfixed32 = flight.f_sint32 = -(2**31)
    flight.f_fixed32 = flight.f_uint32 = 2**32 - 1
    flight.f_string, flight.f_bytes, flight.carrier = "é", b"\0\xff", 1
    flight.first.to, flight.first.by = "IAH", 2
    for to in ("ORD", "SFO"):
        flight.legs.add(to=to)
    flight.tags.extend(["a", ""])
    flight.codes.extend([0, -1])
    flight.at.FromDatetime(datetime(1969, 12, 31, 23, 59, 59, 999_999))
    flight.stops.add(seconds=253_402_300_799, nanos=999_999_999)
    flight.stops.add()
    flight.seats.update({"9Z": 2, "1A": 1})
    flight.by_row[3].to = "JFK"
    flight.weather, flight.delay = "", 0.0
    return flight


EXPECTED: dict[str, Any] = {
    "f_double": -0.5,
    "f_float": 1.5,
    "f_int64": -(2**63),
    "f_uint64": Decimal(2**64 - 1),
    "f_int32": -(2**31),
    "f_fixed64": Decimal(2**64 - 1),
    "f_fixed32": 2**32 - 1,
    "f_bool": True,
    "f_string": "é",
    "f_bytes": b"\0\xff",
    "f_uint32": 2**32 - 1,
    "f_sfixed32": -(2**31),
    "f_sfixed64": -(2**63),
    "f_sint32": -(2**31),
    "f_sint64": -(2**63),
    "carrier": "UA",
    "first": {"to": "IAH", "by": "AA"},
    "legs": [{"to": "ORD", "by": "NONE"}, {"to": "SFO", "by": "NONE"}],
    "tags": ["a", ""],
    "codes": [0, -1],
    "at": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    "stops": [datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC), datetime(1970, 1, 1, tzinfo=UTC)],
    "seats": [("1A", 1), ("9Z", 2)],
    "by_row": [(3, {"to": "JFK", "by": "NONE"})],
    "weather": "",
    "minutes": None,
    "delay": 0.0,
}
UNSET: dict[str, Any] = {
    **{name: type(EXPECTED[name])(0) for name in EXPECTED if name.startswith("f_") and name[-1] != "s"},
    **dict.fromkeys(("first", "at", "weather", "minutes", "delay")),
    **{name: [] for name in ("legs", "tags", "codes", "stops", "seats", "by_row")},
    "f_bytes": b"",
    "f_string": "",
    "carrier": "NONE",
}
LEG = "struct<to:string,by:string>"
SPARK = (
    "struct<f_double:double,f_float:float,f_int64:bigint,f_uint64:decimal(20,0),f_int32:int,f_fixed64:decimal(20,0),"
    "f_fixed32:bigint,f_bool:boolean,f_string:string,f_bytes:binary,f_uint32:bigint,f_sfixed32:int,f_sfixed64:bigint,"
    f"f_sint32:int,f_sint64:bigint,carrier:string,first:{LEG},legs:array<{LEG}>,tags:array<string>,codes:array<int>,"
    f"at:timestamp,stops:array<timestamp>,seats:map<string,int>,by_row:map<int,{LEG}>,"
    "weather:string,minutes:int,delay:double>"
)


@pytest.mark.spec("SP-75")
def test_every_type(tmp_path: Path) -> None:
    made = decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, flights(), "nyc.Flight"))
    (tmp_path / "schema.desc").unlink()  # workers need no file
    assert made.types["value"] == SPARK
    values = [filled().SerializeToString(), None, b"", filled().SerializeToString()]
    assert values_of(made, values) == [EXPECTED, None, UNSET, EXPECTED]


@pytest.mark.spec("SP-75")
def test_an_enum_of_a_later_schema_keeps_its_number_and_its_new_fields_are_left_out(tmp_path: Path) -> None:
    made = decoder(keyFormat="protobuf", keySchema=written_to(tmp_path, flights(), "nyc.Leg"))
    parts = flights()[1]
    field(parts.message_type[0], 9, "gate", "string")
    written = message_class([parts], "nyc.Leg")(to="IAH", by=7, gate="C1").SerializeToString()
    assert made.decode(raw([None], [written]), ["key"]).to_pylist() == [{"key": {"to": "IAH", "by": "7"}}]


@pytest.mark.spec("SP-75")
def test_proto2_has_defaults_and_fields_that_must_be_there(tmp_path: Path) -> None:
    file = one(("a", "required int32"), ("b", "string"), ("c", "int32"), syntax="proto2")
    file.message_type[0].field[2].default_value = "5"
    schema = written_to(tmp_path, [file], "p.M")
    made = decoder(valueFormat="protobuf", valueSchema=schema, badRecords="column")
    message = message_class([file], "p.M")
    rows = made.decode(raw([message(a=1).SerializeToString(), message(b="x").SerializePartialToString()]))
    first, second = rows.to_pylist()
    assert first["value"] == {"a": 1, "b": None, "c": 5}
    assert second["_error"] == "value: protobuf: it lacks a field that its schema requires"


@pytest.mark.spec("SP-75", "SP-76")
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x08\x01\0", "it is not a p.M"),  # a byte after it: field 0 is none
        (b"\x08", "it is not a p.M"),
        (b"\x12\x05abc", "it is not a p.M"),
        (b"\x0b" * 300, "it is not a p.M"),  # groups in groups in groups
        (b"\x12\x01\xff", "a string in it is not UTF-8"),
        (b"\x1a\x05\n\x01\xff\x10\x01\x1a\x05\n\x01a\x10\x01", "a string in it is not UTF-8"),  # keys
        (b'"\x02\x08\x01*', "it is not a p.M"),
        (b'"\x07\x10\x80\x94\xeb\xdc\x03\x08', "it is not a p.M"),
        (b'"\x06\x10\x80\x94\xeb\xdc\x03', "a Timestamp in it is none of the years 1 to 9999"),
        (b'"\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x10', "it is not a p.M"),
        (
            b'"\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f',
            "a Timestamp in it is none of the years 1 to 9999",
        ),
    ],
)
def test_what_is_bad_says_why_and_harms_nothing_beside_it(tmp_path: Path, data: bytes, reason: str) -> None:
    file = one(("a", "int32"), ("s", "string"), syntax="proto2")
    map_field(file.message_type[0], 3, "m", "p.M", "string", "int32")
    file.dependency.append(TIMESTAMP_FILE.name)
    field(file.message_type[0], 4, "at", ".google.protobuf.Timestamp")
    schema = written_to(tmp_path, [TIMESTAMP_FILE, file], "p.M")
    good, read = b"\x08\x01", {"a": 1, "s": None, "m": [], "at": None}
    made = decoder(valueFormat="protobuf", valueSchema=schema, badRecords="column")
    rows = made.decode(raw([good, data, good])).to_pylist()
    assert [row["value"] for row in rows] == [read, None, read]
    assert [row["_error"] for row in rows] == [None, f"value: protobuf: {reason}", None]
    assert rows[1]["_raw"] == data
    assert values_of(decoder(valueFormat="protobuf", valueSchema=schema, badRecords="null"), [data]) == [None]
    with pytest.raises(DecodeError, match=f"flights-3 at offset 101: the value .* protobuf: {reason}"):
        decoder(valueFormat="protobuf", valueSchema=schema).decode(raw([good, data]))


@pytest.mark.spec("SP-76")
def test_any_bytes_are_a_value_or_a_bad_record(tmp_path: Path) -> None:
    made = decoder(
        valueFormat="protobuf",
        valueSchema="frame:*:" + written_to(tmp_path, flights(), "nyc.Flight"),
        badRecords="column",
    )
    whole = b"\0\0\0\0\1\2\2" + filled().SerializeToString()

    @settings(deadline=None)
    @given(st.integers(0, len(whole) - 1), st.binary(max_size=4), st.integers(0, 4))
    def check(at: int, new: bytes, gone: int) -> None:
        data = whole[:at] + new + whole[at + gone :]
        (row,) = made.decode(raw([data])).to_pylist()
        assert (row["value"] is None) == (row["_error"] is not None)
        assert row["_raw"] == (data if row["_error"] else None)

    check()


@pytest.mark.spec("SP-75", "SP-76")
def test_the_frame_must_be_whole_and_of_the_message(tmp_path: Path) -> None:
    schema = written_to(tmp_path, flights(), "nyc.Flight.Inner")
    made = decoder(valueFormat="protobuf", valueSchema=f"frame:17:{schema}", badRecords="column")
    message, frame = b"\x08\x07", struct.pack(">bI", 0, 17)
    inner = b"\x04\x02\x04"  # two indexes: the second message, and the third in it, behind the entries of its maps
    bad = {
        b"": "frame",
        frame[:4]: "frame",
        b"\1" + frame[1:] + inner + message: "frame",
        struct.pack(">bI", 0, 18) + inner + message: "schema id 18 is none of those expected",
        frame: "does not name the message",
        frame + b"\x04\x02": "does not name the message",
        frame + b"\x03" + message: "does not name the message",  # a count of -2
        frame + b"\xff" * 5 + b"\x00" + message: "does not name the message",
        frame + b"\x80\x01": "does not name the message",  # 64 indexes
        frame + b"\x00" + message: r"another message of its schema, with the indexes [0]",
        frame + b"\x02\x02" + message: r"another message of its schema, with the indexes [1]",
        frame + inner + message[:1]: "it is not a nyc.Flight.Inner",
    }
    rows = made.decode(raw([frame + inner + message, *bad])).to_pylist()
    assert rows[0]["value"] == {"n": 7}
    for row, reason in zip(rows[1:], bad.values(), strict=True):
        assert reason in row["_error"], row
    assert rows[-1]["_error"].startswith("value: protobuf with schema id 17: ")


@pytest.mark.spec("SP-75")
def test_the_first_message_has_a_short_frame_and_a_long_one(tmp_path: Path) -> None:
    schema = written_to(tmp_path, [one(("a", "int32"))], "p.M")
    made = decoder(valueFormat="protobuf", valueSchema=f"frame:*:{schema}")
    frames = (b"\0\0\0\0\1\0", b"\0\0\0\0\2\2\0")
    assert values_of(made, [frame + b"\x08\x05" for frame in frames]) == [{"a": 5}] * 2


@pytest.mark.spec("SP-75")
@pytest.mark.parametrize(
    ("files", "message", "reason"),
    [
        (flights()[1:], "nyc.Flight", "timestamp.proto is imported, .* Run protoc with --include_imports"),
        (flights(), "nyc.Fligt", r"no message nyc.Fligt, but google\.protobuf\.Timestamp, nyc\.Airport"),
        (flights(), "", "is not FILE#MESSAGE"),
        ([], "p.M", "is not a set of descriptors"),
        ([one(("a", ".p.Unknown"))], "p.M", "descriptors that do not fit together"),
        ([one(("a", "int32"), ("b", ".p.M"))], "p.M", "field b is p.M inside itself"),
        ([one(("b", "repeated .p.M"))], "p.M", r"field b\[\] is p.M inside itself"),
        ([one()], "p.M", "the schema is p.M, a message without fields"),
        ([one(*((f"f{n}", "int32") for n in range(5001)))], "p.M", "more than 5000 columns"),
    ],
)
def test_a_schema_that_cannot_be_says_why(
    tmp_path: Path, files: Sequence[File], message: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"^valueSchema.*{reason}"):
        decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, files, message))


@pytest.mark.spec("SP-75")
def test_recursion_through_others_and_columns_without_end_are_refused(tmp_path: Path) -> None:
    """Messages of ten messages of ten messages …: a file of 1 KiB that would be ten thousand million columns."""
    wide = File(name="wide.proto", package="p", syntax="proto3")
    for depth in range(10):
        message = wide.message_type.add(name=f"D{depth}")
        for number in range(1, 11):
            field(message, number, f"f{number}", f".p.D{depth + 1}" if depth < 9 else "int32")
    with pytest.raises(ConfigError, match="more than 5000 columns"):
        decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, [wide], "p.D0"))
    deep = File(name="deep.proto", package="p", syntax="proto3")
    for depth in range(600):
        field(deep.message_type.add(name=f"D{depth}"), 1, "f", f".p.D{depth + 1}" if depth < 599 else "int32")
    with pytest.raises(ConfigError, match=r"field f\.f\..* is inside of 50 messages"):
        decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, [deep], "p.D0"))
    circle = File(name="circle.proto", package="p", syntax="proto3")
    for name, other in (("A", "B"), ("B", "A")):
        field(circle.message_type.add(name=name), 1, "f", f".p.{other}")
    with pytest.raises(ConfigError, match=r"field f\.f is p\.A inside itself"):
        decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, [circle], "p.A"))


@pytest.mark.spec("SP-75")
def test_a_text_and_a_registry_are_no_schema(tmp_path: Path) -> None:
    proto = tmp_path / "flights.proto"
    proto.write_text('syntax = "proto3"; message Flight { string to = 1; }')
    with pytest.raises(ConfigError, match=r"flights\.proto is not a set of descriptors"):
        decoder(valueFormat="protobuf", valueSchema=f"{proto}#Flight")
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        decoder(valueFormat="protobuf", valueSchema="/nowhere/x.desc#Flight")
    for schema in ({}, {"valueSchema": "subject:flights-value"}):
        with pytest.raises(ConfigError, match="a registry is asked for Avro schemas only"):
            decoder(
                valueFormat="protobuf",
                schema__registry__url="https://r",
                keyFormat="avro",
                keySchema='"int"',
                **schema,
            )


@pytest.mark.spec("SP-75")
@pytest.mark.filterwarnings("ignore:The httpx module is deprecated")
@pytest.mark.parametrize("message", ["nyc.Airport", "nyc.Flight", "nyc.Flight.Inner"])
def test_what_confluents_serializer_writes(tmp_path: Path, message: str) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    from tests.spark.registry import registry_server

    kind = message_class(flights(), message)
    value = {"nyc.Airport": {"code": "JFK"}, "nyc.Flight": {"f_int32": 7}, "nyc.Flight.Inner": {"n": 7}}[
        message
    ]
    with registry_server() as server:
        client = SchemaRegistryClient({"url": server.url})
        serializer = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
        written = serializer(kind(**value), SerializationContext("flights", MessageField.VALUE))
    made = decoder(valueFormat="protobuf", valueSchema=f"frame:*:{written_to(tmp_path, flights(), message)}")
    (read,) = values_of(made, [written])
    assert {name: read[name] for name in value} == value
