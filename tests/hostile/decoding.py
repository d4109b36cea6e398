"""Values and schemas that are small as bytes and huge as columns, decoded as a worker decodes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2

from kclient.errors import ConfigError
from kclient.network import schema_registry as registry_module
from tests.spark.decoder_support import decoder, raw
from tests.spark.registry import RegistryServer, registry_server

SMALL = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int", "default": 0}]}


def doubles(depth: int, leaf: str) -> dict[str, Any]:
    """A record that holds two of the record before, which holds two of …, and at the bottom a leaf."""
    schema: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": leaf}]}
    for level in range(1, depth + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


AVRO_ITEM: dict[str, dict[str, Any]] = {
    "nulls": {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "int"]}]},
    "one of many": {
        "type": "record",
        "name": "M",
        "fields": [{"name": f"n{n}", "type": "null"} for n in range(50)] + [{"name": "i", "type": "int"}],
    },
}


def error_of_avro_items(item: str, size: int) -> str:
    """One array of as many of the smallest items as bytes are asked for, between two good values."""
    kind = AVRO_ITEM[item]
    written = {
        "type": "record",
        "name": "A",
        "fields": [{"name": "a", "type": {"type": "array", "items": kind}}],
    }
    fields = [kind["fields"][-1] | {"type": ["null", "int"], "default": None}]
    read = {
        **written,
        "fields": [{"name": "a", "type": {"type": "array", "items": {**kind, "fields": fields}}}],
    }
    varint = bytes(0x80 | (2 * size >> 7 * n) & 0x7F for n in range(4)) + bytes([2 * size >> 28])
    with registry_server() as registry:
        frame = b"\0\0\0\0" + bytes([registry.add("x", written)])
        good, large = frame + b"\0", frame + varint + bytes(size) + b"\0"
        return one_bad([good, large, good], **of(registry), valueFormat="avro", valueSchema=json.dumps(read))


def error_of_json_items(text: str, size: int) -> str:
    """The same of structs with 50 fields."""
    fields = ", ".join(f"f{number}: BIGINT" for number in range(50))
    item = text.encode() + b","
    large = b'{"a": [' + item * (size // len(item)) + b"{}]}"
    good = b'{"a": [{"f1": 1}]}'
    return one_bad([good, large, good], valueFormat="json", valueSchema=f"a ARRAY<STRUCT<{fields}>>")


def error_of_protobuf_items(kind: str, size: int) -> str:
    """A field that is repeated: messages without anything in them, or packed numbers."""
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", package="p", syntax="proto3")
    inner = file.message_type.add(name="Inner")
    inner.field.add(name="x", number=1, type=5, label=1)
    outer = file.message_type.add(name="Outer")
    outer.field.add(name="messages", number=1, type=11, type_name=".p.Inner", label=3)
    outer.field.add(name="numbers", number=2, type=5, label=3)
    large = b"\x0a\0" * (size // 2) if kind == "messages" else b"\x10\1" * (size // 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.desc"
        path.write_bytes(descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString())
        return one_bad([b"", large, b""], valueFormat="protobuf", valueSchema=f"{path}#p.Outer")


def rows_of_large_values(kind: str) -> int:
    """A batch of values that hold just less than they may: how many come out of it, one batch after another."""
    fields = [f"f{number}" for number in range(50)]
    if kind == "json":
        value = b'{"a": [' + b"{}," * 19_000 + b"{}]}"
        options = {"valueSchema": f"a ARRAY<STRUCT<{': BIGINT, '.join(fields)}: BIGINT>>"}
    else:
        item = AVRO_ITEM["nulls"]
        value = bytes.fromhex("e09736") + bytes(443_888) + b"\0"
        options = {"valueSchema": json.dumps({"type": "array", "items": item})}
    values = [value] * ((3 << 20) // len(value))
    rows = 0
    for batch in decoder(valueFormat=kind, **options).decode_all(iter([raw(values)]), ["value"]):
        rows += len(batch)
        assert batch.column("value").null_count == 0
    return rows * len(value)


def one_bad(values: list[bytes], **options: str) -> str:
    """What `_error` says of the only one that is bad, the second."""
    first, error, third = errors(values, **options)
    assert (first, third) == ("", "")
    return error


def nested(depth: int) -> Any:
    """An array of arrays of … of int, as text: json cannot write what it cannot read."""
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def error_of_writer_schema(depth: int, leaf: str) -> str:
    """What `_error` says of a record whose frame names such a schema."""
    return _error_of_writer(json.dumps(doubles(depth, leaf)))


def error_of_writer_schema_nested(depth: int) -> str:
    return _error_of_writer(nested(depth))


def _error_of_writer(schema: str) -> str:
    with registry_server() as registry:
        frame = b"\0\0\0\0" + bytes([registry.add("x", schema)])
        (error,) = errors([frame], **of(registry), valueFormat="avro", valueSchema=json.dumps(SMALL))
    return error


def error_of_reader_schema(depth: int, leaf: str) -> str:
    """The error that a user gets for such a reader schema."""
    return _error_of_reader(json.dumps(doubles(depth, leaf)))


def error_of_reader_schema_nested(depth: int) -> str:
    return _error_of_reader(nested(depth))


def error_of_long_default() -> str:
    field = {"name": "a", "type": "string", "default": "x" * 20_000}
    return _error_of_reader(json.dumps({**SMALL, "fields": [field]}))


def _error_of_reader(schema: str) -> str:
    try:
        decoder(valueFormat="avro", valueSchema=schema)
    except ConfigError as exc:
        return str(exc)
    return "nothing"


def of(registry: RegistryServer) -> dict[str, str]:
    registry_module._schemas.clear()
    return {"schema__registry__url": registry.url, "schema__registry__allowHttp": "true"}


def errors(values: list[bytes], **options: str) -> list[str]:
    """What `_error` says of each value, "" of good ones."""
    batches = decoder(**options, badRecords="column").decode_all(iter([raw(values)]), ["value", "_error"])
    return [
        error or "" for batch in batches for error in pa.Table.from_batches([batch])["_error"].to_pylist()
    ]
