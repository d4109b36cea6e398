"""Reading ranges from a real Kafka, without Spark: every column, every gap, every split, and what is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kclient.errors import DataLossError, DeadlineError
from kclient.spark.arrow_batches import default_columns
from kclient.spark.batch import plan_batch
from kclient.spark.executor import clients, read_range
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, split
from localkafka import KafkaCluster
from tests.realtime import within
from tests.spark.conftest import Message, Row, make_topic, read_with_other_client, write

Options = Callable[..., SourceOptions]
ALL = default_columns(include_headers=True)


def plan(options: SourceOptions) -> list[OffsetRange]:
    return asyncio.run(plan_batch(options))


def plan_all(options: SourceOptions, offsets: int) -> list[OffsetRange]:
    """Plan when that many offsets are stable: the coordinator writes the marker after its response."""
    deadline = time.monotonic() + 20
    while True:
        ranges = plan(options)
        if sum(wanted.size for wanted in ranges) == offsets:
            return ranges
        assert time.monotonic() < deadline, ranges
        time.sleep(0.05)


def rows_of(
    ranges: list[OffsetRange], options: SourceOptions, columns: tuple[str, ...] = ALL
) -> list[dict[str, Any]]:
    return [
        row
        for wanted in ranges
        for batch in read_range(wanted, options, columns)
        for row in batch.to_pylist()
    ]


def offsets_of(ranges: list[OffsetRange], options: SourceOptions) -> list[int]:
    return [row["offset"] for row in rows_of(ranges, options, ("offset",))]


def as_row(row: dict[str, Any]) -> Row:
    headers = row["headers"]
    return Row(
        row["topic"],
        row["partition"],
        row["offset"],
        row["timestampType"],
        round(row["timestamp"].timestamp() * 1000),
        row["key"],
        row["value"],
        None if headers is None else [(header["key"], header["value"]) for header in headers],
    )


def varied_messages(count: int) -> Iterator[Message]:
    """Null and empty keys and values, no, one and repeated headers, header values that are null."""
    for number in range(count):
        yield Message(
            value=(None, b"", b"v%d" % number, b"x" * 300)[number % 4],
            partition=number % 3,
            key=(b"k%d" % number, None, b"")[number % 5 % 3],
            headers=(None, [("h", b"1")], [("h", None), ("h", b""), ("ü", b"2")])[number % 7 % 3],
            timestamp=1_357_034_400_000 + number * 61_001,
        )


@pytest.mark.spec("SP-26", "SP-27", "SP-60", "SP-62")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_all_columns_are_what_another_client_reads(
    kafka1: KafkaCluster, fresh_name: str, options: Options, codec: str
) -> None:
    make_topic(kafka1, fresh_name, partitions=3)
    write(kafka1, fresh_name, varied_messages(3_000), compression_type=codec)
    read = options(kafka1, fresh_name)
    ours = [as_row(row) for row in rows_of(plan(read), read)]
    assert ours == read_with_other_client(kafka1, fresh_name, range(3))


def test_the_brokers_time_is_reported_as_such(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name, message_timestamp_type="LogAppendTime")
    write(kafka1, fresh_name, [Message(b"1"), Message(b"2")])
    read = options(kafka1, fresh_name)
    ours = [as_row(row) for row in rows_of(plan(read), read)]
    assert [row.timestamp_type for row in ours] == [1, 1]
    assert ours == read_with_other_client(kafka1, fresh_name, [0])


@pytest.mark.spec("SP-62", "ST-07", "I-21")
@pytest.mark.parametrize("pieces", [2, 7, 100])
def test_the_pieces_of_a_split_are_the_whole(
    kafka1: KafkaCluster, fresh_name: str, options: Options, pieces: int
) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"%d" % number) for number in range(2_000)), batch_num_messages=130)
    read = options(kafka1, fresh_name)
    (whole,) = plan(read)
    assert whole.size == 2_000
    parts = split([whole], min_partitions=pieces)
    assert len(parts) == pieces
    assert rows_of(parts, read) == rows_of([whole], read)


def transactions(kafka: KafkaCluster, topic: str, outcomes: str, size: int = 10) -> None:
    """One transaction for each letter: c commits, a aborts. Every other letter's records come from another producer."""
    producers = []
    for name in "xy":
        producer = Producer(
            {"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{topic}-{name}"}
        )
        producer.init_transactions(30)
        producers.append(producer)
    for number, outcome in enumerate(outcomes):
        producer = producers[number % 2]
        producer.begin_transaction()
        for record in range(size):
            producer.produce(topic, b"%s-%d-%d" % (outcome.encode(), number, record), partition=0)
        producer.flush(30)
        if outcome == "c":
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)


@pytest.mark.spec("SP-49", "SP-61", "ST-06", "ST-19")
@pytest.mark.parametrize("outcomes", ["cacca", "aaa", "caaaa"])
def test_read_committed_gives_committed_records_and_never_waits_in_a_gap(
    kafka1: KafkaCluster, fresh_name: str, options: Options, outcomes: str
) -> None:
    make_topic(kafka1, fresh_name)
    transactions(kafka1, fresh_name, outcomes)
    read = options(kafka1, fresh_name, kafka__isolation__level="read_committed")
    ranges = plan_all(read, 11 * len(outcomes))  # the markers are offsets too
    began = time.monotonic()
    ours = [as_row(row) for row in rows_of(ranges, read)]
    assert time.monotonic() - began < 5
    assert ours == read_with_other_client(kafka1, fresh_name, [0], "read_committed")
    assert len(ours) == 10 * outcomes.count("c")
    uncommitted = options(kafka1, fresh_name)
    assert len(rows_of(plan(uncommitted), uncommitted)) == 10 * len(outcomes)


@pytest.mark.spec("SP-49", "ST-19")
def test_read_committed_ends_before_an_open_transaction(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name)
    transactions(kafka1, fresh_name, "c")
    producer = Producer(
        {"bootstrap.servers": kafka1.bootstrap_servers, "transactional.id": f"{fresh_name}-open"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(fresh_name, b"open", partition=0)
    producer.flush(30)
    read = options(kafka1, fresh_name, kafka__isolation__level="read_committed")
    assert [(wanted.start, wanted.end) for wanted in plan_all(read, 11)] == [(0, 11)]
    assert [(wanted.start, wanted.end) for wanted in plan(options(kafka1, fresh_name))] == [(0, 12)]
    producer.abort_transaction(30)


@pytest.mark.spec("SP-61", "ST-06")
def test_a_range_that_ends_in_a_gap_is_done_without_waiting(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    """The marker of a transaction is the offset before the end: there is no record to wait for."""
    make_topic(kafka1, fresh_name)
    transactions(kafka1, fresh_name, "ca")
    read = options(kafka1, fresh_name, kafka__isolation__level="read_committed", fetch__readAhead="0")
    plan_all(read, 22)
    began = time.monotonic()
    assert offsets_of([OffsetRange(fresh_name, 0, 5, 11)], read) == [5, 6, 7, 8, 9]
    assert offsets_of([OffsetRange(fresh_name, 0, 11, 22)], read) == []
    assert offsets_of([OffsetRange(fresh_name, 0, 10, 11)], read) == []
    assert time.monotonic() - began < 5


def delete_records(kafka: KafkaCluster, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(30)


@pytest.mark.spec("SP-57", "SP-66")
def test_records_deleted_after_planning_are_a_data_loss(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"%d" % number) for number in range(100)))
    strict = options(kafka1, fresh_name)
    lenient = options(kafka1, fresh_name, failOnDataLoss="false")
    ranges = plan(strict)
    delete_records(kafka1, fresh_name, 40)
    with pytest.raises(DataLossError) as caught:
        offsets_of(ranges, strict)
    assert caught.value.kind == "START_OFFSET_RESET"
    assert caught.value.partitions == ((fresh_name, 0),)
    assert "40 records" in str(caught.value)
    assert offsets_of(ranges, lenient) == list(range(40, 100))


@pytest.mark.spec("SP-57", "SP-58")
def test_a_topic_recreated_after_planning_is_a_data_loss(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"old") for _ in range(10)))
    ranges = plan(options(kafka1, fresh_name))
    admin = AdminClient({"bootstrap.servers": kafka1.bootstrap_servers})
    admin.delete_topics([fresh_name])[fresh_name].result(30)
    time.sleep(1)
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"new") for _ in range(10)))
    with pytest.raises(DataLossError) as caught:
        offsets_of(ranges, options(kafka1, fresh_name))
    assert caught.value.kind == "TOPIC_RECREATED"


@pytest.mark.spec("SP-63", "ST-08")
def test_no_progress_ends_at_the_deadline_with_every_coordinate(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, [Message(b"1")])
    read = options(kafka1, fresh_name, kafkaConsumer__pollTimeoutMs="2000")
    with within(4) as elapsed, pytest.raises(DeadlineError) as caught:
        offsets_of([OffsetRange(fresh_name, 0, 1, 5)], read)  # these are never written
    assert elapsed.seconds >= 1
    for word in (f"{fresh_name}-0", "offset 1", "ends at 5", "leader 1", "pollTimeoutMs"):
        assert word in str(caught.value)


@pytest.mark.spec("SP-63", "SP-64")
@pytest.mark.parametrize("ahead", ["0", "1"])
def test_a_slow_consumer_of_the_batches_is_not_a_slow_broker(
    kafka1: KafkaCluster, fresh_name: str, options: Options, ahead: str
) -> None:
    """Between two batches the loop stands still, however long Spark takes; no deadline runs meanwhile."""
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"x" * 1000) for _ in range(900)), batch_size=16_384)
    read = options(
        kafka1,
        fresh_name,
        kafkaConsumer__pollTimeoutMs="1000",
        kafka__max__partition__fetch__bytes="300000",
        kafka__request__timeout__ms="1000",
        fetch__readAhead=ahead,
    )
    (whole,) = plan(read)
    offsets = []
    for batch in read_range(whole, read, ("offset",)):
        offsets += batch.column("offset").to_pylist()
        time.sleep(1.5)
    assert offsets == list(range(900))


@pytest.mark.spec("SP-66", "ST-06")
def test_a_leader_that_dies_in_the_middle_of_a_range_is_replaced(
    kafka3: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka3, fresh_name)
    write(kafka3, fresh_name, (Message(b"x" * 1000) for _ in range(5_000)), acks="all", batch_size=16_384)
    read = options(kafka3, fresh_name, kafka__max__partition__fetch__bytes="200000")
    (whole,) = plan(read)
    batches = read_range(whole, read, ("offset",))
    offsets = next(batches).column("offset").to_pylist()
    kafka3.kill(kafka3.leader_of(fresh_name, 0))
    for batch in batches:
        offsets += batch.column("offset").to_pylist()
    assert offsets == list(range(5_000))


@pytest.mark.spec("SP-16", "SP-60", "ST-18")
def test_ranges_of_one_cluster_share_a_client(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name, partitions=3)
    make_topic(kafka1, f"{fresh_name}-b")
    write(kafka1, fresh_name, varied_messages(30))
    write(kafka1, f"{fresh_name}-b", [Message(b"1")])
    read = options(kafka1, f"{fresh_name},{fresh_name}-b")
    assert len(rows_of(plan(read), read)) == 31
    first = clients.borrow(read, fresh_name)
    assert len(rows_of(plan(read), read)) == 31
    assert clients.borrow(read, f"{fresh_name}-b") is first
    assert (
        clients.borrow(options(kafka1, fresh_name, kafka__fetch__max__wait__ms="100"), fresh_name)
        is not first
    )


@pytest.mark.spec("SP-17")
def test_a_reader_that_stops_early_leaves_nothing_in_flight(
    kafka1: KafkaCluster, fresh_name: str, options: Options
) -> None:
    make_topic(kafka1, fresh_name)
    write(kafka1, fresh_name, (Message(b"x" * 1000) for _ in range(3_000)))
    read = options(kafka1, fresh_name, kafka__max__partition__fetch__bytes="300000")
    (whole,) = plan(read)
    batches = read_range(whole, read, ("offset",))
    assert next(batches).num_rows <= 1_000
    client = clients.borrow(read, fresh_name)
    batches.close()  # type: ignore[attr-defined]
    names = [task.get_name() for task in client.run(_tasks())]
    assert names == ["kclient metadata"]


async def _tasks() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
