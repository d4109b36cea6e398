"""What type checkers infer of a consumer: `test_checkers.py` runs them on this file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, assert_type

from kclient import (
    AsyncConsumer,
    Consumer,
    ConsumerInterceptor,
    ConsumerSettings,
    Headers,
    Record,
    Records,
    TopicPartition,
    Undecoded,
    handlers,
)
from kclient.deserializers import json_value, registry, text


class Flight:
    """What a value is."""


def flight(topic: str, headers: Headers, data: bytes) -> Flight:
    """Deserialize, as a function."""
    return Flight()


class Number:
    """Deserialize, as an object or a class."""

    def deserialize(self, topic: str, headers: object, data: bytes) -> int:
        """Return a number."""
        return int(data)


def without_deserializers(consumer: Consumer) -> None:
    assert_type(consumer, Consumer[bytes, bytes])
    for record in consumer:
        assert_type(record.key, bytes | None)
        assert_type(record.value, bytes | None)
        assert_type(record.headers, Headers)


with Consumer("flights", group_id="delays", fetch_max_wait_ms="100", enable_auto_commit=False) as raw:
    without_deserializers(raw)

with Consumer("flights", group_id="delays", value_deserializer=flight) as delays:
    assert_type(delays, Consumer[bytes, Flight])
    for record in delays:
        assert_type(record, Record[bytes, Flight])
        assert_type(record.key, bytes | None)
        assert_type(record.value, Flight | None)
    polled = delays.poll(timeout=1.0)
    assert_type(polled, Records[bytes, Flight])
    for record in polled.of(TopicPartition("flights", 0)):
        assert_type(record.value, Flight | None)

assert_type(Consumer(key_deserializer=Number(), value_deserializer=Number), Consumer[int, int])
assert_type(Consumer(key_deserializer=Number), Consumer[int, bytes])
assert_type(Consumer(value_deserializer=lambda topic, headers, data: data.decode()), Consumer[bytes, str])

# What a file or a mapping configures, and what on_decode_error="keep" adds, no checker can see: say it.
from_file = Consumer[str, Flight]("flights", properties="client.properties")
assert_type([record.value for record in from_file], list[Flight | None])
kept = Consumer[bytes, Flight | Undecoded](value_deserializer=flight, on_decode_error="keep")
assert_type([record.value for record in kept], list[Flight | Undecoded | None])


async def asynchronously() -> None:
    async with AsyncConsumer("flights", group_id="delays", value_deserializer=flight) as consumer:
        assert_type(consumer, AsyncConsumer[bytes, Flight])
        async for record in consumer:
            assert_type(record.value, Flight | None)
        assert_type(await consumer.poll(), Records[bytes, Flight])
        for record in await consumer.poll():
            assert_type(record.value, Flight | None)


# Those of kclient.deserializers.


class Message:
    """What protoc makes, as far as it matters here."""

    DESCRIPTOR: ClassVar[Any] = None

    @classmethod
    def FromString(cls, data: bytes, /) -> Message:
        """Parse a message."""
        return cls()


servers = "http://localhost:8081"
assert_type(Consumer(key_deserializer=text, value_deserializer=registry(servers)), Consumer[str, Any])
assert_type(Consumer(value_deserializer=registry(servers, message=Message)), Consumer[bytes, Message])
assert_type(Consumer(value_deserializer=json_value), Consumer[bytes, Any])


class Audit(ConsumerInterceptor):
    """An interceptor of its application's own records."""

    def on_consume(self, records: Records[bytes, Flight]) -> None:
        for record in records:
            assert_type(record.value, Flight | None)


def any_consumer(consumer: Consumer[object, object]) -> None:
    """Accept each: a consumer of flights is one of objects."""


any_consumer(delays)
settings: ConsumerSettings = {"group_id": "delays", "on_no_committed_offset": timedelta(hours=1)}
assert_type(Consumer("flights", value_deserializer=flight, **settings), Consumer[bytes, Flight])
untyped: dict[str, Any] = {"group_id": "delays"}
assert_type(Consumer("flights", config=untyped), Consumer[bytes, bytes])


def handle(record: Record[bytes, Flight]) -> None:
    """Handle a record of `delays`."""


handlers.run(delays, handle, dead_letter=lambda record, exc: assert_type(record.value, Flight | None))
