"""Sticky assignors of Java and of kclient in one group: each leader understands what the other's members had."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kclient import Consumer
from kclient.group.assignors import Subscription
from kclient.group.assignors.sticky import decode_cooperative, decode_sticky
from kclient.group.subscription_codec import decode_subscription
from localkafka import KafkaCluster
from tests.kafka.member_processes import SECONDS, Member, Team
from tests.kafka.other_clients import assignor
from tests.kafka.test_group_requests import settings
from tests.kafka.wire_tap import Tap

PARTITIONS = 12
STRATEGIES = ["sticky", "cooperative-sticky"]


class Group:
    """A Java member in a process, and members of kclient that are polled here."""

    def __init__(self, kafka: KafkaCluster, team: Team, topic: str, strategy: str) -> None:
        self._keys = settings(kafka, topic, partition_assignment_strategy=strategy)
        self._team, self._topic, self._strategy = team, topic, strategy
        self.java: Member | None = None
        self.ours: list[Consumer] = []

    def start_java(self) -> None:
        self.java = self._team.start("java", "java", partition_assignment_strategy=self._strategy)

    def start_ours(self, tap: Tap) -> None:
        self.ours.append(Consumer(self._topic, **self._keys, runtime=tap))

    @property
    def shares(self) -> list[set[int]]:
        """Java's partitions, and those of kclient's members in the order of their start."""
        theirs = [self.java.owned] if self.java is not None else []
        return [*theirs, *({tp.partition for tp in consumer.assignment()} for consumer in self.ours)]

    def settle(self) -> list[set[int]]:
        """Poll until all is shared out evenly; the shares."""

        def shared() -> bool:
            each = PARTITIONS // len(self.shares)
            together = sorted(number for share in self.shares for number in share)
            return together == list(range(PARTITIONS)) and all(len(share) == each for share in self.shares)

        self.until(shared)
        return self.shares

    def until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not reached():
            assert time.monotonic() < deadline, f"shares are {self.shares}"
            for consumer in self.ours:
                consumer.poll(0.05)
            time.sleep(0.02)

    def close(self) -> None:
        for consumer in self.ours:
            consumer.close()


def java_subscription(tap: Tap) -> Subscription:
    """Java's subscription in the JoinGroup response of the leader, when the group has three members."""
    responses = [one.response for one in tap.answered("JoinGroup")]
    members = next(response.members for response in responses if len(response.members) == 3)
    (metadata,) = [member.metadata for member in members if member.member_id.startswith("java")]
    return decode_subscription(metadata)


def check_past(subscription: Subscription, strategy: str, had: set[int], generation: int) -> None:
    """Eager members send it in user data; cooperative ones in the subscription, with the generation in user data."""
    if strategy == "sticky":
        past = decode_sticky(subscription.user_data)
        partitions: Any = past.partitions
        assert past.generation == generation
    else:
        partitions = subscription.owned_partitions
        assert decode_cooperative(subscription.user_data) == generation
    assert {tp.partition for tp in partitions} == had


@pytest.mark.slow
@pytest.mark.spec("B.16.3", "B.16.4", "B.16.7", "D-63")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_kclient_leads_and_java_keeps_what_it_can(
    kafka1: KafkaCluster, fresh_name: str, strategy: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    tap = Tap()
    with Team(kafka1, fresh_name, fresh_name) as team:
        group = Group(kafka1, team, fresh_name, strategy)
        try:
            group.start_ours(tap)
            group.settle()
            group.start_java()
            java, ours = group.settle()
            generation = group.ours[0].group_metadata().generation_id
            assert assignor(kafka1, fresh_name) == strategy
            group.start_ours(Tap())
            after = group.settle()
            check_past(java_subscription(tap), strategy, java, generation)
            assert after[0] < java
            assert after[1] < ours
        finally:
            group.close()


@pytest.mark.slow
@pytest.mark.spec("B.16.3", "B.16.4", "B.16.7", "D-63")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_java_leads_and_kclient_keeps_what_it_can(
    kafka1: KafkaCluster, fresh_name: str, strategy: str
) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    with Team(kafka1, fresh_name, fresh_name) as team:
        group = Group(kafka1, team, fresh_name, strategy)
        try:
            group.start_java()
            group.settle()
            tap = Tap()
            group.start_ours(tap)
            java, ours = group.settle()
            group.start_ours(Tap())
            java_later, ours_later, _ = group.settle()
            assert java_later < java
            assert ours_later < ours
            group.ours.pop().close()
            java_last, ours_last = group.settle()
            assert java_later < java_last
            assert ours_later < ours_last
            assert not any(one.response.members for one in tap.answered("JoinGroup"))  # Java led all the time
        finally:
            group.close()
