"""Scenario A-17: the lag of groups of every kind, on the command line, and read out of `__consumer_offsets`.

Each group has a partition with a commit, one without, one with an open transaction, and one of a topic that is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest

from kclient import Consumer, TopicPartition, group
from kclient.cli.main import main
from kclient.embedded import EmbeddedCluster
from tests.lag.lag_setup import commit, delete_but_keep_offsets, transaction

SECONDS = 20
GROUP = "billing"
CONFIG = {
    "min.insync.replicas": 2,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.heartbeat.interval.ms": 100,
}
COMMITS = {("kept", 0): 2, ("kept", 2): 2, ("gone", 0): 3, ("forgotten", 0): 1}
WITH_COMMIT = {("kept", 0): 2, ("kept", 2): 2, ("gone", 0): 3}
# topic and partition → committed, end, lag
ALL_RECORDS = {
    ("gone", 0): (3, None, None),
    ("kept", 0): (2, 5, 3),
    ("kept", 1): (None, 5, None),
    ("kept", 2): (2, 5, 3),
}
STABLE_RECORDS = {**ALL_RECORDS, ("kept", 2): (2, 2, 0)}


@contextmanager
def member(cluster: EmbeddedCluster, protocol: str) -> Iterator[confluent_kafka.Consumer]:
    """A member of another client that reads "kept" and commits manually."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": GROUP,
            "group.protocol": protocol,
            "client.id": "reader",
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe(["kept"])
    try:
        deadline = time.monotonic() + SECONDS
        while len(consumer.assignment()) < 3:
            assert time.monotonic() < deadline
            consumer.poll(0.05)
        yield consumer
    finally:
        consumer.close()


@contextmanager
def group_of(kind: str, cluster: EmbeddedCluster) -> Iterator[None]:
    """The group, with its commits; a member holds all of "kept" unless it is a simple one."""
    if kind == "simple":
        commit(cluster.bootstrap_servers, GROUP, {TopicPartition(*tp): at for tp, at in COMMITS.items()})
        yield
        return
    with member(cluster, kind) as consumer:
        offsets = [confluent_kafka.TopicPartition(*tp, offset) for tp, offset in COMMITS.items()]
        consumer.commit(offsets=offsets, asynchronous=False)
        yield


def abort_a_commit(cluster: EmbeddedCluster) -> None:
    """A transaction commits an offset for the group, and is aborted."""
    kept_1 = TopicPartition("kept", 1)
    producer = transaction(cluster.bootstrap_servers, TopicPartition("elsewhere", 0), 1, "aborts")
    outsider = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP, "log_level": 0}
    )
    metadata = outsider.consumer_group_metadata()  # of no member
    outsider.close()
    producer.send_offsets_to_transaction([confluent_kafka.TopicPartition(*kept_1, 4)], metadata, SECONDS)
    producer.abort_transaction(SECONDS)


@contextmanager
def stage(kind: str) -> Iterator[EmbeddedCluster]:
    topics = {"kept": 3, "gone": 1, "forgotten": 1, "elsewhere": 1}
    with EmbeddedCluster(3, topics=topics, config=CONFIG) as cluster:
        cluster.prepare_groups()
        cluster.move_coordinator(GROUP, 1)
        for number, count in ((0, 5), (1, 5), (2, 2)):
            cluster.produce("kept", ["x"] * count, partition=number)
        unfinished = transaction(cluster.bootstrap_servers, TopicPartition("kept", 2), 3, "unfinished")
        with group_of(kind, cluster):
            abort_a_commit(cluster)
            cluster.delete_topic("forgotten")  # its offset is deleted with it: a tombstone
            delete_but_keep_offsets(cluster, "gone", GROUP)
            yield cluster
        unfinished.abort_transaction(SECONDS)


def on_the_command_line(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], *arguments: str
) -> dict[str, Any]:
    servers = ["-b", cluster.bootstrap_servers]
    assert main(["lag", GROUP, "--json", "--all-topics", *arguments, *servers]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def rows(report: dict[str, Any]) -> dict[tuple[str, int], tuple[int | None, int | None, int | None]]:
    return {
        (row["topic"], row["partition"]): (row["committed"], row["end"], row["lag"])
        for row in report["partitions"]
    }


def decoded(cluster: EmbeddedCluster) -> dict[TopicPartition, int]:
    """The group's commits, out of the topic that holds them."""
    settings = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "exclude_internal_topics": False,
    }
    with Consumer(**settings) as consumer:
        partitions = len(consumer.partitions_for("__consumer_offsets"))
        tp = TopicPartition("__consumer_offsets", group.offsets_topic_partition(GROUP, partitions))
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        records: list[tuple[bytes | None, bytes | None]] = []
        while consumer.position(tp) < end:
            records += [(record.key, record.value) for record in consumer.poll(1.0)]
    return {tp: value.offset for tp, value in group.committed_offsets(records)[GROUP].items()}


@pytest.mark.spec("A-17", "S1-01", "S1-02", "S1-11", "S0-36", "C.4", "C.5", "U-26")
@pytest.mark.parametrize("kind", ["classic", "consumer", "simple"])
def test_a17_lag_of_a_group(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with stage(kind) as cluster:
        report = on_the_command_line(cluster, capsys)
        assert rows(report) == ALL_RECORDS
        assert (
            rows(on_the_command_line(cluster, capsys, "--isolation-level", "read_committed"))
            == STABLE_RECORDS
        )
        assert [row["error"] for row in report["partitions"]] == [
            "UNKNOWN_TOPIC_OR_PARTITION",
            None,
            None,
            None,
        ]
        assert (report["kind"], report["total_lag"]) == (kind, 6)
        assert decoded(cluster) == WITH_COMMIT
        assert_members(report, kind)
        asked = [one.request for one in cluster.requests if one.api == "OffsetFetch"]
        assert asked[-1].groups[0].topics is None


def assert_members(report: dict[str, Any], kind: str) -> None:
    """Who holds what, from where, in groups of both protocols."""
    if kind == "simple":
        assert (report["state"], report["members"]) == ("Empty", [])
        return
    (one,) = report["members"]
    assert (report["state"], one["client_id"], one["client_host"]) == ("Stable", "reader", "127.0.0.1")
    assert one["topics"] == ["kept"]
    assert sorted(row["partition"] for row in one["partitions"]) == [0, 1, 2]
    holders = {row["partition"]: row["member_id"] for row in report["partitions"] if row["topic"] == "kept"}
    assert holders == dict.fromkeys(range(3), one["member_id"])


@pytest.mark.spec("A-17", "S1-02")
@pytest.mark.parametrize("release", ["4.3", "2.8"])
def test_a17_an_unknown_group_is_not_found(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedCluster(release=release) as cluster:
        assert main(["lag", "nobody", "-b", cluster.bootstrap_servers]) == 5
        output = capsys.readouterr()
        assert output.out == ""
        assert (
            "There is no group of consumers named 'nobody'. It has no members, and nothing is committed"
            in output.err
        )
