"""Metadata: brokers, the cluster, topics by name and by id, and what is said of those that do not exist."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.metadata_response import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol import errors
from tests.conformance.target import Target

pytestmark = pytest.mark.api("Metadata", few=True)

NOT_ASKED = -2147483648
NO_ID = bytes(16)
BY_ID = 12
READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE = 3, 4, 5, 6, 7, 8
CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = 9, 10, 11, 12


def bits(*numbers: int) -> int:
    """Operations as the response writes them."""
    return sum(1 << number for number in numbers)


def ask(target: Target, version: int, *names: str, **fields: Any) -> Any:
    """The whole response about topics by name."""
    return target.ask(
        MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **fields), version
    )


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", few=True)
def test_brokers_and_controller_are_reported(target: Target, topic: str, version: int) -> None:
    response = ask(target, version, topic)
    broker = MetadataResponseBroker(node_id=1, host=target.host, port=target.port)
    assert response.brokers == [broker]
    assert response.controller_id == (1 if version >= 1 else -1)
    assert bool(response.cluster_id) is (version >= 2)
    assert (response.throttle_time_ms, response.error_code) == (0, errors.NONE)
    assert response.cluster_authorized_operations == NOT_ASKED


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", few=True)
def test_a_topic_is_described(target: Target, version: int) -> None:
    topic = target.topic(partitions=2)
    [response] = ask(target, version, topic).topics
    assert (response.topic_id != NO_ID) is (version >= 10)
    response.partitions.sort(key=lambda partition: partition.partition_index)
    assert response == MetadataResponseTopic(
        name=topic,
        topic_id=response.topic_id,
        topic_authorized_operations=NOT_ASKED,
        partitions=[
            MetadataResponsePartition(
                partition_index=number,
                leader_id=1,
                leader_epoch=0 if version >= 7 else -1,
                replica_nodes=[1],
                isr_nodes=[1],
            )
            for number in range(2)
        ],
    )


@pytest.mark.spec("C.2.1", "B.15.11")
@pytest.mark.api("Metadata", few=True)
def test_an_unknown_topic(target: Target, version: int) -> None:
    assert ask(target, version, "no-such-topic").topics == [
        MetadataResponseTopic(
            error_code=errors.UNKNOWN_TOPIC_OR_PARTITION,
            name="no-such-topic",
            topic_authorized_operations=NOT_ASKED,
        )
    ]


@pytest.mark.spec("B.15.11")
@pytest.mark.parametrize("name", ["", "a b", "ü", ".", "..", "x" * 250])
def test_an_invalid_name(target: Target, version: int, name: str) -> None:
    [response] = ask(target, version, name).topics
    assert (response.error_code, response.name, response.partitions) == (
        errors.INVALID_TOPIC_EXCEPTION,
        name,
        [],
    )


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", 4, few=True)
def test_asking_creates_nothing_where_the_broker_does_not_allow_it(target: Target, version: int) -> None:
    for _ in range(2):
        [response] = ask(target, version, "not-created", allow_auto_topic_creation=True).topics
        assert response.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.spec("C.2.1")
def test_all_topics(target: Target, topic: str, version: int) -> None:
    request = MetadataRequest(topics=[] if version == 0 else None)
    assert topic in [row.name for row in target.ask(request, version).topics]


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", 1, few=True)
def test_no_topics(target: Target, topic: str, version: int) -> None:
    response = target.ask(MetadataRequest(topics=[]), version)
    assert (response.topics, len(response.brokers)) == ([], 1)


@pytest.mark.api("Metadata", 1, few=True)
def test_a_topic_asked_twice_is_reported_once(target: Target, topic: str, version: int) -> None:
    assert [row.name for row in ask(target, version, topic, topic).topics] == [topic]


@pytest.mark.api("Metadata", 1, few=True)
def test_internal_topics_are_marked(target: Target, group: str, version: int) -> None:
    target.coordinated(group)
    [response] = ask(target, version, "__consumer_offsets").topics
    assert (response.error_code, response.is_internal, len(response.partitions)) == (errors.NONE, True, 5)


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", BY_ID, few=True)
def test_topics_by_id(target: Target, topic: str, version: int) -> None:
    topic_id, unknown = target.topic_id(topic), uuid.uuid4().bytes
    rows = [MetadataRequestTopic(topic_id=one, name=None) for one in (topic_id, unknown)]
    response = target.ask(MetadataRequest(topics=rows), version)
    found = {row.topic_id: (row.error_code, row.name, len(row.partitions)) for row in response.topics}
    assert found == {topic_id: (errors.NONE, topic, 1), unknown: (errors.UNKNOWN_TOPIC_ID, None, 0)}


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Metadata", 10, few=True)
def test_ids_are_refused_before_version_12(target: Target, topic: str, version: int) -> None:
    if version >= BY_ID:
        return
    row = MetadataRequestTopic(topic_id=b"\1" * 16, name=topic)
    response = target.ask(MetadataRequest(topics=[row]), version)
    assert {row.error_code for row in response.topics} <= {errors.INVALID_REQUEST}


@pytest.mark.api("Metadata", 8, few=True)
def test_authorized_operations_on_request(target: Target, topic: str, version: int) -> None:
    asked = {"include_topic_authorized_operations": True}
    if version <= 10:
        asked["include_cluster_authorized_operations"] = True
    response = ask(target, version, topic, **asked)
    assert response.topics[0].topic_authorized_operations == bits(
        READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS
    )
    everything = bits(
        CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE
    )
    assert response.cluster_authorized_operations == (everything if version <= 10 else NOT_ASKED)
