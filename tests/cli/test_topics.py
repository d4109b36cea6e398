"""`kclient topics`: what there is, how many records, at what rate, and the partitions of a topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kclient import TopicPartition
from kclient.embedded import EmbeddedCluster
from tests.cli.support import Done, call
from tests.lag.lag_setup import commit


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(3, topics={"orders": 2, "payments": 1}) as cluster:
        cluster.produce("orders", ["x"] * 1_200, partition=0)
        cluster.produce("orders", ["x"] * 3, partition=1)
        cluster.delete_records("orders", 0, before=200)
        cluster.create_topic("short", config={"retention.ms": "60000"})
        commit(cluster.bootstrap_servers, "g", {TopicPartition("orders", 0): 0})
        yield cluster


def ask(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], *words: str) -> Done:
    return call(capsys, "topics", *words, "-b", cluster.bootstrap_servers)


def stored(cluster: EmbeddedCluster, topic: str, partition: int) -> int:
    """The bytes of a partition's batches."""
    found = cluster.state.partition(TopicPartition(topic, partition))
    assert found is not None
    return sum(len(batch.data) for batch in found.log.batches)


def lines(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_list(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = ask(cluster, capsys)
    assert lines(done.out) == [
        "TOPIC PARTITIONS REPLICAS RECORDS BYTES NOTE",
        f"orders 2 3 1,003 {stored(cluster, 'orders', 0) + stored(cluster, 'orders', 1):,}",
        "payments 1 3 0 0",
        "short 1 3 0 0",
    ]
    assert ask(cluster, capsys, "list") == done
    assert lines(ask(cluster, capsys, "--internal").out)[1].startswith("__consumer_offsets 50 3")


def test_json_is_one_topic_a_line(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    first, *_ = ask(cluster, capsys, "--json").events
    assert first == {
        "topic": "orders",
        "internal": False,
        "partitions": 2,
        "replicas": 3,
        "records": 1_003,
        "records_per_second": None,
        "bytes": stored(cluster, "orders", 0) + stored(cluster, "orders", 1),
        "bytes_per_second": None,
        "note": "",
    }


def test_a_rate_is_what_came_between_two_looks(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.create_topic("busy")
    stop = threading.Event()

    def produce() -> None:
        while not stop.wait(0.02):
            cluster.produce("busy", ["x"] * 10)

    producing = threading.Thread(target=produce)
    producing.start()
    try:
        done = ask(cluster, capsys, "describe", "busy", "--rate", "1s", "--json")
    finally:
        stop.set()
        producing.join()
    [found] = done.events
    assert 10 < found["records_per_second"] < 510
    assert found["bytes_per_second"] > 10 * found["records_per_second"]
    assert found["partition_list"][0]["bytes"] <= stored(cluster, "busy", 0)
    assert found["partition_list"][0]["records_per_second"] == found["records_per_second"]


def test_describe(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = ask(cluster, capsys, "describe", "orders", "short")
    assert lines(done.out) == [
        "topic orders partitions 2",
        "PARTITION LEADER REPLICAS IN SYNC BEGIN END RECORDS BYTES",
        f"0 1 1,2,3 1,2,3 200 1,200 1,000 {stored(cluster, 'orders', 0):,}",
        f"1 2 2,3,1 2,3,1 0 3 3 {stored(cluster, 'orders', 1):,}",
        "",
        "topic short partitions 1",
        "setting retention.ms=60000",
        "PARTITION LEADER REPLICAS IN SYNC BEGIN END RECORDS BYTES",
        "0 1 1,2,3 1,2,3 0 0 0 0",
    ]


def test_a_topic_that_is_not_there_ends_with_5_and_is_not_created(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    done = ask(cluster, capsys, "describe", "orders", "oders")
    assert (done.code, done.out) == (5, "")
    assert "There is no topic 'oders'" in done.err
    assert "Did you mean orders?" in done.err
    assert "oders" not in cluster.state.topics


def test_settings_that_may_not_be_seen_leave_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(topics={"orders": 1}) as cluster:
        cluster.deny("User:ANONYMOUS", "DESCRIBE_CONFIGS", "Topic:orders")
        done = ask(cluster, capsys, "describe", "orders")
    assert done.code == 0
    assert lines(done.out)[1:] == [
        "settings: not to be seen; they need DESCRIBE_CONFIGS on the topic",
        "PARTITION LEADER REPLICAS IN SYNC BEGIN END RECORDS BYTES",
        "0 1 1 1 0 0 0 0",
    ]


@pytest.mark.parametrize("release", ["2.0", "4.3"])
def test_sizes_that_may_not_be_seen_leave_the_rest(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Versions of the request before 3 refuse by an empty list, later ones by an error."""
    with EmbeddedCluster(topics={"orders": 1}, release=release) as cluster:
        cluster.produce("orders", ["x"] * 5)
        cluster.deny("User:ANONYMOUS", "DESCRIBE", "Cluster:kafka-cluster")
        check_without_sizes(cluster, capsys)


def test_brokers_before_1_0_have_no_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(topics={"orders": 1}, release="0.11.0") as cluster:
        cluster.produce("orders", ["x"] * 5)
        check_without_sizes(cluster, capsys)


def check_without_sizes(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    done = ask(cluster, capsys, "describe", "orders")
    assert done.code == 0
    assert lines(done.out)[-3:] == [
        "bytes: not to be seen; they need DESCRIBE on the cluster, and Kafka 1.0",
        "PARTITION LEADER REPLICAS IN SYNC BEGIN END RECORDS BYTES",
        "0 1 1 1 0 5 5 -",
    ]
    assert lines(ask(cluster, capsys).out)[1] == "orders 1 1 5 -"
    assert ask(cluster, capsys, "--json").events[0]["bytes"] is None


def test_partitions_without_a_leader_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(2) as cluster:
        cluster.create_topic("orders", 2, 1)
        cluster.produce("orders", ["x"] * 5, partition=0)
        cluster.kill(2)
        done = ask(cluster, capsys, "describe", "orders")
        listed = ask(cluster, capsys)
    assert done.code == 0
    assert lines(done.out) == [
        "topic orders partitions 2 1 without a leader",
        "PARTITION LEADER REPLICAS IN SYNC BEGIN END RECORDS BYTES",
        f"0 1 1 1 0 5 5 {stored(cluster, 'orders', 0)}",
        "1 - 2 2 - - - -",
    ]
    assert lines(listed.out)[1] == f"orders 2 1 5 {stored(cluster, 'orders', 0)} 1 without a leader"
