"""on_decode_error: records whose deserializer fails, in every way of reading (U-03)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kclient import AsyncConsumer, Consumer, DeadLetter, Record, TopicPartition, Undecoded, load
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DecodeError
from kclient.records.writer import NewRecord
from tests.consumer.mini_broker import FAST

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
VALUES = ["0", "1", "2", "poison", "4"]

pytestmark = pytest.mark.spec("U-03")


def number(topic: str, headers: object, data: bytes) -> int:
    return int(data)


@contextmanager
def cluster(values: list[Any] = VALUES) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=1, topics={"a": 2}) as kafka:
        kafka.produce("a", values, partition=0)
        kafka.produce("a", ["10", "11"], partition=1)
        yield kafka


@contextmanager
def reading(kafka: EmbeddedCluster, **settings: Any) -> Iterator[Consumer]:
    keys: dict[str, Any] = {"auto_offset_reset": "earliest", "value_deserializer": number, **FAST}
    with Consumer(bootstrap_servers=kafka.bootstrap_servers, **keys | settings) as consumer:
        consumer.assign([A0, A1])
        yield consumer


@contextmanager
def consuming(values: list[Any], **settings: Any) -> Iterator[Consumer]:
    with cluster(values) as kafka, reading(kafka, **settings) as consumer:
        yield consumer


def polled(consumer: Consumer, count: int, **keys: Any) -> list[Record[Any, Any]]:
    found: list[Record[Any, Any]] = []
    for _ in range(50):
        found += consumer.poll(0.2, **keys)
        if len(found) >= count:
            break
    return sorted(found, key=lambda record: (record.partition, record.offset))


def iterated(consumer: Consumer, count: int) -> list[Record[Any, Any]]:
    records = iter(consumer)
    return sorted((next(records) for _ in range(count)), key=lambda record: (record.partition, record.offset))


def one_by_one(consumer: Consumer, count: int) -> list[Record[Any, Any]]:
    return polled(consumer, count, max_records=1)


ways = pytest.mark.parametrize("way", [polled, iterated, one_by_one])
Way = Callable[[Consumer, int], list[Record[Any, Any]]]


@ways
def test_skip_leaves_the_record_out_and_nothing_else(way: Way) -> None:
    with cluster() as kafka, reading(kafka, on_decode_error="skip") as consumer:
        found = way(consumer, 6)
        assert [(record.partition, record.offset) for record in found] == [
            (0, 0), (0, 1), (0, 2), (0, 4), (1, 0), (1, 1)
        ]  # fmt: skip
        assert [record.value for record in found] == [0, 1, 2, 4, 10, 11]
        assert (consumer.position(A0), consumer.position(A1)) == (5, 2)


@ways
def test_keep_returns_the_raw_record_with_the_error(way: Way) -> None:
    with cluster() as kafka, reading(kafka, on_decode_error="keep") as consumer:
        found = way(consumer, 7)
        assert [record.value for record in found if record.offset != 3] == [0, 1, 2, 4, 10, 11]
        (kept,) = (record.value for record in found if record.offset == 3)
        assert isinstance(kept, Undecoded)
        assert kept.raw == b"poison"
        assert (kept.error.offset, kept.error.part) == (3, "value")
        assert isinstance(kept.error.__cause__, ValueError)
        assert "poison" not in repr(kept)


@ways
def test_dlq_gives_the_bytes_and_their_story_to_the_sink(way: Way) -> None:
    letters: list[DeadLetter] = []
    values = [*VALUES[:3], NewRecord(b"k", b"poison", 1_700_000_000_000, (("h", b"1"), ("h", None))), "4"]
    with consuming(values, on_decode_error="dlq", dead_letters=letters.append) as consumer:
        assert [record.offset for record in way(consumer, 6)] == [0, 1, 2, 4, 0, 1]
    (letter,) = letters
    assert (letter.topic, letter.partition, letter.offset, letter.timestamp) == ("a", 0, 3, 1_700_000_000_000)
    assert (letter.key, letter.value) == (b"k", b"poison")
    assert letter.headers[:2] == (("h", b"1"), ("h", None))
    headers = dict(letter.headers[2:])
    assert headers.pop("kclient.error.message").startswith(b"invalid literal for int()")
    assert headers == {
        "kclient.error.topic": b"a",
        "kclient.error.partition": b"0",
        "kclient.error.offset": b"3",
        "kclient.error.timestamp": b"1700000000000",
        "kclient.error.part": b"value",
        "kclient.error.class": b"ValueError",
    }
    assert "poison" not in repr(letter)


def test_a_file_of_dead_letters_has_one_line_for_each(tmp_path: Path) -> None:
    path = tmp_path / "dead.jsonl"
    with consuming(["x", "1", None, "y"], on_decode_error="dlq", dead_letters=path) as consumer:
        assert [record.value for record in polled(consumer, 4)] == [1, None, 10, 11]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["offset"], base64.b64decode(line["value"])) for line in lines] == [(0, b"x"), (3, b"y")]
    assert lines[0]["key"] is None
    assert ["kclient.error.class", base64.b64encode(b"ValueError").decode()] in lines[0]["headers"]


def test_a_sink_that_fails_loses_nothing_and_stops_no_other() -> None:
    broken = [True]
    letters: list[DeadLetter] = []

    def sink(letter: DeadLetter) -> None:
        if broken:
            raise OSError("disk full")
        letters.append(letter)

    with cluster() as kafka, reading(kafka, on_decode_error="dlq", dead_letters=sink) as consumer:
        found: list[Record[Any, Any]] = []
        caught: list[DecodeError] = []
        while len(caught) < 2 or len(found) < 5:
            try:
                found += consumer.poll(0.1)
            except DecodeError as exc:
                caught.append(exc)
        assert "dead-letter sink failed as well: OSError" in caught[0].text
        assert [error.offset for error in caught] == [3] * len(caught)
        assert sorted(record.value for record in found) == [0, 1, 2, 10, 11]
        assert consumer.position(A0) == 3
        broken.clear()
        assert [record.value for record in polled(consumer, 1)] == [4]
        assert [letter.offset for letter in letters] == [3]


def test_a_key_that_fails_is_kept_beside_a_value_that_does_not_and_both_may_fail() -> None:
    values = [("1", "2"), ("x", "3"), ("4", "y"), ("x", "y"), ("z", None)]
    with consuming(values, on_decode_error="keep", key_deserializer=number) as consumer:
        found = [(record.key, record.value) for record in polled(consumer, 7)[:5]]
    assert [_plain(pair) for pair in found] == [(1, 2), (b"x", 3), (4, b"y"), (b"x", b"y"), (b"z", None)]
    parts = [made.error.part for pair in found for made in pair if isinstance(made, Undecoded)]
    assert parts == ["key", "value", "key", "value", "key"]


def _plain(pair: tuple[Any, Any]) -> tuple[Any, ...]:
    return tuple(made.raw if isinstance(made, Undecoded) else made for made in pair)


def test_what_is_kept_keeps_no_batch_alive() -> None:
    def broken(topic: str, headers: object, data: bytes) -> int:
        raise ValueError("no")

    with consuming(["x" * 100_000, "y"], on_decode_error="keep", value_deserializer=broken) as consumer:
        kept = next(record.value for record in polled(consumer, 4) if record.offset == 1)
    frames = [name for name, _ in traceback.walk_tb(kept.error.__cause__.__traceback__)]
    assert [frame.f_code.co_name for frame in frames] == ["broken"]


@pytest.mark.parametrize("mode", ["skip", "dlq", "keep"])
def test_a_partition_of_nothing_but_poison_is_passed(mode: str) -> None:
    """The position goes on with every poll, though `skip` and `dlq` have no record to return."""
    settings: dict[str, Any] = {"dead_letters": lambda letter: None} if mode == "dlq" else {}
    with cluster(["x"] * 1_300) as kafka, reading(kafka, on_decode_error=mode, **settings) as consumer:
        consumer.assign([A0])
        seen = 0
        for _ in range(1_400):
            seen += len(consumer.poll(0.2))
            if consumer.position(A0) == 1_300:
                break
        assert consumer.position(A0) == 1_300
        assert seen == (1_300 if mode == "keep" else 0)


def test_a_null_and_an_interrupt_are_no_errors_of_a_deserializer() -> None:
    calls: list[bytes] = []

    def interrupted(topic: str, headers: object, data: bytes) -> int:
        calls.append(data)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return int(data)

    with consuming(["0", None, "1"], on_decode_error="skip", value_deserializer=interrupted) as consumer:
        consumer.assign([A0])
        with pytest.raises(KeyboardInterrupt):
            polled(consumer, 3)
        assert [record.value for record in polled(consumer, 3)] == [0, None, 1]


def test_the_columns_have_null_and_an_error_where_a_record_failed() -> None:
    with consuming(
        [("1", "2"), ("x", "3"), ("x", "y")], on_decode_error="keep", key_deserializer=number
    ) as consumer:
        consumer.assign([A0])
        nothing = consumer.poll(0)
        records = consumer.poll(5)
    table = records.to_arrow()
    assert table.column("key").to_pylist() == [b"1", None, None]
    assert table.column("value").to_pylist() == [b"2", b"3", None]
    assert table.column("error").to_pylist() == [
        None,
        "key: ValueError",
        "key: ValueError; value: ValueError",
    ]
    assert nothing.to_arrow().schema == table.schema == records.of(A0).to_arrow().schema
    assert records.to_arrow(["error"]).num_columns == 1


def test_without_keep_the_columns_are_those_of_spark_and_leaderEpoch() -> None:
    with cluster() as kafka, reading(kafka, on_decode_error="skip") as consumer:
        table = consumer.poll(5).to_arrow()
        assert "error" not in table.column_names
        assert b"poison" not in table.column("value").to_pylist()


@pytest.mark.parametrize(("mode", "skipped"), [("skip", 3), ("keep", 0)])
def test_skipped_records_are_counted(mode: str, skipped: int) -> None:
    with consuming(["x", "1", "y", "z"], on_decode_error=mode) as consumer:
        polled(consumer, 7 - skipped - 1)
        counted = [
            value
            for name, value in consumer.metrics().items()
            if "records-skipped-total" in str(name) and "decode" in str(name)
        ]
        assert sum(counted) == skipped


@pytest.mark.spec("U-28")
def test_what_is_left_out_is_reported_in_the_log_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "kclient.fetch")
    with cluster(["x", "1"] * 20) as kafka, reading(kafka, on_decode_error="skip") as consumer:
        assert len(one_by_one(consumer, 22)) == 22
    (line,) = (entry.getMessage() for entry in caplog.records if entry.name == "kclient.fetch")
    assert "could not be decoded and were left out, the last of a-0 before offset" in line


def test_an_async_consumer_does_the_same() -> None:
    async def play(kafka: EmbeddedCluster) -> list[Any]:
        keys: dict[str, Any] = {"value_deserializer": number, "on_decode_error": "skip", **FAST}
        async with AsyncConsumer(
            bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest", **keys
        ) as consumer:
            await consumer.assign([A0])
            found: list[Any] = []
            async for record in consumer:
                found.append(record.value)
                if record.offset == 4:
                    return found
        return []

    with cluster() as kafka:
        assert asyncio.run(asyncio.wait_for(play(kafka), 20)) == [0, 1, 2, 4]


async def _coroutine(letter: DeadLetter) -> Awaitable[None] | None:
    return None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"on_decode_error": "ignore"}, "must be raise or skip or keep or dlq"),
        ({"on_decode_error": "dlq"}, "needs dead_letters: a function that takes a DeadLetter, or a path"),
        ({"dead_letters": print}, "dead_letters is not used with on_decode_error='raise'"),
        (
            {"on_decode_error": "dlq", "dead_letters": "topic:a.dlq"},
            "names a topic, and kclient has no producer",
        ),
        (
            {"on_decode_error": "dlq", "dead_letters": 7},
            "must be a path, or a function that takes a DeadLetter",
        ),
        ({"on_decode_error": "dlq", "dead_letters": _coroutine}, "must be a plain function"),
        ({"on_decode_error": "skip", "value_deserializer": None}, "bytes never fail"),
    ],
)
def test_what_cannot_work_is_refused_at_construction(settings: dict[str, Any], words: str) -> None:
    keys = {"bootstrap_servers": "localhost:9092", "value_deserializer": number}
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        load(keys | settings)
