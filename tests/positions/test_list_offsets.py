"""ListOffsets: requests per leader, responses split partition by partition, questions asked until they are answered."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kclient.errors import BrokerError, DeadlineError, PortClosedError, TopicAuthorizationError
from kclient.generated.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from kclient.network.backoff import Backoff
from kclient.positions.list_offsets import build_request, list_offsets, min_version, parse_response
from kclient.types import IsolationLevel, OffsetAndTimestamp, TopicPartition
from tests.positions.fake_cluster import FakeCluster, run

P0, P1, P2 = (TopicPartition("orders", n) for n in range(3))
UNCOMMITTED, COMMITTED = IsolationLevel


def answer(
    *partitions: tuple[TopicPartition, int, int], epoch: int = -1, time: int = -1
) -> ListOffsetsResponse:
    """(partition, error code, offset) …"""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=tp.topic,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=tp.partition,
                        error_code=code,
                        offset=offset,
                        leader_epoch=epoch,
                        timestamp=time,
                    )
                ],
            )
            for tp, code, offset in partitions
        ]
    )


def ask(
    cluster: FakeCluster, wanted: dict[TopicPartition, int], timeout: float = 10.0, **options: Any
) -> Any:
    backoff = Backoff(100, 1000, random.Random(1))
    level = options.get("level", UNCOMMITTED)
    return run(list_offsets(cluster, wanted, level, backoff=backoff, timeout=timeout))  # type: ignore[arg-type]


@pytest.mark.spec("S0-60", "B.15.9")
def test_a_response_is_split_into_found_missing_and_retry() -> None:
    listed = parse_response(answer((P0, 0, 7), (P1, 0, -1), (P2, 6, -1), epoch=4, time=99), [P0, P1, P2])
    assert listed.found == {P0: OffsetAndTimestamp(7, 99, 4)}
    assert listed.missing == [P1]
    assert listed.retry == [P2]


@pytest.mark.parametrize("code", [6, 9, 56, 78, 5, 74, 75, 3, 7, 999])
@pytest.mark.spec("S0-52", "S0-60", "B.15.9", "D-61")
def test_every_other_error_code_is_asked_again(code: int) -> None:
    listed = parse_response(answer((P0, code, -1)), [P0])
    assert (listed.found, listed.missing, listed.retry) == ({}, [], [P0])


@pytest.mark.spec("S0-60", "B.8", "B.15.9")
def test_an_old_message_format_counts_as_no_offset() -> None:
    assert parse_response(answer((P0, 43, -1)), [P0]).missing == [P0]


@pytest.mark.spec("S0-60")
def test_a_partition_that_the_response_leaves_out_is_asked_again() -> None:
    assert parse_response(answer((P0, 0, 7)), [P0, P1]).retry == [P1]


@pytest.mark.spec("S0-31", "S0-60")
def test_offset_zero_is_an_offset_and_epoch_minus_one_none() -> None:
    assert parse_response(answer((P0, 0, 0)), [P0]).found == {P0: OffsetAndTimestamp(0, -1, None)}


@pytest.mark.spec("S0-60")
def test_one_refused_topic_fails_the_whole_response_and_all_are_named() -> None:
    other = TopicPartition("audit", 0)
    with pytest.raises(TopicAuthorizationError) as caught:
        parse_response(answer((P0, 0, 7), (P1, 29, -1), (other, 29, -1), (P2, 6, -1)), [P0, P1, other, P2])
    assert caught.value.topics == ("audit", "orders")


@pytest.mark.spec("S0-50", "B.8")
def test_version_0_answers_with_a_list() -> None:
    old = answer((P0, 0, -1))
    old.topics[0].partitions[0].old_style_offsets = [12]
    assert parse_response(old, [P0]).found[P0].offset == 12


@pytest.mark.spec("S0-50", "B.8")
def test_the_oldest_version_that_can_ask() -> None:
    assert min_version([-1, -2], UNCOMMITTED) == 0
    assert min_version([-1, 1_700_000_000_000], UNCOMMITTED) == 1
    assert min_version([-2], COMMITTED) == 2


@pytest.mark.spec("S0-50", "B.8")
def test_a_request_carries_isolation_epochs_and_the_consumers_replica_id() -> None:
    request = build_request({P0: -1, P1: -2}, {P0: 5, P1: None}, COMMITTED, 30_000)
    assert (request.replica_id, request.isolation_level, request.timeout_ms) == (-1, 1, 30_000)
    (topic,) = request.topics
    asked = [(p.partition_index, p.current_leader_epoch, p.timestamp) for p in topic.partitions]
    assert asked == [(0, 5, -1), (1, -1, -2)]


@pytest.mark.spec("S0-45", "E3", "D-24")
def test_three_leaders_get_one_request_each() -> None:
    cluster = FakeCluster({("orders", n): (1 + n % 3, 5) for n in range(6)})
    wanted = {TopicPartition("orders", n): -1 for n in range(6)}
    cluster.answer(
        "ListOffsetsRequest",
        lambda node, request: answer(
            *(
                (TopicPartition("orders", p.partition_index), 0, 100 + p.partition_index)
                for p in request.topics[0].partitions
            )
        ),
    )
    found = ask(cluster, wanted)
    assert {tp.partition: offset.offset for tp, offset in found.items()} == {n: 100 + n for n in range(6)}
    asked = {a.node_id: [p.partition_index for p in a.message.topics[0].partitions] for a in cluster.asked}
    assert asked == {1: [0, 3], 2: [1, 4], 3: [2, 5]}


@pytest.mark.spec("S0-55", "S0-60")
def test_what_is_not_found_is_none() -> None:
    cluster = FakeCluster({("orders", 0): (1, 5)})
    cluster.answer("ListOffsetsRequest", lambda node, request: answer((P0, 0, -1)))
    assert ask(cluster, {P0: 1_700_000_000_000}) == {P0: None}
    assert cluster.asked[0].min_version == 1


@pytest.mark.spec("B.8", "D-42")
def test_a_stale_leader_is_asked_again_with_the_new_epoch() -> None:
    cluster = FakeCluster({("orders", 0): (1, 5)})
    responses = [answer((P0, 74, -1)), answer((P0, 0, 9), epoch=6)]
    cluster.answer("ListOffsetsRequest", lambda node, request: responses.pop(0))

    def new_metadata(node: int, topics: list[str]) -> MetadataResponse:
        fresh = FakeCluster({("orders", 0): (2, 6)})
        metadata = fresh.metadata.topics["orders"]
        cluster.set_leaders({("orders", 0): (2, metadata.partitions[0].leader_epoch or 0)})
        return MetadataResponse(brokers=[MetadataResponseBroker(node_id=2, host="b2", port=1)])

    cluster.answer("MetadataRequest", new_metadata)
    assert ask(cluster, {P0: -1})[P0] == OffsetAndTimestamp(9, -1, 6)
    epochs = [(a.node_id, a.message.topics[0].partitions[0].current_leader_epoch) for a in cluster.asked]
    assert epochs == [(1, 5), (2, 6)]


@pytest.mark.spec("B.8")
def test_a_lost_connection_is_tried_again_and_a_fatal_error_raised() -> None:
    cluster = FakeCluster({("orders", 0): (1, 5)})
    responses: list[Any] = [PortClosedError("gone"), answer((P0, 0, 3))]
    cluster.answer("ListOffsetsRequest", lambda node, request: responses.pop(0))
    cluster.answer(
        "MetadataRequest",
        lambda node, topics: MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b1", port=1)]),
    )
    assert ask(cluster, {P0: -1})[P0].offset == 3
    cluster.answer("ListOffsetsRequest", lambda node, request: BrokerError("no", code=76))
    with pytest.raises(BrokerError):
        ask(cluster, {P0: -1})


@pytest.mark.spec("B.8", "D-25")
def test_a_partition_without_leader_ends_with_the_deadline() -> None:
    cluster = FakeCluster({("orders", 0): (1, 5)})
    gone = TopicPartition("gone", 0)
    cluster.answer("ListOffsetsRequest", lambda node, request: answer((P0, 0, 3)))
    cluster.answer(
        "MetadataRequest",
        lambda node, topics: MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="b1", port=1)]),
    )
    with pytest.raises(DeadlineError, match="gone-0") as caught:
        ask(cluster, {P0: -1, gone: -1}, timeout=3)
    assert caught.value.timeout == 3
    assert len(cluster.of("ListOffsetsRequest")) == 1


@pytest.mark.spec("B.8")
def test_a_topic_that_may_not_be_described_is_reported() -> None:
    cluster = FakeCluster({})
    cluster.answer(
        "MetadataRequest",
        lambda node, topics: MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="b1", port=1)],
            topics=[MetadataResponseTopic(name="secret", error_code=29)],
        ),
    )
    with pytest.raises(TopicAuthorizationError):
        ask(cluster, {TopicPartition("secret", 0): -1})


@pytest.mark.spec("B.8")
def test_a_timeout_of_zero_sends_nothing() -> None:
    assert ask(FakeCluster({("orders", 0): (1, 5)}), {P0: -1}, timeout=0) == {}
