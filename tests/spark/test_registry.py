"""A registry that is slow, or says what no text holds."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest

from kclient.errors import ConfigError, ConnectError
from kclient.network import schema_registry as registry_module
from tests.realtime import within
from tests.spark.decoder_support import decoder, raw
from tests.spark.registry import registry_server
from tests.spark.test_decoding_avro import SMALL

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
PAUSE_SECONDS = 0.05


@pytest.fixture(autouse=True)
def forget() -> None:
    registry_module._schemas.clear()
    registry_module._unknown.clear()


@contextmanager
def dripping(first: bytes) -> Iterator[str]:
    """A server that answers at once with this, and then with a byte every now and then."""
    done = Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            try:
                connection.sendall(first)
                while not done.wait(PAUSE_SECONDS):
                    connection.sendall(b" ")
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            done.set()
            thread.join(10)


@pytest.mark.spec("SP-75")
@pytest.mark.parametrize(
    ("scheme", "first"),
    [("http", HEAD), ("http", b"HTTP/1.1 200 OK\r\nX: "), ("http", b""), ("https", b"\x16\x03\x03\x40\0")],
)
def test_a_response_has_one_deadline_from_the_connection_to_its_last_byte(
    monkeypatch: pytest.MonkeyPatch, scheme: str, first: bytes
) -> None:
    monkeypatch.setattr(registry_module, "TIMEOUT_SECONDS", 0.5)
    message = r"does not answer: it took longer than 0\.5 s"
    with dripping(first) as address, within(5), pytest.raises(ConnectError, match=message):
        decoder(
            valueFormat="avro",
            schema__registry__url=f"{scheme}://{address}",
            schema__registry__allowHttp="true",
        )


def bad_row(answer: dict[str, Any]) -> str:
    """The `_error` of a record whose schema the registry returns so."""
    with registry_server() as server:
        server.answers["/schemas/ids/1"] = 200, json.dumps(answer).encode()
        made = decoder(
            valueFormat="avro",
            valueSchema=json.dumps(SMALL),
            schema__registry__url=server.url,
            schema__registry__allowHttp="true",
            badRecords="column",
        )
        (row,) = made.decode(raw([b"\0\0\0\0\x01\x02\x02x"])).to_pylist()
    return str(row["_error"])


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    "answer",
    [
        {"schema": '"int"', "schemaType": "x" * 200_000},
        {"schema": '"int"', "schemaType": ["x" * 200_000]},
        {"schema": json.dumps("x" * 200_000)},
        {"schema": json.dumps("x" * 2_000_000)},
        {"schema": json.dumps({**SMALL, "fields": [{"name": "a", "type": "int", "default": "x" * 9_000}]})},
    ],
)
def test_a_row_reports_little_of_a_long_response(answer: dict[str, Any]) -> None:
    assert len(bad_row(answer)) < 600


@pytest.mark.spec("SP-76")
@pytest.mark.parametrize(
    "answer",
    [
        {"schema": '"int"', "schemaType": "\ud800\x1b"},
        {"schema": '"\ud800"'},
        {"schema": json.dumps({**SMALL, "doc": "\ud800"})},
        {"schema": json.dumps({"type": "enum", "name": "E", "symbols": ["\ud800"]})},
    ],
)
def test_half_of_a_pair_is_a_bad_record(answer: dict[str, Any]) -> None:
    assert bad_row(answer).isprintable()


@pytest.mark.spec("SP-75")
def test_half_of_a_pair_is_no_schema_of_columns() -> None:
    schema = {**SMALL, "fields": [{"name": "\ud800", "type": "int"}]}
    with registry_server() as server:
        server.add("flights-value", schema)
        with pytest.raises(ConfigError, match="not an Avro schema: UnicodeEncodeError"):
            decoder(valueFormat="avro", schema__registry__url=server.url, schema__registry__allowHttp="true")
    with pytest.raises(ConfigError, match="not an Avro schema: UnicodeEncodeError"):
        decoder(valueFormat="avro", valueSchema=json.dumps(schema))


@pytest.mark.spec("SP-75")
def test_schemas_that_are_kept_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "MAX_KEPT_CHARACTERS", 500)
    with registry_server() as server:
        registry = registry_module.SchemaRegistry(server.url)
        for number in range(20):
            server.schemas[number] = json.dumps({**SMALL, "doc": str(number)})
            assert registry.schema(number).text == server.schemas[number]
        kept = len(registry_module._schemas)
        assert registry.schema(19).text == server.schemas[19]
    assert 1 <= kept < 5
