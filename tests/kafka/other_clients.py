"""Other programs as the reference: records by confluent-kafka's producers, committed offsets by its admin client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kclient.types import TopicPartition
from localkafka import KafkaCluster

SECONDS = 30
FLUSH_SECONDS = 60
"""A broker that was stopped may have to be elected again before it takes messages."""

QUIET = {"log_level": 3}


def producer(
    kafka: KafkaCluster, *, on_error: Callable[[KafkaError], object] | None = None, **settings: str | int
) -> Producer:
    """A producer of confluent-kafka; `linger_ms=5` stands for `linger.ms`."""
    dotted = {key.replace("_", "."): value for key, value in settings.items()}
    heard = {} if on_error is None else {"error_cb": on_error}
    return Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5, **QUIET, **dotted, **heard}
    )


def produce_numbers(kafka: KafkaCluster, topic: str, numbers: Iterable[int], partitions: int) -> None:
    """Write each number as a value; a number's partition is what is left when it is divided by `partitions`."""
    heard: list[str] = []
    source = producer(kafka, on_error=lambda error: heard.append(str(error)))
    for number in numbers:
        source.produce(topic, value=b"%d" % number, partition=number % partitions)
    left = source.flush(FLUSH_SECONDS)
    assert left == 0, f"{left} messages are not acknowledged; the producer says {heard[-5:]}"


def committed(kafka: KafkaCluster, group: str) -> dict[TopicPartition, int]:
    """The committed offsets of a group, as another client sees them."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    response = future.result(timeout=SECONDS).topic_partitions
    return {TopicPartition(tp.topic, tp.partition): tp.offset for tp in response if tp.offset >= 0}


def members(kafka: KafkaCluster, group: str) -> tuple[str, dict[str, set[TopicPartition]]]:
    """The state of a group, and the partitions of each member by client id."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    (future,) = admin.describe_consumer_groups([group]).values()
    response = future.result(timeout=SECONDS)
    parts = {
        member.client_id: {
            TopicPartition(tp.topic, tp.partition) for tp in member.assignment.topic_partitions
        }
        for member in response.members
    }
    return response.state.name, parts


def assignor(kafka: KafkaCluster, group: str) -> str:
    """The assignor that the group has agreed on."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    (future,) = admin.describe_consumer_groups([group]).values()
    return future.result(timeout=SECONDS).partition_assignor


def wait_until_committed(kafka: KafkaCluster, group: str, offsets: dict[TopicPartition, int]) -> None:
    """Wait until another client sees exactly these committed offsets; what it saw last is in the failure."""
    deadline = time.monotonic() + SECONDS
    while (seen := committed(kafka, group)) != offsets:
        assert time.monotonic() < deadline, f"committed are {seen}, not {offsets}"
        time.sleep(0.3)


@contextmanager
def denied(
    kafka: KafkaCluster, operation: AclOperation, *names: str, kind: ResourceType = ResourceType.TOPIC
) -> Iterator[None]:
    """Every principal is denied this operation on these topics, or on what `kind` says, for a while.

    The cluster has to have an authorizer.
    """
    with ruled(kafka, AclPermissionType.DENY, operation, names, kind):
        yield


@contextmanager
def ruled(
    kafka: KafkaCluster,
    permission: AclPermissionType,
    operation: AclOperation,
    names: Iterable[str],
    kind: ResourceType,
) -> Iterator[None]:
    """There is this rule for a while. Where only ALLOW is said of something, everything else is denied."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    rule = (ResourcePatternType.LITERAL, "User:*", "*", operation, permission)
    rows = [AclBinding(kind, name, *rule) for name in names]
    filters = [AclBindingFilter(kind, name, *rule) for name in names]
    for future in admin.create_acls(rows).values():
        future.result(timeout=SECONDS)
    deadline = time.monotonic() + SECONDS
    while not all(admin.describe_acls(one).result(timeout=SECONDS) for one in filters):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    try:
        yield
    finally:
        for future in admin.delete_acls(filters).values():
            future.result(timeout=SECONDS)


def delete_topic(kafka: KafkaCluster, topic: str) -> None:
    """Delete a topic that would slow down what comes after it. Return when it is gone."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, **QUIET})
    admin.delete_topics([topic], operation_timeout=SECONDS)[topic].result(timeout=SECONDS)
