"""A consumer that starts again where its group stopped: nothing twice, nothing left out, no question to the leaders."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing, wait_for_assignment
from tests.kafka.other_clients import committed, produce_numbers, wait_until_committed

PARTITIONS = 2
COUNT = 200


def settings(kafka: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.bootstrap_servers,
        "group_id": group,
        "auto_offset_reset": "none",
        **more,
    }


def commit_by_hand(
    consumer_class: Any, kafka: KafkaCluster, topic: str, offsets: dict[TopicPartition, int]
) -> None:
    """Commits of a consumer that is no member of the group."""
    chosen = {tp: OffsetAndMetadata(offset, metadata=f"by hand, {offset}") for tp, offset in offsets.items()}
    with consumer_class(**settings(kafka, topic)) as consumer:
        consumer.assign(list(chosen))
        consumer.commit(chosen)
        assert consumer.committed(list(chosen)) == chosen


@pytest.mark.spec("S0-06", "S0-09", "S0-24", "S0-31", "S1-32", "S2-26", "S2-45", "S4-48", "D-32", "I-01")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_each_run_continues_where_the_last_one_stopped(
    request: pytest.FixtureRequest, consumer_class: Any, cluster: str, fresh_name: str
) -> None:
    """Offset 0 of one partition and one amid a batch of the other; with the policy `none` nothing may be reset."""
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, PARTITIONS, compression_type="lz4")
    produce_numbers(kafka, fresh_name, range(COUNT), PARTITIONS)
    first, second = (TopicPartition(fresh_name, partition) for partition in range(PARTITIONS))
    commit_by_hand(consumer_class, kafka, fresh_name, {first: 0, second: 33})
    assert committed(kafka, fresh_name) == {first: 0, second: 33}
    expected = sorted([*range(0, COUNT, 2), *range(67, COUNT, 2)])
    seen: list[int] = []
    while len(seen) < len(expected):
        stored = committed(kafka, fresh_name)
        with consumer_class(fresh_name, **settings(kafka, fresh_name, max_poll_records=40)) as consumer:
            records = read(consumer, 1)
            began = {
                TopicPartition(fresh_name, record.partition): record.offset for record in reversed(records)
            }
            assert began.items() <= stored.items()
            assert all(consumer.position(tp) == offset for tp, offset in stored.items() if tp not in began)
        seen += [int(record.value) for record in records]
    assert sorted(seen) == expected
    wait_until_committed(kafka, fresh_name, {first: COUNT // 2, second: COUNT // 2})


@pytest.mark.spec("I-01", "U-02", "S3-18", "D-78")
def test_the_current_record_comes_again_after_the_application_failed(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    """An exception at record 5: the next run begins with 5, however often offsets are committed by themselves."""
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    keys = settings(kafka1, fresh_name, auto_offset_reset="earliest", auto_commit_interval_ms=0)

    def work(numbers: list[int], fail_at: int | None) -> None:
        with consumer_class(fresh_name, **keys) as consumer:
            for record in consumer:
                if int(record.value) == fail_at:
                    raise ArithmeticError
                numbers.append(int(record.value))
                if int(record.value) == 9:
                    break

    first_run: list[int] = []
    with pytest.raises(ArithmeticError):
        work(first_run, 5)
    assert first_run == [0, 1, 2, 3, 4]
    assert committed(kafka1, fresh_name) == {TopicPartition(fresh_name, 0): 5}
    second_run: list[int] = []
    work(second_run, None)
    assert second_run == [5, 6, 7, 8, 9]
    wait_until_committed(kafka1, fresh_name, {TopicPartition(fresh_name, 0): 10})


@pytest.mark.spec("S3-19", "S4-58", "D-30")
def test_a_run_without_records_changes_nothing(
    kafka1: KafkaCluster, consumer_class: Any, fresh_name: str
) -> None:
    kafka1.create_topic(fresh_name)
    produce_numbers(kafka1, fresh_name, range(10), 1)
    commit_by_hand(consumer_class, kafka1, fresh_name, {TopicPartition(fresh_name, 0): 10})
    with consumer_class(fresh_name, **settings(kafka1, fresh_name)) as consumer:
        wait_for_assignment(consumer)
        read_nothing(consumer, 0.5)
    assert committed(kafka1, fresh_name) == {TopicPartition(fresh_name, 0): 10}
