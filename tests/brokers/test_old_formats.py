"""Message formats 0 and 1 as real brokers store them, from any producer, in every codec: the same as Java reads.

Each of three producers writes the same rows into a topic of each format and codec. The broker assigns the offsets:
absolute within a wrapper of format 0, which it packs again, and relative to the first in format 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kclient import Consumer, TopicPartition
from kclient.records.writer import NewRecord
from tests.brokers import kafka_python
from tests.brokers.conftest import Broker
from tests.brokers.java_reader import Seen, read_with_java
from tests.brokers.writing import append, produce
from tests.kafka.blocking_consumers import read
from tests.kafka.wire_tap import Tap

FIRST = 1_700_000_000_000
FORMATS = {0: "0.9.0", 1: "0.10.2"}
CODECS = ["none", "gzip", "snappy", "lz4"]
WRITERS = ["ours", "confluent-kafka", "kafka-python"]
MAGIC_AT, ATTRIBUTES_AT, CODEC_BITS = 16, 17, 7
COUNT = 25

pytestmark = pytest.mark.until("2.8")


class Kind(NamedTuple):
    """Who wrote what."""

    writer: str
    magic: int
    codec: str

    @property
    def topic(self) -> str:
        return f"old-{self.writer}-{self.magic}-{self.codec}"


KINDS = [
    Kind(writer, magic, codec)
    for magic in FORMATS
    for codec in CODECS
    for writer in WRITERS
    if (writer, codec) != ("kafka-python", "snappy")  # it needs one more package for that
]
ROWS = [
    NewRecord(
        key=(None, b"", b"key-%d" % number)[number % 3],
        value=(b"value %d " % number * number, None, b"")[number % 3 and number % 4 % 3],
        timestamp=FIRST + 7 * number,
    )
    for number in range(COUNT)
]


def write(broker: Broker, kind: Kind) -> None:
    """All rows: ours in sets of ten, the other's however it likes."""
    if kind.writer == "ours":
        for at in range(0, COUNT, 10):
            append(
                broker,
                kind.topic,
                ROWS[at : at + 10],
                magic=kind.magic,
                codec=CODECS.index(kind.codec),
            )
    elif kind.writer == "confluent-kafka":
        produce(broker, kind.topic, ROWS, compression_type=kind.codec, linger_ms=500)


@pytest.fixture(scope="session")
def java(broker: Broker) -> dict[str, list[Seen]]:
    """All topics written, and what the Java consumer of this release reads in them."""
    for kind in KINDS:
        broker.kafka.create_topic(kind.topic, message_format_version=FORMATS[kind.magic])
        write(broker, kind)
    theirs = {kind.topic: kind.codec for kind in KINDS if kind.writer == "kafka-python"}
    kafka_python.produce(broker.bootstrap_servers, theirs, ROWS)
    return read_with_java(broker, [kind.topic for kind in KINDS])


def reader(broker: Broker, topic: str, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": broker.bootstrap_servers, "fetch_max_wait_ms": 100, **settings}
    consumer = Consumer(**keys)
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def ours(broker: Broker, topic: str, tap: Tap) -> list[Seen]:
    with reader(broker, topic, auto_offset_reset="earliest", runtime=tap) as consumer:
        records = read(consumer, COUNT)
    return [Seen(one.offset, one.timestamp, one.timestamp_type.name, one.key, one.value) for one in records]


@pytest.mark.spec("B.11.4", "B.11.5", "D-56", "D-57", "D-79", "U-08")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.topic)
def test_old_formats_read_as_java_reads_them(broker: Broker, java: dict[str, list[Seen]], kind: Kind) -> None:
    tap = Tap()
    seen = ours(broker, kind.topic, tap)
    assert seen == java[kind.topic]
    assert [(one.offset, one.key, one.value) for one in seen] == [
        (number, row.key, row.value) for number, row in enumerate(ROWS)
    ]
    times = [row.timestamp for row in ROWS] if kind.magic else [-1] * COUNT
    assert [one.timestamp for one in seen] == times
    stored = [
        bytes(row.records)
        for one in tap.answered("Fetch")
        for topic in one.response.responses
        for row in topic.partitions
        if row.records
    ]
    assert {(data[MAGIC_AT], data[ATTRIBUTES_AT] & CODEC_BITS) for data in stored} == {
        (kind.magic, CODECS.index(kind.codec))
    }


@pytest.mark.spec("S2-26", "D-32", "B.11.4")
@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.writer == "ours"], ids=lambda kind: kind.topic
)
def test_a_position_within_a_wrapper(broker: Broker, java: dict[str, list[Seen]], kind: Kind) -> None:
    with reader(broker, kind.topic, auto_offset_reset="none") as consumer:
        consumer.seek(TopicPartition(kind.topic, 0), 13)
        assert [record.offset for record in read(consumer, COUNT - 13)] == list(range(13, COUNT))
