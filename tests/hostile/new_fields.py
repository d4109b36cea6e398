"""Values whose new fields cost more than their bytes, decoded as `--on-new-field rescue` does."""

from __future__ import annotations

import json

import pyarrow as pa

from kclient.deserializers.elements import BadValueError
from kclient.spark.decoding import avro_new_fields
from kclient.spark.decoding.json_format import JsonFormat
from kclient.spark.decoding.protobuf_new_fields import new_fields_of
from tests.spark.test_decoding_avro import by_fastavro
from tests.spark.test_decoding_protobuf import field, message_class, one


def fields_of_a_wide_message(count: int) -> int:
    """How many new fields have a name, of a message with very many."""
    fields = [(f"f{number}", "int32") for number in range(count)]
    writer = message_class([one(("a", "int32"), *fields)], "p.M")
    value = writer(a=1, **{name: 1 for name, _ in fields}).SerializeToString()
    reader = message_class([one(("a", "int32"))], "p.M")
    return new_fields_of(reader.FromString(value), writer.DESCRIPTOR).count('"f')


LONG = "n" * 1_000
SMALL = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}


def why_avro_is_not_kept(what: str, count: int) -> str:
    """Items of one byte, whose name or symbol in the schema is long."""
    if what == "name":
        item, value = {"type": "record", "name": "I", "fields": [{"name": LONG, "type": "int"}]}, {LONG: 0}
    else:
        item, value = {"type": "enum", "name": "I", "symbols": [LONG]}, LONG
    items = {"name": "b", "type": {"type": "array", "items": item}}
    writer = {**SMALL, "fields": [*SMALL["fields"], items]}
    found = avro_new_fields.new_fields_of(json.dumps(writer), json.dumps(SMALL))
    assert found is not None
    try:
        found.text(by_fastavro(writer, {"a": 1, "b": [value] * count}), 0, 1_000_000, "")
    except BadValueError as exc:
        return str(exc)
    return "kept"


def kept_of_protobuf(what: str, count: int) -> tuple[list[str], list[str], int]:
    """Messages of four bytes with a long name or symbol, or of two bytes without any: what is kept, and how much."""
    reader, writer = one(("a", "int32")), one(("a", "int32"))
    kind = "enum .p.E" if what == "symbol" else "int32"
    for file, fields in ((reader, []), (writer, [(7, LONG if what == "name" else "x", kind)])):
        inner = file.message_type.add(name="N")
        for number, name, of in fields:
            field(inner, number, name, of)
    symbols = writer.enum_type.add(name="E")
    for number, name in enumerate(("Z", LONG)):
        symbols.value.add(name=name, number=number)
    for file in (reader, writer) if what == "name" else (writer,):
        field(file.message_type[0], 2, "b", "repeated .p.N")
    item = b"\x12\0" if what == "elements" else b"\x12\x02\x38\1"
    message = message_class([reader], "p.M").FromString(item * count)
    text = new_fields_of(message, message_class([writer], "p.M").DESCRIPTOR, 1_000_000)
    kept = json.loads(text)
    last = kept["b"][-1] if "b" in kept else kept
    return sorted(kept), sorted(last), len(text)


def kept_of_json(item: str, size: int, schema: str) -> str:
    """A new field with as many items as bytes are asked for, beside another, and the same beside a bad document."""
    value = b'{"x": [' + item.encode() * (size // len(item)) + b'0], "y": [1, NaN], "z": "1"}'
    array = b"[%s]" % value if schema.startswith("ARRAY") else value
    form = JsonFormat.of("valueSchema", schema, 1_000)
    found = form.decode(pa.array([array, b"nonsense"]), new_fields=True)
    assert list(found.bad) == [1]
    text = found.new[0]
    kept = json.loads(text)
    [inner] = kept if isinstance(kept, list) else [kept]
    assert inner.pop("x").encode() == value[6 : -len(', "y": [1, NaN], "z": "1"}')]
    return json.dumps(inner)
