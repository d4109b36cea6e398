"""`--on-new-field fail`: whatever the new fields hold, the error is typed and names them, and never shows a value."""

from __future__ import annotations

import json

import pytest

from kclient.errors import DecodeError
from kclient.network import schema_registry as registry_module
from kclient.spark.decoding import json_text
from kclient.spark.sink.row_layout import RowLayout
from tests.spark.decoder_support import decoder, raw
from tests.spark.registry import registry_server
from tests.spark.test_decoding_avro import by_fastavro

ITEM = {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]}
NEWER = {**ITEM, "fields": [*ITEM["fields"], {"name": "secret", "type": "string"}]}


def refused(value: bytes, names: str, **options: str) -> None:
    """Both ways to refuse a value name its new fields."""
    failing = RowLayout(decoder=decoder(badRecords="fail", **options), refuse_new=True)
    with pytest.raises(DecodeError, match="at offset 100") as caught:
        failing.decode(raw([value]))
    assert f"has fields that the schema does not name: {names}. Give" in str(caught.value)
    marking = RowLayout(decoder=decoder(badRecords="column", **options), refuse_new=True)
    [why] = marking.decode(raw([value])).column("_error").to_pylist()
    assert why == f"value: {options['valueFormat']}: has fields that the schema does not name: {names}"


@pytest.mark.spec("SP-87")
@pytest.mark.parametrize(
    ("schema", "value", "names"),
    [
        ("a BIGINT", b'{"a":1,"n":%s}' % (b"1" * 5_000), "n"),
        ("a BIGINT", b'{"n":%s}' % (b"[" * 900 + b"]" * 900), "n"),
        ("a BIGINT", rb'{"n":{"inner":["\\",":"]},"m":"\"k\":1","":0,"\u00e9\n":[{"o":1}]}', "n, m, , é\\n"),
        ("ARRAY<STRUCT<m: BIGINT>>", b'[{"m":1,"secret":2}]', "secret"),
        ("ARRAY<STRUCT<m: BIGINT>>", b'[{"m":1},{"n":{"x":2}},null,{"n":3,"o":"p"}]', "n, o"),
        ("ARRAY<ARRAY<STRUCT<m: BIGINT>>>", b'[[],[{"m":1},{"n":["x"]}]]', "n"),
    ],
)
def test_json_of_any_shape_is_refused_by_name(schema: str, value: bytes, names: str) -> None:
    refused(value, names, valueFormat="json", valueSchema=schema)


@pytest.mark.spec("SP-87")
def test_an_array_of_avro_records_is_refused_by_name() -> None:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    writer, reader = ({"type": "array", "items": item} for item in (NEWER, ITEM))
    with registry_server() as registry:
        frame = b"\0" + registry.add("flights-value", writer).to_bytes(4, "big")
        value = frame + by_fastavro(writer, [{"a": 1, "secret": "4711"}])
        url = {"schema__registry__url": registry.url, "schema__registry__allowHttp": "true"}
        refused(value, "secret", valueFormat="avro", valueSchema=json.dumps(reader), **url)


def test_names_are_found_at_any_depth_of_values() -> None:
    assert json_text.names_of('{"a":' + "[" * 100_000 + "]" * 100_000 + ',"b" :"c"}') == ["a", "b"]
    assert json_text.names_of('"' + '\\"' * 100_000) == []  # a string without end is looked at once
