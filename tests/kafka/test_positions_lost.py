"""Positions that are not in the log, or not stable yet, on a real Kafka: retention, truncation, open transactions."""

from __future__ import annotations

import logging
import time
from typing import Any

import pytest
from confluent_kafka import Consumer as JudgeConsumer
from confluent_kafka import TopicPartition as JudgePartition
from confluent_kafka.admin import AdminClient

from kclient import OffsetAndMetadata, TopicPartition
from kclient.errors import LogTruncatedError, OffsetOutOfRangeError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import QUIET, SECONDS, produce_numbers, producer

HOUR = 3_600_000


def delete_before(kafka: KafkaCluster, topic: str, offset: int) -> None:
    """Move the log start offset, as retention does."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    for future in admin.delete_records([JudgePartition(topic, 0, offset)]).values():
        future.result(SECONDS)


def filled(kafka: KafkaCluster, topic: str, count: int) -> TopicPartition:
    kafka.create_topic(topic, retention_ms=-1)
    produce_numbers(kafka, topic, range(count), 1)
    return TopicPartition(topic, 0)


@pytest.mark.spec("U-01", "S2-32", "D-26")
def test_a_commit_that_retention_overtook_is_reported_with_its_numbers(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    tp = filled(kafka1, fresh_name, 90)
    keys = {
        "bootstrap_servers": kafka1.bootstrap_servers,
        "group_id": fresh_name,
        "enable_auto_commit": False,
    }
    with consumer_class(**keys) as consumer:
        consumer.assign([tp])
        consumer.commit({tp: OffsetAndMetadata(10)})
    delete_before(kafka1, fresh_name, 50)
    with consumer_class(**keys) as consumer:
        consumer.assign([tp])
        with pytest.raises(OffsetOutOfRangeError) as caught:
            read(consumer, 1)
        lost = caught.value
        assert (lost.partition, lost.position, lost.log_start, lost.log_end, lost.missing) == (
            tp,
            10,
            50,
            90,
            40,
        )
        assert consumer.position(tp) == 10
        consumer.seek(tp, lost.log_start)
        assert [record.offset for record in read(consumer, 40)] == list(range(50, 90))


@pytest.mark.spec("U-01", "S2-31", "S0-63")
@pytest.mark.parametrize(("policy", "goes_on_at", "skipped"), [("earliest", 50, 40), ("latest", 90, 80)])
def test_a_policy_for_lost_positions_jumps_and_says_how_far(
    kafka1: KafkaCluster,
    consumer_class: Any,
    fresh_name: str,
    caplog: pytest.LogCaptureFixture,
    policy: str,
    goes_on_at: int,
    skipped: int,
) -> None:
    tp = filled(kafka1, fresh_name, 90)
    delete_before(kafka1, fresh_name, 50)
    with consumer_class(
        bootstrap_servers=kafka1.bootstrap_servers, on_offset_out_of_range=policy
    ) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 10)
        if policy == "earliest":
            assert read(consumer, 40)[0].offset == goes_on_at
        else:
            read_nothing(consumer, 1.0)
            produce_numbers(kafka1, fresh_name, [90], 1)
            assert read(consumer, 1)[0].offset == goes_on_at
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [text for text in warnings if f"{skipped} records skipped in all" in text] == warnings
    assert len(warnings) == 1


@pytest.mark.spec("B.9", "S0-24", "S0-04")
@pytest.mark.parametrize("policy", ["error", "earliest"])
def test_an_offset_beyond_the_end_of_its_epoch_is_a_truncated_log(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str, policy: str
) -> None:
    """What a consumer sees that was away during an unclean election: its epoch ends below where it was."""
    tp = filled(kafka1, fresh_name, 10)
    with consumer_class(
        bootstrap_servers=kafka1.bootstrap_servers, on_offset_out_of_range=policy
    ) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 0)
        assert len(read(consumer, 10)) == 10
        consumer.seek(tp, OffsetAndMetadata(50, leader_epoch=0))
        if policy == "error":
            with pytest.raises(LogTruncatedError) as caught:
                read(consumer, 1)
            assert caught.value.positions == {tp: 50}
            assert caught.value.divergent == {tp: OffsetAndMetadata(10, 0)}
            return
        assert consumer.position(tp) == 10
        produce_numbers(kafka1, fresh_name, [10], 1)
        assert [record.offset for record in read(consumer, 1)] == [10]


@pytest.mark.spec("B.9")
@pytest.mark.parametrize("policy", ["error", "earliest"])
def test_an_epoch_that_the_leader_has_never_had_is_a_lost_position(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str, policy: str
) -> None:
    tp = filled(kafka1, fresh_name, 10)
    with consumer_class(
        bootstrap_servers=kafka1.bootstrap_servers, on_offset_out_of_range=policy
    ) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, OffsetAndMetadata(5, leader_epoch=99))
        if policy == "error":
            with pytest.raises(LogTruncatedError) as caught:
                read(consumer, 1)
            assert caught.value.divergent == {tp: None}
        else:
            assert [record.offset for record in read(consumer, 10)] == list(range(10))


@pytest.mark.spec("B.8", "S0-44")
def test_a_search_by_time_that_finds_nothing_begins_with_the_first_record_that_new(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """As Java does: no position until a record of that age is there, looked for once in a request timeout."""
    kafka1.create_topic(fresh_name, retention_ms=-1)
    tp = TopicPartition(fresh_name, 0)
    source, now = producer(kafka1), int(time.time() * 1000)
    for number in range(5):
        source.produce(fresh_name, value=b"old %d" % number, timestamp=now - 2 * HOUR)
    assert source.flush(SECONDS) == 0
    keys = {"auto_offset_reset": "by_duration:PT1H", "request_timeout_ms": 2_000}
    with consumer_class(bootstrap_servers=kafka1.bootstrap_servers, **keys) as consumer:
        consumer.assign([tp])
        read_nothing(consumer, 0.5)
        produce_numbers(kafka1, fresh_name, [5, 6], 1)
        assert [record.offset for record in read(consumer, 2, 6.0)] == [5, 6]


@pytest.mark.spec("S0-29", "S0-37", "S0-22", "D-21")
def test_a_commit_under_an_open_transaction_is_waited_for(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    tp = filled(kafka1, fresh_name, 10)
    keys = {
        "bootstrap_servers": kafka1.bootstrap_servers,
        "group_id": fresh_name,
        "enable_auto_commit": False,
    }
    with consumer_class(**keys) as consumer:
        consumer.assign([tp])
        consumer.commit({tp: OffsetAndMetadata(2)})
    judge = JudgeConsumer({"bootstrap.servers": kafka1.bootstrap_servers, "group.id": fresh_name, **QUIET})
    writer = producer(kafka1, transactional_id=fresh_name)
    writer.init_transactions(SECONDS)
    writer.begin_transaction()
    writer.send_offsets_to_transaction(
        [JudgePartition(fresh_name, 0, 7)], judge.consumer_group_metadata(), SECONDS
    )
    with consumer_class(**keys, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        read_nothing(consumer, 1.0)
        writer.commit_transaction(SECONDS)
        assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]
    judge.close()
