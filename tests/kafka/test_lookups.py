"""Offset lookups while brokers come and go: responses are kept, and only the other partitions are requested again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as TheirPartition
from confluent_kafka.admin import AdminClient

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from localkafka import KafkaCluster
from tests.kafka.other_clients import SECONDS, produce_numbers
from tests.kafka.wire_tap import Exchange, Tap

NOT_LEADER_OR_FOLLOWER, NOT_COORDINATOR, FENCED_LEADER_EPOCH = 6, 16, 74


def asked(one: Exchange) -> set[int]:
    return {row.partition_index for topic in one.request.topics for row in topic.partitions}


def codes(one: Exchange) -> set[int]:
    return {row.error_code for topic in one.response.topics for row in topic.partitions}


def elect_preferred(kafka: KafkaCluster, topic: str) -> None:
    """Every partition is led by its first replica again: asked for until it is so, as a replica has to be in sync."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    known = admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions
    first = {number: partition.replicas[0] for number, partition in known.items()}

    def elected() -> bool:
        later = [
            TheirPartition(topic, number)
            for number in first
            if kafka.leader_of(topic, number) != first[number]
        ]
        if later:
            admin.elect_leaders(ElectionType.PREFERRED, later).result(timeout=SECONDS)
        return not later

    wait_until(elected)


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def group_of(kafka: KafkaCluster, name: str, node: int) -> str:
    """A group that this node coordinates."""
    names = (f"{name}-{number}" for number in range(100))
    return next(group for group in names if kafka.coordinator_of(group) == node)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.spec("S0-21", "S0-33", "S0-47", "S0-49", "B.15.7", "B.15.9", "D-42")
def test_brokers_that_are_gone_and_brokers_that_lead_no_more(kafka3: KafkaCluster, fresh_name: str) -> None:
    kafka3.create_topic(fresh_name, 6)
    elect_preferred(kafka3, "__consumer_offsets")  # an earlier test may have left its partitions with others
    kafka3.wait_until_ready()
    produce_numbers(kafka3, fresh_name, range(30), 6)
    parts = [TopicPartition(fresh_name, number) for number in range(6)]
    ends, begins = dict.fromkeys(parts, 5), dict.fromkeys(parts, 0)
    leaders = {tp.partition: kafka3.leader_of(*tp) for tp in parts}
    killed = leaders[0]
    moved = {number for number, leader in leaders.items() if leader == killed}
    group = group_of(kafka3, fresh_name, killed)
    commits = {tp: OffsetAndMetadata(3, metadata="") for tp in parts}
    tap = Tap()
    keys = {"bootstrap_servers": kafka3.bootstrap_servers, "group_id": group, "enable_auto_commit": False}
    with Consumer(**keys, runtime=tap) as consumer:
        consumer.commit(commits)
        consumer.assign(parts)
        consumer.pause(parts)  # so no FetchResponse reports a new leader
        assert {tp: consumer.position(tp) for tp in parts} == dict.fromkeys(parts, 3)
        assert consumer.end_offsets(parts) == ends
        tap.forget()
        kafka3.kill(killed)
        assert consumer.end_offsets(parts) == ends
        assert any(asked(one) & moved for one in tap.answered("ListOffsets"))
        assert [asked(one) for one in tap.asked("ListOffsets") if not asked(one) & moved] == [
            {number for number in leaders if leaders[number] == leader}
            for leader in dict.fromkeys(leaders.values())
            if leader != killed
        ]
        assert consumer.committed(parts) == commits

        kafka3.restart(killed)
        elect_preferred(kafka3, fresh_name)
        elect_preferred(kafka3, "__consumer_offsets")
        assert {tp.partition: kafka3.leader_of(*tp) for tp in parts} == leaders
        assert kafka3.coordinator_of(group) == killed
        kafka3.wait_until_ready()
        tap.forget()
        consumer.seek_to_beginning()
        assert {tp: consumer.position(tp) for tp in parts} == begins
        stale = {NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH}
        refused = [one for one in tap.answered("ListOffsets") if codes(one) & stale]
        assert {number for one in refused for number in asked(one)} >= moved
        assert consumer.committed(parts) == commits
        responses = [one.response.groups[0].error_code for one in tap.answered("OffsetFetch")]
        assert (responses[0], responses[-1]) == (NOT_COORDINATOR, 0)
