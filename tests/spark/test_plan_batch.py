"""Plan a batch against the embedded cluster: a group's commits, logs that lost records, stale responses, filters."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import ConfigError, DataLossError
from kclient.spark.batch import plan_batch
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import EVERYTHING, RangeFilter

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
LATEST_ASKED = -1


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Topic t: two partitions of ten records, one a second from second 1000 on."""
    with EmbeddedCluster(topics={"t": 2}) as cluster:
        for partition in range(2):
            for number in range(10):
                at = (1000 + number) * 1000
                cluster.produce("t", [b"%d" % number], partition=partition, timestamp_ms=at)
        yield cluster


def planned(
    cluster: EmbeddedCluster, narrowing: RangeFilter = EVERYTHING, **extra: Any
) -> list[tuple[int, int, int]]:
    given = {
        name.replace("__", "."): json.dumps({"t": value}) if isinstance(value, dict) else value
        for name, value in extra.items()
    }
    servers = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": "t"}
    options = SourceOptions.parse({**servers, "fetchOffset.retryIntervalMs": "10", **given})
    return [(one.partition, one.start, one.end) for one in asyncio.run(plan_batch(options, narrowing))]


def commit(cluster: EmbeddedCluster, group: str, offsets: dict[TopicPartition, int]) -> None:
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "enable_auto_commit": False}
    with Consumer(group_id=group, **settings) as consumer:
        consumer.assign(list(offsets))
        consumer.commit({tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()})


GROUP = {"kafka__group__id": "g", "startingOffsets": "group"}


@pytest.mark.spec("SP-49")
def test_a_batch_starts_where_a_group_committed(cluster: EmbeddedCluster) -> None:
    commit(cluster, "g", {T0: 4, T1: 10})
    assert planned(cluster, **GROUP) == [(0, 4, 10)]
    assert cluster.committed("g") == {T0: 4, T1: 10}  # a batch commits nothing


def test_a_partition_without_a_commit_is_an_error_or_follows_the_policy(cluster: EmbeddedCluster) -> None:
    commit(cluster, "g", {T0: 4})
    with pytest.raises(ConfigError, match=r"t-1.*startingOffsets.fallback"):
        planned(cluster, **GROUP)
    assert planned(cluster, **GROUP, startingOffsets__fallback="earliest") == [(0, 4, 10), (1, 0, 10)]
    assert planned(cluster, **GROUP, startingOffsets__fallback="latest") == [(0, 4, 10)]


@pytest.mark.spec("SP-57", "ST-05")
def test_a_groups_commit_that_aged_out_is_a_data_loss(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    commit(cluster, "g", {T0: 4, T1: 9})
    cluster.delete_records("t", 0, before=7)
    with pytest.raises(DataLossError, match="asked from 4, the log starts at 7: up to 3 records") as caught:
        planned(cluster, **GROUP)
    assert (caught.value.kind, caught.value.partitions) == ("START_OFFSET_RESET", (T0,))
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        assert planned(cluster, **GROUP, failOnDataLoss="false") == [(0, 7, 10), (1, 9, 10)]
    assert "START_OFFSET_RESET" in caplog.text


@pytest.mark.spec("SP-57", "ST-05")
def test_a_truncated_log_is_a_data_loss(cluster: EmbeddedCluster) -> None:
    cluster.truncate("t", 0, to=3)
    beyond = {"startingOffsets": {"0": 5, "1": 0}, "endingOffsets": {"0": 8, "1": 5}}
    with pytest.raises(DataLossError, match="offset was changed from 5 to 3"):
        planned(cluster, **beyond)
    assert planned(cluster, **beyond, failOnDataLoss="false") == [(1, 0, 5)]


def shorten(cluster: EmbeddedCluster, times: int | None) -> Any:
    """Let responses about the ends of logs be `times` times those of before three records were written."""

    def edit(request: Any, answer: Any) -> Any:
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.offset -= 3
        return answer

    def asks_for_the_end(request: Any) -> bool:
        return all(one.timestamp == LATEST_ASKED for topic in request.topics for one in topic.partitions)

    return cluster.on("ListOffsets", edit, times=times, only_if=asks_for_the_end)


@pytest.mark.spec("SP-51")
def test_a_stale_end_is_looked_at_again(cluster: EmbeddedCluster) -> None:
    at = {"startingOffsets": {"0": 9, "1": 10}, "endingOffsets": {"0": 10, "1": 10}}
    shorten(cluster, times=2)
    assert planned(cluster, **at) == [(0, 9, 10)]
    shorten(cluster, times=None)
    with pytest.raises(DataLossError, match="changed from 9 to 7"):
        planned(cluster, **at, fetchOffset__numRetries="2")


@pytest.mark.spec("SP-51")
def test_an_end_that_no_broker_contradicts_is_taken_as_it_is(cluster: EmbeddedCluster) -> None:
    cluster.forget_requests()
    shorten(cluster, times=1)
    assert planned(cluster) == [(0, 0, 7), (1, 0, 7)]
    assert [one.api for one in cluster.requests].count("ListOffsets") == 2  # the starts, the ends, no more


@pytest.mark.spec("SP-32")
def test_filters_narrow_what_is_planned(cluster: EmbeddedCluster) -> None:
    narrowing = RangeFilter(partitions=frozenset([1]), first=3, end=8)
    assert planned(cluster, narrowing) == [(1, 3, 8)]
    assert planned(cluster, narrowing, minPartitions="2") == [(1, 3, 5), (1, 5, 8)]
    assert planned(cluster, RangeFilter(topics=frozenset(["other"]))) == []


def test_a_start_at_a_time_says_what_to_do_with_an_empty_partition(cluster: EmbeddedCluster) -> None:
    cluster.delete_records("t", 1, 10)
    with pytest.raises(
        ConfigError, match=r"startingTimestamp: t-1 has no record.* or it is empty\. Choose .*Strategy"
    ):
        planned(cluster, startingTimestamp="1005000")
    late = {"startingOffsetsByTimestampStrategy": "latest"}
    assert planned(cluster, startingTimestamp="1005000", **late) == [(0, 5, 10)]


@pytest.mark.spec("SP-32")
def test_a_time_filter_skips_what_is_older(cluster: EmbeddedCluster) -> None:
    assert planned(cluster, RangeFilter(since_ms=1_006_500)) == [(0, 7, 10), (1, 7, 10)]
    assert planned(cluster, RangeFilter(since_ms=1, first=2)) == [(0, 2, 10), (1, 2, 10)]
    assert planned(cluster, RangeFilter(since_ms=5_000_000)) == []
    cluster.produce("t", [b"old"], partition=0, timestamp_ms=1)  # log order is not time order
    assert planned(cluster, RangeFilter(since_ms=1_006_500)) == [(0, 7, 11), (1, 7, 10)]
