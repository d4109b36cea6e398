"""CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords: what an operator may do, and what not."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kclient.generated.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kclient.generated.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.generated.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kclient.protocol import errors
from tests.conformance.fetching import fetch_one
from tests.conformance.target import Target, eventually, fresh, led

DEFAULTS = 4  # from this version of CreateTopics −1 stands for the broker's default
BY_ID = 6  # of DeleteTopics


def create(target: Target, version: int, *topics: CreatableTopic, **fields: Any) -> dict[str, int]:
    """Topic → error code."""
    response = target.ask(CreateTopicsRequest(topics=list(topics), timeout_ms=10_000, **fields), version)
    return {row.name: row.error_code for row in response.topics}


def plain(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> CreatableTopic:
    """A topic as most are."""
    rows = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=rows)


def exists(target: Target, name: str) -> bool:
    """Whether Metadata knows the topic."""
    return bool(target.metadata(name).error_code == errors.NONE)


@pytest.mark.api("CreateTopics")
def test_a_topic_is_created(target: Target, version: int) -> None:
    name = fresh("topic")
    response = target.ask(CreateTopicsRequest(topics=[plain(name, 3)], timeout_ms=10_000), version)
    [row] = response.topics
    assert (row.name, row.error_code, row.error_message) == (name, errors.NONE, None if version >= 1 else "")
    eventually(lambda: target.metadata(name), lambda topic: led(topic) == 3)
    if version >= 5:
        assert (row.num_partitions, row.replication_factor) == (3, 1)
        assert {config.name: config.value for config in row.configs}["cleanup.policy"] == "delete"
    if version >= 7:
        assert row.topic_id == target.topic_id(name)


@pytest.mark.api("CreateTopics", 1, few=True)
def test_validation_alone_creates_nothing(target: Target, version: int) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name), validate_only=True) == {name: errors.NONE}
    assert not exists(target, name)


@pytest.mark.api("CreateTopics", few=True)
def test_a_topic_that_exists_is_refused(target: Target, topic: str, version: int) -> None:
    assert create(target, version, plain(topic)) == {topic: errors.TOPIC_ALREADY_EXISTS}


@pytest.mark.api("CreateTopics", few=True)
@pytest.mark.parametrize("name", ["", "a b", "ü", ".", "..", "x" * 250])
def test_an_invalid_name_is_refused(target: Target, version: int, name: str) -> None:
    assert create(target, version, plain(name)) == {name: errors.INVALID_TOPIC_EXCEPTION}


@pytest.mark.api("CreateTopics", few=True)
def test_a_name_that_differs_by_dot_or_underscore_only_is_refused(target: Target, version: int) -> None:
    name = fresh("topic").replace("-", ".")
    assert create(target, version, plain(name)) == {name: errors.NONE}
    eventually(lambda: exists(target, name), bool)
    twin = name.replace(".", "_")
    assert create(target, version, plain(twin)) == {twin: errors.INVALID_TOPIC_EXCEPTION}


@pytest.mark.api("CreateTopics", few=True)
@pytest.mark.parametrize("partitions", [0, -2])
def test_a_topic_needs_partitions(target: Target, version: int, partitions: int) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name, partitions)) == {name: errors.INVALID_PARTITIONS}


@pytest.mark.api("CreateTopics", few=True)
@pytest.mark.parametrize("replicas", [0, -2, 2])
def test_replicas_need_brokers(target: Target, version: int, replicas: int) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name, 1, replicas)) == {name: errors.INVALID_REPLICATION_FACTOR}


@pytest.mark.api("CreateTopics", DEFAULTS, few=True)
def test_minus_one_stands_for_the_default(target: Target, version: int) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name, -1, -1)) == {name: errors.NONE}
    eventually(lambda: target.metadata(name), lambda topic: led(topic) == 1)


@pytest.mark.api("CreateTopics", few=True)
def test_defaults_are_refused_before_their_version(target: Target, version: int) -> None:
    if version < DEFAULTS and not target.since("4.0"):
        name = fresh("topic")
        assert create(target, version, plain(name, -1, 1))[name] in (errors.INVALID_PARTITIONS, errors.NONE)


@pytest.mark.api("CreateTopics", few=True)
@pytest.mark.parametrize(
    ("key", "value"), [("no_such_key", "1"), ("retention_ms", "soon"), ("cleanup_policy", "keep")]
)
def test_a_bad_setting_is_refused(target: Target, version: int, key: str, value: str) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name, **{key: value})) == {name: errors.INVALID_CONFIG}
    assert not exists(target, name)


@pytest.mark.api("CreateTopics", few=True)
def test_each_topic_is_answered(target: Target, topic: str, version: int) -> None:
    name = fresh("topic")
    codes = create(target, version, plain(name), plain(topic), plain("a b"))
    assert codes == {
        name: errors.NONE,
        topic: errors.TOPIC_ALREADY_EXISTS,
        "a b": errors.INVALID_TOPIC_EXCEPTION,
    }


@pytest.mark.api("CreateTopics", few=True)
def test_a_topic_named_twice_is_refused(target: Target, version: int) -> None:
    name = fresh("topic")
    assert create(target, version, plain(name), plain(name)) == {name: errors.INVALID_REQUEST}
    assert not exists(target, name)


@pytest.mark.api("CreateTopics", few=True)
def test_replicas_may_be_placed_manually(target: Target, version: int) -> None:
    name = fresh("topic")

    def placed(*rows: tuple[int, list[int]], partitions: int = -1, replicas: int = -1) -> dict[str, int]:
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=ids) for number, ids in rows
        ]
        return create(
            target,
            version,
            CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=replicas, assignments=assignments
            ),
        )

    assert placed((0, [1]), partitions=1) == {name: errors.INVALID_REQUEST}
    bad = errors.INVALID_REPLICA_ASSIGNMENT
    assert placed((0, [1]), (2, [1])) == {name: bad}
    if target.since("3.3"):  # with ZooKeeper it is not checked whether the broker exists
        assert placed((0, [9])) == {name: bad}
    assert placed((0, [1, 1])) == {name: bad}
    assert placed((0, [1]), (1, [1])) == {name: errors.NONE}
    eventually(lambda: target.metadata(name), lambda topic: led(topic) == 2)


def delete(target: Target, version: int, *names: str) -> dict[str, int]:
    """Topic → error code."""
    if version >= BY_ID:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=10_000
        )
    else:
        request = DeleteTopicsRequest(topic_names=list(names), timeout_ms=10_000)
    return {row.name: row.error_code for row in target.ask(request, version).responses}


@pytest.mark.api("DeleteTopics")
def test_a_topic_is_deleted(target: Target, topic: str, version: int) -> None:
    codes = delete(target, version, topic, "no-such-topic")
    assert codes == {topic: errors.NONE, "no-such-topic": errors.UNKNOWN_TOPIC_OR_PARTITION}
    eventually(lambda: exists(target, topic), lambda there: not there)


@pytest.mark.api("DeleteTopics", BY_ID)
def test_a_topic_is_deleted_by_its_id(target: Target, topic: str, version: int) -> None:
    topic_id, unknown = target.topic_id(topic), uuid.uuid4().bytes
    rows = [DeleteTopicState(name=None, topic_id=one) for one in (topic_id, unknown)]
    response = target.ask(DeleteTopicsRequest(topics=rows, timeout_ms=10_000), version)
    found = {row.topic_id: (row.name, row.error_code) for row in response.responses}
    assert found == {topic_id: (topic, errors.NONE), unknown: (None, errors.UNKNOWN_TOPIC_ID)}
    eventually(lambda: exists(target, topic), lambda there: not there)


@pytest.mark.api("Metadata", 10, few=True)
def test_a_topic_recreated_has_another_id(target: Target, topic: str, version: int) -> None:
    before = target.topic_id(topic)
    target.produce(topic, b"old")
    assert delete(target, target.newest("DeleteTopics"), topic) == {topic: errors.NONE}
    eventually(lambda: exists(target, topic), lambda there: not there)
    newest = target.newest("CreateTopics")
    eventually(lambda: create(target, newest, plain(topic))[topic], lambda code: code == errors.NONE)
    eventually(lambda: target.metadata(topic), lambda response: led(response) == 1)
    assert target.topic_id(topic) != before
    fetch_version = target.newest("Fetch")
    row = eventually(
        lambda: fetch_one(target, fetch_version, topic, 0), lambda row: row.error_code == errors.NONE
    )
    assert (row.high_watermark, bytes(row.records)) == (0, b"")


def grow(target: Target, version: int, name: str, count: int, **fields: Any) -> int:
    """The error code of adding partitions to one topic."""
    placed = [CreatePartitionsAssignment(broker_ids=ids) for ids in fields.pop("broker_ids", [])]
    row = CreatePartitionsTopic(name=name, count=count, assignments=placed or None)
    [response] = target.ask(
        CreatePartitionsRequest(topics=[row], timeout_ms=10_000, **fields), version
    ).results
    assert response.name == name
    return int(response.error_code)


@pytest.mark.api("CreatePartitions")
def test_partitions_are_added(target: Target, topic: str, version: int) -> None:
    assert grow(target, version, topic, 3, validate_only=True) == errors.NONE
    assert len(target.metadata(topic).partitions) == 1
    assert grow(target, version, topic, 3) == errors.NONE
    eventually(lambda: target.metadata(topic), lambda response: led(response) == 3)


@pytest.mark.api("CreatePartitions", few=True)
@pytest.mark.parametrize("count", [1, 0, -1])
def test_partitions_never_get_fewer(target: Target, topic: str, version: int, count: int) -> None:
    assert grow(target, version, topic, count) == errors.INVALID_PARTITIONS


@pytest.mark.api("CreatePartitions", few=True)
def test_partitions_of_an_unknown_topic(target: Target, version: int) -> None:
    assert grow(target, version, "no-such-topic", 2) == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.api("CreatePartitions", few=True)
@pytest.mark.parametrize("broker_ids", [[[9]], [[1], [1]], [[1, 1]]])
def test_new_replicas_must_fit(target: Target, topic: str, version: int, broker_ids: list[list[int]]) -> None:
    code = grow(target, version, topic, 2, broker_ids=broker_ids)
    assert code == errors.INVALID_REPLICA_ASSIGNMENT


def cut(target: Target, version: int, topic: str, offset: int, partition: int = 0) -> tuple[int, int]:
    """Error code and new log start of deleting records before an offset."""
    row = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[row])], timeout_ms=10_000
    )
    [response] = target.ask(request, version).topics[0].partitions
    return response.error_code, response.low_watermark


@pytest.mark.api("DeleteRecords")
def test_records_before_an_offset_are_deleted(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0", b"1", b"2")
    assert cut(target, version, topic, 2) == (errors.NONE, 2)
    assert cut(target, version, topic, 1) == (errors.NONE, 2)
    fetch_version = target.newest("Fetch")
    assert fetch_one(target, fetch_version, topic, 1).error_code == errors.OFFSET_OUT_OF_RANGE
    assert fetch_one(target, fetch_version, topic, 2).log_start_offset == 2
    assert cut(target, version, topic, -1) == (errors.NONE, 3)  # up to the high watermark


@pytest.mark.api("DeleteRecords", few=True)
def test_records_that_do_not_exist_cannot_be_deleted(target: Target, topic: str, version: int) -> None:
    target.produce(topic, b"0")
    assert cut(target, version, topic, 2) == (errors.OFFSET_OUT_OF_RANGE, -1)
    assert cut(target, version, topic, 0, partition=5) == (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert cut(target, version, "no-such-topic", 0) == (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.api("DeleteRecords", few=True)
def test_records_of_a_compacted_topic_stay(target: Target, version: int) -> None:
    topic = target.topic(cleanup_policy="compact")
    assert cut(target, version, topic, 0)[0] == errors.POLICY_VIOLATION
