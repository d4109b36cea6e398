"""The requests of joining, staying in and rejoining a group, at a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from kclient import Consumer, TopicPartition
from kclient.group.subscription_codec import decode_assignment, decode_subscription
from localkafka import KafkaCluster, probe
from tests.kafka.blocking_consumers import read, read_nothing, wait_for_assignment
from tests.kafka.other_clients import committed, members, produce_numbers
from tests.kafka.wire_tap import Exchange, Tap

MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
SESSION_MS, MAX_POLL_MS, HEARTBEAT_MS = 6000, 20_000, 250
SECONDS = 20
CONVERSATION = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "LeaveGroup")


def settings(kafka: KafkaCluster, group: str, **more: Any) -> dict[str, Any]:
    keys = {"bootstrap_servers": kafka.bootstrap_servers, "group_id": group, "auto_offset_reset": "earliest"}
    times = {"session_timeout_ms": SESSION_MS, "max_poll_interval_ms": MAX_POLL_MS}
    return {**keys, **times, "heartbeat_interval_ms": HEARTBEAT_MS, "enable_auto_commit": False, **more}


def until(reached: Callable[[], bool], *consumers: Consumer) -> list[Any]:
    """Poll these consumers, and no other, until something is so; the records that came meanwhile."""
    deadline = time.monotonic() + SECONDS
    records: list[Any] = []
    while not reached():
        assert time.monotonic() < deadline
        for consumer in consumers:
            records += list(consumer.poll(0.02))
        time.sleep(0.02)
    return records


def codes(exchanges: list[Exchange]) -> list[int]:
    return [one.response.error_code for one in exchanges]


def group_calls(tap: Tap) -> list[str]:
    """The steps of a join, in their order."""
    return [api for api in tap.apis() if api in ("FindCoordinator", "JoinGroup", "SyncGroup")]


@pytest.mark.spec("S4-11", "S4-20", "S4-22", "S4-27", "S4-51", "S3-39", "S3-51", "B.13.3")
@pytest.mark.parametrize("cluster", ["kafka1", "kafka28"])
def test_a_first_join_in_two_steps(request: pytest.FixtureRequest, cluster: str, fresh_name: str) -> None:
    """Lookup, join without an id, join with the id that was given, sync: nothing else, and what they say."""
    kafka = request.getfixturevalue(cluster)
    kafka.create_topic(fresh_name, 2)
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka, fresh_name), runtime=tap) as consumer:
        wait_for_assignment(consumer, 2)
        assert group_calls(tap) == ["FindCoordinator", "JoinGroup", "JoinGroup", "SyncGroup"]
        (found,) = tap.asked("FindCoordinator")
        asked = found.request.coordinator_keys if found.version >= 4 else [found.request.key]
        assert (found.request.key_type, asked) == (0, [fresh_name])
        first, second = tap.answered("JoinGroup")
        assert codes([first, second]) == [MEMBER_ID_REQUIRED, 0]
        assert (first.request.member_id, second.request.member_id) == ("", first.response.member_id)
        for join in (first.request, second.request):
            assert (join.group_id, join.protocol_type) == (fresh_name, "consumer")
            assert (join.session_timeout_ms, join.rebalance_timeout_ms) == (SESSION_MS, MAX_POLL_MS)
            assert [protocol.name for protocol in join.protocols] == ["range", "cooperative-sticky"]
            assert decode_subscription(join.protocols[0].metadata).topics == (fresh_name,)
        (sync,) = tap.answered("SyncGroup")
        identity = (sync.request.group_id, sync.request.generation_id, sync.request.member_id)
        assert identity == (fresh_name, second.response.generation_id, first.response.member_id)
        assert (sync.request.protocol_type, sync.request.protocol_name) == ("consumer", "range")
        assert decode_assignment(sync.response.assignment).partitions == consumer.assignment()
        metadata = consumer.group_metadata()
        assert (metadata.generation_id, metadata.member_id) == identity[1:]
        assert not [one for one in tap.asked("Heartbeat") if one.request.generation_id != identity[1]]


@pytest.mark.spec("S3-24", "S3-25", "S4-10", "S4-12", "S4-16", "S1-26", "S1-27", "S1-28")
def test_one_broker_has_all_of_the_groups_conversation(kafka3: KafkaCluster, fresh_name: str) -> None:
    """Any broker names the leader of the group's partition of `__consumer_offsets`; on a connection of its own."""
    kafka3.create_topic(fresh_name, 3)
    produce_numbers(kafka3, fresh_name, range(30), 3)
    number = offsets_partition(fresh_name, 5)
    node = kafka3.leader_of("__consumer_offsets", number)
    assert {probe.find_coordinator(kafka3.address(asked), fresh_name, SECONDS) for asked in (1, 2, 3)} == {
        node
    }
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka3, fresh_name), client_id="c-1", runtime=tap) as consumer:
        assert len(read(consumer, 30)) == 30
        until(lambda: bool(tap.answered("Heartbeat")), consumer)
        consumer.commit()
        metadata = consumer.group_metadata()
    spoken = [one for one in tap.exchanges if one.api in CONVERSATION]
    assert {one.api for one in spoken} == set(CONVERSATION)
    assert {one.port for one in spoken} == {kafka3.address(node)[1]}
    assert len({id(one.connection) for one in spoken}) == 1
    fetches = [one for one in tap.asked("Fetch") if one.port == kafka3.address(node)[1]]
    assert fetches
    assert not {id(one.connection) for one in fetches} & {id(one.connection) for one in spoken}
    (commit,) = tap.answered("OffsetCommit")
    said = (commit.request.group_id, commit.request.generation_id_or_member_epoch, commit.request.member_id)
    assert said == (fresh_name, metadata.generation_id, metadata.member_id)
    assert {one.client_id for one in tap.exchanges} == {"c-1"}


def offsets_partition(group: str, count: int) -> int:
    """Java's String.hashCode, without its sign, modulo the number of partitions."""
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    signed = code - (1 << 32) if code >= 1 << 31 else code
    return abs(signed) % count


@pytest.mark.slow
@pytest.mark.spec("S4-19", "S4-21", "S4-50", "S4-53", "S4-24", "S4-25", "B.13.2", "B.13.6")
def test_a_rebalance_runs_while_the_application_does_not_poll(kafka1: KafkaCluster, fresh_name: str) -> None:
    """A poll gives the partitions up; join and sync need none. What the sync brought waits for the next poll."""
    kafka1.create_topic(fresh_name, 6)
    taps = [Tap() for _ in range(3)]
    keys = settings(kafka1, fresh_name, partition_assignment_strategy="range")
    with ExitStack() as stack:
        one, two, three = (stack.enter_context(Consumer(fresh_name, **keys, runtime=tap)) for tap in taps)
        until(lambda: len(one.assignment()) == len(two.assignment()) == 3, one, two)
        for tap in taps:
            tap.forget()
        until(lambda: REBALANCE_IN_PROGRESS in codes(taps[0].answered("Heartbeat")), three)
        assert len(one.assignment()) == 3
        assert not taps[0].asked("JoinGroup")  # that is for the next poll to begin
        until(lambda: bool(taps[0].asked("JoinGroup")), one)
        assert not taps[0].answered("JoinGroup")  # the second member has not come yet
        until(lambda: bool(taps[0].answered("SyncGroup")), two)
        steps = [api for api in taps[0].apis() if api in ("JoinGroup", "SyncGroup")]
        assert steps == ["JoinGroup", "SyncGroup"]
        (join,), (sync,) = taps[0].answered("JoinGroup"), taps[0].answered("SyncGroup")
        assert join.request.reason
        assert one.assignment() == ()
        one.poll(0.5)
        assert one.assignment() == decode_assignment(sync.response.assignment).partitions
        assert len(one.assignment()) == 2
        until(lambda: bool(taps[2].answered("SyncGroup")), three)
        assert len(taps[0].asked("JoinGroup")) == 1
        check_who_leads(taps)


def check_who_leads(taps: list[Tap]) -> None:
    """One member received all members and sent an assignment; the others received none and sent none."""
    joins = [tap.answered("JoinGroup")[-1].response for tap in taps]
    plans = [tap.answered("SyncGroup")[-1].request.assignments for tap in taps]
    leads = [join.leader == join.member_id for join in joins]
    assert sorted(leads) == [False, False, True]
    assert [len(join.members) for join in joins] == [3 if leader else 0 for leader in leads]
    assert [len(plan) for plan in plans] == [3 if leader else 0 for leader in leads]


@pytest.mark.slow
@pytest.mark.spec("B.15.3", "S1-18", "D-01")
def test_heartbeats_continue_while_the_application_works(kafka1: KafkaCluster, fresh_name: str) -> None:
    """Longer than the session without a poll, and the member is not taken for dead."""
    kafka1.create_topic(fresh_name, 1)
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka1, fresh_name), runtime=tap) as consumer:
        wait_for_assignment(consumer)
        generation = consumer.group_metadata()
        tap.forget()
        time.sleep(SESSION_MS / 1000 + 1.5)
        beats = tap.answered("Heartbeat")
        assert set(codes(beats)) == {0}
        assert len(beats) >= SESSION_MS / HEARTBEAT_MS * 0.3
        assert set(tap.apis()) <= {"Heartbeat", "Fetch", "Metadata"}
        consumer.poll(0.1)
        assert consumer.group_metadata() == generation
        assert members(kafka1, fresh_name)[0] == "STABLE"


@pytest.mark.spec("S3-52", "S4-23", "B.13.2", "D-16")
def test_request_rejoin_is_a_flag_until_the_next_poll(kafka1: KafkaCluster, fresh_name: str) -> None:
    kafka1.create_topic(fresh_name, 1)
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka1, fresh_name), runtime=tap) as consumer:
        wait_for_assignment(consumer)
        before = consumer.group_metadata()
        tap.forget()
        consumer.enforce_rebalance("we have more disks now")
        time.sleep(1.0)
        assert not tap.asked("JoinGroup")
        assert consumer.group_metadata() == before
        until(lambda: bool(tap.answered("SyncGroup")) and bool(consumer.assignment()), consumer)
        (join,) = tap.answered("JoinGroup")
        assert (join.request.reason, join.request.member_id) == ("we have more disks now", before.member_id)
        assert consumer.group_metadata().generation_id == before.generation_id + 1
        tap.forget()
        read_nothing(consumer, 1.0)
        assert not tap.asked("JoinGroup")  # once


@pytest.mark.slow
@pytest.mark.spec("S2-19", "S3-10", "S3-33", "B.13.6", "D-05")
def test_cooperative_members_read_on_while_the_others_take_their_time(
    kafka1: KafkaCluster, fresh_name: str
) -> None:
    """Who does not poll holds the rebalance up; meanwhile the other one reads what it keeps, also what is new."""
    kafka1.create_topic(fresh_name, 4)
    keys = settings(kafka1, fresh_name, partition_assignment_strategy="cooperative-sticky")
    tap = Tap()
    with Consumer(fresh_name, **keys, runtime=tap) as one, Consumer(fresh_name, **keys) as two:
        until(lambda: len(one.assignment()) == len(two.assignment()) == 2, one, two)
        kept = one.assignment()
        tap.forget()
        one.enforce_rebalance()
        until(lambda: bool(tap.asked("JoinGroup")), one)
        for number in range(3):
            produce_numbers(kafka1, fresh_name, range(8 * number, 8 * number + 8), 4)
            assert len(read(one, 4)) == 4
        assert not tap.answered("JoinGroup")
        assert one.assignment() == kept
        late = until(lambda: bool(tap.answered("SyncGroup")), one, two)
        assert not tap.asked("OffsetFetch")
        late += read(two, 12 - len(late))
        assert {(r.partition, r.offset) for r in late} == {
            (tp.partition, n) for tp in two.assignment() for n in range(6)
        }
        assert (one.assignment(), len(two.assignment())) == (kept, 2)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.spec("S1-23", "S1-24", "S4-09", "S4-17", "S4-18", "B.15.2")
def test_a_lost_coordinator_is_looked_up_with_one_request_at_a_time(
    kafka3: KafkaCluster, fresh_name: str
) -> None:
    """Until another broker has taken over: every question is forgotten, answered or not, before the next one."""
    kafka3.create_topic(fresh_name, 1)
    tap = Tap()
    keys = settings(kafka3, fresh_name, session_timeout_ms=30_000, retry_backoff_ms=50)
    with Consumer(fresh_name, **keys, runtime=tap) as consumer:
        wait_for_assignment(consumer)
        generation = consumer.group_metadata()
        killed = kafka3.coordinator_of(fresh_name)
        tap.forget()
        kafka3.kill(killed)
        new = kafka3.coordinator_of(fresh_name)
        port = kafka3.address(new)[1]
        until(lambda: any(one.port == port for one in tap.answered("Heartbeat")), consumer)
        lookups = tap.asked("FindCoordinator")
        assert len(lookups) >= 2
        assert all(one.beside == [] for one in lookups)
        until(lambda: tap.answered("Heartbeat")[-1].response.error_code == 0, consumer)
        assert consumer.group_metadata() == generation
        assert not tap.asked("JoinGroup")


@pytest.mark.spec("S1-31", "S1-38", "S4-57", "B.14.6")
def test_what_is_committed_is_asked_each_time(kafka1: KafkaCluster, fresh_name: str) -> None:
    """A commit names topic and partitions in one request, and is answered for each; the client remembers nothing."""
    kafka1.create_topic(fresh_name, 3)
    produce_numbers(kafka1, fresh_name, range(9), 3)
    parts = [TopicPartition(fresh_name, number) for number in range(3)]
    tap = Tap()
    with Consumer(fresh_name, **settings(kafka1, fresh_name), runtime=tap) as consumer:
        assert len(read(consumer, 9)) == 9
        tap.forget()
        consumer.commit()
        (commit,) = tap.answered("OffsetCommit")
        (topic,) = commit.request.topics
        assert {row.partition_index: row.committed_offset for row in topic.partitions} == {0: 3, 1: 3, 2: 3}
        (reported,) = commit.response.topics
        assert {row.partition_index: row.error_code for row in reported.partitions} == {0: 0, 1: 0, 2: 0}
        assert committed(kafka1, fresh_name) == dict.fromkeys(parts, 3)
        for times in (1, 2):
            assert {
                tp: found and found.offset for tp, found in consumer.committed(parts).items()
            } == dict.fromkeys(parts, 3)
            assert len(tap.asked("OffsetFetch")) == times
