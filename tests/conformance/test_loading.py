"""What a coordinator answers while it reads its groups back: real brokers only, as no embedded one takes that long.

The offsets topic is filled and read back in small pieces, so that loading lasts while the questions are asked.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kclient.embedded.releases import Release
from kclient.generated.describe_groups_request import DescribeGroupsRequest
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.generated.leave_group_request import LeaveGroupRequest, MemberIdentity
from kclient.generated.list_groups_request import ListGroupsRequest
from kclient.generated.offset_fetch_request import OffsetFetchRequest
from kclient.generated.sync_group_request import SyncGroupRequest
from kclient.protocol import errors
from kclient.protocol.message import Message
from localkafka import KafkaCluster
from tests.conformance.classic import PROTOCOLS, Member
from tests.conformance.conftest import LATEST, MAIN, REAL, asks_latest
from tests.conformance.offsets import commit_request
from tests.conformance.raw_client import RawClient
from tests.conformance.target import Target
from tests.kafka.fixtures import start

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SLOW_LOADING = {
    "offsets.topic.num.partitions": "1",
    "offsets.load.buffer.size": "300",
    "group.min.session.timeout.ms": "1000",
}
# On a busy machine, loading a quarter of these commits ended after one round of questions.
COMMITS, WINDOW, PARTITIONS = 6000, 10, 50
PLAIN = 7  # version of OffsetCommit that every broker takes
GROUP = "loading"

Question = tuple[Message, int]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One run for each real broker."""
    versions = [one for one in REAL.values() if one != LATEST or asks_latest(metafunc.config)]
    rows = [
        pytest.param(one, marks=() if Release.parse(one) == MAIN else pytest.mark.exhaustive)
        for one in versions
    ]
    metafunc.parametrize("kafka", rows, indirect=True)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """A broker of its own for each release."""
    yield from start(request.param, 1, SLOW_LOADING)


def fill(target: Target) -> None:
    """Commit the same offsets again and again."""
    topic = target.topic(partitions=PARTITIONS)
    target.coordinated("filler")
    commit = commit_request(
        target, "filler", topic, PLAIN, metadata="m" * 50, partitions=list(range(PARTITIONS))
    )
    with target.connect() as raw_client:
        for _ in range(COMMITS // WINDOW):
            for _ in range(WINDOW):
                raw_client.send(commit, PLAIN)
            for _ in range(WINDOW):
                raw_client.receive()


def questions(member: Member) -> dict[str, Question]:
    """One of each, in versions that both releases know."""
    group, member_id = member.group, member.member_id
    protocols = [JoinGroupRequestProtocol(name=name, metadata=blob) for name, blob in PROTOCOLS]
    join = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        member_id="nobody",
        protocol_type="consumer",
        protocols=protocols,
    )
    leave = LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="nobody")])
    return {
        "sync": (SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id), 3),
        "heartbeat": (HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id), 3),
        "join": (join, 5),
        "leave": (leave, 3),
        "fetch": (OffsetFetchRequest(group_id=group, topics=None), 6),
        "list": (ListGroupsRequest(), 3),
        "describe": (DescribeGroupsRequest(groups=[group]), 4),
    }


def ask_until_loaded(target: Target, asked: dict[str, Question]) -> list[dict[str, int]]:
    """The error codes of round after round, from the first that is answered until the group is there."""
    rounds: list[dict[str, int]] = []
    while not rounds or rounds[-1]["describe"] != errors.NONE:
        try:
            with RawClient(target.host, target.port) as raw_client:
                while not rounds or rounds[-1]["describe"] != errors.NONE:
                    rounds.append({name: code(raw_client.ask(*question)) for name, question in asked.items()})
        except OSError:
            continue  # the broker is not up yet
    return rounds


def code(response: object) -> int:
    """The error code of a response, or of the only group in it."""
    found = getattr(response, "error_code", None)
    return int(response.groups[0].error_code if found is None else found)  # type: ignore[attr-defined]


@pytest.mark.spec("B.21", "B.15.4", "B.15.5")
def test_while_loading(kafka: KafkaCluster) -> None:
    target = Target(kafka.version, kafka.bootstrap_servers, lambda: kafka.restart(1), embedded=False)
    with Member(target, GROUP) as member:
        member.settle()
        fill(target)
        asked = questions(member)
    target.close()
    kafka.kill(1)
    restarting = threading.Thread(target=kafka.restart, args=(1,))
    restarting.start()
    rounds = ask_until_loaded(target, asked)
    restarting.join()
    loading = errors.COORDINATOR_LOAD_IN_PROGRESS
    syncing = loading if target.since("4.0") else errors.REBALANCE_IN_PROGRESS
    expected = dict.fromkeys(asked, loading) | {"sync": syncing, "heartbeat": errors.NONE}
    assert rounds.count(expected) > 1, rounds[:50]
    strangers = {one["sync"] for one in rounds} - {syncing, errors.NOT_COORDINATOR, errors.NONE}
    assert not strangers
