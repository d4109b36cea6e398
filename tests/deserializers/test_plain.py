"""Text and JSON."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.deserializers import BadValueError, json_value, text
from kclient.embedded import EmbeddedCluster


def test_a_consumer_returns_text_and_documents() -> None:
    with EmbeddedCluster(brokers=1, topics={"orders": 1}) as cluster:
        cluster.produce("orders", [("grüße", '{"id": 7}'), ("", "null")])
        with Consumer(
            bootstrap_servers=cluster.bootstrap_servers, key_deserializer=text, value_deserializer=json_value
        ) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.seek_to_beginning()
            found = [(record.key, record.value) for record in consumer.poll(timeout=5.0)]
    assert found == [("grüße", {"id": 7}), ("", None)]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff", "it is not UTF-8, from byte 0 on"),
        (b"", "it is not JSON: Expecting value at character 0"),
        (b"{", "it is not JSON"),
        (b"1 2", "it is not JSON: Extra data at character 2"),
        (b"[NaN]", "it has NaN, which JSON does not know"),
        (b"[" * 100_000, "it is not JSON that can be read"),
        (b"9" * 5_000, "it is not JSON that can be read"),
        (b"[" + b"[]," * 600_000 + b"[]]", "more than 1,000,000 elements"),
    ],
)
def test_what_is_no_document_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadValueError, match=reason):
        json_value("orders", (), data)


def test_a_long_text_is_no_crowd_of_elements() -> None:
    found: Any = json_value("orders", (), b'"' + b"x" * 2_000_000 + b'"')
    assert len(found) == 2_000_000


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(BadValueError, match="not UTF-8, from byte 1 on"):
        text("orders", (), b"a\xff")
