"""Several members in processes of their own, of kclient and of another client: their partitions and their records."""

from __future__ import annotations

import pytest

from kclient import TopicPartition
from localkafka import KafkaCluster
from tests.kafka.member_processes import Member, Team
from tests.kafka.other_clients import assignor, members, produce_numbers, wait_until_committed

PARTITIONS = 6
WAVE = 3000


def wave(number: int) -> range:
    """The numbers of one wave of records."""
    return range(number * WAVE, (number + 1) * WAVE)


def all_committed(topic: str, waves: int) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, partition): waves * WAVE // PARTITIONS for partition in range(PARTITIONS)}


def by_range(first: Member, second: Member) -> None:
    """Two members that range has given six partitions: three neighbours each."""
    assert {frozenset(first.owned), frozenset(second.owned)} == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


@pytest.mark.slow
@pytest.mark.spec(
    "S4-01", "S3-27", "S3-30", "S3-32", "S3-34", "S1-32", "D-15", "D-28", "U-05", "I-01", "I-02"
)
def test_one_member_is_killed_and_one_closes(kafka1: KafkaCluster, fresh_name: str) -> None:
    """All of it amid the reading. What was seen twice had been seen by the killed member: nothing else repeats."""
    kafka1.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka1, fresh_name, wave(0), PARTITIONS)
    with Team(kafka1, fresh_name, fresh_name) as team:
        kinds = {"stays": "sync", "killed": "async", "closed": "sync"}
        stays, killed, closed = (team.start(name, kind, max_poll_records=7) for name, kind in kinds.items())
        team.wait_until_shared([stays, killed, closed], PARTITIONS)
        produce_numbers(kafka1, fresh_name, wave(1), PARTITIONS)
        team.wait_until_some_seen(closed, wave(1))
        closed.close()
        team.wait_until_shared([stays, killed], PARTITIONS)
        team.wait_until_seen(wave(1))
        assert max(team.seen().values()) == 1
        produce_numbers(kafka1, fresh_name, wave(2), PARTITIONS)
        team.wait_until_some_seen(killed, wave(2))
        killed.kill()
        produce_numbers(kafka1, fresh_name, wave(3), PARTITIONS)
        # The killed one has seen none of these: all before them were read again.
        team.wait_until_seen(wave(3))
        stays.close()
        twice = {number for number, times in team.seen().items() if times > 1}
        assert twice <= set(killed.numbers)
        assert set(team.seen()) == {number for n in range(4) for number in wave(n)}
        assert not any(member.has_reported("lost") for member in team.members)
        wait_until_committed(kafka1, fresh_name, all_committed(fresh_name, 4))


@pytest.mark.slow
@pytest.mark.spec("S4-24", "S4-25", "S4-41", "S4-32", "B.13.4", "B.16.1", "U-05")
@pytest.mark.parametrize(("leader", "follower"), [("sync", "confluent"), ("confluent", "async")])
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_another_clients_member_shares_the_partitions(
    request: pytest.FixtureRequest, cluster: str, leader: str, follower: str, fresh_name: str
) -> None:
    """The first member leads the group: its code shares out the partitions for both."""
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, PARTITIONS)
    produce_numbers(kafka, fresh_name, wave(0), PARTITIONS)
    with Team(kafka, fresh_name, fresh_name) as team:
        first = team.start("first", leader, partition_assignment_strategy="range")
        team.wait_until_shared([first], PARTITIONS)
        team.wait_until_seen(wave(0))
        second = team.start("second", follower, partition_assignment_strategy="range")
        team.wait_until_shared([first, second], PARTITIONS)
        by_range(first, second)
        assert assignor(kafka, fresh_name) == "range"
        state, parts = members(kafka, fresh_name)
        assert state == "STABLE"
        shares = {
            member.name: {TopicPartition(fresh_name, partition) for partition in member.owned}
            for member in (first, second)
        }
        assert parts == shares
        produce_numbers(kafka, fresh_name, wave(1), PARTITIONS)
        team.wait_until_seen(wave(1))
        first.close()  # the other one leads now
        team.wait_until_shared([second], PARTITIONS)
        produce_numbers(kafka, fresh_name, wave(2), PARTITIONS)
        team.wait_until_seen(wave(2))
        second.close()
        assert set(team.seen().values()) == {1}
        wait_until_committed(kafka, fresh_name, all_committed(fresh_name, 3))
