"""What a test makes happen is what clients then see: brokers, leaders, replicas, addresses, faults by API."""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.embedded import EmbeddedCluster, observer
from kclient.embedded.observer import Observer
from kclient.errors import AdvertisedListenerError, ArgumentError, InternalError, UsageError
from kclient.generated.api_versions_request import ApiVersionsRequest
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.protocol.errors import NOT_CONTROLLER, NOT_LEADER_OR_FOLLOWER
from tests.conformance.raw_client import RawClient
from tests.realtime import within


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(brokers=3, topics={"orders": 3}) as cluster:
        yield cluster


def ask(cluster: EmbeddedCluster, request: Any, version: int, node: int = 1) -> Any:
    host, port = cluster.bootstrap_servers.split(",")[node - 1].split(":")
    with RawClient(host, int(port)) as raw_client:
        return raw_client.ask(request, version)


def metadata(cluster: EmbeddedCluster, node: int = 1) -> Any:
    return ask(cluster, MetadataRequest(topics=None), 9, node)


def leaders(cluster: EmbeddedCluster, node: int = 1) -> list[int]:
    response = metadata(cluster, node)
    return [partition.leader_id for partition in response.topics[0].partitions]


def in_sync(cluster: EmbeddedCluster, partition: int, node: int = 1) -> list[int]:
    return sorted(metadata(cluster, node).topics[0].partitions[partition].isr_nodes)


class Watcher(Observer):
    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def broker_changed(self, node: int, change: str) -> None:
        self.seen.append((node, change))


def test_a_killed_broker_is_replaced_at_once_or_when_the_others_notice(cluster: EmbeddedCluster) -> None:
    assert leaders(cluster) == [1, 2, 3]
    cluster.kill(2)
    assert leaders(cluster) == [1, 3, 3]
    cluster.restart(2)
    cluster.kill(3, failover_ms=5_000)
    assert leaders(cluster) == [1, 3, 3]  # the failure is not noticed yet
    assert [broker.node_id for broker in metadata(cluster).brokers] == [1, 2, 3]
    cluster.clock.advance("5s")
    assert leaders(cluster) == [1, 2, 1]
    assert [broker.node_id for broker in metadata(cluster).brokers] == [1, 2]


def test_a_broker_comes_back_on_its_port_and_in_sync(cluster: EmbeddedCluster) -> None:
    watcher = Watcher()
    cluster.observe(watcher)
    cluster.kill(3)
    cluster.kill(3)
    assert in_sync(cluster, 0) == [1, 2]
    cluster.restart(3)
    assert in_sync(cluster, 0) == [1, 2, 3]
    assert leaders(cluster, node=3) == [1, 2, 1]
    cluster.prefer_leaders()
    assert leaders(cluster) == [1, 2, 3]
    assert watcher.seen == [(3, "killed"), (3, "started")]


def test_a_topic_that_is_made_while_all_are_down_is_led_by_who_is_back_first(
    cluster: EmbeddedCluster,
) -> None:
    for node in (1, 2, 3):
        cluster.kill(node)
    cluster.create_topic("late", partitions=1)
    cluster.restart(3)
    asked = [MetadataRequestTopic(name="late")]
    (topic,) = ask(cluster, MetadataRequest(topics=asked), 9, node=3).topics
    assert [(one.error_code, one.leader_id, one.isr_nodes) for one in topic.partitions] == [(0, 3, [3])]


def test_replicas_that_were_back_before_the_leader_follow_it(cluster: EmbeddedCluster) -> None:
    for node in (2, 3, 1):
        cluster.kill(node)
    cluster.restart(2)
    assert leaders(cluster, node=2)[0] == -1  # the last one in sync was 1
    cluster.restart(1)
    assert (leaders(cluster)[0], in_sync(cluster, 0)) == (1, [1, 2])
    cluster.restart(3)
    assert in_sync(cluster, 0) == [1, 2, 3]


def test_a_broker_that_is_down_unnoticed_can_be_started_again(cluster: EmbeddedCluster) -> None:
    cluster.kill(1, failover_ms=60_000)
    cluster.restart(1)
    assert leaders(cluster, node=2) == [2, 2, 3]
    cluster.clock.advance("2m")
    assert [broker.node_id for broker in metadata(cluster, node=1).brokers] == [1, 2, 3]


def test_a_paused_broker_says_nothing_and_loses_what_it_leads_until_it_continues(
    cluster: EmbeddedCluster,
) -> None:
    host, port = cluster.bootstrap_servers.split(",")[0].split(":")
    cluster.pause(1)
    with RawClient(host, int(port)) as raw_client:
        raw_client.send(MetadataRequest(topics=None), 9)
        assert raw_client.silent(0.1)
        assert leaders(cluster, node=2) == [1, 2, 3]
        cluster.clock.advance("9s")  # broker.session.timeout.ms
        assert leaders(cluster, node=2) == [2, 2, 3]
        cluster.resume(1)
        assert [partition.leader_id for partition in raw_client.receive().topics[0].partitions] == [1, 2, 3]


def test_nothing_is_written_to_a_leader_that_cannot_take_it(cluster: EmbeddedCluster) -> None:
    cluster.pause(1)
    with pytest.raises(UsageError, match="Broker 1, the leader of orders-0, is down or paused"):
        cluster.produce("orders", ["a"], partition=0)
    cluster.kill(1, failover_ms=1_000)  # the timer of the pause ends with it
    cluster.clock.advance("900ms")
    assert leaders(cluster, node=2) == [1, 2, 3]
    with pytest.raises(UsageError, match="Broker 1 is down"):
        cluster.move_leader("orders", 2, 1)
    cluster.clock.advance("200ms")
    assert leaders(cluster, node=2) == [2, 2, 3]


def test_a_topic_recreated_during_a_pause_stays_where_it_is(cluster: EmbeddedCluster) -> None:
    cluster.pause(1)
    cluster.clock.advance("10s")
    cluster.recreate_topic("orders")
    made = leaders(cluster, node=2)
    cluster.resume(1)
    assert leaders(cluster) == made
    assert 1 not in made


def test_a_paused_follower_holds_the_high_watermark_until_it_is_out_of_sync(cluster: EmbeddedCluster) -> None:
    partition = cluster.state.topics["orders"].partitions[0]
    cluster.produce("orders", ["a"], partition=0)
    cluster.pause(2)
    cluster.produce("orders", ["b"], partition=0)
    assert (partition.high_watermark, partition.log.end) == (1, 2)
    cluster.clock.advance("9s")
    assert (partition.high_watermark, in_sync(cluster, 0)) == (2, [1, 3])
    cluster.resume(2)
    assert in_sync(cluster, 0) == [1, 2, 3]


def test_a_controlled_shutdown_hands_over_before_it_closes(cluster: EmbeddedCluster) -> None:
    host, port = cluster.bootstrap_servers.split(",")[0].split(":")
    with RawClient(host, int(port)) as raw_client:
        raw_client.ask(MetadataRequest(topics=None), 9)
        cluster.shutdown(1)
        assert raw_client.closed()
    assert leaders(cluster, node=2) == [2, 2, 3]


def test_a_partition_without_a_broker_has_no_leader_and_gets_it_back() -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.kill(1)
        with pytest.raises(UsageError, match="orders-0 has no leader; restart one of the brokers"):
            cluster.produce("orders", ["lost"])
        cluster.restart(1)
        assert leaders(cluster) == [1]
        assert cluster.produce("orders", ["kept"]) == [(0, 0)]


def test_leaders_move_where_they_are_sent_or_to_the_next_in_sync(cluster: EmbeddedCluster) -> None:
    cluster.set_leader("orders", 0, 3)
    cluster.move_leader("orders", 1)
    assert leaders(cluster) == [3, 3, 3]
    assert cluster.leader_of("orders", 0) == 3
    assert cluster.kill_leader("orders", 0) == 3
    with pytest.raises(UsageError, match="Broker 3 is down"):
        cluster.set_leader("orders", 0, 3)
    with pytest.raises(ArgumentError, match="There is no partition orders-9; there are topics orders"):
        cluster.move_leader("orders", 9)
    with pytest.raises(ArgumentError, match="There is no broker 7"):
        cluster.kill(7)


def test_a_coordinator_moves(cluster: EmbeddedCluster) -> None:
    before = cluster.coordinator_of("billing")
    cluster.move_coordinator("billing")
    assert cluster.coordinator_of("billing") != before
    cluster.set_coordinator("billing", before)
    assert cluster.coordinator_of("billing") == before


def test_a_follower_that_lags_holds_the_high_watermark_and_loses_records_as_leader(
    cluster: EmbeddedCluster,
) -> None:
    partition = cluster.state.topics["orders"].partitions[0]
    cluster.produce("orders", ["a"], partition=0)
    cluster.lag("orders", 0, 2)
    cluster.produce("orders", ["b"], partition=0)
    assert partition.high_watermark == 1
    cluster.clock.advance("30s")  # replica.lag.time.max.ms
    assert (partition.high_watermark, in_sync(cluster, 0)) == (2, [1, 3])
    cluster.set_leader("orders", 0, 2)
    assert (partition.high_watermark, partition.log.end) == (1, 1)


def test_watermarks_are_set_and_followers_catch_up(cluster: EmbeddedCluster) -> None:
    partition = cluster.state.topics["orders"].partitions[0]
    for value in "abcd":
        cluster.produce("orders", [value], partition=0)
    cluster.set_watermarks("orders", 0, low=1, high=3)
    assert (partition.log.start, partition.high_watermark, partition.log.end) == (1, 3, 4)
    cluster.catch_up("orders", 0)
    assert partition.high_watermark == 4
    with pytest.raises(ArgumentError, match="orders-0 goes from 1 to 4, not to 9"):
        cluster.set_watermarks("orders", 0, high=9)
    with EmbeddedCluster(topics={"orders": 1}) as alone, pytest.raises(UsageError, match="no follower"):
        alone.set_watermarks("orders", 0, high=0)


def test_records_are_lost_in_a_new_epoch_and_deleted_from_the_front(cluster: EmbeddedCluster) -> None:
    partition = cluster.state.topics["orders"].partitions[0]
    for value in "abcd":
        cluster.produce("orders", [value], partition=0)
    epoch = partition.leader_epoch
    cluster.truncate("orders", 0, 3)
    assert (partition.log.end, partition.leader_epoch) == (3, epoch + 1)
    cluster.delete_records("orders", 0, 2)
    assert partition.log.start == 2
    with pytest.raises(ArgumentError, match="orders-0 can lose records before 3 at most, not 9"):
        cluster.delete_records("orders", 0, 9)


def test_topics_grow_go_and_come_again_under_another_id(cluster: EmbeddedCluster) -> None:
    def topic() -> Any:
        return ask(cluster, MetadataRequest(topics=[MetadataRequestTopic(name="orders")]), 12).topics[0]

    before = topic()
    cluster.add_partitions("orders", 5)
    assert len(topic().partitions) == 5
    cluster.recreate_topic("orders")
    assert topic().topic_id != before.topic_id
    cluster.delete_topic("orders")
    assert metadata(cluster).topics == []
    with pytest.raises(ArgumentError, match="There is no topic 'orders'; there are none"):
        cluster.delete_topic("orders")


def test_clients_get_the_advertised_address_and_bootstrap_stays(cluster: EmbeddedCluster) -> None:
    servers = cluster.bootstrap_servers
    cluster.advertise(2, "kafka", 9092)
    brokers = {broker.node_id: (broker.host, broker.port) for broker in metadata(cluster).brokers}
    assert brokers[2] == ("kafka", 9092)
    assert cluster.bootstrap_servers == servers


@pytest.mark.spec("U-16")
def test_an_advertised_address_that_leads_nowhere_is_named_within_two_seconds() -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.advertise(1, "kafka.invalid", 9092)
        with (
            within(2),
            Consumer(bootstrap_servers=cluster.bootstrap_servers) as consumer,
            pytest.raises(AdvertisedListenerError) as caught,
        ):
            consumer.list_topics()
    assert (caught.value.node_id, caught.value.advertised) == (1, "kafka.invalid:9092")
    assert caught.value.via == cluster.bootstrap_servers


@pytest.mark.spec("U-09")
def test_a_broker_that_comes_back_elsewhere_is_found_there(cluster: EmbeddedCluster) -> None:
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
    cluster.produce("orders", ["a"], partition=0)
    with Consumer(**settings) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert [record.value for record in consumer.poll(timeout=10.0)] == [b"a"]
        for node in (1, 2, 3):  # one after the other, all brokers move
            cluster.restart(node, port=0)
            cluster.produce("orders", [f"after {node}"], partition=0)
            assert [record.value for record in consumer.poll(timeout=10.0)] == [f"after {node}".encode()]
    assert not set(cluster.bootstrap_servers.split(",")) & set(settings["bootstrap_servers"].split(","))


def test_records_go_where_key_turn_or_number_say(cluster: EmbeddedCluster) -> None:
    assert cluster.produce("orders", ["a", "b", "c"]) == [(0, 0), (1, 0), (2, 0)]
    assert cluster.produce("orders", ["d"]) == [(0, 1)]
    assert cluster.produce("orders", [("21", "e"), (b"21", b"f")], partition=1) == [(1, 1), (1, 2)]
    # Java's own test has murmur2("21") = -973932308, without its sign 1173551340, a multiple of 3
    assert cluster.produce("orders", [("21", "g")]) == [(0, 2)]
    assert cluster.produce("made-by-itself", []) == []


def test_a_broker_says_no_as_often_as_requested(cluster: EmbeddedCluster) -> None:
    cluster.fail("ApiVersions", "NOT_CONTROLLER", times=2, broker=1)
    codes = [ask(cluster, ApiVersionsRequest(), 0).error_code for _ in range(3)]
    assert codes == [NOT_CONTROLLER, NOT_CONTROLLER, 0]
    rule = cluster.fail("ApiVersions", NOT_LEADER_OR_FOLLOWER, times=None)
    assert ask(cluster, ApiVersionsRequest(), 0, node=3).error_code == NOT_LEADER_OR_FOLLOWER
    cluster.lift(rule)
    assert ask(cluster, ApiVersionsRequest(), 0).error_code == 0


def test_responses_are_late_missing_cut_throttled_short_or_something_else(cluster: EmbeddedCluster) -> None:
    host, port = cluster.bootstrap_servers.split(",")[0].split(":")
    request = MetadataRequest(topics=None)
    with RawClient(host, int(port)) as raw_client:
        cluster.delay("Metadata", 60_000, times=1)
        raw_client.send(request, 9)
        assert raw_client.silent(0.05)
        cluster.clock.advance("1m")
        assert len(raw_client.receive().topics) == 1
        cluster.throttle("Metadata", 25, times=1)
        assert raw_client.ask(request, 9).throttle_time_ms == 25
        cluster.partial("Metadata", keep=2)
        assert [len(topic.partitions) for topic in raw_client.ask(request, 9).topics] == [2]

        def renamed(asked: MetadataRequest, response: Any) -> Any:
            response.cluster_id = f"asked for {asked.topics}"
            return response

        cluster.on("Metadata", renamed, times=1)
        assert raw_client.ask(request, 9).cluster_id == "asked for None"
        cluster.drop("Metadata")
        raw_client.send(request, 9)
        assert raw_client.silent(0.05)
    with RawClient(host, int(port)) as raw_client:
        cluster.cut("Metadata", after=3)
        raw_client.send(request, 9)
        with pytest.raises(ConnectionError):
            raw_client.receive()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda c: c.fail("Fetsh", "NOT_CONTROLLER"), "No API is called 'Fetsh' .did you mean 'Fetch'"),
        (lambda c: c.fail("find_coordinator", 1), "did you mean 'FindCoordinator'"),
        (lambda c: c.fail("Fetch", "NOT_LEADER"), "did you mean 'NOT_LEADER_OR_FOLLOWER'"),
        (lambda c: c.delay("Fetch", 5, times=0), "give 1 or more"),
        (lambda c: c.partial("Fetch", keep=-1), "give 0 or more"),
        (lambda c: c.produce("orders", ["a"], codec="brotli"), "There is no codec 'brotli'"),
        (lambda c: c.produce("orders", [3]), "not int"),
        (lambda c: c.produce("orders", "abc"), "Values come in a list"),
        (lambda c: c.produce("orders", [("k", "v", "h")]), "A tuple is key and value, and one of 3 came"),
        (lambda c: c.advertise(1, "kafka", 1, listener="SSL"), "has no listener 'SSL'"),
        (lambda c: c.advertise(1, "kafka", 65_536), "There is no port 65536"),
        (lambda c: c.advertise(1, None, 9092), "host is text, not NoneType"),
        (lambda c: c.restart(1, port=-1), "There is no port -1"),
        (lambda c: c.kill("2"), "node is a whole number, not str"),
        (lambda c: c.kill(2, failover_ms="1s"), "failover_ms is a whole number, not str"),
        (lambda c: c.move_leader("orders", 0, "2"), "node is a whole number or None, not str"),
        (lambda c: c.delay_markers(math.nan), "ms is a number"),
        (lambda c: c.clock.advance(math.inf), "inf is not a duration"),
        (lambda c: c.clock.advance(None), "None is not a duration"),
        (lambda c: c.fail("Fetch", "NOT_CONTROLLER", broker=4), "There is no broker 4"),
        (lambda c: c.fail("Fetch", 40_000), "No error is called 40000"),
        (lambda c: c.create("orders"), "Topic 'orders' cannot be made: Topic 'orders' already exists"),
        (lambda c: c.create("more", replication=4), "only 3 broker"),
        (lambda c: c.add_partitions("orders", 3), "can only grow"),
    ],
)
def test_what_cannot_be_is_refused_with_the_nearest(
    cluster: EmbeddedCluster, wrong: Any, message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        wrong(cluster)
    assert all(
        broker.running and broker.listeners[0].advertised is None for broker in cluster.state.brokers.values()
    )


def test_a_broker_whose_new_port_is_taken_is_down_until_it_starts_on_its_old_one(
    cluster: EmbeddedCluster,
) -> None:
    port = int(cluster.bootstrap_servers.split(",")[0].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(OSError, match="in use"):
            cluster.restart(1, port=taken.getsockname()[1])
        assert not cluster.state.brokers[1].running
        cluster.heal()
    assert cluster.bootstrap_servers.startswith(f"127.0.0.1:{port},")
    assert cluster.state.brokers[1].running


def test_a_broker_that_is_started_twice_at_once_is_started_twice_in_turn() -> None:
    async def main() -> None:
        async with EmbeddedCluster() as cluster:
            await asyncio.gather(cluster.restart(1), cluster.restart(1))
            assert cluster.state.brokers[1].running

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # its threads are why it asks
def test_a_child_of_the_process_is_notified_where_the_cluster_runs(cluster: EmbeddedCluster) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            cluster.leader_of("orders", 0)
        except UsageError as exc:
            os.write(writing, str(exc).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:
        assert "runs in another process" in stream.read()
    os.waitpid(child, 0)


def test_all_is_well_again(cluster: EmbeddedCluster) -> None:
    cluster.kill(1)
    cluster.pause(2)
    cluster.fail("*", "NOT_CONTROLLER", times=None)
    cluster.deny("*", "DESCRIBE", "Topic:*")
    cluster.heal()
    assert leaders(cluster) == [2, 2, 3]


def test_on_its_own_loop_what_takes_time_is_a_task() -> None:
    async def main() -> None:
        async with EmbeddedCluster(brokers=2, topics={"orders": 1}) as cluster:
            cluster.kill(1)
            assert cluster.leader_of("orders", 0) == 2
            await cluster.restart(1)
            cluster.pause(2)
            await cluster.heal()
            assert cluster.clock.now() > 0

    asyncio.run(main())


def test_requests_are_logged_decoded(cluster: EmbeddedCluster) -> None:
    metadata(cluster, node=3)
    cluster.forget_requests()
    metadata(cluster, node=2)
    (entry,) = cluster.requests
    assert (entry.api, entry.version, entry.client_id, entry.node) == ("Metadata", 9, "asker", 2)
    assert entry.request.topics is None
    assert [topic.name for topic in entry.response.topics] == ["orders"]
    assert entry.connection == 2
    assert "Metadata v9 to broker 2 from 'asker' on connection 2" in str(entry)


def test_the_log_of_requests_keeps_the_newest_within_its_bounds(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer, "KEPT", 3)
    for version in range(1, 9):
        ask(cluster, MetadataRequest(topics=None), version)
    assert [entry.version for entry in cluster.requests] == [6, 7, 8]
    monkeypatch.setattr(observer, "KEPT", 100)
    monkeypatch.setattr(observer, "KEPT_BYTES", 2_500)
    cluster.produce("orders", [b"x" * 1_000], partition=0)
    fetched = [FetchTopic(topic="orders", partitions=[FetchPartition(0, partition_max_bytes=10_000)])]
    for _ in range(5):
        ask(cluster, FetchRequest(topics=fetched), 11)
    assert [entry.api for entry in cluster.requests] == ["Fetch", "Fetch"]


def test_an_edit_that_fails_is_reported_at_the_end_and_ends_the_connection() -> None:
    def broken(asked: Any, response: Any) -> Any:
        raise ZeroDivisionError

    def main() -> None:
        with EmbeddedCluster() as cluster:
            cluster.on("Metadata", broken)
            with pytest.raises(ConnectionError):
                metadata(cluster)

    with pytest.raises(InternalError, match=r"ZeroDivisionError.*edit given to `on`"):
        main()


def test_consumers_are_sent_to_the_follower_that_was_chosen(cluster: EmbeddedCluster) -> None:
    cluster.produce("orders", ["a"], partition=0)
    cluster.set_follower("orders", 0, 3)
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
    with Consumer(client_rack="here", **settings) as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        assert [record.value for record in consumer.poll(timeout=10.0)] == [b"a"]
    fetches = [entry for entry in cluster.requests if entry.api == "Fetch" and entry.response is not None]
    sent_on = [entry.node for entry in fetches if entry.response.responses and read_from(entry) == 3]
    served = [entry.node for entry in fetches if entry.response.responses and read_from(entry) == -1]
    assert (sent_on, served[0]) == ([1], 3)
    with pytest.raises(ArgumentError, match="Broker 9 holds no replica of orders-0"):
        cluster.set_follower("orders", 0, 9)


def read_from(entry: Any) -> int:
    return int(entry.response.responses[0].partitions[0].preferred_read_replica)


def test_old_records_expire_when_time_passes_or_on_request() -> None:
    with EmbeddedCluster() as cluster:
        cluster.create("orders", config={"retention.ms": "60000"})
        log = cluster.state.topics["orders"].partitions[0].log
        cluster.produce("orders", ["a"])
        cluster.clock.advance("50s")
        cluster.produce("orders", ["b"])
        cluster.clock.advance("11s")
        cluster.expire("orders")
        assert (log.start, log.end) == (1, 2)
        cluster.clock.advance("10m")
        assert (log.start, log.end) == (2, 2)


def test_committed_offsets_are_those_of_the_coordinator_wherever_it_moves(cluster: EmbeddedCluster) -> None:
    assert cluster.committed("billing") == {}
    cluster.produce("orders", ["a", "b", "c"], partition=1)
    settings = {"group_id": "billing", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        consumer.commit(consumer.poll(timeout=10.0).next_offsets())
    assert cluster.committed("billing") == {("orders", 1): 3}
    cluster.kill(cluster.coordinator_of("billing"))
    assert cluster.committed("billing") == {("orders", 1): 3}
    cluster.kill(cluster.coordinator_of("billing"), failover_ms=60_000)
    with pytest.raises(UsageError, match="the coordinator of 'billing', is down"):
        cluster.committed("billing")
    cluster.heal()
    assert cluster.committed("billing") == {("orders", 1): 3}


def test_members_are_gathered_again_when_the_test_wants_it(cluster: EmbeddedCluster) -> None:
    with pytest.raises(ArgumentError, match="Group 'billing' has no members; groups with members are none"):
        cluster.rebalance("billing")
    settings = {"group_id": "billing", "heartbeat_interval_ms": 50}
    with Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        generations: list[int] = []
        for begin in (lambda: None, cluster.rebalance, lambda: cluster.rebalance("billing")):
            begin()
            reached = len(generations)
            while consumer.group_metadata().generation_id <= reached:
                consumer.poll(timeout=0.1)
            generations.append(consumer.group_metadata().generation_id)
        assert generations == [1, 2, 3]
        with pytest.raises(ArgumentError, match="'other' has no members; groups with members are billing"):
            cluster.rebalance("other")


def test_a_member_that_is_made_to_expire_joins_again(cluster: EmbeddedCluster) -> None:
    settings = {"group_id": "billing", "heartbeat_interval_ms": 50}
    with Consumer("orders", bootstrap_servers=cluster.bootstrap_servers, **settings) as consumer:
        while not (before := consumer.group_metadata()).member_id:
            consumer.poll(timeout=0.1)
        with pytest.raises(ArgumentError, match="has no member 'nobody'; it has consumer-billing"):
            cluster.expire_member("billing", "nobody")
        cluster.expire_member("billing", before.member_id)
        while consumer.group_metadata().member_id in ("", before.member_id):
            consumer.poll(timeout=0.1)


def test_a_group_of_the_consumer_protocol_gets_its_next_epoch(cluster: EmbeddedCluster) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="billing",
        member_id="a",
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    node = cluster.coordinator_of("billing")
    joined = ask(cluster, request, 1, node)
    cluster.rebalance("billing")
    heartbeat = ConsumerGroupHeartbeatRequest(
        group_id="billing",
        member_id="a",
        member_epoch=joined.member_epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[
            TopicPartitions(one.topic_id, one.partitions) for one in joined.assignment.topic_partitions
        ],
    )
    cluster.clock.advance("10s")
    assert ask(cluster, heartbeat, 1, node).member_epoch == joined.member_epoch + 1


def test_compaction_leaves_gaps(cluster: EmbeddedCluster) -> None:
    cluster.produce(
        "orders", [("k", "1"), ("k", "2"), ("other", "3"), ("k", "4"), ("last", "5")], partition=0
    )
    cluster.compact("orders", 0)
    assert offsets_read(cluster) == [2, 3, 4]
    cluster.remove_records("orders", 0, [3])
    assert offsets_read(cluster) == [2, 4]


def offsets_read(cluster: EmbeddedCluster) -> list[int]:
    with Consumer(bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        return [record.offset for record in consumer.poll(timeout=10.0)]
