"""Values and schemas that are small as bytes and huge as columns, decoded as a worker decodes them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from kclient.errors import ConfigError
from kclient.spark.decoding import registry as registry_module
from tests.spark.decoded import decoder, raw
from tests.spark.registry import RegistryServer, registry_server

SMALL = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int", "default": 0}]}


def doubles(depth: int, leaf: str) -> dict[str, Any]:
    """A record that holds two of the record before, which holds two of …, and at the bottom a leaf."""
    schema: dict[str, Any] = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": leaf}]}
    for level in range(1, depth + 1):
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": f"R{level - 1}"}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    return schema


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
    """What a user is told who reads with such a schema."""
    return _error_of_reader(json.dumps(doubles(depth, leaf)))


def error_of_reader_schema_nested(depth: int) -> str:
    return _error_of_reader(nested(depth))


def error_of_long_default() -> str:
    field = {"name": "a", "type": "string", "default": "x" * 20_000}
    return _error_of_reader(json.dumps({**SMALL, "fields": [field]}))


def _error_of_reader(schema: str) -> str:
    try:
        decoder(valueFormat="avro", valueSchema=schema)
    except ConfigError as problem:
        return str(problem)
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
