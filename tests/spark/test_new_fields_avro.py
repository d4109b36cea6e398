"""Fields of Avro values that the reader's schema does not name, written by Confluent's serializer and by fastavro."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.deserializers.avro import AvroReader
from kclient.network import schema_registry as registry_module
from kclient.spark.decoding import avro_new_fields
from kclient.spark.decoding.formats import Decoded
from tests.spark.decoder_support import decoder
from tests.spark.registry import RegistryServer, registry_server
from tests.spark.test_decoding_avro import by_apache, by_fastavro

DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
SMALL = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    with registry_server() as server:
        yield server


def record(name: str, **fields: Any) -> dict[str, Any]:
    """A record schema; a field that is a tuple has other properties too."""
    made = [
        {"name": field, "type": kind[0], **kind[1]}
        if isinstance(kind, tuple)
        else {"name": field, "type": kind}
        for field, kind in fields.items()
    ]
    return {"type": "record", "name": name, "fields": made}


def read(registry: RegistryServer, reader: Any, *values: bytes, **options: str) -> Decoded:
    """What values in the registry's frame become, with their new fields."""
    made = decoder(
        valueFormat="avro",
        valueSchema=json.dumps(reader),
        schema__registry__url=registry.url,
        schema__registry__allowHttp="true",
        **options,
    )
    return made.formats["value"].decode(pa.array(values, pa.binary()), new_fields=True)


def framed(registry: RegistryServer, writer: Any, value: Any) -> bytes:
    number = registry.add("flights-value", writer)
    return b"\0" + number.to_bytes(4, "big") + by_fastavro(writer, value)


def new_in(registry: RegistryServer, writer: Any, reader: Any, value: Any) -> str | None:
    """The new fields of one value, which is whole otherwise."""
    found = read(registry, reader, framed(registry, writer, value))
    assert found.bad == {}
    return found.new.get(0)


@pytest.mark.spec("SP-87")
@pytest.mark.filterwarnings("ignore:The httpx module is deprecated")
def test_the_fields_that_confluents_serializer_adds_are_kept(registry: RegistryServer) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    newer = record(
        "S", a="int", note=(["null", "string"], {"default": None}), tags={"type": "map", "values": "int"}
    )
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("flights", MessageField.VALUE)
    written = [
        AvroSerializer(client, json.dumps(schema))(value, context)
        for schema, value in (
            (SMALL, {"a": 1}),
            (newer, {"a": 2, "note": "ü\n", "tags": {"x": 1}}),
            (newer, {"a": 3, "note": None, "tags": {}}),
        )
    ]
    found = read(registry, SMALL, *written)
    assert found.array.to_pylist() == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert found.new == {1: '{"note":"ü\\n","tags":{"x":1}}', 2: '{"note":null,"tags":{}}'}


@pytest.mark.spec("SP-87")
def test_what_is_left_out_deep_inside_is_kept_at_its_place(registry: RegistryServer) -> None:
    leg, old_leg = record("Leg", to="string", gate="string"), record("Leg", to="string")
    writer = record(
        "F",
        first=["null", leg],
        legs={"type": "array", "items": ["null", "Leg"]},
        seats={"type": "map", "values": "Leg"},
        last="Leg",
    )
    reader = record(
        "F",
        first=["null", old_leg],
        legs={"type": "array", "items": ["null", "Leg"]},
        seats={"type": "map", "values": "Leg"},
    )
    one, other = {"to": "IAH", "gate": "C1"}, {"to": "ORD", "gate": "B7"}
    value = {"first": one, "legs": [None, other], "seats": {"1A": one}, "last": other}
    assert json.loads(str(new_in(registry, writer, reader, value))) == {
        "last": other,
        "first": {"gate": "C1"},
        "legs": [None, {"gate": "B7"}],
        "seats": {"1A": {"gate": "C1"}},
    }
    nothing = {"first": None, "legs": [None], "seats": {}, "last": one}
    assert json.loads(str(new_in(registry, writer, reader, nothing))) == {"last": one}
    inner = {**reader, "fields": [*reader["fields"], {"name": "last", "type": "Leg"}]}
    assert new_in(registry, writer, inner, nothing) == '{"last":{"gate":"C1"}}'


@pytest.mark.spec("SP-87")
def test_every_type_has_its_text(registry: RegistryServer) -> None:
    kinds: dict[str, tuple[Any, Any, str]] = {
        "none": ("null", None, "null"),
        "yes": ("boolean", True, "true"),
        "long": ("long", 2**62 + 1, str(2**62 + 1)),
        "tenth": ("double", 0.1, "0.1"),
        "nan": ("double", float("nan"), '"NaN"'),
        "plus": ("float", float("inf"), '"Infinity"'),
        "minus": ("double", float("-inf"), '"-Infinity"'),
        "raw": ("bytes", b"\0\xff", '"AP8="'),
        "tail": ({"type": "fixed", "name": "T", "size": 3}, b"N14", '"TjE0"'),
        "kind": ({"type": "enum", "name": "E", "symbols": ["UA", "AA"]}, "AA", '"AA"'),
        "on": ({"type": "int", "logicalType": "date"}, 15706, "15706"),
        "fare": (DECIMAL, Decimal("-123.40"), "-123.40"),
        "wide": ({**DECIMAL, "precision": 60, "scale": 45}, Decimal("-1" + "0" * 14), "-1" + "0" * 14 + "." + "0" * 45),
        "most": ({**DECIMAL, "precision": 1000}, Decimal("9" * 998), "9" * 998 + ".00"),
        "both": (["int", record("R", x="int"), "E", "string"], ("R", {"x": 1}), '{"x":1}'),
        "same": (["int", "R", "E", "string"], ("E", "UA"), '"UA"'),
    }  # fmt: skip
    writer = record("S", a="int", **{name: kind for name, (kind, _, _) in kinds.items()})
    value = {"a": 1, **{name: given for name, (_, given, _) in kinds.items()}}
    texts = ",".join(f'"{name}":{text}' for name, (_, _, text) in kinds.items())
    assert new_in(registry, writer, SMALL, value) == "{" + texts + "}"


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("writer", "reader", "value", "text"),
    [
        (record("S", a="int"), record("S", a="long"), {"a": 1}, None),  # other texts, the same fields
        (record("S", old="int"), record("S", a=("int", {"aliases": ["old"]})), {"old": 1}, None),
        (
            record("S", old=record("O", x="int", y="int")),
            record("S", a=(record("O", x="int"), {"aliases": ["old"]})),
            {"old": {"x": 1, "y": 2}},
            '{"old":{"y":2}}',
        ),
        (  # the branch of a union is known by its name, also where others have the same fields
            record("S", u=[record("P", x="int", y="int"), {**record("R", x="int", y="int"), "namespace": "n"}]),
            record("S", u=["null", {**record("Q", x="int"), "aliases": ["R"]}]),
            {"u": ("n.R", {"x": 1, "y": 2})},
            '{"u":{"y":2}}',
        ),
        (["null", record("S", a="int", b="int")], SMALL, {"a": 1, "b": 2}, '{"b":2}'),
        (
            {"type": "array", "items": record("S", a="int", b="int")},
            {"type": "array", "items": SMALL},
            [{"a": 1, "b": 2}],
            '[{"b":2}]',
        ),
        (["null", "int"], ["null", "long"], 1, None),
        (
            record("S", u=[{"type": "map", "values": "int"}, {**record("P", x="int", y="int"), "type": "error"}]),
            record("S", u=["null", {**record("P", x="int"), "type": "error"}]),
            {"u": ("P", {"x": 1, "y": 2})},
            '{"u":{"y":2}}',
        ),
        (
            record("S", a="int", e={**record("P", x="int"), "type": "error"}), SMALL,
            {"a": 1, "e": {"x": 2}},
            '{"e":{"x":2}}',
        ),
        (  # the reader takes a field for `a` by its alias first, and then not that of the name
            record("S", old="int", a=record("P", x="int")),
            record("S", a=("int", {"aliases": ["old"]})),
            {"old": 2, "a": {"x": 1}},
            '{"a":{"x":1}}',
        ),
    ],
)  # fmt: skip
def test_the_new_fields_are_those_of_avros_resolution(
    registry: RegistryServer, writer: Any, reader: Any, value: Any, text: str | None
) -> None:
    assert new_in(registry, writer, reader, value) == text


KINDS: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["int", "string"]),
    lambda inner: (
        st.dictionaries(st.sampled_from("abcd"), inner, min_size=1)
        | st.builds(lambda item: [item], inner)
        | st.builds(lambda item: {"*": item}, inner)
    ),
    max_leaves=8,
)
"""A record is a dict of fields, an array a list of one, a map the dict of a star."""


def schema_of(kind: Any, path: str = "R") -> Any:
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return {"type": "array", "items": ["null", schema_of(kind[0], path + "_")]}
    if "*" in kind:
        return {"type": "map", "values": schema_of(kind["*"], path + "_")}
    return record(path, **{name: schema_of(inner, path + name) for name, inner in kind.items()})


def drawn(draw: st.DrawFn, kind: Any) -> Any:
    """A value of a kind."""
    if isinstance(kind, str):
        return draw(st.integers(-9, 9) if kind == "int" else st.text(max_size=2))
    if isinstance(kind, list):
        return [drawn(draw, kind[0]) if draw(st.booleans()) else None for _ in range(draw(st.integers(0, 2)))]
    if "*" in kind:
        return {key: drawn(draw, kind["*"]) for key in "xy"[: draw(st.integers(0, 2))]}
    return {name: drawn(draw, inner) for name, inner in kind.items()}


def narrowed(draw: st.DrawFn, kind: Any) -> Any:
    """The same with less fields."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, list):
        return [narrowed(draw, kind[0])]
    names = [name for name in kind if name == "*" or draw(st.booleans())] or list(kind)[:1]
    return {name: narrowed(draw, kind[name]) for name in names}


def merged(taken: Any, rest: Any) -> Any:
    """A value again, of what a reader has taken and what it has left out."""
    if rest is None:
        return taken
    if isinstance(taken, list):
        return [merged(*pair) for pair in zip(taken, rest, strict=True)]
    if isinstance(taken, dict):
        return {name: merged(taken.get(name), rest.get(name)) for name in taken | rest}
    assert taken is None
    return rest


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    kind = {"a": draw(KINDS), "b": draw(KINDS)}
    return kind, narrowed(draw, kind), drawn(draw, kind)


@pytest.mark.spec("SP-87")
@settings(deadline=None)
@given(cases())
def test_what_is_taken_and_what_is_left_out_are_the_whole(case: tuple[Any, Any, Any]) -> None:
    kind, less, value = case
    writer, reader = json.dumps(schema_of(kind)), json.dumps(schema_of(less))
    data = by_apache(schema_of(kind), value)
    taken = AvroReader.of(writer, reader).value(data, 0, 1000, "")
    new = avro_new_fields.new_fields_of(writer, reader)
    assert (new is None) == (kind == less)
    text = None if new is None else new.text(data, 0, 1000, "")
    assert merged(taken, None if text is None else json.loads(text)) == value


@pytest.mark.spec("SP-76", "SP-87")
def test_a_new_field_that_does_not_follow_its_schema_makes_the_value_bad(registry: RegistryServer) -> None:
    writer = record("S", a="int", b="string")
    good = framed(registry, writer, {"a": 1, "b": "xy"})
    found = read(registry, SMALL, good, good[:-2] + b"\xff\xfe")
    assert found.new == {0: '{"b":"xy"}'}
    assert found.array.to_pylist() == [{"a": 1}, None]
    why = (
        "the fields that the schema does not name cannot be kept: it does not follow its schema: "
        "a text in it is not UTF-8. "
        "With --on-new-field ignore it lands without them"
    )
    assert (found.bad[1].reason, found.bad[1].schema_id) == (why, 1)


@pytest.mark.spec("SP-76", "SP-87")
def test_nothing_is_kept_of_a_value_that_does_not_fit_its_column(registry: RegistryServer) -> None:
    time = {"type": "long", "logicalType": "timestamp-millis"}
    first = framed(registry, record("S", a="long", b="int"), {"a": 1, "b": 7})
    found = read(
        registry,
        record("S", a=time),
        first,
        framed(registry, record("S", a="long", b="int"), {"a": 2**62, "b": 7}),
    )
    assert found.new == {0: '{"b":7}'}
    assert list(found.bad) == [1]


@pytest.mark.spec("SP-87")
def test_schemas_decide_once_and_values_without_new_fields_are_read_once(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[bool] = []
    value = AvroReader.value

    def counted(reader: Any, *args: Any) -> Any:
        reads.append(True)
        return value(reader, *args)

    monkeypatch.setattr(AvroReader, "value", counted)
    avro_new_fields.new_fields_of.cache_clear()
    old = framed(registry, SMALL, {"a": 1})
    new = framed(registry, record("S", a="int", b="int"), {"a": 1, "b": 2})
    read(registry, SMALL, *[old] * 10)
    assert len(reads) == 10
    for batches in (1, 2):
        read(registry, SMALL, *[new] * 10)
        assert len(reads) == 10 + 20 * batches
    assert avro_new_fields.new_fields_of.cache_info().misses == 2
