"""A-03 on a real Kafka: from range to cooperative-sticky in two rolling steps, with Java's and librdkafka's members."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kclient import Consumer
from kclient.errors import BrokerError
from kclient.protocol.errors import INCONSISTENT_GROUP_PROTOCOL
from localkafka import KafkaCluster
from tests.kafka.member_processes import Member, Team
from tests.kafka.other_clients import SECONDS, assignor, producer

PARTITIONS = 12
# librdkafka refuses two assignors of different kinds: its member goes over in the last step of the first round.
KINDS = {"ours-a": "sync", "ours-b": "async", "java": "java", "theirs": "confluent"}
RANGE, COOPERATIVE = "range", "cooperative-sticky"
OLD, BOTH, NEW = RANGE, f"{COOPERATIVE},{RANGE}", COOPERATIVE


@contextmanager
def writing(kafka: KafkaCluster, topic: str) -> Iterator[list[int]]:
    """Numbers are written all the time, to every partition in turn; the list holds those that are written."""
    source, stopping = producer(kafka), threading.Event()
    written: list[int] = []

    def write() -> None:
        while not stopping.wait(0.01):
            number = len(written)
            source.produce(topic, value=b"%d" % number, partition=number % PARTITIONS)
            source.poll(0)
            written.append(number)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield written
    finally:
        stopping.set()
        thread.join(SECONDS)
        assert source.flush(SECONDS) == 0


def restart(team: Team, members: dict[str, Member], name: str, strategy: str) -> dict[str, int]:
    """End a member and start it again with other assignors; how many lines each of the others had written before."""
    before = {other: len(member.events) for other, member in members.items() if other != name}
    members[name].close()
    members[name] = team.start(name, KINDS[name], partition_assignment_strategy=strategy)
    team.wait_until_shared(members.values(), PARTITIONS)
    return before


def calls(member: Member, since: int) -> list[tuple[str, set[int]]]:
    """The callbacks of a member from a line on."""
    lines = [line for line in list(member.events)[since:] if "partitions" in line]
    return [(line["event"], set(line["partitions"])) for line in lines]


def only_range_is_known(kafka: KafkaCluster, group: str) -> None:
    """A member that knows another assignor alone is refused, and no other member hears of it."""
    settings = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": group}
    with Consumer(group, **settings, partition_assignment_strategy="roundrobin") as stranger:
        with pytest.raises(BrokerError) as caught:
            stranger.poll(SECONDS)
        assert caught.value.code == INCONSISTENT_GROUP_PROTOCOL


def only_what_moves_is_revoked(team: Team, members: dict[str, Member]) -> None:
    """One more member comes, and every other member keeps the rest of what it has."""
    had = {name: (len(member.events), member.owned) for name, member in members.items()}
    fifth = team.start("fifth", "confluent", partition_assignment_strategy=NEW)
    team.wait_until_shared([*members.values(), fifth], PARTITIONS)
    for name, (since, before) in had.items():
        reported = calls(members[name], since)
        revoked = [number for event, parts in reported if event == "revoked" for number in parts]
        assert sorted(revoked) == sorted(before - members[name].owned), f"{name} told {reported}"
        assert members[name].owned <= before


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.spec("A-03", "S3-32", "S3-33", "S3-44", "S4-22", "B.13.4", "B.13.11", "D-16")
def test_a03_a_mixed_group_goes_over_to_cooperative_sticky(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name, PARTITIONS)
    with Team(kafka1, fresh_name, fresh_name) as team:
        with writing(kafka1, fresh_name) as written:
            members = {
                name: team.start(name, kind, partition_assignment_strategy=OLD)
                for name, kind in KINDS.items()
            }
            team.wait_until_shared(members.values(), PARTITIONS)
            for name in KINDS:
                assert assignor(kafka1, fresh_name) == RANGE  # as long as one member knows nothing else
                restart(team, members, name, BOTH if name != "theirs" else NEW)
            assert assignor(kafka1, fresh_name) == COOPERATIVE
            only_range_is_known(kafka1, fresh_name)
            second = [name for name in KINDS if name != "theirs"]
            for number, name in enumerate(second):
                before = restart(team, members, name, NEW)
                for other in second[number + 1 :]:  # one of their assignors knows EAGER alone
                    reported = calls(members[other], before[other])
                    assert reported[0][0] == "revoked", f"{other} told {reported}"
                    assert all(len(parts) > 1 for event, parts in reported if event == "revoked")
                assert assignor(kafka1, fresh_name) == COOPERATIVE
            only_what_moves_is_revoked(team, members)
        team.wait_until_seen(written)
        assert not any(member.has_reported("lost") for member in team.members)
