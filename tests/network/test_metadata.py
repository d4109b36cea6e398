"""The metadata cache, without any loop: epochs, topic errors, leader news, impossible topologies."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.errors import ArgumentError, BrokerError, ConnectError, TopicAuthorizationError
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.network.metadata import MetadataCache
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import Broker, LeaderAndEpoch, TopicPartition

TP = TopicPartition("orders", 0)
ID_A, ID_B = b"a" * 16, b"b" * 16


def broker(node_id: int, host: str = "broker", port: int = 9092) -> MetadataResponseBroker:
    return MetadataResponseBroker(node_id=node_id, host=host, port=port)


def partition(leader: int = 1, epoch: int = -1, index: int = 0, error: int = 0) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index, leader_id=leader, leader_epoch=epoch, error_code=error
    )


def answer(
    *partitions: MetadataResponsePartition, topic_id: bytes = ZERO_UUID, error: int = 0, **more: Any
) -> MetadataResponse:
    topic = MetadataResponseTopic(
        name="orders", topic_id=topic_id, error_code=error, partitions=list(partitions)
    )
    return MetadataResponse(**{"brokers": [broker(1), broker(2)], "topics": [topic], **more})


def cache_after(*responses: MetadataResponse, version: int = 12) -> MetadataCache:
    cache = MetadataCache()
    for one in responses:
        cache.apply(one, version)
    return cache


@pytest.mark.spec("B.5.7")
def test_a_response_reports_leader_epoch_count_and_id() -> None:
    cache = cache_after(answer(partition(1, 5), partition(2, 7, index=1), topic_id=ID_A))
    assert cache.leader(TP) == LeaderAndEpoch(1, 5)
    assert cache.leader(TopicPartition("orders", 1)) == LeaderAndEpoch(2, 7)
    assert cache.leader(TopicPartition("other", 0)) == LeaderAndEpoch(None, None)
    assert cache.partition_count("orders") == 2
    assert cache.partition_count("other") is None
    assert (cache.topic_id("orders"), cache.topic_name(ID_A)) == (ID_A, "orders")
    assert cache.version == 1


@pytest.mark.spec("B.5.12")
def test_a_response_reports_racks_and_replicas() -> None:
    """For assignors that look at racks, and for a preferred replica that must be online."""
    one = partition(1, 5)
    one.replica_nodes, one.isr_nodes, one.offline_replicas = [1, 2, 3], [1, 3], [2]
    racked = broker(1)
    racked.rack = "a"
    cache = cache_after(answer(one, brokers=[racked, broker(2)]))
    known = cache.topics["orders"].partitions[0]
    assert (known.replicas, known.isr, known.offline_replicas) == ((1, 2, 3), (1, 3), (2,))
    assert {node: known.rack for node, known in cache.brokers.items()} == {1: "a", 2: None}


def test_the_address_of_a_coordinator_leaves_the_broker_its_rack() -> None:
    """FindCoordinator names no racks: without the old one a rack-aware group would rebalance for nothing, twice."""
    racked = broker(1)
    racked.rack = "a"
    cache = cache_after(answer(partition(1, 5), brokers=[racked, broker(2)]))
    cache.learn_broker(Broker(1, "elsewhere", 9093))
    cache.learn_broker(Broker(7, "new", 9092))
    assert cache.brokers[1] == Broker(1, "elsewhere", 9093, "a")
    assert cache.brokers[7] == Broker(7, "new", 9092)


@pytest.mark.spec("B.5.5", "S0-23")
def test_a_lower_epoch_is_ignored_and_asks_for_another_update() -> None:
    cache = cache_after(answer(partition(1, 5)))
    applied = cache.apply(answer(partition(2, 4)), 12)
    assert cache.leader(TP) == LeaderAndEpoch(1, 5)
    assert applied.update_needed
    assert not applied.progress


@pytest.mark.spec("B.5.5", "D-45")
@pytest.mark.parametrize("epoch", [5, 6])
def test_the_same_or_a_higher_epoch_is_accepted(epoch: int) -> None:
    cache = cache_after(answer(partition(1, 5)), answer(partition(2, epoch)))
    assert cache.leader(TP) == LeaderAndEpoch(2, epoch)


@pytest.mark.spec("B.5.5", "D-25")
def test_a_topic_created_again_may_begin_with_a_lower_epoch() -> None:
    cache = cache_after(answer(partition(1, 5), topic_id=ID_A), answer(partition(2, 0), topic_id=ID_B))
    assert cache.leader(TP) == LeaderAndEpoch(2, 0)
    assert cache._last_seen_epochs.get(TP) == 0
    assert cache.topic_name(ID_A) is None


@pytest.mark.spec("B.5.5")
def test_a_topic_whose_id_was_forgotten_in_between_may_begin_again_too() -> None:
    gone = answer(error=3)
    cache = cache_after(answer(partition(1, 5), topic_id=ID_A), gone, answer(partition(2, 0), topic_id=ID_B))
    assert cache.leader(TP) == LeaderAndEpoch(2, 0)


@pytest.mark.spec("B.5.5")
def test_a_topic_that_was_not_wanted_for_a_while_begins_again_also_without_ids() -> None:
    """Brokers before 2.8 have no ids: an epoch kept from the topic that was would hide the leader of the new one."""
    of_another_topic = MetadataResponseTopic(name="audit", partitions=[partition(1, 3)])
    cache = cache_after(answer(partition(1, 5)), answer(topics=[of_another_topic]))
    assert cache._last_seen_epochs.get(TP) is None
    cache.apply(answer(partition(2, 0)), 9)
    assert cache.leader(TP) == LeaderAndEpoch(2, 0)


@pytest.mark.spec("B.5.5")
def test_a_wanted_topic_that_one_broker_does_not_know_keeps_its_epochs() -> None:
    cache = cache_after(answer(partition(1, 5)), answer(error=3), answer(partition(2, 4)))
    assert cache.leader(TP).node_id is None
    assert cache._last_seen_epochs.get(TP) == 5


@pytest.mark.spec("B.5.5")
def test_an_absent_epoch_is_accepted_and_the_last_one_forgotten() -> None:
    cache = cache_after(answer(partition(1, 5)), answer(partition(2, -1)))
    assert cache.leader(TP) == LeaderAndEpoch(2, None)
    assert cache._last_seen_epochs.get(TP) is None


@pytest.mark.spec("B.5.5", "D-41")
@pytest.mark.parametrize(("version", "epoch"), [(7, None), (8, None), (9, 5), (12, 5)])
def test_epochs_count_from_version_9_on(version: int, epoch: int | None) -> None:
    assert cache_after(answer(partition(1, 5)), version=version).leader(TP) == LeaderAndEpoch(1, epoch)


@pytest.mark.spec("B.5.6", "S0-23")
def test_an_epoch_learnt_elsewhere_makes_the_cached_leader_unknown() -> None:
    cache = cache_after(answer(partition(1, 5)))
    assert not cache.update_last_seen_epoch(TP, 5)
    assert not cache.update_last_seen_epoch(TopicPartition("unknown", 0), 9)
    assert cache._last_seen_epochs.get(TopicPartition("unknown", 0)) is None
    assert cache.update_last_seen_epoch(TP, 7)
    assert cache.leader(TP) == LeaderAndEpoch(None, 7)
    cache.apply(answer(partition(1, 6)), 12)
    assert cache.leader(TP).node_id is None
    cache.apply(answer(partition(2, 7)), 12)
    assert cache.leader(TP) == LeaderAndEpoch(2, 7)


@pytest.mark.spec("B.5.6")
def test_a_negative_epoch_is_a_bad_argument() -> None:
    with pytest.raises(ArgumentError):
        MetadataCache().update_last_seen_epoch(TP, -1)


@pytest.mark.spec("B.5.8", "D-45")
def test_leader_news_of_a_fetch_counts_only_with_a_higher_epoch_and_a_known_node() -> None:
    cache = cache_after(answer(partition(1, 5)))
    news = [Broker(3, "new", 9093)]
    assert cache.update_leadership({TP: (2, 5)}) == ()
    assert cache.update_leadership({TP: (3, 6)}) == ()
    assert cache.update_leadership({TopicPartition("unknown", 0): (2, 6)}) == ()
    assert cache.update_leadership({TP: (2, 6)}) == (TP,)
    assert cache.leader(TP) == LeaderAndEpoch(2, 6)
    assert cache.update_leadership({TP: (3, 7)}, news) == (TP,)
    assert cache.leader(TP) == LeaderAndEpoch(3, 7)
    cache.apply(answer(partition(2, 6)), 12)
    assert cache.leader(TP).epoch == 7


@pytest.mark.spec("B.5.4", "B.15.11")
def test_an_unauthorized_topic_is_raised_once() -> None:
    cache = cache_after(answer(error=29))
    error = cache.take_error()
    assert isinstance(error, TopicAuthorizationError)
    assert error.topics == ("orders",)
    assert cache.take_error() is None


@pytest.mark.spec("B.5.4", "B.15.11")
def test_an_impossible_topic_name_is_raised_once() -> None:
    cache = cache_after(answer(error=17))
    error = cache.take_error()
    assert isinstance(error, BrokerError)
    assert (error.code, error.name, error.retriable) == (17, "INVALID_TOPIC_EXCEPTION", False)
    assert "or give a pattern as subscribe(pattern=…)" in str(error)
    assert "orders" in str(error)
    assert cache.take_error() is None


@pytest.mark.spec("B.5.4")
def test_an_error_that_is_over_before_anybody_asked_is_forgotten() -> None:
    assert cache_after(answer(error=29), answer(partition(1, 0))).take_error() is None


@pytest.mark.spec("B.5.4", "B.15.11")
@pytest.mark.parametrize("code", [3, 5, 100, 103])
def test_a_topic_error_that_passes_asks_for_another_update_without_an_error(code: int) -> None:
    cache = cache_after(answer(partition(1, 5)))
    assert cache.apply(answer(error=code), 12).update_needed
    assert cache.partition_count("orders") is None
    assert cache.leader(TP).node_id is None
    assert cache.take_error() is None
    assert ("orders" in cache.topics) is (code != 3)


@pytest.mark.spec("B.5.4", "B.15.11")
@pytest.mark.parametrize("code", [5, 9, 72])
def test_a_partition_error_asks_for_another_update_and_keeps_the_partition(code: int) -> None:
    cache = MetadataCache()
    applied = cache.apply(answer(partition(1, 5, error=code)), 12)
    assert applied.update_needed
    assert cache.partition_count("orders") == 1


@pytest.mark.spec("B.5.2")
def test_only_news_of_a_leader_counts_as_progress() -> None:
    cache = MetadataCache()
    assert cache.apply(answer(partition(1, 5)), 12).progress
    assert not cache.apply(answer(partition(1, 5)), 12).progress
    assert cache.apply(answer(partition(2, 6)), 12).progress


@pytest.mark.spec("B.5.2", "I-26")
@pytest.mark.parametrize("leader", [1, -1])
def test_an_old_brokers_response_that_repeats_itself_is_no_progress(leader: int) -> None:
    cache = MetadataCache()
    assert cache.apply(answer(partition(leader, 5)), 8).progress
    assert not cache.apply(answer(partition(leader, 5)), 8).progress


@pytest.mark.spec("B.5.3", "H-09")
@pytest.mark.parametrize(
    "brokers",
    [
        [],
        [broker(1, host="")],
        [broker(1, host="x" * 65_536)],
        [broker(1, port=0)],
        [broker(1, port=70_000)],
        [broker(-1)],
    ],
)
def test_a_response_without_a_usable_broker_is_a_failure(brokers: list[MetadataResponseBroker]) -> None:
    cache = cache_after(answer(partition(1, 5)))
    with pytest.raises(ConnectError) as caught:
        cache.apply(answer(partition(2, 6), brokers=brokers), 12)
    assert (caught.value.stage, caught.value.retriable) == ("metadata", True)
    assert cache.leader(TP) == LeaderAndEpoch(1, 5)


@pytest.mark.spec("H-09")
def test_what_cannot_be_is_left_out() -> None:
    lies = answer(partition(1, 5, index=-1), partition(9, 5, index=0), partition(1, 5, index=1))
    lies.brokers = [broker(1, "first"), broker(1, "second"), broker(2, port=-5)]
    cache = cache_after(lies)
    assert cache.brokers == {1: Broker(1, "first", 9092)}
    assert sorted(cache.topics["orders"].partitions) == [0, 1]
    assert cache.leader(TP) == LeaderAndEpoch(None, 5)
    assert cache.leader(TopicPartition("orders", 1)) == LeaderAndEpoch(1, 5)


@pytest.mark.spec("H-09")
def test_a_topic_without_partitions_is_one_that_is_being_created() -> None:
    cache = MetadataCache()
    assert cache.apply(answer(), 12).update_needed
    assert cache.partition_count("orders") is None


def test_a_one_off_response_adds_to_what_is_known_and_stores_no_error() -> None:
    cache = cache_after(answer(partition(1, 5)))
    other = MetadataResponse(
        brokers=[broker(1)],
        topics=[
            MetadataResponseTopic(name="other", partitions=[partition(1, 0)]),
            MetadataResponseTopic(name="secret", error_code=29),
        ],
    )
    cache.apply(other, 12, whole=False)
    assert cache.partition_count("orders") == cache.partition_count("other") == 1
    assert cache.take_error() is None
    cache.apply(answer(partition(1, 5)), 12)
    assert cache.partition_count("other") is None


@pytest.mark.spec("B.5.11")
def test_a_changed_cluster_id_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    cache = cache_after(answer(partition(), cluster_id="one"), answer(partition(), cluster_id="one"))
    assert not caplog.records
    cache.apply(answer(partition(), cluster_id="two"), 12)
    assert [record.name for record in caplog.records] == ["kclient.metadata"]
    assert cache.cluster_id == "two"


@pytest.mark.spec("B.5.9")
def test_forgotten_brokers_leave_no_leader_that_could_be_asked() -> None:
    cache = cache_after(answer(partition(1, 5)))
    cache.forget_brokers()
    assert cache.leader(TP) == LeaderAndEpoch(None, 5)
    assert cache.partition_count("orders") == 1
