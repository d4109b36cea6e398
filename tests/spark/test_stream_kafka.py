"""The stream reader on a real Kafka: another client writes, deletes, and says what is committed."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kclient.errors import DataLossError
from localkafka import KafkaCluster
from tests.spark.conftest import Message, make_topic, write
from tests.spark.stream_driver import Query, everything, reader_of

pytestmark = pytest.mark.timeout(120)


def fill(kafka: KafkaCluster, topic: str, *counts: int) -> None:
    write(
        kafka,
        topic,
        (Message(b"x", partition) for partition, count in enumerate(counts) for _ in range(count)),
    )


def judge(kafka: KafkaCluster, group: str) -> Consumer:
    return Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "enable.auto.commit": False}
    )


def committed(kafka: KafkaCluster, group: str, topic: str, partitions: int) -> list[int]:
    """What the other client reads of a group: −1001 where nothing is committed."""
    consumer = judge(kafka, group)
    try:
        wanted = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [found.offset for found in consumer.committed(wanted, timeout=20)]
    finally:
        consumer.close()


@pytest.mark.spec("SP-49", "SP-50", "SP-53", "SP-68", "I-21")
def test_each_record_once_in_limited_batches_and_the_group_follows(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    make_topic(kafka1, fresh_name, partitions=2)
    query = Query(reader_of(kafka1, fresh_name, maxOffsetsPerTrigger="100", commit__group__id=fresh_name))
    fill(kafka1, fresh_name, 150, 50)
    assert query.drain() == [100, 100]
    assert sorted(query.rows) == everything(150, 50)
    assert committed(kafka1, fresh_name, fresh_name, 2) == [75, 25]
    fill(kafka1, fresh_name, 1, 1)
    assert query.trigger() == [(0, 150), (1, 50)]
    assert committed(kafka1, fresh_name, fresh_name, 2) == [150, 50]


@pytest.mark.spec("SP-68", "SP-73", "ST-16")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_keeps_its_offsets(
    kafka1: KafkaCluster, fresh_name: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_topic(kafka1, fresh_name)
    member = Consumer(
        {"bootstrap.servers": kafka1.bootstrap_servers, "group.id": fresh_name, "group.protocol": protocol}
    )
    member.subscribe([fresh_name])
    query = Query(reader_of(kafka1, fresh_name, commit__group__id=fresh_name))
    for _ in range(60):
        if member.assignment():
            break
        member.poll(0.5)
    assert member.assignment()
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        for _ in range(3):
            fill(kafka1, fresh_name, 5)
            assert len(query.trigger() or []) == 5
            member.poll(0)
    logged = [record for record in caplog.records if "while it has members" in record.getMessage()]
    member.close()
    assert len(logged) == 1


@pytest.mark.spec("SP-49", "ST-19")
def test_only_committed_records_up_to_the_first_open_transaction(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    make_topic(kafka1, fresh_name)

    def producer(name: str) -> Producer:
        made = Producer(
            {"bootstrap.servers": kafka1.bootstrap_servers, "transactional.id": f"{fresh_name}-{name}"}
        )
        made.init_transactions(30)
        return made

    def begin(made: Producer) -> None:
        made.begin_transaction()
        for _ in range(5):
            made.produce(fresh_name, b"x", partition=0)
        made.flush(30)

    done, aborted, still_open = producer("done"), producer("aborted"), producer("open")
    for made in (done, aborted, still_open):
        begin(made)
    done.commit_transaction(30)
    aborted.abort_transaction(30)
    begin(done)
    done.commit_transaction(30)
    query = Query(reader_of(kafka1, fresh_name, kafka__isolation__level="read_committed"))
    assert query.drain() == [5]
    assert query.rows == [(0, offset) for offset in range(5)]
    assert query.log[-1][fresh_name]["0"] == 10
    still_open.commit_transaction(30)
    for _ in range(100):  # the marker is written a moment after the producer's response
        query.trigger()
        if len(query.rows) == 15:
            break
    assert sorted(query.rows) == sorted(set(query.rows))
    assert len(query.rows) == 15


@pytest.mark.spec("SP-57", "SP-58", "ST-05")
def test_deleted_records_and_a_topic_recreated(kafka1: KafkaCluster, fresh_name: str) -> None:
    make_topic(kafka1, fresh_name)
    admin = AdminClient({"bootstrap.servers": kafka1.bootstrap_servers})
    fill(kafka1, fresh_name, 10)
    strict = Query(reader_of(kafka1, fresh_name, fetchOffset__numRetries="1"))
    tolerant = Query(reader_of(kafka1, fresh_name, fetchOffset__numRetries="1", failOnDataLoss="false"))
    for query in (strict, tolerant):
        assert len(query.trigger() or []) == 10
    fill(kafka1, fresh_name, 10)
    (deleted,) = admin.delete_records([TopicPartition(fresh_name, 0, 15)]).values()
    deleted.result(30)
    with pytest.raises(DataLossError) as caught:
        strict.trigger()
    assert caught.value.kind == "START_OFFSET_RESET"
    assert tolerant.trigger() == [(0, offset) for offset in range(15, 20)]
    admin.delete_topics([fresh_name])[fresh_name].result(30)
    make_topic(kafka1, fresh_name)
    fill(kafka1, fresh_name, 40)
    assert tolerant.drain() == [0, 40]
