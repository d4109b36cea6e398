"""What grew with the versions of Fetch, as it goes over the wire: sessions, topic ids, leader epochs."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from tests.brokers.conftest import Broker
from tests.brokers.writing import numbered, produce
from tests.kafka.blocking_consumers import read, read_nothing
from tests.kafka.wire_tap import Exchange, Tap

FIRST = 1_700_000_000_000
NO_ID = bytes(16)


def consumer_of(broker: Broker, tap: Tap, **settings: Any) -> Consumer:
    keys = {"bootstrap_servers": broker.bootstrap_servers, "fetch_max_wait_ms": 100, "runtime": tap}
    return Consumer(**{**keys, "auto_offset_reset": "earliest", **settings})


def session_of(fetch: Exchange) -> tuple[int, int]:
    return fetch.request.session_id, fetch.request.session_epoch


def named(fetch: Exchange) -> list[tuple[int, int]]:
    """The partitions that a request names, with their offsets."""
    return [(row.partition, row.fetch_offset) for topic in fetch.request.topics for row in topic.partitions]


def forgotten(fetch: Exchange) -> list[int]:
    return [number for topic in fetch.request.forgotten_topics_data for number in topic.partitions]


@pytest.mark.since("1.1")
@pytest.mark.spec("S2-14", "S2-15", "B.10.14", "D-70", "D-25")
def test_a_session_names_only_what_changed(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 3)
    produce(broker, fresh_name, numbered(6, FIRST), 2)
    parts = [TopicPartition(fresh_name, number) for number in range(3)]
    tap = Tap()
    with consumer_of(broker, tap) as consumer:
        consumer.assign(parts)
        assert len(read(consumer, 6)) == 6
        read_nothing(consumer, 0.5)
        first, *rest = tap.answered("Fetch")
        assert (session_of(first), sorted(named(first))) == ((0, 0), [(0, 0), (1, 0), (2, 0)])
        (session_id,) = {one.response.session_id for one in [first, *rest]}
        assert session_id > 0
        assert [session_of(one) for one in rest] == [(session_id, n + 1) for n in range(len(rest))]
        assert named(rest[-1]) == []
        assert rest[-1].response.responses == []
        tap.forget()
        produce(broker, fresh_name, numbered(1, FIRST))
        assert len(read(consumer, 1)) == 1
        read_nothing(consumer, 0.3)
        assert {row for one in tap.asked("Fetch") for row in named(one)} == {(0, 4)}
        consumer.pause([parts[1]])
        read_nothing(consumer, 0.4)
        assert [number for one in tap.asked("Fetch") for number in forgotten(one)] == [1]
    assert session_of(tap.asked("Fetch")[-1]) == (session_id, -1)


@pytest.mark.until("1.0")
@pytest.mark.spec("S2-14", "S2-15")
def test_without_sessions_every_fetch_names_everything(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name, 2)
    produce(broker, fresh_name, numbered(6, FIRST), 2)
    tap = Tap()
    with consumer_of(broker, tap) as consumer:
        consumer.assign([TopicPartition(fresh_name, number) for number in range(2)])
        assert len(read(consumer, 6)) == 6
        read_nothing(consumer, 0.3)
        for fetch in tap.answered("Fetch")[2:]:
            assert sorted(named(fetch)) == [(0, 3), (1, 3)]
        tap.forget()
    assert all(named(fetch) for fetch in tap.asked("Fetch"))  # nothing there to be closed


@pytest.mark.spec("B.10.13", "D-47")
def test_topics_are_named_by_id_since_that_is_understood(broker: Broker, fresh_name: str) -> None:
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(3, FIRST))
    tap = Tap()
    with consumer_of(broker, tap) as consumer:
        consumer.assign([TopicPartition(fresh_name, 0)])
        assert len(read(consumer, 3)) == 3
        known = {topic.name: topic.topic_id for topic in tap.answered("Metadata")[-1].response.topics}
        fetch = tap.asked("Fetch")[0]
        (topic,) = fetch.request.topics
        assert (known[fresh_name] != NO_ID) == broker.since("2.8")
        if broker.since("3.1"):
            assert (fetch.version >= 13, topic.topic_id, topic.topic) == (True, known[fresh_name], "")
        else:
            assert (fetch.version <= 12, topic.topic_id, topic.topic) == (True, NO_ID, fresh_name)


@pytest.mark.spec("S0-23", "S0-24", "B.5.6", "B.9", "D-41", "D-43")
def test_a_committed_epoch_is_checked_where_epochs_can_be_trusted(broker: Broker, fresh_name: str) -> None:
    """OffsetForLeaderEpoch 3 came with 2.3, Metadata 9, whose epochs can be trusted, with 2.4."""
    broker.kafka.create_topic(fresh_name)
    produce(broker, fresh_name, numbered(10, FIRST))
    tp = TopicPartition(fresh_name, 0)
    settings = {"group_id": fresh_name, "enable_auto_commit": False}
    with consumer_of(broker, Tap(), **settings) as consumer:
        consumer.assign([tp])
        consumer.commit({tp: OffsetAndMetadata(4, leader_epoch=0)})
    tap = Tap()
    with consumer_of(broker, tap, **settings) as consumer:
        consumer.assign([tp])
        assert [record.offset for record in read(consumer, 6)] == list(range(4, 10))
    checks = tap.answered("OffsetForLeaderEpoch")
    (row,) = tap.asked("Fetch")[0].request.topics[0].partitions
    if not broker.since("2.4"):
        assert (checks, row.current_leader_epoch) == ([], -1)
        return
    (check,) = checks
    (asked,) = check.request.topics[0].partitions
    (reported,) = check.response.topics[0].partitions
    assert (asked.leader_epoch, asked.current_leader_epoch) == (0, 0)
    assert (reported.error_code, reported.leader_epoch, reported.end_offset) == (0, 0, 10)
    assert tap.apis().index("OffsetForLeaderEpoch") < tap.apis().index("Fetch")
    assert row.current_leader_epoch == 0
