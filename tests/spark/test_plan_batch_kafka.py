"""Planning on a real Kafka: which partitions, from where to where."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kclient.errors import ConfigError, DataLossError, PortClosedError, UnknownTopicError
from kclient.spark.batch import plan_batch
from kclient.spark.options import SourceOptions
from localkafka import KafkaCluster
from tests.spark.conftest import Message, make_topic, write

Options = Callable[..., SourceOptions]
FAST = {"fetchOffset__retryIntervalMs": "50"}


def planned(options: SourceOptions) -> list[tuple[str, int, int, int]]:
    return [(r.topic, r.partition, r.start, r.end) for r in asyncio.run(plan_batch(options))]


@pytest.fixture
def topic(kafka1: KafkaCluster, fresh_name: str) -> str:
    """Two partitions with 100 records each, one a second from second 1000 on."""
    make_topic(kafka1, fresh_name, partitions=2)
    write(
        kafka1,
        fresh_name,
        (Message(b"%d" % n, partition=n % 2, timestamp=(1000 + n // 2) * 1000) for n in range(200)),
    )
    return fresh_name


def test_all_of_every_partition_by_default(kafka1: KafkaCluster, topic: str, options: Options) -> None:
    assert planned(options(kafka1, topic)) == [(topic, 0, 0, 100), (topic, 1, 0, 100)]


@pytest.mark.spec("SP-55")
def test_ranges_are_split_as_the_options_say(kafka1: KafkaCluster, topic: str, options: Options) -> None:
    assert planned(options(kafka1, topic, maxRecordsPerPartition="60")) == [
        (topic, 0, 0, 50),
        (topic, 0, 50, 100),
        (topic, 1, 0, 50),
        (topic, 1, 50, 100),
    ]
    assert len(planned(options(kafka1, topic, minPartitions="10"))) == 10


def test_offsets_as_json(kafka1: KafkaCluster, topic: str, options: Options) -> None:
    start, end = f'{{"{topic}": {{"0": 23, "1": -2}}}}', f'{{"{topic}": {{"0": 40, "1": -1}}}}'
    ranges = planned(options(kafka1, topic, startingOffsets=start, endingOffsets=end))
    assert ranges == [(topic, 0, 23, 40), (topic, 1, 0, 100)]


def test_json_must_name_every_partition_and_no_other(
    kafka1: KafkaCluster, topic: str, options: Options
) -> None:
    one, unknown = f'{{"{topic}": {{"0": 23}}}}', f'{{"{topic}": {{"0": 1, "1": 2, "2": 3}}}}'
    with pytest.raises(ConfigError, match=f"does not name {topic}-1"):
        planned(options(kafka1, topic, startingOffsets=one))
    with pytest.raises(ConfigError, match=f"names {topic}-2"):
        planned(options(kafka1, topic, startingOffsets=unknown))
    lenient = options(kafka1, topic, startingOffsets=one, startingOffsets__fallback="earliest")
    assert planned(lenient) == [(topic, 0, 23, 100), (topic, 1, 0, 100)]


def test_times(kafka1: KafkaCluster, topic: str, options: Options) -> None:
    half = options(kafka1, topic, startingTimestamp="1050000", endingTimestamp="1060000")
    assert planned(half) == [(topic, 0, 50, 60), (topic, 1, 50, 60)]
    each = f'{{"{topic}": {{"0": 1099500, "1": 0}}}}'
    with pytest.raises(ConfigError, match="no record at or after 1099500"):
        planned(options(kafka1, topic, startingOffsetsByTimestamp=each))
    late = options(
        kafka1, topic, startingOffsetsByTimestamp=each, startingOffsetsByTimestampStrategy="latest"
    )
    assert planned(late) == [(topic, 1, 0, 100)]
    beyond = options(kafka1, topic, endingTimestamp="9000000")
    assert planned(beyond) == [(topic, 0, 0, 100), (topic, 1, 0, 100)]


def test_assign_and_pattern(kafka1: KafkaCluster, topic: str) -> None:
    base = {"kafka.bootstrap.servers": kafka1.bootstrap_servers, "fetchOffset.numRetries": "0"}
    assert planned(SourceOptions.parse({**base, "assign": f'{{"{topic}": [1]}}'})) == [(topic, 1, 0, 100)]
    with pytest.raises(ConfigError, match=f"{topic}-7"):
        planned(SourceOptions.parse({**base, "assign": f'{{"{topic}": [1, 7]}}'}))
    found = SourceOptions.parse({**base, "subscribePattern": topic[4:]})  # a match anywhere is enough
    assert planned(found) == [(topic, 0, 0, 100), (topic, 1, 0, 100)]


def test_internal_topics_are_left_out_of_a_pattern(kafka1: KafkaCluster) -> None:
    base = {
        "kafka.bootstrap.servers": kafka1.bootstrap_servers,
        "subscribePattern": "^__consumer_offsets$",
        "startingOffsets": "earliest",
    }
    assert planned(SourceOptions.parse(base)) == []
    explicit = {"kafka.bootstrap.servers": kafka1.bootstrap_servers, "subscribe": "__consumer_offsets"}
    for options in ({**base, "includeInternalTopics": "true"}, explicit):
        assert {topic for topic, *_ in planned(SourceOptions.parse(options))} <= {"__consumer_offsets"}


def test_an_unknown_topic_is_named_with_its_nearest(
    kafka1: KafkaCluster, topic: str, options: Options
) -> None:
    with pytest.raises(UnknownTopicError) as caught:
        planned(options(kafka1, f"{topic}x", fetchOffset__numRetries="1", **FAST))
    assert (caught.value.topic, caught.value.nearest) == (f"{topic}x", topic)


@pytest.mark.spec("SP-57")
def test_offsets_that_the_log_lacks_are_a_data_loss(
    kafka1: KafkaCluster, topic: str, options: Options
) -> None:
    start, end = f'{{"{topic}": {{"0": 500, "1": 0}}}}', f'{{"{topic}": {{"0": 600, "1": 150}}}}'
    with pytest.raises(DataLossError) as caught:
        planned(options(kafka1, topic, startingOffsets=start, endingOffsets=end))
    assert caught.value.kind == "PARTITION_OFFSET_CHANGED"
    assert "changed from 500 to 100" in str(caught.value)
    assert "up to 150, the log ends at 100" in str(caught.value)
    lenient = options(kafka1, topic, startingOffsets=start, endingOffsets=end, failOnDataLoss="false")
    assert planned(lenient) == [(topic, 1, 0, 100)]


def test_planning_at_a_closed_port_is_an_error(options: Options) -> None:
    read = SourceOptions.parse({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})
    with pytest.raises(PortClosedError):
        planned(read)
