"""`kclient.group.lag`: numbers of single partitions, and what cannot be had."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from kclient import Consumer, TopicPartition, group
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    ArgumentError,
    BrokerError,
    ConfigError,
    DeadlineError,
    GroupAuthorizationError,
    PortClosedError,
    UnknownTopicError,
)
from kclient.protocol.errors import GROUP_ID_NOT_FOUND
from tests.lag.lag_setup import commit, delete_but_keep_offsets, measured, rows, transaction

ANYBODY = "User:ANONYMOUS"

# partition → what is committed, the first offset, the end, and the lag that follows
CASES: dict[int, tuple[int | None, int, int, int | None]] = {
    0: (10, 0, 10, 0),  # read to the end
    1: (4, 0, 10, 6),
    2: (0, 0, 10, 10),  # 0 is a commit
    3: (0, 0, 0, 0),  # nothing was ever written
    4: (2, 5, 10, 5),  # what was deleted is not waiting for anybody
    5: (3, 10, 10, 0),  # all of it was deleted
    6: (10, 0, 6, 0),  # the end was lost: never less than nothing
    7: (None, 0, 10, None),  # no commit is not 0
    8: (4, 0, 4, 0),  # the last offset is a commit marker
    9: (10, 10, 10, 0),  # read, and deleted since
}


@pytest.mark.spec("U-26", "A-17")
def test_ten_partitions_and_their_lags() -> None:
    with EmbeddedCluster(topics={"t": len(CASES)}) as cluster:
        for number in CASES:
            if number not in (3, 8):
                for _ in range(10):  # batches of their own, so that some can be lost
                    cluster.produce("t", ["x"], partition=number)
        transaction(cluster.bootstrap_servers, TopicPartition("t", 8), 3, "writer").commit_transaction()
        commits = {
            TopicPartition("t", number): case[0] for number, case in CASES.items() if case[0] is not None
        }
        commit(cluster.bootstrap_servers, "g", commits)
        for number, before in ((4, 5), (5, 10), (9, 10)):
            cluster.delete_records("t", number, before)
        cluster.truncate("t", 6, 6)
        report = measured(cluster, "g")
        found = {
            one.partition.partition: (one.committed and one.committed.offset, one.log_start, one.end, one.lag)
            for one in report.partitions
        }
        assert found == CASES
        assert all(one.error is None and one.member is None for one in report.partitions)
        assert report.total == 21


@pytest.mark.spec("A-17", "S0-50")
def test_the_end_is_the_last_stable_offset_with_read_committed() -> None:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        tp = TopicPartition("t", 0)
        cluster.produce("t", ["a", "b"])
        producer = transaction(cluster.bootstrap_servers, tp, 3, "writer")
        commit(cluster.bootstrap_servers, "g", {tp: 1})
        assert rows(measured(cluster, "g")) == {tp: (1, 5, 4)}
        assert rows(measured(cluster, "g", isolation_level="read_committed")) == {tp: (1, 2, 1)}
        producer.abort_transaction()
        assert rows(measured(cluster, "g", isolation_level="read_committed")) == {tp: (1, 6, 5)}


@pytest.mark.spec("A-17")
def test_a_commit_in_an_open_transaction_is_not_waited_for() -> None:
    """The report has the offset from before it: a lookup does not wait for the transactions of others."""
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        from confluent_kafka import Consumer as TheirConsumer
        from confluent_kafka import TopicPartition as TheirPartition

        tp = TopicPartition("t", 0)
        cluster.produce("t", ["a", "b", "c"])
        commit(cluster.bootstrap_servers, "g", {tp: 1})
        producer = transaction(cluster.bootstrap_servers, tp, 1, "writer")
        reader = TheirConsumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "log_level": 0}
        )
        producer.send_offsets_to_transaction(
            [TheirPartition("t", 0, 3)], reader.consumer_group_metadata(), 10
        )
        reader.close()
        assert rows(measured(cluster, "g", timeout=10.0))[tp] == (1, 4, 3)
        producer.commit_transaction(10)
        assert rows(measured(cluster, "g"))[tp] == (3, 5, 2)


@pytest.mark.spec("A-17")
def test_a_deleted_topic_is_listed_without_an_end() -> None:
    with EmbeddedCluster(3, topics={"t": 1, "gone": 2}, config={"min.insync.replicas": 2}) as cluster:
        kept, gone = TopicPartition("t", 0), TopicPartition("gone", 1)
        commit(cluster.bootstrap_servers, "g", {kept: 0, gone: 7})
        delete_but_keep_offsets(cluster, "gone", "g")
        report = measured(cluster, "g")
        assert rows(report) == {kept: (0, 0, 0), gone: (7, None, None)}
        assert [one.error for one in report.partitions] == ["UNKNOWN_TOPIC_OR_PARTITION", None]
        assert "gone" not in cluster.state.topics  # and looking has not made it again
        assert rows(measured(cluster, "g", topics=["gone"])) == {gone: (7, None, None)}


@pytest.mark.spec("A-17")
def test_partitions_without_a_leader_are_reported_without_waiting() -> None:
    with EmbeddedCluster(2, config={"offsets.topic.replication.factor": 2}) as cluster:
        cluster.create_topic("t", 2, replication=1)
        cluster.produce("t", ["x"], partition=0)
        cluster.produce("t", ["x"], partition=1)
        cluster.prepare_groups()
        away, there = (TopicPartition("t", number) for number in (0, 1))
        commit(cluster.bootstrap_servers, "g", {away: 0, there: 0})
        cluster.kill(cluster.leader_of("t", 0))
        report = measured(cluster, "g")
        assert rows(report) == {away: (0, None, None), there: (0, 1, 1)}
        assert report.partitions[0].error == "LEADER_NOT_AVAILABLE"
        assert report.total == 1


# --- which partitions


@pytest.mark.spec("A-17")
def test_topics_can_be_chosen() -> None:
    with EmbeddedCluster(topics={"a": 1, "b": 2, "c": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("a", 0): 0, TopicPartition("b", 1): 0})
        nothing, read = (None, 0, None), (0, 0, 0)
        assert rows(measured(cluster, "g")) == {("a", 0): read, ("b", 0): nothing, ("b", 1): read}
        assert rows(measured(cluster, "g", topics=["b"])) == {("b", 0): nothing, ("b", 1): read}
        assert rows(measured(cluster, "g", topics=["c"])) == {("c", 0): nothing}
        with pytest.raises(UnknownTopicError, match="'d'") as caught:
            measured(cluster, "g", topics=["a", "d"])
        assert caught.value.topic == "d"


# --- groups


@pytest.mark.spec("A-17", "S1-02")
@pytest.mark.parametrize("release", ["4.3", "2.8", "0.10.2"])
def test_an_unknown_group_is_not_found(release: str) -> None:
    with EmbeddedCluster(release=release, topics={"t": 1}) as cluster:
        commit(cluster.bootstrap_servers, "billing", {TopicPartition("t", 0): 0})
        with pytest.raises(BrokerError, match="Did you mean billing") as caught:
            measured(cluster, "biling")
        assert caught.value.code == GROUP_ID_NOT_FOUND
        with pytest.raises(BrokerError, match="--all-groups"):
            measured(cluster, "something else")


@pytest.mark.spec("A-17", "S1-02")
@pytest.mark.parametrize("release", ["4.3", "3.9", "2.8", "2.1", "0.10.2"])
def test_every_release_is_asked_in_its_own_way(release: str) -> None:
    with EmbeddedCluster(release=release, topics={"t": 2}) as cluster:
        cluster.produce("t", ["x"], partition=0)
        settings = {"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest"}
        with Consumer("t", group_id="g", client_id="reader", **settings) as consumer:
            while not consumer.poll(1.0):
                pass
            report = measured(cluster, "g")
            (member,) = report.group.members
            assert (report.group.kind, report.group.state, report.group.assignor) == (
                "classic",
                "Stable",
                "range",
            )
            assert (member.client_id, member.client_host) == ("reader", "127.0.0.1")
            assert member.topics == ("t",)
            assert member.partitions == (("t", 0), ("t", 1))
            assert [one.member for one in report.partitions] == [member, member]
            assert rows(report)["t", 0] == (None, 1, None)
            assert report.group.coordinator == cluster.coordinator_of("g")
        assert rows(measured(cluster, "g"))["t", 0] == (1, 1, 0)
        assert "gone" not in cluster.state.topics


@pytest.mark.spec("A-17")
def test_a_client_that_may_not_see_the_group_gets_the_error() -> None:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("t", 0): 0})
        cluster.deny(ANYBODY, "DESCRIBE", "Group:g")
        with pytest.raises(GroupAuthorizationError) as caught:
            measured(cluster, "g")
        assert caught.value.group == "g"


@pytest.mark.spec("A-17", "S0-59")
def test_a_topic_that_may_not_be_seen_hides_nothing_else() -> None:
    with EmbeddedCluster(topics={"t": 1, "secret": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("t", 0): 0, TopicPartition("secret", 0): 0})
        cluster.deny(ANYBODY, "DESCRIBE", "Topic:secret")
        assert rows(measured(cluster, "g")) == {("t", 0): (0, 0, 0)}


@pytest.mark.spec("A-17")
@pytest.mark.parametrize(
    "code", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"]
)
def test_a_coordinator_that_cannot_answer_now_is_asked_again(code: str) -> None:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("t", 0): 0})
        apis = ("ConsumerGroupDescribe", "DescribeGroups", "OffsetFetch")
        for api in apis:
            cluster.fail(api, code, times=1)
        assert rows(measured(cluster, "g")) == {("t", 0): (0, 0, 0)}
        asked = [one.api for one in cluster.requests]
        assert [asked.count(api) for api in apis] == [2, 2, 2]


# --- the call


@pytest.mark.spec("A-17")
def test_both_ways_to_call_it_leave_nothing_running() -> None:
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("t", 0): 0})
        before = set(threading.enumerate())
        blocking = measured(cluster, "g")
        deadline = time.monotonic() + 5
        while not set(threading.enumerate()) <= before:
            assert time.monotonic() < deadline, threading.enumerate()
            time.sleep(0.01)  # a thread that has looked up names exits a moment after its loop

        async def ask() -> object:
            report = await group.lag_async("g", bootstrap_servers=cluster.bootstrap_servers)
            await asyncio.sleep(0)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return report

        assert asyncio.run(ask()) == blocking


@pytest.mark.spec("A-17")
def test_what_cannot_be_asked_ends_in_time_with_its_reason() -> None:
    with pytest.raises(ConfigError, match="bootstrap_servers"):
        group.lag("g")
    with EmbeddedCluster(topics={"t": 1}) as cluster:
        servers = cluster.bootstrap_servers
        commit(servers, "g", {TopicPartition("t", 0): 0})
        cluster.drop("ListOffsets", times=None)
        with pytest.raises(DeadlineError, match="the lag of group g"):
            measured(cluster, "g", timeout=0.5)
    with pytest.raises(PortClosedError):
        group.lag("g", bootstrap_servers=servers)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_no_topic_can_have_is_a_topic_that_is_not_there(name: str) -> None:
    with EmbeddedCluster(topics={"a": 1}) as cluster:
        commit(cluster.bootstrap_servers, "g", {TopicPartition("a", 0): 0})
        with pytest.raises(UnknownTopicError):
            measured(cluster, "g", topics=[name])


def test_what_is_no_group_and_what_are_no_topics() -> None:
    with pytest.raises(ArgumentError, match="one by one"):
        group.lag(["g"], bootstrap_servers="localhost:1")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="Write \\['orders'\\]"):
        group.lag("g", topics="orders", bootstrap_servers="localhost:1")
