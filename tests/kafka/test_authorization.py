"""Denied operations: raised by topic, once per attempt, and gone as soon as the operation is allowed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.errors import TopicAuthorizationError
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.other_clients import denied, produce_numbers
from tests.kafka.wire_tap import Tap

TOPIC_AUTHORIZATION_FAILED = 29


def settings(kafka: KafkaCluster, **more: Any) -> dict[str, Any]:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "auto_offset_reset": "earliest"}
    return {**keys, "fetch_max_wait_ms": 100, **more}


def codes(response: Any) -> list[int]:
    """The codes of the partitions of a response to OffsetFetch or ListOffsets."""
    topics = (
        [row for group in response.groups for row in group.topics]
        if hasattr(response, "groups")
        else response.topics
    )
    return [row.error_code for topic in topics for row in topic.partitions]


@pytest.fixture
def topics(kafka1: KafkaCluster, fresh_name: str) -> list[TopicPartition]:
    """Partition 0 of three topics with ten records each; the last one is the one that stays allowed."""
    names = [f"{fresh_name}-{word}" for word in ("one", "two", "open")]
    for name in names:
        kafka1.create_topic(name)
        produce_numbers(kafka1, name, range(10), 1)
    return [TopicPartition(name, 0) for name in names]


@pytest.mark.spec("S0-28", "B.15.7")
def test_committed_offsets_of_topics_that_are_denied(
    kafka1: KafkaCluster, topics: list[TopicPartition], fresh_name: str
) -> None:
    one, two, open_one = topics
    tap = Tap()
    with Consumer(**settings(kafka1, group_id=fresh_name, enable_auto_commit=False, runtime=tap)) as consumer:
        consumer.assign(topics)
        assert len(read(consumer, 30)) == 30
        consumer.commit({tp: OffsetAndMetadata(4) for tp in topics})
        with denied(kafka1, AclOperation.DESCRIBE, one.topic, two.topic):
            with pytest.raises(TopicAuthorizationError) as caught:
                consumer.committed(topics)
            assert sorted(caught.value.topics) == [one.topic, two.topic]
            assert sorted(codes(tap.answered("OffsetFetch")[-1].response)) == [0, 29, 29]
            (found,) = consumer.committed([open_one]).values()
            assert found is not None
            assert found.offset == 4
        assert {found.offset for found in consumer.committed(topics).values() if found} == {4}


@pytest.mark.spec("S0-42", "S0-60", "B.15.9")
def test_a_reset_that_is_denied_is_reported_once_for_each_attempt(
    kafka1: KafkaCluster, topics: list[TopicPartition]
) -> None:
    """All topics that are denied in one error; nothing of that response is applied, and later the reset succeeds."""
    one, two, open_one = topics
    tap = Tap()
    with Consumer(**settings(kafka1, runtime=tap)) as consumer:
        consumer.assign(topics)
        assert len(read(consumer, 30)) == 30
        with denied(kafka1, AclOperation.DESCRIBE, one.topic, two.topic):
            tap.forget()
            consumer.seek_to_beginning()
            with pytest.raises(TopicAuthorizationError) as caught:
                read(consumer, 1)
            assert sorted(caught.value.topics) == [one.topic, two.topic]
            assert sorted(codes(tap.answered("ListOffsets")[-1].response)) == [0, 29, 29]
        records: list[Any] = []
        failures = 0
        while len(records) < 30 and failures < 5:
            try:
                records += list(consumer.poll(0.5))
            except TopicAuthorizationError:  # of a response from before
                failures += 1
        assert len(records) == 30
        named = [topic.name for one in tap.asked("ListOffsets") for topic in one.request.topics]
        assert named.count(open_one.topic) > 1


@pytest.mark.spec("S2-33", "S2-50", "B.15.12", "D-58")
def test_a_fetch_that_is_denied_keeps_its_position_and_stops_no_other(
    kafka1: KafkaCluster, topics: list[TopicPartition]
) -> None:
    one, _, open_one = topics
    with Consumer(**settings(kafka1)) as consumer:
        consumer.assign([one, open_one])
        assert len(read(consumer, 20)) == 20
        produce_numbers(kafka1, one.topic, range(10, 12), 1)
        with denied(kafka1, AclOperation.READ, one.topic):
            assert denied_topics(consumer) == [one.topic]
            consumer.seek(one, 7)
            assert denied_topics(consumer) == [one.topic]
            assert consumer.position(one) == 7
            produce_numbers(kafka1, open_one.topic, [100], 1)
            found: list[int] = []
            while not found:
                with suppress(TopicAuthorizationError):
                    found += [int(record.value) for record in consumer.poll(0.2)]
            assert found == [100]
        assert [record.offset for record in allowed_again(consumer)] == list(range(7, 12))


def denied_topics(consumer: Any) -> list[str]:
    """The topics that the next error names."""
    with pytest.raises(TopicAuthorizationError) as caught:
        read(consumer, 1000)
    return list(caught.value.topics)


def allowed_again(consumer: Any) -> list[Any]:
    """The records after the denial; an error that was already on its way may still be raised."""
    for _ in range(5):
        with suppress(TopicAuthorizationError):
            return read(consumer, 5)
    raise AssertionError("still denied")


@pytest.mark.spec("S2-52", "B.15.12")
def test_a_denial_of_a_partition_that_was_given_up_is_not_reported(
    kafka1: KafkaCluster, topics: list[TopicPartition]
) -> None:
    one, _, open_one = topics
    tap = Tap()
    with Consumer(**settings(kafka1, runtime=tap)) as consumer:
        consumer.assign([one, open_one])
        assert len(read(consumer, 20)) == 20
        with denied(kafka1, AclOperation.READ, one.topic):
            tap.forget()
            for _ in range(100):  # the response with the error is there, and no poll has looked at it
                responses = [one.response for one in tap.answered("Fetch")]
                if 29 in [
                    row.error_code for a in responses for topic in a.responses for row in topic.partitions
                ]:
                    break
                consumer.partitions_for(open_one.topic)
            else:
                raise AssertionError("the fetch was not denied")
            consumer.assign([open_one])
            read_nothing(consumer, 0.5)
