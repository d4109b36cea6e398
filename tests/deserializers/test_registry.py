"""Values with a schema registry in both consumers: what Confluent's serializers write, and what goes wrong.

The registry is a server on loopback; the writers are confluent-kafka's serializers.
"""

from __future__ import annotations

import asyncio
import datetime
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from threading import Barrier, Event
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, TopicPartition, env
from kclient.deserializers import BadValueError, registry
from kclient.deserializers import registry as registry_of
from kclient.deserializers.avro import AvroReader
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, ConnectError, DecodeError
from kclient.network import schema_registry as registry_module
from tests.spark.registry import RegistryServer, registry_server

pytestmark = pytest.mark.filterwarnings("ignore:The httpx module is deprecated")

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
    ],
}
AT = datetime.datetime(2026, 1, 31, 8, 0, tzinfo=datetime.UTC)
VALUE = {"id": 7, "amount": Decimal("12.50"), "at": AT, "tags": ["new", "gift"]}
TP = TopicPartition("orders", 0)


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    registry_module._schemas.clear()
    registry_module._unknown.clear()
    with registry_server() as server:
        yield server


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"orders": 1}) as cluster:
        yield cluster


def client_of(server: RegistryServer) -> Any:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    return SchemaRegistryClient({"url": server.url})


def context() -> Any:
    from confluent_kafka.serialization import MessageField, SerializationContext

    return SerializationContext("orders", MessageField.VALUE)


def avro(server: RegistryServer, value: object, schema: object = ORDER) -> bytes:
    """Serialize with Confluent's serializer, which registers the schema."""
    from confluent_kafka.schema_registry.avro import AvroSerializer

    written: bytes = AvroSerializer(client_of(server), json.dumps(schema))(value, context())
    return written


def framed(schema_id: int, data: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4, "big") + data


def read(cluster: EmbeddedCluster, count: int, deserializer: Any, **settings: Any) -> list[Any]:
    servers = cluster.bootstrap_servers
    with Consumer(bootstrap_servers=servers, value_deserializer=deserializer, **settings) as consumer:
        consumer.assign([TP])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while len(found) < count:
            found += [record.value for record in consumer.poll(timeout=5.0)]
        return found


def test_avro_becomes_python_objects_and_each_schema_is_asked_for_once(
    server: RegistryServer, cluster: EmbeddedCluster
) -> None:
    newer = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}  # type: ignore[misc]
    cluster.produce("orders", [avro(server, VALUE)] * 5 + [avro(server, VALUE | {"note": "x"}, newer)] * 5)
    server.asked.clear()
    assert read(cluster, 10, registry(server.url)) == [VALUE] * 5 + [VALUE | {"note": "x"}] * 5
    assert read(cluster, 10, registry(server.url, schema=json.dumps(ORDER))) == [VALUE] * 10
    assert [path for path, _ in server.asked] == ["/schemas/ids/1", "/schemas/ids/2"]


def test_json_schema_becomes_what_the_document_holds(
    server: RegistryServer, cluster: EmbeddedCluster
) -> None:
    from confluent_kafka.schema_registry.json_schema import JSONSerializer

    schema = json.dumps({"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}})
    cluster.produce("orders", [JSONSerializer(schema, client_of(server))({"id": 7}, context())])
    assert read(cluster, 1, registry(server.url)) == [{"id": 7}]


def test_protobuf_becomes_the_message_of_its_class(server: RegistryServer, cluster: EmbeddedCluster) -> None:
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf.timestamp_pb2 import Timestamp
    from google.protobuf.type_pb2 import EnumValue, Field

    serializer = ProtobufSerializer(Field, client_of(server), {"use.deprecated.format": False})
    cluster.produce("orders", [serializer(Field(name="id", number=7), context())])
    (found,) = read(cluster, 1, registry(server.url, message=Field))
    assert (type(found), found.name, found.number) == (Field, "id", 7)
    with pytest.raises(DecodeError) as caught:
        read(cluster, 1, registry(server.url, message=EnumValue))
    assert "another message of its schema, at [1]" in str(caught.value.__cause__)
    with pytest.raises(DecodeError, match=r"registry\(url, message=Order\)"):
        read(cluster, 1, registry(server.url))
    with pytest.raises(BadValueError, match=r"it is not a google\.protobuf\.Timestamp"):
        registry(server.url, message=Timestamp).deserialize("orders", (), framed(1, b"\0\xff"))


def many_items(server: RegistryServer) -> bytes:
    number = server.add("bomb", {"type": "array", "items": {"type": "record", "name": "E", "fields": []}})
    return framed(number, b"\x80\x89\x7a\0")


BAD: dict[str, tuple[Callable[[RegistryServer], bytes], str]] = {
    "no frame": (lambda server: b"\1\0\0\0\1x", "does not begin with the registry's frame"),
    "empty": (lambda server: b"", "does not begin with the registry's frame"),
    "unknown id": (lambda server: framed(99, b"x"), "schema id 99 is not in the registry"),
    "cut": (lambda server: avro(server, VALUE)[:-3], "does not follow its schema"),
    "bytes left": (lambda server: avro(server, VALUE) + b"\0", "1 bytes are left after it"),
    "many items": (many_items, "holds more than 1,000,000 elements"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_value_that_is_wrong_is_left_to_on_decode_error(
    kind: str, server: RegistryServer, cluster: EmbeddedCluster
) -> None:
    make, reason = BAD[kind]
    good = avro(server, VALUE)
    cluster.produce("orders", [make(server), good])
    letters: list[Any] = []
    keep: dict[str, Any] = {"on_decode_error": "dlq", "dead_letters": letters.append}
    assert read(cluster, 1, registry(server.url), **keep) == [VALUE]
    details = dict(letters[0].headers)
    assert details["kclient.error.class"] == b"BadValueError"
    if kind != "many items":  # an array of empty records is refused as a schema already
        assert reason.encode() in details["kclient.error.message"]


@pytest.mark.parametrize("code", [401, 500, 302])
def test_a_registry_that_fails_stops_the_record_and_skips_nothing(
    code: int, server: RegistryServer, cluster: EmbeddedCluster
) -> None:
    cluster.produce("orders", [avro(server, VALUE)])
    server.answers["/schemas/ids/1"] = code, b"{}"
    servers = cluster.bootstrap_servers
    with Consumer(
        bootstrap_servers=servers, value_deserializer=registry(server.url), on_decode_error="skip"
    ) as consumer:
        consumer.assign([TP])
        consumer.seek_to_beginning()
        for _ in range(2):
            with pytest.raises(DecodeError, match="not skipped") as caught:
                consumer.poll(timeout=5.0)
            assert isinstance(caught.value.__cause__, ConnectError if code == 500 else ConfigError)
            assert (caught.value.offset, consumer.position(TP)) == (0, 0)
        server.answers.clear()
        assert [record.value for record in consumer.poll(timeout=5.0)] == [VALUE]


def test_an_answer_that_is_cut_off_is_no_fault_of_the_record(
    server: RegistryServer, cluster: EmbeddedCluster
) -> None:
    """A part of an answer is no JSON, and must not pass for a schema that cannot be read: the record would be lost."""
    cluster.produce("orders", [avro(server, VALUE)])
    server.lost_bytes = 1
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "on_decode_error": "skip"}
    with Consumer(value_deserializer=registry(server.url), **settings) as consumer:
        consumer.assign([TP])
        consumer.seek_to_beginning()
        with pytest.raises(DecodeError, match="in the middle of the answer") as caught:
            consumer.poll(timeout=5.0)
        assert isinstance(caught.value.__cause__, ConnectError)
        server.lost_bytes = 0
        assert [record.value for record in consumer.poll(timeout=5.0)] == [VALUE]


def test_a_registry_whose_name_cannot_be_looked_up_is_no_fault_of_the_record() -> None:
    deserializer = registry(f"https://{'x' * 64}.example")  # DNS has labels of 63 characters
    with pytest.raises(ConnectError, match="none that DNS can have"):
        deserializer.deserialize("orders", (), framed(1, b""))


def test_the_event_loop_goes_on_while_the_registry_is_slow(
    server: RegistryServer, cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, asked, answer = avro(server, VALUE), Event(), Event()
    cluster.produce("orders", [data])
    found = server.answer

    def slow(path: str, body: bytes) -> tuple[int, bytes]:
        asked.set()
        answer.wait(10)
        return found(path, body)

    async def scenario() -> None:
        async with AsyncConsumer(
            bootstrap_servers=cluster.bootstrap_servers, value_deserializer=registry(server.url)
        ) as consumer:
            await consumer.assign([TP])
            consumer.seek_to_beginning()
            polling = asyncio.create_task(consumer.poll(timeout=5.0))
            while not asked.is_set():  # noqa: ASYNC110 – a loop that waits for the registry would never end this
                await asyncio.sleep(0.01)
            polling.cancel()
            await asyncio.sleep(0)
            assert (
                not polling.done()
            )  # a thread decodes for this poll, and nobody else touches its records meanwhile
            answer.set()
            with pytest.raises(asyncio.CancelledError):
                await polling
            assert [record.value for record in await consumer.poll(timeout=5.0)] == [VALUE]

    monkeypatch.setattr(server, "answer", slow)
    asyncio.run(scenario())


def test_threads_that_want_one_schema_ask_for_it_once(server: RegistryServer) -> None:
    data, together = avro(server, VALUE), Barrier(8)
    server.asked.clear()

    def decode() -> Any:
        deserializer = registry(server.url)
        together.wait(10)
        return deserializer.deserialize("orders", (), data)

    with ThreadPoolExecutor(8) as pool:
        found = [each.result(20) for each in [pool.submit(decode) for _ in range(8)]]
    assert found == [VALUE] * 8
    assert [path for path, _ in server.asked] == ["/schemas/ids/1"]


def test_a_topic_of_unknown_ids_asks_a_hundred_times_and_not_for_each_record(server: RegistryServer) -> None:
    deserializer = registry(server.url)
    for _ in range(2):
        for number in range(100):
            with pytest.raises(BadValueError, match=f"schema id {number} is not in the registry"):
                deserializer.deserialize("orders", (), framed(number, b""))
    with pytest.raises(ConnectError, match="does not have 100 schemas"):
        deserializer.deserialize("orders", (), framed(100, b""))
    assert len(server.asked) == 100


def test_a_response_that_is_no_json_is_not_the_records_fault(server: RegistryServer) -> None:
    """A login page of a proxy, with HTTP 200: the same value is read when the registry answers again."""
    data = avro(server, VALUE)
    deserializer = registry(server.url)
    for page in (b"<html>log in</html>", b"", b"[]"):
        server.answers["/schemas/ids/1"] = 200, page
        with pytest.raises(ConnectError, match="A proxy or a login page may stand at this address"):
            deserializer.deserialize("orders", (), data)
    del server.answers["/schemas/ids/1"]
    assert deserializer.deserialize("orders", (), data) == VALUE


def test_a_schema_of_another_kind_than_the_deserializer_is_for_is_refused(server: RegistryServer) -> None:
    from google.protobuf.timestamp_pb2 import Timestamp

    document = framed(server.add("orders-value", {"type": "object"}, "JSON"), b"{}")
    for deserializer, kind in (
        (registry(server.url, message=Timestamp), "PROTOBUF"),
        (registry(server.url, schema='"int"'), "AVRO"),
    ):
        with pytest.raises(BadValueError, match=f"is of the type JSON, and the deserializer is for {kind}"):
            deserializer.deserialize("orders", (), document)
    assert registry(server.url).deserialize("orders", (), document) == {}


def test_a_schema_that_cannot_be_used_is_looked_at_once(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = server.add("orders-value", {"type": "record", "name": "Order"})
    looks: list[str] = []
    make = AvroReader.of

    def counted(text: str, wanted: str | None, *, objects: bool) -> AvroReader:
        looks.append(text)
        return make(text, wanted, objects=objects)

    monkeypatch.setattr(AvroReader, "of", counted)
    deserializer = registry(server.url)
    for _ in range(3):
        with pytest.raises(BadValueError, match="the schema of its writer cannot be used"):
            deserializer.deserialize("orders", (), framed(number, b""))
    assert len(looks) == 1


def test_credentials_are_sent_and_never_shown(
    server: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_AUTH", "alice:wonder")
    data = avro(server, VALUE)
    server.asked.clear()
    deserializer = registry(server.url, auth=env("REGISTRY_AUTH"))
    assert deserializer.deserialize("orders", (), data) == VALUE
    assert server.asked == [("/schemas/ids/1", "Basic YWxpY2U6d29uZGVy")]
    assert "wonder" not in repr(deserializer)
    monkeypatch.delenv("REGISTRY_AUTH")
    with pytest.raises(ConfigError, match="auth of registry"):
        deserializer.deserialize("orders", (), framed(99, b""))


@pytest.mark.parametrize(
    ("url", "settings", "text"),
    [
        ("registry:8081", {}, "such as https://registry:8081"),
        ("https://alice:wonder@registry", {}, "no user or password in it"),
        ("https://[::1", {}, "such as https://registry:8081"),
        ("https://registry:port", {}, "such as https://registry:8081"),
        ("http://registry.example:8081", {"auth": "a:b"}, "in clear text"),
        ("https://registry", {"schema": "no schema"}, "not an Avro schema"),
        ("https://registry", {"message": dict}, "that protoc has made"),
        ("https://registry", {"message": dict, "schema": '"int"'}, "not both"),
    ],
)
def test_what_cannot_be_is_refused_at_once(url: str, settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        registry_of(url, **settings)
    assert "wonder" not in str(caught.value)


def test_credentials_over_http_need_a_word() -> None:
    registry("http://registry.example", auth="a:b", allow_plaintext_credentials=True)
