"""ListOffsets: the ends of a log and the search by time."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.generated.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kclient.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.protocol import errors
from tests.conformance.target import Target

pytestmark = pytest.mark.api("ListOffsets", 1, few=True)

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = (
    -1,
    -2,
    -3,
    -4,
    -5,
    -6,
)
EPOCH = 4  # first version with leader epochs
START = 1_600_000_000_000
READ_COMMITTED = 1
CLIENT = -1  # as replica id


def ask(target: Target, version: int, topic: str, timestamp: int, **fields: Any) -> Any:
    """The whole response about partition 0 of a topic."""
    partition = {"partition_index": 0, "timestamp": timestamp, **fields.pop("partition", {})}
    row = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(**partition)])
    return target.ask(ListOffsetsRequest(**{"replica_id": CLIENT, "topics": [row], **fields}), version)


def found(
    target: Target, version: int, topic: str, timestamp: int, **fields: Any
) -> tuple[int, int, int, int]:
    """Error code, timestamp, offset and leader epoch."""
    [row] = ask(target, version, topic, timestamp, **fields).topics[0].partitions
    return row.error_code, row.timestamp, row.offset, row.leader_epoch


def filled(target: Target, **configs: str | int) -> str:
    """A topic with records at START, START + 20 and, in a batch of their own, START + 10, START + 30."""
    topic = target.topic(**configs)
    target.produce(topic, b"0", b"1", timestamps=[START, START + 20])
    target.produce(topic, b"2", b"3", timestamps=[START + 10, START + 30])
    return topic


@pytest.mark.spec("S0-53")
@pytest.mark.api("ListOffsets", 1)
def test_the_latest_offset_is_the_end(target: Target, version: int) -> None:
    topic = filled(target)
    row = ListOffsetsPartitionResponse(
        partition_index=0, timestamp=-1, offset=4, leader_epoch=0 if version >= EPOCH else -1
    )
    response = ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic, partitions=[row])])
    assert ask(target, version, topic, LATEST) == response


@pytest.mark.spec("S0-54")
def test_the_earliest_offset_is_the_start(target: Target, version: int) -> None:
    epoch = 0 if version >= EPOCH else -1
    assert found(target, version, filled(target), EARLIEST) == (errors.NONE, -1, 0, epoch)


@pytest.mark.spec("S0-55")
@pytest.mark.parametrize(
    ("after", "timestamp", "offset"), [(-5, START, 0), (0, START, 0), (1, START + 20, 1), (21, START + 30, 3)]
)
def test_the_first_record_at_or_after_a_time(
    target: Target, version: int, after: int, timestamp: int, offset: int
) -> None:
    epoch = 0 if version >= EPOCH else -1
    assert found(target, version, filled(target), START + after) == (errors.NONE, timestamp, offset, epoch)


@pytest.mark.spec("S0-55", "S0-62")
def test_no_record_as_late_as_that(target: Target, version: int) -> None:
    assert found(target, version, filled(target), START + 31) == (errors.NONE, -1, -1, -1)


@pytest.mark.spec("S0-53", "S0-54", "S0-62")
def test_an_empty_partition(target: Target, topic: str, version: int) -> None:
    epoch = 0 if version >= EPOCH else -1
    assert found(target, version, topic, LATEST) == (errors.NONE, -1, 0, epoch)
    assert found(target, version, topic, EARLIEST) == (errors.NONE, -1, 0, epoch)
    assert found(target, version, topic, START) == (errors.NONE, -1, -1, -1)


@pytest.mark.spec("C.2.1")
@pytest.mark.api("ListOffsets", 7, few=True)
def test_the_record_with_the_highest_timestamp(target: Target, topic: str, version: int) -> None:
    assert found(target, version, topic, MAX_TIMESTAMP) == (errors.NONE, -1, -1, -1)
    target.produce(topic, b"0", b"1", timestamps=[START + 50, START])
    target.produce(topic, b"2", timestamps=[START + 20])
    assert found(target, version, topic, MAX_TIMESTAMP) == (errors.NONE, START + 50, 0, 0)


@pytest.mark.spec("C.2.1")
@pytest.mark.api("ListOffsets", 8, few=True)
def test_the_earliest_local_offset_is_the_start(target: Target, version: int) -> None:
    assert found(target, version, filled(target), EARLIEST_LOCAL) == (errors.NONE, -1, 0, 0)


@pytest.mark.spec("C.2.1")
@pytest.mark.api("ListOffsets", 9, few=True)
def test_nothing_is_tiered(target: Target, version: int) -> None:
    assert found(target, version, filled(target), LATEST_TIERED) == (errors.NONE, -1, -1, -1)


@pytest.mark.spec("C.2.1")
@pytest.mark.api("ListOffsets", 11, few=True)
def test_nothing_waits_for_upload(target: Target, version: int) -> None:
    assert found(target, version, filled(target), EARLIEST_PENDING_UPLOAD) == (errors.NONE, -1, -1, -1)


@pytest.mark.spec("C.2.1")
@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (EARLIEST_PENDING_UPLOAD, 11), (-7, 99)],
)
@pytest.mark.api("ListOffsets", 1)
def test_special_timestamps_are_refused_before_their_version(
    target: Target, topic: str, version: int, timestamp: int, since: int
) -> None:
    if version < since:
        code, *rest = found(target, version, topic, timestamp)
        knows = target.since("3.0")  # 2.8 takes any of them for a time
        assert (code, rest) == (errors.UNSUPPORTED_VERSION if knows else errors.NONE, [-1, -1, -1])


@pytest.mark.spec("S0-51")
@pytest.mark.api("ListOffsets", 2, few=True)
def test_without_transactions_both_isolation_levels_see_the_same_end(target: Target, version: int) -> None:
    topic = filled(target)
    for isolation_level in (0, READ_COMMITTED):
        assert found(target, version, topic, LATEST, isolation_level=isolation_level)[2] == 4


@pytest.mark.spec("S0-61", "S0-62")
def test_an_unknown_partition_and_an_unknown_topic(target: Target, topic: str, version: int) -> None:
    nothing = (errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)
    assert found(target, version, topic, LATEST, partition={"partition_index": 5}) == nothing
    assert found(target, version, "no-such-topic", LATEST) == nothing


@pytest.mark.spec("S0-61", "S0-62")
@pytest.mark.api("ListOffsets", EPOCH, few=True)
def test_a_leader_epoch_ahead_of_the_brokers(target: Target, topic: str, version: int) -> None:
    ahead = found(target, version, topic, LATEST, partition={"current_leader_epoch": 1})
    assert ahead == (errors.UNKNOWN_LEADER_EPOCH, -1, -1, -1)
    same = found(target, version, topic, LATEST, partition={"current_leader_epoch": 0})
    assert same == (errors.NONE, -1, 0, 0)


def test_a_partition_asked_twice_is_refused(target: Target, topic: str, version: int) -> None:
    rows = [ListOffsetsPartition(partition_index=0, timestamp=which) for which in (LATEST, EARLIEST)]
    request = ListOffsetsRequest(replica_id=CLIENT, topics=[ListOffsetsTopic(name=topic, partitions=rows)])
    [response] = target.ask(request, version).topics
    assert {row.error_code for row in response.partitions} == {errors.INVALID_REQUEST}


@pytest.mark.spec("S0-54")
def test_the_start_moves_with_the_log_start(target: Target, version: int) -> None:
    topic = filled(target)
    target.delete_records(topic, 3)
    assert found(target, version, topic, EARLIEST)[:3] == (errors.NONE, -1, 3)
    code, _, offset, _ = found(target, version, topic, START)
    assert (code, offset >= 2) == (errors.NONE, True)


@pytest.mark.spec("S0-55")
def test_with_log_append_time_the_broker_stamps(target: Target, version: int) -> None:
    topic = filled(target, message_timestamp_type="LogAppendTime")
    code, timestamp, offset, _ = found(target, version, topic, START + 31)
    assert (code, offset) == (errors.NONE, 0)
    assert timestamp > START + 31


@pytest.mark.spec("C.2.1")
@pytest.mark.api("ListOffsets", few=True)
def test_version_0_lists_several_offsets(target: Target, version: int) -> None:
    if version > 0:
        return
    topic = filled(target)
    [row] = ask(target, 0, topic, LATEST, partition={"max_num_offsets": 5}).topics[0].partitions
    assert (row.error_code, list(row.old_style_offsets)) == (errors.NONE, [4, 0])
    [row] = ask(target, 0, topic, EARLIEST, partition={"max_num_offsets": 5}).topics[0].partitions
    assert (row.error_code, list(row.old_style_offsets)) == (errors.NONE, [0])
