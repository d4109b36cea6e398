"""Leader epochs after a change of leader: OffsetForLeaderEpoch, and fenced clients (KIP-320).

One restart of the broker ends epoch 0 of a topic at offset 2; everything here is asked afterwards. With ZooKeeper the
only broker comes back as leader of the same epoch, so that there is nothing to see.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.generated.offset_for_leader_epoch_response import EpochEndOffset
from kclient.protocol import errors
from tests.conformance.fetching import base_offsets, fetch_one
from tests.conformance.target import Target, eventually, led
from tests.conformance.test_list_offsets import EARLIEST, LATEST, START, found

pytestmark = pytest.mark.since("3.3")

CURRENT = 2  # first version of OffsetForLeaderEpoch with the asker's own epoch
FUTURE = 1000


class History(NamedTuple):
    """A topic with two records of epoch 0 and one of `epoch`, which is the leader's now."""

    topic: str
    epoch: int


_histories: dict[int, History] = {}


@pytest.fixture
def history(target: Target) -> History:
    """The topic of this target; the broker is restarted for the first test that asks."""
    if id(target) not in _histories:
        topic = target.topic()
        target.produce(topic, b"0", b"1")
        target.restart()
        eventually(lambda: target.metadata(topic), lambda response: led(response) == 1)
        eventually(lambda: found(target, 1, topic, LATEST)[0], lambda code: code == errors.NONE)
        epoch = target.metadata(topic).partitions[0].leader_epoch
        assert epoch > 0
        target.produce(topic, b"2")
        _histories[id(target)] = History(topic, epoch)
    return _histories[id(target)]


def ask(target: Target, version: int, topic: str, epoch: int, **partition: Any) -> EpochEndOffset:
    """What OffsetForLeaderEpoch says of partition 0."""
    row = OffsetForLeaderPartition(**{"partition": 0, "leader_epoch": epoch, **partition})
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[row])],
        **({"replica_id": -1} if version >= 3 else {}),
    )
    [response] = target.ask(request, version).topics
    assert response.topic == topic
    [partition_answer] = response.partitions
    assert isinstance(partition_answer, EpochEndOffset)
    return partition_answer


def ended(
    version: int, epoch: int, offset: int, code: int = errors.NONE, partition: int = 0
) -> EpochEndOffset:
    """The response as it should be."""
    return EpochEndOffset(
        error_code=code, partition=partition, leader_epoch=epoch if version >= 1 else -1, end_offset=offset
    )


@pytest.mark.spec("B.9")
@pytest.mark.api("OffsetForLeaderEpoch")
def test_an_epoch_of_the_past_ends_where_the_next_begins(
    target: Target, history: History, version: int
) -> None:
    assert ask(target, version, history.topic, 0) == ended(version, 0, 2)


@pytest.mark.spec("B.9")
@pytest.mark.api("OffsetForLeaderEpoch", few=True)
def test_the_current_epoch_ends_at_the_end_of_the_log(target: Target, history: History, version: int) -> None:
    assert ask(target, version, history.topic, history.epoch) == ended(version, history.epoch, 3)


@pytest.mark.spec("B.9")
@pytest.mark.api("OffsetForLeaderEpoch", few=True)
def test_an_epoch_of_the_future_is_not_defined(target: Target, history: History, version: int) -> None:
    assert ask(target, version, history.topic, FUTURE) == ended(version, -1, -1)
    assert ask(target, version, history.topic, -1) == ended(version, -1, -1)


@pytest.mark.spec("B.9")
@pytest.mark.api("OffsetForLeaderEpoch", few=True)
def test_an_empty_partition_of_the_first_epoch(target: Target, history: History, version: int) -> None:
    topic = target.topic()
    assert ask(target, version, topic, 0) == ended(version, 0, 0)


@pytest.mark.spec("S0-61")
@pytest.mark.api("OffsetForLeaderEpoch", few=True)
def test_unknown_partitions(target: Target, history: History, version: int) -> None:
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert ask(target, version, history.topic, 0, partition=5) == ended(version, -1, -1, unknown, 5)
    assert ask(target, version, "no-such-topic", 0) == ended(version, -1, -1, unknown)


@pytest.mark.spec("S0-61")
@pytest.mark.api("OffsetForLeaderEpoch", CURRENT, few=True)
def test_the_askers_own_epoch_is_checked(target: Target, history: History, version: int) -> None:
    topic, epoch = history
    assert ask(target, version, topic, 0, current_leader_epoch=epoch) == ended(version, 0, 2)
    fenced = ask(target, version, topic, 0, current_leader_epoch=epoch - 1)
    assert fenced == ended(version, -1, -1, errors.FENCED_LEADER_EPOCH)
    ahead = ask(target, version, topic, 0, current_leader_epoch=FUTURE)
    assert ahead == ended(version, -1, -1, errors.UNKNOWN_LEADER_EPOCH)


@pytest.mark.spec("S0-61")
@pytest.mark.api("ListOffsets", 4, few=True)
def test_list_offsets_fences_an_old_epoch(target: Target, history: History, version: int) -> None:
    topic, epoch = history
    old = found(target, version, topic, LATEST, partition={"current_leader_epoch": epoch - 1})
    assert old == (errors.FENCED_LEADER_EPOCH, -1, -1, -1)
    assert found(target, version, topic, LATEST) == (errors.NONE, -1, 3, epoch)
    assert found(target, version, topic, EARLIEST) == (errors.NONE, -1, 0, 0)
    assert found(target, version, topic, START - 5 * 10**9)[3] == 0


@pytest.mark.spec("S0-61")
@pytest.mark.api("Fetch", 9, few=True)
def test_fetch_fences_an_old_epoch(target: Target, history: History, version: int) -> None:
    topic, epoch = history
    row = fetch_one(target, version, topic, 0, partition={"current_leader_epoch": epoch - 1})
    assert (row.error_code, row.high_watermark) == (errors.FENCED_LEADER_EPOCH, -1)
    row = fetch_one(target, version, topic, 0, partition={"current_leader_epoch": epoch})
    assert (row.error_code, row.high_watermark, base_offsets(row)) == (errors.NONE, 3, [0, 2])


@pytest.mark.spec("B.10.16")
@pytest.mark.api("Fetch", 12, few=True)
def test_fetch_reports_where_the_readers_epoch_ended(target: Target, history: History, version: int) -> None:
    topic, epoch = history
    row = fetch_one(target, version, topic, 3, partition={"last_fetched_epoch": 0})
    assert (row.error_code, bytes(row.records or b"")) == (errors.NONE, b"")
    assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (0, 2)
    row = fetch_one(target, version, topic, 2, partition={"last_fetched_epoch": 0})
    assert (row.diverging_epoch, base_offsets(row)) == (None, [2])
    row = fetch_one(target, version, topic, 3, partition={"last_fetched_epoch": epoch})
    assert row.diverging_epoch is None


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", 7, few=True)
def test_metadata_reports_the_new_epoch(target: Target, history: History, version: int) -> None:
    from tests.conformance.test_metadata import ask as metadata

    [topic] = metadata(target, version, history.topic).topics
    assert topic.partitions[0].leader_epoch == history.epoch
