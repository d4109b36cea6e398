"""Fetch: records, the numbers around them, refusals, waiting, limits."""

from __future__ import annotations

import uuid

import pytest

from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.fetch_response import PartitionData
from kclient.protocol import errors
from tests.conformance.fetching import BY_ID, SESSIONS, base_offsets, fetch, fetch_one, fetch_request
from tests.conformance.target import Target
from tests.realtime import within

pytestmark = pytest.mark.api("Fetch", 4, few=True)

EPOCH = 9  # first version with the leader epoch of the reader


def numbers(row: PartitionData) -> tuple[int, int, int, int]:
    """Error code, high watermark, last stable offset, log start offset."""
    return row.error_code, row.high_watermark, row.last_stable_offset, row.log_start_offset


@pytest.mark.spec("S4-60", "C.2.1")
@pytest.mark.api("Fetch", 4)
def test_records_from_an_offset(target: Target, topic: str, version: int) -> None:
    for values in ((b"0", b"1"), (b"2",), (b"3",)):
        target.produce(topic, *values)
    row = fetch_one(target, version, topic, 1)
    assert base_offsets(row) == [0, 2, 3]  # whole batches, the first one holds the offset
    assert numbers(row) == (errors.NONE, 4, 4, 0 if version >= 5 else -1)
    assert row.aborted_transactions in (None, [])
    assert row.preferred_read_replica == -1
    assert row.diverging_epoch is None


@pytest.mark.spec("S4-60")
def test_the_end_of_the_log_has_no_records_yet(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0")
    row = fetch_one(target, version, topic, 1)
    assert numbers(row) == (errors.NONE, 1, 1, 0 if version >= 5 else -1)
    assert bytes(row.records) == b""


@pytest.mark.spec("B.15.12")
@pytest.mark.parametrize("offset", [2, 100, -1])
def test_an_offset_outside_the_log(target: Target, topic: str, version: int, offset: int) -> None:
    target.produce(topic, b"0")
    row = fetch_one(target, version, topic, offset)
    assert numbers(row) == (errors.OFFSET_OUT_OF_RANGE, -1, -1, -1)
    assert bytes(row.records or b"") == b""


@pytest.mark.spec("S0-61", "B.15.12")
def test_an_unknown_partition(target: Target, topic: str, version: int) -> None:
    row = fetch_one(target, version, topic, 0, partition={"partition": 5})
    assert (row.partition_index, *numbers(row)) == (5, errors.UNKNOWN_TOPIC_OR_PARTITION, -1, -1, -1)


@pytest.mark.spec("S0-61", "B.15.12")
def test_an_unknown_topic(target: Target, version: int) -> None:
    named = {"topic_id": uuid.uuid4().bytes} if version >= BY_ID else {"topic": "no-such-topic"}
    rows = [FetchTopic(partitions=[FetchPartition(partition=0, partition_max_bytes=100)], **named)]
    response = target.ask(FetchRequest(max_wait_ms=0, topics=rows), version)
    [row] = response.responses[0].partitions
    code = errors.UNKNOWN_TOPIC_ID if version >= BY_ID else errors.UNKNOWN_TOPIC_OR_PARTITION
    assert numbers(row) == (code, -1, -1, -1)


@pytest.mark.spec("S0-61")
@pytest.mark.api("Fetch", EPOCH, few=True)
def test_a_leader_epoch_ahead_of_the_brokers(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0")
    assert (
        fetch_one(target, version, topic, 0, partition={"current_leader_epoch": 0}).error_code == errors.NONE
    )
    row = fetch_one(target, version, topic, 0, partition={"current_leader_epoch": 1})
    assert numbers(row) == (errors.UNKNOWN_LEADER_EPOCH, -1, -1, -1)


@pytest.mark.spec("B.10.16")
@pytest.mark.api("Fetch", 12, few=True)
def test_an_epoch_that_ended_earlier_is_reported_where(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0", b"1")
    same = fetch_one(target, version, topic, 1, partition={"last_fetched_epoch": 0})
    assert (same.error_code, base_offsets(same)) == (errors.NONE, [0])
    row = fetch_one(target, version, topic, 1, partition={"last_fetched_epoch": 7})
    assert row.error_code in (errors.NONE, errors.OFFSET_OUT_OF_RANGE, errors.UNKNOWN_LEADER_EPOCH)


@pytest.mark.spec("B.10.2")
def test_an_empty_response_waits_for_max_wait(target: Target, topic: str, version: int) -> None:
    with within(2) as elapsed:
        row = fetch_one(target, version, topic, 0, max_wait_ms=150, min_bytes=1)
    assert elapsed.seconds > 0.12
    assert numbers(row)[:2] == (errors.NONE, 0)


def test_without_min_bytes_nothing_waits(target: Target, topic: str, version: int) -> None:
    with within(2):
        fetch_one(target, version, topic, 0, max_wait_ms=10_000, min_bytes=0)


def test_records_end_the_wait(target: Target, topic: str, version: int) -> None:
    with target.connect() as raw_client:
        raw_client.send(fetch_request(target, version, {topic: 0}, max_wait_ms=10_000, min_bytes=1), version)
        assert raw_client.silent(0.05)
        target.produce(topic, b"0")
        [row] = raw_client.receive(timeout=5).responses[0].partitions
        assert base_offsets(row) == [0]


def test_an_error_ends_the_wait(target: Target, topic: str, version: int) -> None:
    with within(2):
        fetch(target, version, {topic: 5}, max_wait_ms=10_000, min_bytes=1)


@pytest.mark.spec("B.10.6")
def test_the_first_batch_comes_whole_whatever_the_limits(target: Target, version: int) -> None:
    topics = [target.topic(), target.topic()]
    for topic in topics:
        for _ in range(2):
            target.produce(topic, b"x" * 1000)
    response = fetch(
        target, version, dict.fromkeys(topics, 0), partition={"partition_max_bytes": 1}, max_bytes=1
    )
    rows = [row for topic in response.responses for row in topic.partitions]
    assert [row.error_code for row in rows] == [errors.NONE, errors.NONE]
    assert sorted(base_offsets(row) for row in rows) == [[], [0]]


@pytest.mark.spec("B.10.6")
def test_the_partition_limit_cuts_the_last_batch(target: Target, topic: str, version: int) -> None:
    for _ in range(3):
        target.produce(topic, b"x" * 1000)
    row = fetch_one(target, version, topic, 0, partition={"partition_max_bytes": 2500})
    assert 2000 < len(bytes(row.records)) <= 2500
    assert base_offsets(row) == [0, 1]


def test_two_partitions_in_the_order_asked(target: Target, version: int) -> None:
    topics = [target.topic() for _ in range(3)]
    response = fetch(target, version, dict.fromkeys(topics, 0))
    ids = [target.topic_id(topic) for topic in topics]
    assert [row.topic_id if version >= BY_ID else row.topic for row in response.responses] == (
        ids if version >= BY_ID else topics
    )


def test_an_unknown_isolation_level(target: Target, topic: str, version: int) -> None:
    response = fetch(target, version, {topic: 0}, isolation_level=7)
    assert response.error_code == (errors.UNKNOWN_SERVER_ERROR if version >= SESSIONS else errors.NONE)
    rows = [numbers(row) for topic in response.responses for row in topic.partitions]
    assert rows == ([] if version >= BY_ID else [(errors.UNKNOWN_SERVER_ERROR, -1, -1, -1)])


@pytest.mark.api("Fetch", 0)
def test_every_version_answers_an_empty_request(target: Target, version: int) -> None:
    response = target.ask(FetchRequest(max_wait_ms=0, topics=[]), version)
    assert (response.error_code, response.responses, response.throttle_time_ms) == (errors.NONE, [], 0)


@pytest.mark.api("Fetch", 0)
@pytest.mark.parametrize("values", [[b"a", b"b"]])
def test_older_versions_get_older_formats(
    target: Target, topic: str, version: int, values: list[bytes]
) -> None:
    target.produce(topic, *values)
    target.produce(topic, b"c")
    row = fetch_one(target, version, topic, 0)
    magic = 0 if version < 2 else 1 if version < 4 else 2
    records = bytes(row.records)
    assert (row.error_code, row.high_watermark, records[16]) == (errors.NONE, 3, magic)
    assert base_offsets(row) == ([0, 2] if magic == 2 else [0, 1, 2])
