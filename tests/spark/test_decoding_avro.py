"""Avro as typed columns, written by Apache's own library, by fastavro and by Confluent's serializer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import avro.io
import avro.schema
import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.deserializers.avro import AvroReader
from kclient.deserializers.elements import BadValueError
from kclient.errors import ConfigError, ConnectError, DecodeError
from kclient.network import schema_registry as registry_module
from kclient.spark.decoding import avro_format
from tests.spark.decoder_support import decoder, raw, values_of
from tests.spark.registry import RegistryServer, registry_server

FLIGHT: dict[str, Any] = {
    "type": "record",
    "name": "Flight",
    "namespace": "nyc",
    "fields": [
        {"name": "carrier", "type": {"type": "enum", "name": "Carrier", "symbols": ["UA", "AA"]}},
        {"name": "flight", "type": "int"},
        {"name": "distance", "type": "long"},
        {"name": "delay", "type": ["null", "double"], "default": None},
        {"name": "on", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "fare", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "seats", "type": {"type": "map", "values": "int"}},
        {"name": "tail", "type": {"type": "fixed", "name": "Tail", "size": 3}},
        {
            "name": "legs",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Leg",
                    "fields": [{"name": "to", "type": "string"}, {"name": "by", "type": "Carrier"}],
                },
            },
        },
    ],
}
FLOWN: dict[str, Any] = {
    "carrier": "UA",
    "flight": 1545,
    "distance": 2**40,
    "delay": None,
    "on": date(2013, 1, 1),
    "at": datetime(2013, 1, 1, 10, 0, 0, 250_000, UTC),
    "us": datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC),
    "fare": Decimal("123.45"),
    "tags": ["a", None],
    "seats": {"1A": 1},
    "tail": b"N14",
    "legs": [{"to": "IAH", "by": "AA"}],
}
EXPECTED = {**FLOWN, "seats": [("1A", 1)]}
SPARK = (
    "struct<carrier:string,flight:int,distance:bigint,delay:double,on:date,at:timestamp,us:timestamp,"
    "fare:decimal(9,2),tags:array<string>,seats:map<string,int>,tail:binary,legs:array<struct<to:string,by:string>>>"
)
SMALL = {
    "type": "record",
    "name": "S",
    "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": "string"}],
}


def by_apache(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    avro.io.DatumWriter(avro.schema.parse(json.dumps(schema))).write(value, avro.io.BinaryEncoder(stream))
    return stream.getvalue()


def by_fastavro(schema: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    with registry_server() as server:
        yield server


@pytest.mark.spec("SP-75")
@pytest.mark.parametrize("write", [by_apache, by_fastavro])
def test_every_type(write: Any) -> None:
    made = decoder(valueFormat="avro", valueSchema=json.dumps(FLIGHT))
    assert made.types["value"] == SPARK
    assert values_of(made, [write(FLIGHT, FLOWN), None]) == [EXPECTED, None]


@pytest.mark.spec("SP-75")
def test_the_schema_may_stand_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "small.avsc"
    path.write_text(json.dumps(SMALL))
    made = decoder(valueFormat="avro", valueSchema=str(path))
    path.unlink()  # workers need no file
    assert values_of(made, [by_apache(SMALL, {"a": 1, "b": "x"})]) == [{"a": 1, "b": "x"}]
    with pytest.raises(ConfigError, match=r"valueSchema is not JSON, so it names a file, and .*small\.avsc"):
        decoder(valueFormat="avro", valueSchema=str(path))


@pytest.mark.spec("SP-76")
@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=5))
def test_any_bytes_are_a_value_or_a_bad_record(values: list[bytes]) -> None:
    made = decoder(valueFormat="avro", valueSchema=json.dumps(FLIGHT), badRecords="column")
    for value, row in zip(values, made.decode(raw(values)).to_pylist(), strict=True):
        assert (row["value"] is None) == (row["_error"] is not None)
        assert row["_raw"] == (value if row["_error"] else None)


@pytest.mark.spec("SP-75", "SP-76")
def test_every_byte_must_be_read_and_be_there() -> None:
    written = by_apache(SMALL, {"a": 1, "b": "xyz"})
    made = decoder(valueFormat="avro", valueSchema=json.dumps(SMALL), badRecords="column")
    rows = made.decode(raw([written, written + b"\0", written[:-1], b"", written])).to_pylist()
    assert [row["value"] is not None for row in rows] == [True, False, False, False, True]
    assert rows[1]["_error"] == "value: avro: 1 bytes are left after it"


@pytest.mark.spec("SP-75", "SP-76")
def test_a_frame_without_a_registry_must_have_the_expected_id() -> None:
    written = by_apache(SMALL, {"a": 1, "b": "x"})
    made = decoder(valueFormat="avro", valueSchema="frame:17,18:" + json.dumps(SMALL))
    assert values_of(made, [b"\0\0\0\0\x11" + written, b"\0\0\0\0\x12" + written]) == [{"a": 1, "b": "x"}] * 2
    for bad, message in (
        (b"\0\0\0\0\x13" + written, "with schema id 19: .* none of those expected"),
        (b"\1\0\0\0\x11" + written, "does not begin with the registry's frame"),
        (b"\0\0\0", "does not begin with the registry's frame"),
        (b"\0\0\0\0\x11" + written + b"x", "with schema id 17: 1 bytes are left"),
    ):
        with pytest.raises(DecodeError, match=message):
            made.decode(raw([bad]))
    anything = decoder(valueFormat="avro", valueSchema="frame:*:" + json.dumps(SMALL))
    assert values_of(anything, [b"\0\0\0\0\x13" + written]) == [{"a": 1, "b": "x"}]


@pytest.mark.spec("SP-75")
@pytest.mark.filterwarnings("ignore:The httpx module is deprecated")
def test_what_confluents_serializer_writes(registry: RegistryServer) -> None:
    """The writer's schema grows a field and loses one; the reader's stays."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    client = SchemaRegistryClient({"url": registry.url})
    newer = {**SMALL, "fields": [{"name": "a", "type": "int"}, {"name": "c", "type": "double"}]}
    context = SerializationContext("flights", MessageField.VALUE)
    written = [
        AvroSerializer(client, json.dumps(schema))(value, context)
        for schema, value in ((SMALL, {"a": 1, "b": "x"}), (newer, {"a": 2, "c": 0.5}))
    ]
    reader = {
        **SMALL,
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": ["null", "string"], "default": None}],
    }
    given = {"schema__registry__url": registry.url, "schema__registry__allowHttp": "true"}
    made = decoder(valueFormat="avro", valueSchema=json.dumps(reader), **given)
    registry.asked.clear()
    assert values_of(made, written * 10) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}] * 10
    assert [path for path, _ in registry.asked] == ["/schemas/ids/1", "/schemas/ids/2"]
    newest = decoder(valueFormat="avro", **given)
    assert newest.types["value"] == "struct<a:int,c:double>"
    assert values_of(newest, written[1:]) == [{"a": 2, "c": 0.5}]
    first = decoder(valueFormat="avro", valueSchema="subject:flights-value:1", **given)
    assert first.types["value"] == "struct<a:int,b:string>"


@pytest.mark.spec("SP-76")
def test_an_id_that_is_not_registered_is_a_bad_record_and_a_broken_registry_is_not(
    registry: RegistryServer,
) -> None:
    given = {
        "schema__registry__url": registry.url,
        "schema__registry__allowHttp": "true",
        "badRecords": "column",
    }
    made = decoder(valueFormat="avro", valueSchema=json.dumps(SMALL), **given)
    row = made.decode(raw([b"\0\0\0\0\x07\x02\x02x"])).to_pylist()[0]
    assert row["_error"] == "value: avro with schema id 7: schema id 7 is not in the registry"
    for code, error in ((500, ConnectError), (401, ConfigError), (302, ConfigError)):
        registry.answers["/schemas/ids/8"] = code, b"{}"
        with pytest.raises(error, match=f"HTTP {code}"):
            made.decode(raw([b"\0\0\0\0\x08\x02\x02x"]))
    assert "/elsewhere" not in [path for path, _ in registry.asked]
    for answer in (b"[", b"<html>log in</html>", b'"a"'):
        registry.answers["/schemas/ids/8"] = 200, answer
        with pytest.raises(ConnectError, match="something else than a JSON object"):
            made.decode(raw([b"\0\0\0\0\x08\x02\x02x"]))
    for answer in (b"{}", b'{"schema": "{"}', b'{"schema": "{}", "schemaType": "PROTOBUF"}'):
        registry_module._unknown.clear()
        registry.answers["/schemas/ids/8"] = 200, answer
        row = made.decode(raw([b"\0\0\0\0\x08\x02\x02x"])).to_pylist()[0]
        assert "with schema id 8" in row["_error"]


class Clock:
    """Wall clock in seconds; each call advances it by `step`."""

    def __init__(self) -> None:
        self.now, self.step = 1e9, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(registry_module.runtime, "wall_clock", made)
    monkeypatch.setattr(avro_format.runtime, "wall_clock", made)
    return made


def foreign(ids: range) -> list[bytes | None]:
    return [b"\0" + number.to_bytes(4, "big") + b"\x02\x02x" for number in ids]


@pytest.mark.spec("SP-75", "SP-76")
def test_an_unknown_id_is_asked_for_once_in_a_while(
    registry: RegistryServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "schema__registry__url": registry.url,
        "schema__registry__allowHttp": "true",
        "badRecords": "null",
    }
    made = decoder(valueFormat="avro", valueSchema=json.dumps(SMALL), **given)
    for _ in range(3):
        assert values_of(made, foreign(range(1, 41)) * 2) == [None] * 80
    assert len(registry.asked) == 40
    registry.add("flights-value", SMALL)
    clock.now += 61  # a minute later it may be known
    assert values_of(made, foreign(range(1, 3))) == [{"a": 1, "b": "x"}, None]
    assert len(registry.asked) == 42
    monkeypatch.setattr(registry_module, "MAX_UNKNOWN", 10)
    values_of(made, foreign(range(100, 120)))
    assert len(registry_module._unknown) == 10


@pytest.mark.spec("SP-75", "SP-76")
def test_a_batch_does_not_ask_without_end(registry: RegistryServer, clock: Clock) -> None:
    given = {
        "schema__registry__url": registry.url,
        "schema__registry__allowHttp": "true",
        "badRecords": "null",
    }
    made = decoder(valueFormat="avro", valueSchema=json.dumps(SMALL), **given)
    clock.step = 2.0  # seconds, twice or more for each id
    with pytest.raises(ConnectError, match="schema ids of one batch are unknown, 7 the first of them"):
        values_of(made, foreign(range(7, 27)))
    asked = len(registry.asked)
    assert 1 < asked < 20
    clock.step = 0.0
    assert values_of(made, foreign(range(7, 27))) == [None] * 20
    assert len(registry.asked) == 20  # the second try goes on where the first gave up


@pytest.mark.spec("SP-44")
def test_the_registry_is_asked_with_credentials_that_stand_elsewhere(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registry.add("flights-value", SMALL)
    given = {
        "schema__registry__url": registry.url,
        "schema__registry__allowHttp": "true",
        "valueFormat": "avro",
    }
    monkeypatch.setenv("REGISTRY", "user:hunter2")
    made = decoder(**given, schema__registry__auth__env="REGISTRY")
    assert "hunter2" not in repr(made)
    assert registry.asked[-1][1] == "Basic dXNlcjpodW50ZXIy"
    token = tmp_path / "token"
    token.write_text("Bearer abc\n")
    decoder(**given, schema__registry__auth__file=str(token))
    assert registry.asked[-1][1] == "Bearer abc"
    monkeypatch.delenv("REGISTRY")
    with pytest.raises(ConfigError, match="REGISTRY, which is not set"):
        made.decode(raw([b"\0\0\0\0\x01\x02\x02x"]))


@pytest.mark.spec("SP-44", "SP-45")
@pytest.mark.parametrize(
    "text", ["bearer hunter2\nhunter3", "Bearer hunter2\0", "bearer hunter2é", "u:hunter2\nx"]
)
def test_a_token_that_is_none_is_reported_without_its_text(registry: RegistryServer, text: str) -> None:
    given = {"schema__registry__url": registry.url, "schema__registry__allowHttp": "true"}
    with pytest.raises(ConfigError, match=r"schema\.registry\.auth") as caught:
        decoder(valueFormat="avro", **given, schema__registry__auth=text)
    assert "hunter" not in str(caught.value)
    assert not registry.asked


def test_nothing_answers() -> None:
    with pytest.raises(ConnectError, match="does not answer"):
        decoder(valueFormat="avro", schema__registry__url="https://127.0.0.1:9")


@pytest.mark.spec("SP-75")
@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (["null", "int", "string"], "field f is a union of several types"),
        ("null", "field f is null"),
        ({"type": "record", "name": "E", "fields": []}, "field f is a record without fields"),
        ({"type": "array", "items": "null"}, "field f is an array of items that take no bytes"),
        ({"type": "array", "items": ["null", "R"]}, r"field f\[\] is R inside itself"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, "field f is a decimal of 39 digits"),
        ("unheard", "is not an Avro schema: UnknownType"),
    ],
)
def test_what_cannot_be_a_column_is_named(kind: Any, message: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}
    with pytest.raises(ConfigError, match=message):
        decoder(valueFormat="avro", valueSchema=json.dumps(schema))


DECIMAL: dict[str, Any] = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}


def number(unscaled: int, size: int) -> bytes:
    return by_apache("bytes", unscaled.to_bytes(size, "big", signed=True))


@pytest.mark.spec("SP-76")
@pytest.mark.timeout(60)  # with the library's own reader this takes minutes
def test_a_decimal_has_the_digits_of_its_schema_and_no_more() -> None:
    made = decoder(valueFormat="avro", valueSchema=json.dumps(DECIMAL), badRecords="null")
    written = [
        number(9999, 2),
        number(-9999, 2),
        number(10_000, 2),
        number(-1, 1),
        number(1, 100),
        number(0, 0),
    ]
    expected = [Decimal("99.99"), Decimal("-99.99"), None, Decimal("-0.01"), Decimal("0.01"), Decimal("0.00")]
    assert values_of(made, [*written, by_apache("bytes", b"\x7f" * 1_000_000)]) == [*expected, None]
    wide = {"type": "fixed", "name": "W", "size": 20, "logicalType": "decimal", "precision": 38}
    made = decoder(valueFormat="avro", valueSchema=json.dumps(wide), badRecords="null")
    most = 10**38 - 1
    given = [value.to_bytes(20, "big", signed=True) for value in (most, -most, most + 1)]
    assert values_of(made, given) == [Decimal(most), Decimal(-most), None]


@pytest.mark.spec("SP-76")
def test_a_decimal_with_more_digits_than_its_column_is_a_bad_value(registry: RegistryServer) -> None:
    writer = registry.add("x", {**DECIMAL, "precision": 1_000, "scale": 2})
    made = decoder(
        valueFormat="avro",
        valueSchema=json.dumps({**DECIMAL, "precision": 38}),
        schema__registry__url=registry.url,
        schema__registry__allowHttp="true",
        badRecords="null",
    )
    frame = b"\0\0\0\0" + bytes([writer])
    given = [number(15, 1), number(10**38 - 1, 20), number(10**38, 20), number(10**999, 420)]
    most = Decimal(10**38 - 1).scaleb(-2, Context(prec=38))
    assert values_of(made, [frame + data for data in given]) == [Decimal("0.15"), most, None, None]


R = {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int"}]}


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("writer", "reader", "data", "why"),
    [
        ("string", None, b"\x02\xff", "it does not follow its schema: a text in it is not UTF-8"),
        (
            "long",
            None,
            b"",
            "it does not follow its schema: it ends too early, or has a branch or symbol that ",
        ),
        (
            ["null", "int"],
            None,
            b"\x06",
            "it does not follow its schema: it has a branch or symbol that its schema lacks",
        ),
        (DECIMAL, None, b"\x04\x7f\xff", "a decimal in it has more digits than its schema allows"),
        (["null", "int"], "int", b"\0", "its schema and the reader schema do not agree"),
        (
            {**R, "fields": [*R["fields"], {"name": "g", "type": "int"}]},
            {**R, "fields": [{"name": "f", "type": "int", "aliases": ["g"]}]},
            b"\2\2",
            "it does not follow its schema: it has a branch or symbol that its schema lacks, or two fields for one of "
            "the reader schema",
        ),
    ],
)
def test_a_bad_value_says_what_is_wrong_with_it(writer: Any, reader: Any, data: bytes, why: str) -> None:
    read = AvroReader.of(json.dumps(writer), None if reader is None else json.dumps(reader))
    with pytest.raises(BadValueError) as caught:
        read.value(data, 0, 10, "")
    assert str(caught.value).startswith(why)


STATE = {"type": "enum", "name": "State", "symbols": ["PAID", "REFUSED"]}


def one_field(kind: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "f", "type": kind}]}


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("schema", "good", "value", "damaged"),
    [
        (one_field(STATE), b"\x02", {"f": "REFUSED"}, [b"\x01", b"\x03", b"\x05", b"\x04"]),
        (one_field(["null", "long"]), b"\x02\x02", {"f": 1}, [b"\x01\x02", b"\x03", b"\x05", b"\x04"]),
        (one_field(["null", STATE]), b"\x02\x02", {"f": "REFUSED"}, [b"\x01\x02", b"\x03", b"\x02\x01"]),
        (one_field({"type": "array", "items": STATE}), b"\x02\x02\0", {"f": ["REFUSED"]}, [b"\x02\x01\0"]),
        (
            one_field({"type": "map", "values": ["null", "int"]}),
            b"\x02\x02k\0\0",
            {"f": [("k", None)]},
            [b"\x02\x02k\x03\0"],
        ),
        (
            one_field(one_field(["int", "null"]) | {"name": "I"}),
            b"\x02",
            {"f": {"f": None}},
            [b"\x01", b"\x03"],
        ),
        (["null", "long"], b"\x02\x02", 1, [b"\x01\x02", b"\x03", b"", b"\x81\x01"]),
        (["null", STATE], b"\x02\x02", "REFUSED", [b"\x01\x02", b"\x03", b"\x02\x01"]),
        (STATE, b"\x02", "REFUSED", [b"\x01", b"\x03"]),
        ("string", b"\x02a", "a", [b"\x01a"]),
    ],
)
@pytest.mark.parametrize("framed", [False, True])
def test_no_branch_and_no_symbol_stands_below_zero(
    registry: RegistryServer, framed: bool, schema: Any, good: bytes, value: Any, damaged: list[bytes]
) -> None:
    given = {"valueFormat": "avro", "valueSchema": json.dumps(schema), "badRecords": "null"}
    frame = b""
    if framed:
        frame = b"\0\0\0\0" + bytes([registry.add("x", json.dumps(schema, indent=1))])
        given |= {"schema__registry__url": registry.url, "schema__registry__allowHttp": "true"}
    written = [frame + data for data in (good, *damaged, good)]
    assert values_of(decoder(**given), written) == [value, *[None] * len(damaged), value]


@pytest.mark.spec("SP-75")
def test_a_decimal_is_read_with_the_scale_of_its_writer(registry: RegistryServer) -> None:
    writer = registry.add("x", {**DECIMAL, "precision": 9, "scale": 1})
    made = decoder(
        valueFormat="avro",
        valueSchema=json.dumps(DECIMAL),
        schema__registry__url=registry.url,
        schema__registry__allowHttp="true",
    )
    assert values_of(made, [b"\0\0\0\0" + bytes([writer]) + number(15, 1)]) == [Decimal("1.50")]


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\0", "take no bytes"),
        (["null", "S"], b"\x02" * 200_000 + b"\0", "inside itself"),  # as deep as a stack is not
    ],
)
def test_a_writer_cannot_hang_or_crash_the_reader(
    registry: RegistryServer, kind: Any, data: bytes, message: str
) -> None:
    number = registry.add("x", {"type": "record", "name": "S", "fields": [{"name": "z", "type": kind}]})
    made = decoder(
        valueFormat="avro",
        valueSchema=json.dumps({**SMALL, "fields": [{"name": "a", "type": "int", "default": 0}]}),
        schema__registry__url=registry.url,
        schema__registry__allowHttp="true",
        badRecords="column",
    )
    (row,) = made.decode(raw([b"\0\0\0\0" + bytes([number]) + data])).to_pylist()
    assert message in row["_error"]
