"""Fields of Protobuf messages that the schema does not name. Protobuf's own library reads what is kept of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import any_pb2, descriptor_pb2, duration_pb2, field_mask_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import ConnectError
from kclient.network import schema_registry as registry_module
from kclient.spark.decoding import protobuf_format, protobuf_writers
from kclient.spark.decoding.formats import Decoded
from tests.spark.decoder_support import decoder
from tests.spark.registry import RegistryServer, registry_server
from tests.spark.test_decoding_avro import Clock
from tests.spark.test_decoding_protobuf import (
    TIMESTAMP_FILE,
    File,
    field,
    filled,
    flights,
    map_field,
    message_class,
    one,
    written_to,
)

GROUP = descriptor_pb2.FieldDescriptorProto.TYPE_GROUP
TEXT = st.sampled_from(["", "é"])


def flight_in(file: Any) -> Any:
    return next(message for message in file.message_type if message.name == "Flight")


def newer_flights() -> tuple[Any, ...]:
    """The files of flights; legs have a gate and a number of stops more, flights a list of names and a last leg."""
    _, parts, file = flights()
    field(parts.message_type[0], 9, "gate", "string")
    field(parts.message_type[0], 10, "stops", "sint32")
    flight = flight_in(file)
    field(flight, 100, "names", "repeated string")
    field(flight, 2000, "last", ".nyc.Leg")
    field(flight, 101, "speed", "double")
    field(flight, 102, "code", "fixed32")
    return TIMESTAMP_FILE, parts, file


def read(tmp_path: Path, files: Any, message: str, *values: bytes | None, frame: str = "") -> Decoded:
    made = decoder(valueFormat="protobuf", valueSchema=frame + written_to(tmp_path, files, message))
    return made.formats["value"].decode(pa.array(values, pa.binary()), new_fields=True)


def restored(message: Any, found: Any) -> None:
    """Give a message of the newer schema what is kept of it."""
    for name, kept in found.items():
        if name.isdigit():
            message.MergeFromString(base64.b64decode(kept))
            continue
        inner = getattr(message, name)
        if isinstance(kept, list):
            for item, each in zip(inner, kept, strict=True):
                restored(item, each or {})
        elif message.DESCRIPTOR.fields_by_name[name].message_type.GetOptions().map_entry:
            keys = {str(key).lower() if isinstance(key, bool) else str(key): key for key in inner}
            for key, each in kept.items():
                restored(inner[keys[key]], each)
        else:
            restored(inner, kept)


@pytest.mark.spec("SP-87")
def test_a_field_is_kept_under_its_number_as_a_message(tmp_path: Path) -> None:
    newer = message_class(newer_flights()[1:2], "nyc.Leg")
    values = [newer(to="IAH").SerializeToString(), newer(to="ORD", gate="C1").SerializeToString(), None, b""]
    found = read(tmp_path, flights()[1:2], "nyc.Leg", *values)
    assert [row and row["to"] for row in found.array.to_pylist()] == ["IAH", "ORD", None, ""]
    assert found.new == {1: '{"9":"SgJDMQ=="}'}
    assert newer.FromString(base64.b64decode("SgJDMQ==")) == newer(gate="C1")


@pytest.mark.spec("SP-87")
def test_new_fields_are_kept_at_their_place_at_any_depth(tmp_path: Path) -> None:
    flight = message_class(newer_flights(), "nyc.Flight")()
    flight.legs.add(to="IAH")
    flight.legs.add(gate="C1")
    flight.first.gate = flight.by_row[3].gate = "C1"
    flight.by_row[4].to = "JFK"
    flight.names.extend(["a", "b"])
    flight.at.seconds, flight.seats["1A"] = 7, 1
    found = read(tmp_path, flights(), "nyc.Flight", filled().SerializeToString(), flight.SerializeToString())
    gate = {"9": "SgJDMQ=="}
    assert list(found.new) == [1]
    assert json.loads(found.new[1]) == {
        "100": "ogYBYaIGAWI=",
        "first": gate,
        "legs": [None, gate],
        "by_row": {"3": gate},
    }


@st.composite
def newer_messages(draw: st.DrawFn) -> Any:
    """A flight of the newer schema with anything set."""
    flight = message_class(newer_flights(), "nyc.Flight")()

    def fill(leg: Any) -> None:
        leg.to, leg.gate, leg.stops = draw(TEXT), draw(TEXT), draw(st.integers(-2, 2))

    for make in (flight.legs.add, lambda: flight.first, lambda: flight.by_row[draw(st.integers(-2, 2))]):
        for _ in range(draw(st.integers(0, 2))):
            fill(make())
    if draw(st.booleans()):
        fill(flight.last)
    flight.names.extend(draw(st.lists(TEXT, max_size=2)))
    flight.speed, flight.code = draw(st.sampled_from([0.0, -0.5])), draw(st.integers(0, 3))
    flight.seats.update(draw(st.dictionaries(TEXT, st.integers(0, 2), max_size=2)))
    flight.weather = draw(TEXT)
    return flight


@pytest.mark.spec("SP-87")
def test_what_is_taken_and_what_is_kept_are_the_whole(tmp_path: Path) -> None:
    older = message_class(flights(), "nyc.Flight")
    made = decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, flights(), "nyc.Flight"))

    @settings(deadline=None)
    @given(newer_messages())
    def check(flight: Any) -> None:
        found = made.formats["value"].decode(pa.array([flight.SerializeToString()]), new_fields=True)
        taken = older.FromString(flight.SerializeToString())
        taken.DiscardUnknownFields()
        again = type(flight).FromString(taken.SerializeToString())
        assert (again == flight) == (found.new == {})
        restored(again, json.loads(found.new.get(0, "{}")))
        assert again == flight

    check()


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize("kind", ["group", "double", "fixed32", "repeated bool"])
def test_every_kind_of_value_is_kept(tmp_path: Path, kind: str) -> None:
    new = one(("a", "int32"), syntax="proto2")
    if kind == "group":
        inner = new.message_type[0].nested_type.add(name="B")
        field(inner, 1, "x", "int32")
        made = new.message_type[0].field.add(name="b", number=2, label=1, type=GROUP)
        made.type_name = ".p.M.B"
    else:
        field(new.message_type[0], 2, "b", kind)
    whole = message_class([new], "p.M")(a=1)
    if kind == "group":
        whole.b.x = 7
    elif kind == "repeated bool":
        whole.b.extend([True, False])
    else:
        whole.b = 7
    found = read(tmp_path, [one(("a", "int32"), syntax="proto2")], "p.M", whole.SerializeToString())
    again = type(whole)(a=1)
    restored(again, json.loads(found.new[0]))
    assert again == whole


@pytest.mark.spec("SP-87")
def test_what_protobuf_keeps_with_unknown_fields_is_new(tmp_path: Path) -> None:
    """A value that a closed enum does not have, one that is written as another kind, and an extension."""
    file = one(("a", "int32"), ("kind", "enum .p.E"), syntax="proto2")
    file.enum_type.add(name="E").value.add(name="X", number=1)
    message = file.message_type[0]
    message.extension_range.add(start=100, end=200)
    extension = message.extension.add(name="more", number=100, type=5, label=1)
    extension.extendee = ".p.M"
    values = [b"\x08\x01\x10\x07", b"\x0a\x01x\x10\x01", b"\x08\x01\xa0\x06\x05", b"\x08\x01\x10\x01"]
    found = read(tmp_path, [file], "p.M", *values)
    assert found.array.to_pylist()[:2] == [{"a": 1, "kind": None}, {"a": None, "kind": "X"}]
    kept = [("2", b"\x10\x07"), ("1", b"\x0a\x01x"), ("100", b"\xa0\x06\x05")]
    texts = [
        json.dumps({name: base64.b64encode(data).decode()}, separators=(",", ":")) for name, data in kept
    ]
    assert found.new == dict(enumerate(texts))


@pytest.mark.spec("SP-87")
def test_new_fields_of_a_bad_message_are_none_and_a_frame_is_not_part_of_it(tmp_path: Path) -> None:
    frame = b"\0\0\0\0\1\0"
    values = [frame + b"\x08\x01\x12\x01x", frame + b"\x08\x01\x12\x05x", b"\x08\x01\x12\x01x"]
    found = read(tmp_path, [one(("a", "int32"))], "p.M", *values, frame="frame:*:")
    assert list(found.bad) == [1, 2]
    assert found.new == {0: '{"2":"EgF4"}'}
    text = one(("s", "string"), syntax="proto2")  # what is no text is found when the column is built
    found = read(tmp_path, [text], "p.M", b"\x0a\x01\xff\x12\x01x", b"\x0a\x01s\x12\x01x")
    assert (list(found.bad), found.new) == ([0], {1: '{"2":"EgF4"}'})


@pytest.mark.spec("SP-87")
def test_nothing_is_looked_for_unless_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Any] = []

    def look(messages: Any) -> list[int]:
        looked.extend(messages)
        return []

    monkeypatch.setattr(protobuf_format, "with_new_fields", lambda _: look)
    protobuf_format._reader.cache_clear()
    made = decoder(valueFormat="protobuf", valueSchema=written_to(tmp_path, [one(("a", "int32"))], "p.M"))
    form, values = made.formats["value"], pa.array([b"\x08\x01"] * 3, pa.binary())
    assert form.decode(values).new == {}
    assert looked == []
    form.decode(values, new_fields=True)
    assert len(looked) == 3
    protobuf_format._reader.cache_clear()


# --- names from a registry -------------------------------------------------------------------------------------------


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    with registry_server() as server:
        yield server


def named(tmp_path: Path, registry: RegistryServer, files: Any, message: str, *values: bytes) -> list[Any]:
    """The new fields of values in the registry's frame."""
    made = decoder(
        valueFormat="protobuf",
        valueSchema="frame:*:" + written_to(tmp_path, files, message),
        schema__registry__url=registry.url,
        schema__registry__allowHttp="true",
    )
    found = made.formats["value"].decode(pa.array(values, pa.binary()), new_fields=True)
    assert found.bad == {}
    return [json.loads(found.new.get(row, "null")) for row in range(len(values))]


def framed(registry: RegistryServer, file: Any, data: bytes, indexes: bytes = b"\0") -> bytes:
    """A message in the frame, whose file the registry has as Confluent's serializers register it."""
    text = base64.b64encode(file.SerializeToString()).decode()
    return b"\0" + registry.add("flights-value", text, "PROTOBUF").to_bytes(4, "big") + indexes + data


@pytest.mark.spec("SP-87")
@pytest.mark.filterwarnings("ignore:The httpx module is deprecated")
def test_a_field_that_confluents_serializer_writes_has_its_name(
    tmp_path: Path, registry: RegistryServer
) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    leg = message_class(newer_flights()[1:2], "nyc.Leg")
    client, context = (
        SchemaRegistryClient({"url": registry.url}),
        SerializationContext("flights", MessageField.VALUE),
    )
    write = ProtobufSerializer(leg, client, {"use.deprecated.format": False})
    written = [write(leg(to="IAH", **more), context) for more in ({"gate": "Č1", "stops": -2}, {})]
    registry.asked.clear()
    assert (
        named(tmp_path, registry, flights()[1:2], "nyc.Leg", *written * 5)
        == [{"gate": "Č1", "stops": -2}, None] * 5
    )
    assert [path for path, _ in registry.asked] == ["/schemas/ids/1?format=serialized"]


def with_inners(file: Any) -> Any:
    """A flight that has messages of its own file in a field, an array and a map."""
    flight = flight_in(file)
    field(flight, 104, "inner", ".nyc.Flight.Inner")
    field(flight, 105, "inners", "repeated .nyc.Flight.Inner")
    map_field(flight, 106, "by_name", "nyc.Flight", "string", ".nyc.Flight.Inner")
    return flight


@pytest.mark.spec("SP-87")
def test_new_fields_at_any_depth_have_the_names_of_the_writer(
    tmp_path: Path, registry: RegistryServer
) -> None:
    """Its file imports one that the reader has too, in an older form: what is new in there has numbers."""
    _, parts, file = newer_flights()
    field(file.message_type.add(name="Last"), 1, "at", ".google.protobuf.Duration")
    file.dependency.append("google/protobuf/duration.proto")
    field(with_inners(file), 103, "wait", ".nyc.Last")
    inner = next(message for message in flight_in(file).nested_type if message.name == "Inner")
    field(inner, 2, "much", "uint64")
    files = (TIMESTAMP_FILE, File.FromString(duration_pb2.DESCRIPTOR.serialized_pb), parts, file)
    value = message_class(files, "nyc.Flight")()
    value.names.extend(["a", "b"])
    value.wait.at.seconds = 7
    value.inner.much = value.inners.add().much = value.by_name["x"].much = 2**63
    value.first.gate = "C1"
    older = flights()[2]
    with_inners(older)
    data = framed(registry, file, value.SerializeToString(), b"\2\2")
    [found] = named(tmp_path, registry, (*flights()[:2], older), "nyc.Flight", data)
    much = {"much": str(2**63)}
    assert found == {
        "names": ["a", "b"],
        "wait": {"at": "7s"},
        "inner": much,
        "inners": [much],
        "by_name": {"x": much},
        "first": {"9": "SgJDMQ=="},
    }


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("fields", "data", "found"),
    [
        ([("a", "int32"), ("b", "string")], b"\x08\x01\x12\x01x\x18\x05", {"b": "x", "3": "GAU="}),  # 3 is new
        ([("b", "int32"), ("a", "string")], b"\x08\x01\x12\x01x", {"2": "EgF4"}),  # the reader's name of 1
        ([("a", "int32"), ("b", "int32")], b"\x08\x01\x12\x01x", {"2": "EgF4"}),  # of another kind than the writer says
        ([("a", "int32"), ("b", "string")], b"\x08\x01\x12\x01\xff", {"2": "EgH/"}),  # no text
        ([("a", "int32"), ("b", "int32")], b"\x08\x01\x10\x00", {"2": "EAA="}),  # a zero, which JSON leaves out
        ([("a", "int32"), ("b", ".p.M")], b"\x08\x01\x12\x04\x08\x01\x18\x05", {"2": "EgQIARgF"}),  # 3 in it
        ([("a", "int32"), ("b", ".p.M")], b"\x08\x01\x12\x02\x08\x01", {"b": {"a": 1}}),
        ([("a", "int32"), ("b", "double")], b"\x08\x01\x11\0\0\0\0\0\0\xf8\x7f", {"b": "NaN"}),
    ],
)  # fmt: skip
def test_a_name_is_given_where_it_says_all_of_the_field(
    tmp_path: Path, registry: RegistryServer, fields: Any, data: bytes, found: Any
) -> None:
    value = framed(registry, one(*fields), data)
    assert named(tmp_path, registry, [one(("a", "int32"))], "p.M", value) == [found]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("kind", "data", "found"),
    [
        ("string", b"\x12\x02\xff\xfe", {"2": "EgL//g=="}),
        ("repeated string", b"\x12\x02\xff\xfe\x12\x01a", {"2": "EgL//hIBYQ=="}),
        ("repeated string", b"\x12\x02\xc3\xa9", {"b": ["é"]}),
        (".p.N", b"\x12\x03\x0a\x01\xff", {"2": "EgMKAf8="}),
        ("repeated .p.N", b"\x12\0\x12\x03\x0a\x01\xff", {"2": "EgASAwoB/w=="}),
        ("repeated .p.N", b"\x12\0\x12\x03\x0a\x01x", {"b": [{}, {"s": "x"}]}),
        ("map string", b"\x12\x06\x0a\x01k\x12\x01\xff", {"2": "EgYKAWsSAf8="}),
        ("map string", b"\x12\x06\x0a\x01\xff\x12\x01v", {"2": "EgYKAf8SAXY="}),
        ("map string", b"\x12\x06\x0a\x01k\x12\x01v", {"b": {"k": "v"}}),
        ("map .p.N", b"\x12\x08\x0a\x01k\x12\x03\x0a\x01\xff", {"2": "EggKAWsSAwoB/w=="}),
        ("map .p.N", b"\x12\x08\x0a\x01k\x12\x03\x0a\x01v", {"b": {"k": {"s": "v"}}}),
    ],
)
def test_what_is_no_text_in_proto2_is_kept_as_bytes(
    tmp_path: Path, registry: RegistryServer, kind: str, data: bytes, found: Any
) -> None:
    newer = one(("a", "int32"), syntax="proto2")
    field(newer.message_type.add(name="N"), 1, "s", "string")
    if kind.startswith("map "):
        map_field(newer.message_type[0], 2, "b", "p.M", "string", kind.removeprefix("map "))
    else:
        field(newer.message_type[0], 2, "b", kind)
    value = framed(registry, newer, b"\x08\x01" + data)
    assert named(tmp_path, registry, [one(("a", "int32"), syntax="proto2")], "p.M", value) == [found]


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("module", "kind", "inner"),
    [
        (
            any_pb2,
            "Any",
            b"\x0a\x2dtype.googleapis.com/google.protobuf.Timestamp\x12\x0a\x08\x05\x1a\x06secret",
        ),
        (any_pb2, "Any", b"\x0a\x2dtype.googleapis.com/google.protobuf.Timestamp\x12\x02\x08\x05"),
        (field_mask_pb2, "FieldMask", b"\x0a\x03c,d"),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_what_json_would_not_say_whole_is_kept_as_bytes(
    tmp_path: Path, registry: RegistryServer, module: Any, kind: str, inner: bytes, nested: bool
) -> None:
    """The types in an Any would be those that this process has imported."""
    newer = one(("a", "int32"), ("b", ".p.N" if nested else f".google.protobuf.{kind}"))
    field(newer.message_type.add(name="N"), 1, "x", f".google.protobuf.{kind}")
    newer.dependency.append(module.DESCRIPTOR.name)
    inner = b"\x0a" + bytes([len(inner)]) + inner if nested else inner
    data = b"\x12" + bytes([len(inner)]) + inner
    value = framed(registry, newer, b"\x08\x01" + data)
    [found] = named(tmp_path, registry, [one(("a", "int32"))], "p.M", value)
    assert found == {"2": base64.b64encode(data).decode()}


@pytest.mark.spec("SP-76", "SP-87")
def test_without_the_writers_message_there_are_numbers(tmp_path: Path, registry: RegistryServer) -> None:
    """The registry does not have the id, or has text, another kind of schema, or a file whose imports are not there."""
    data, reader = b"\x08\x01\x12\x01x", [one(("a", "int32"))]
    newer = one(("a", "int32"), ("b", "string"))
    newer.dependency.append("elsewhere.proto")
    registry.add("flights-value", 'syntax = "proto3"; message M { int32 a = 1; string b = 2; }', "PROTOBUF")
    registry.add("flights-value", '"int"')
    values = [b"\0" + number.to_bytes(4, "big") + b"\0" + data for number in (1, 2, 77)]
    values.append(framed(registry, newer, data))
    values.append(framed(registry, File(name="m.proto", package="p"), data))
    assert named(tmp_path, registry, reader, "p.M", *values) == [{"2": "EgF4"}] * 5
    registry.answers["/schemas/ids/78"] = 500, b""
    with pytest.raises(ConnectError, match="HTTP 500"):
        named(tmp_path, registry, reader, "p.M", b"\0\0\0\0\x4e\0" + data)


@pytest.mark.spec("SP-76", "SP-87")
def test_a_batch_does_not_ask_for_ids_without_end(
    tmp_path: Path, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next batch asks for the others: what is unknown is remembered for a minute."""
    clock = Clock()
    monkeypatch.setattr(registry_module.runtime, "wall_clock", clock)
    monkeypatch.setattr(protobuf_writers.runtime, "wall_clock", clock)
    data, reader = b"\x08\x01\x12\x01x", [one(("a", "int32"))]
    first = framed(registry, one(("a", "int32"), ("b", "string")), data)
    values = [first, *[b"\0" + number.to_bytes(4, "big") + b"\0" + data for number in range(70, 90)], first]
    clock.step = 2.0  # seconds, twice or more for each id
    found = named(tmp_path, registry, reader, "p.M", *values)
    assert found == [{"b": "x"}, *[{"2": "EgF4"}] * 20, {"b": "x"}]
    assert 1 < len(registry.asked) < 20
    clock.step = 0.0
    named(tmp_path, registry, reader, "p.M", *values)
    assert len(registry.asked) == 21


@pytest.mark.spec("SP-87")
def test_new_fields_belong_to_their_rows_also_where_columns_are_built_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protobuf_format, "MAX_OBJECTS", 20)
    new, old = b"\x08\x01\x12\x01x", b"\x08\x01"
    repeated = [one(("a", "repeated int32"))]
    values = [old] * 15 + [None, new, b"\x08", *[old] * 15, new]
    found = read(tmp_path, repeated, "p.M", *values)
    assert found.new == {16: '{"2":"EgF4"}', 33: '{"2":"EgF4"}'}
    assert list(found.bad) == [17]
