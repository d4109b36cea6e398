"""Members and assignments that a group rejects."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation, AclPermissionType, AdminClient, ResourceType

from kclient import Consumer, GroupMetadata, RebalanceListener, TopicPartition
from kclient.errors import GroupAuthorizationError
from kclient.group.assignors import Assignment, Assignor, Member, Topics
from localkafka import KafkaCluster
from tests.kafka.blocking_consumers import wait_for_assignment
from tests.kafka.other_clients import SECONDS, denied, producer, ruled
from tests.kafka.test_group_requests import settings
from tests.kafka.wire_tap import Tap
from tests.realtime import within

GROUP_AUTHORIZATION_FAILED = 30


def groups_of(kafka: KafkaCluster) -> list[str]:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    return [group.group_id for group in admin.list_consumer_groups().result(timeout=SECONDS).valid]


@pytest.mark.spec("S1-06", "B.15.2")
def test_no_coordinator_of_a_group_without_the_permission(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name)
    tap = Tap()
    with (
        denied(kafka1, AclOperation.DESCRIBE, fresh_name, kind=ResourceType.GROUP),
        Consumer(fresh_name, **settings(kafka1, fresh_name), runtime=tap) as consumer,
    ):
        with pytest.raises(GroupAuthorizationError, match=fresh_name):
            consumer.poll(SECONDS)
        (lookup,) = tap.answered("FindCoordinator")
        assert lookup.response.coordinators[0].error_code == GROUP_AUTHORIZATION_FAILED
        assert not tap.asked("JoinGroup")


@pytest.mark.spec("S4-54", "B.15.3")
def test_a_member_that_may_not_read_the_group_does_not_come_in(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Before anything else is looked at: no group is made by it."""
    kafka1.create_topic(fresh_name)
    tap = Tap()
    with (
        ruled(kafka1, AclPermissionType.ALLOW, AclOperation.DESCRIBE, [fresh_name], ResourceType.GROUP),
        Consumer(fresh_name, **settings(kafka1, fresh_name), runtime=tap) as consumer,
    ):
        with pytest.raises(GroupAuthorizationError, match=fresh_name):
            consumer.poll(SECONDS)
        response = tap.answered("JoinGroup")[0].response
        reported = (
            response.error_code,
            response.generation_id,
            response.member_id,
            response.leader,
            response.members,
        )
        assert reported == (GROUP_AUTHORIZATION_FAILED, -1, "", "", [])
        assert fresh_name not in groups_of(kafka1)


@pytest.mark.spec("S1-07")
def test_no_coordinator_of_a_transactional_id_without_the_permission(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    with denied(kafka1, AclOperation.DESCRIBE, fresh_name, kind=ResourceType.TRANSACTIONAL_ID):
        source = producer(kafka1, transactional_id=fresh_name)
        with pytest.raises(KafkaException) as caught:
            source.init_transactions(SECONDS)
        assert caught.value.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class Careless(Assignor):
    """Gives its own member a partition of another topic the first time, and what it wants from then on."""

    name = "careless"

    def __init__(self, wrong: TopicPartition, right: TopicPartition) -> None:
        self.plans = [wrong, right]
        self.calls: list[tuple[tuple[TopicPartition, ...], int]] = []

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        plan = self.plans.pop(0)
        return {member.member_id: Assignment((plan,)) for member in members}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        self.calls.append((assignment.partitions, metadata.generation_id))


class RecordingListener(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[TopicPartition, ...]]] = []

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("assigned", partitions))

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.calls.append(("revoked", partitions))


@pytest.mark.spec("S3-42", "S3-46", "B.13.7", "B.16.8")
def test_a_plan_that_does_not_fit_is_not_taken(kafka1: KafkaCluster, fresh_name: str) -> None:
    """The member joins again; neither its listener nor its assignor hears of the plan."""
    kafka1.create_topic(fresh_name)
    kafka1.create_topic(f"{fresh_name}-other")
    right = TopicPartition(fresh_name, 0)
    careless, listener, tap = (
        Careless(TopicPartition(f"{fresh_name}-other", 0), right),
        RecordingListener(),
        Tap(),
    )
    keys = settings(kafka1, fresh_name, partition_assignment_strategy=[careless])
    with Consumer(fresh_name, **keys, listener=listener, runtime=tap) as consumer:
        wait_for_assignment(consumer)
        joined = [one for one in tap.answered("JoinGroup") if one.response.error_code == 0]
        assert len(joined) == 2
        assert "does not match" in joined[1].request.reason
        assert joined[0].response.member_id == joined[1].response.member_id
        assert careless.calls == [((right,), joined[1].response.generation_id)]
        assert ("assigned", (right,)) == listener.calls[-1]
        assert all(parts == () for _, parts in listener.calls[:-1])


@pytest.mark.slow
@pytest.mark.spec("S1-13", "S1-21", "S3-16", "S4-03", "I-23")
def test_polls_end_in_time_and_cost_nothing_while_no_broker_is_there(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    """Members and readers of assigned partitions alike."""
    kafka1.create_topic(fresh_name)
    keys = settings(kafka1, fresh_name)
    with Consumer(fresh_name, **keys) as member, Consumer(**keys) as reader:
        reader.assign([TopicPartition(fresh_name, 0)])
        for consumer in (member, reader):
            wait_for_assignment(consumer)
        kafka1.kill(1)
        for consumer in (member, reader):
            cpu = time.process_time()
            with within(3) as elapsed:
                for _ in range(5):
                    assert len(consumer.poll(0.3)) == 0
            assert elapsed.seconds > 1.4
            assert time.process_time() - cpu < 0.5
            consumer.close(timeout=1)
