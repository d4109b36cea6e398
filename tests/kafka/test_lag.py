"""`kclient.group.lag` on real brokers, compared with kafka-consumer-groups and another client."""

from __future__ import annotations

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient, OffsetSpec

from kclient import TopicPartition, group
from kclient.errors import BrokerError
from kclient.lag.report import GroupLag
from localkafka import KafkaCluster
from tests.kafka import other_clients
from tests.kafka.offsets_activity import Activity
from tests.lag.lag_setup import commit, transaction

Rows = dict[tuple[str, int], tuple[int | None, int | None, int | None]]


def measured(kafka: KafkaCluster, name: str, **more: str) -> GroupLag:
    return group.lag(name, bootstrap_servers=kafka.bootstrap_servers, **more)


def rows(report: GroupLag) -> Rows:
    return {
        tuple(one.partition): (None if one.committed is None else one.committed.offset, one.end, one.lag)
        for one in report.partitions
    }


def as_kafka_tells(kafka: KafkaCluster, name: str) -> Rows:
    return {tp: tuple(row) for tp, row in kafka.describe_group(name).items()}


@pytest.mark.spec("A-17", "S1-02", "U-26")
@pytest.mark.parametrize(
    ("cluster", "kind"),
    [("kafka1", "classic"), ("kafka1", "consumer"), ("kafka1", "simple"), ("kafka28", "classic")],
)
def test_the_numbers_of_kafkas_own_tool(
    request: pytest.FixtureRequest, cluster: str, kind: str, fresh_name: str
) -> None:
    kafka: KafkaCluster = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, 2)
    other_clients.produce_numbers(kafka, fresh_name, range(10), 2)
    activity = Activity(kafka, fresh_name, fresh_name)
    name = activity.name(kind)
    if kind == "simple":
        commit(kafka.bootstrap_servers, name, {TopicPartition(fresh_name, 0): 3})
        report = measured(kafka, name)
        assert as_kafka_tells(kafka, name) == {(fresh_name, 0): (3, 5, 2)}  # it does not report the other one
        assert (report.group.kind, report.group.state, report.group.members) == ("simple", "Empty", ())
        assert rows(report) == {(fresh_name, 0): (3, 5, 2), (fresh_name, 1): (None, 5, None)}
        return
    settings = {"group_protocol": kind} if kind == "consumer" else {}
    with activity.librdkafka(kind, **settings):
        report = measured(kafka, name)
        assert rows(report) == as_kafka_tells(kafka, name)
        assert rows(report) == {(fresh_name, 0): (3, 5, 2), (fresh_name, 1): (None, 5, None)}
        state, reported = other_clients.members(kafka, name)
        assert (report.group.kind, report.group.state.upper()) == (kind, state)
        assert {one.client_id: set(one.partitions) for one in report.group.members} == reported
        assert [one.client_host for one in report.group.members] == ["127.0.0.1"]
        assert report.group.coordinator == kafka.coordinator_of(name)
    assert measured(kafka, name).group.state == "Empty"


@pytest.mark.spec("A-17")
def test_ends_under_an_open_transaction_and_topics_that_go(kafka1: KafkaCluster, fresh_name: str) -> None:
    gone = f"{fresh_name}-gone"
    kafka1.create_topic(fresh_name)
    kafka1.create_topic(gone)
    other_clients.produce_numbers(kafka1, fresh_name, range(4), 1)
    tp = TopicPartition(fresh_name, 0)
    commit(kafka1.bootstrap_servers, fresh_name, {tp: 1, TopicPartition(gone, 0): 0})
    producer = transaction(kafka1.bootstrap_servers, tp, 3, fresh_name)
    admin = AdminClient({"bootstrap.servers": kafka1.bootstrap_servers})
    partition = confluent_kafka.TopicPartition(*tp)
    for word, level in (
        ("read_uncommitted", IsolationLevel.READ_UNCOMMITTED),
        ("read_committed", IsolationLevel.READ_COMMITTED),
    ):
        (future,) = admin.list_offsets({partition: OffsetSpec.latest()}, isolation_level=level).values()
        end = future.result(timeout=other_clients.SECONDS).offset
        assert rows(measured(kafka1, fresh_name, isolation_level=word))[tp] == (1, end, end - 1)
        assert end == (7 if word == "read_uncommitted" else 4)
    producer.abort_transaction(other_clients.SECONDS)
    other_clients.delete_topic(kafka1, gone)
    other_clients.wait_until_committed(
        kafka1, fresh_name, {tp: 1}
    )  # brokers delete the offsets with the topic
    assert list(rows(measured(kafka1, fresh_name))) == [tp]


@pytest.mark.spec("A-17")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_an_unknown_group_is_not_found(request: pytest.FixtureRequest, cluster: str, fresh_name: str) -> None:
    with pytest.raises(BrokerError, match=f"no group of consumers named '{fresh_name}'") as caught:
        measured(request.getfixturevalue(cluster), fresh_name)
    assert (caught.value.code, caught.value.name) == (69, "GROUP_ID_NOT_FOUND")
