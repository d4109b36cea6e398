"""OffsetCommit and OffsetFetch, row by row (B.15.7, B.15.8), without and with a membership."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kclient.errors import (
    ArgumentError,
    BrokerError,
    CommitFailedError,
    GroupAuthorizationError,
    KclientError,
    TopicAuthorizationError,
    UnknownTopicError,
)
from kclient.generated.offset_commit_response import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kclient.group.commits import Commits
from kclient.group.generation import Identity
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.group.harness import GROUP, coordinating, scripted
from tests.peer import On, ScriptedPeer
from tests.standing import topic_id

F0, F1, P0 = TopicPartition("flights", 0), TopicPartition("flights", 1), TopicPartition("planes", 0)
Codes = dict[TopicPartition, int]


def stored(codes: Codes) -> OffsetCommitResponse:
    """An answer to OffsetCommit in any version: names for the old ones, ids for the new ones."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=tp.topic,
                topic_id=topic_id(tp.topic),
                partitions=[OffsetCommitResponsePartition(partition_index=tp.partition, error_code=code)],
            )
            for tp, code in codes.items()
        ]
    )


def read(offsets: dict[TopicPartition, tuple[int, int]], group_code: int = 0) -> OffsetFetchResponse:
    """An answer to OffsetFetch, version 8 or newer: partition → (offset, code)."""
    topics = [
        OffsetFetchResponseTopics(
            name=tp.topic,
            topic_id=topic_id(tp.topic),
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=tp.partition, committed_offset=offset, metadata="", error_code=code
                )
            ],
        )
        for tp, (offset, code) in offsets.items()
    ]
    group = OffsetFetchResponseGroup(group_id=GROUP, topics=topics, error_code=group_code)
    return OffsetFetchResponse(groups=[group])


@asynccontextmanager
async def committing(
    peer: ScriptedPeer, identity: Callable[[], Identity] = Identity, **keys: Any
) -> AsyncIterator[Commits]:
    async with coordinating(peer, **keys) as (cluster, coordinator, settings, runtime):
        cluster.set_topics(sorted(peer.topics))
        await cluster.update_now(2.0)
        yield Commits(coordinator, settings, runtime, identity)


def play(peer: ScriptedPeer, scene: Callable[[Commits], Awaitable[None]], **keys: Any) -> ScriptedPeer:
    async def run() -> None:
        async with peer, committing(peer, **keys) as commits, asyncio.timeout(10):
            await scene(commits)

    asyncio.run(run())
    return peer


def lookups(peer: ScriptedPeer) -> int:
    return len(peer.of("FindCoordinatorRequest"))


# --- OffsetCommit


@pytest.mark.spec("S1-26", "S1-27", "S1-28", "S1-29", "S1-30", "S1-31", "S1-32", "S1-38", "B.14.3", "B.14.4")
@pytest.mark.parametrize("version", range(11))
def test_a_commit_in_every_version(version: int) -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5, 3, "a\0b"), P0: OffsetAndMetadata(0)}, retry=True)

    peer = scripted(
        On("OffsetCommitRequest", stored({F0: 0, P0: 0})),
        topics={"flights": 2, "planes": 1},
        versions={"OffsetCommitRequest": (version, version)},
    )
    play(peer, scene)
    (sent,) = peer.of("OffsetCommitRequest")
    assert (sent.group_id, sent.generation_id_or_member_epoch, sent.member_id) == (GROUP, -1, "")
    assert (sent.group_instance_id, sent.retention_time_ms) == (None, -1)
    ids = {topic_id(name): name for name in ("flights", "planes")}
    names = [ids[topic.topic_id] if version == 10 else topic.name for topic in sent.topics]
    assert names == ["flights", "planes"]
    (first,), (second,) = (topic.partitions for topic in sent.topics)
    assert (first.partition_index, first.committed_offset, first.committed_metadata) == (0, 5, "a\0b")
    assert (second.committed_offset, second.committed_metadata) == (0, "")
    assert first.committed_leader_epoch == (3 if version >= 6 else -1)
    assert second.committed_leader_epoch == -1


@pytest.mark.spec("B.14.7", "D-47")
def test_a_topic_without_a_known_id_keeps_the_commit_below_version_10() -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(6)}, retry=True)

    peer = play(scripted(On("OffsetCommitRequest", stored({F0: 0, P0: 0}))), scene)  # it knows flights alone
    assert [seen.version for seen in peer.requests if seen.name == "OffsetCommitRequest"] == [9]


@pytest.mark.spec("B.13.10")
def test_a_static_member_commits_in_version_7_or_newer_with_its_instance_id() -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", stored({F0: 0})))
    play(peer, scene, identity=lambda: Identity(4, "m-1", "east"))
    (sent,) = peer.of("OffsetCommitRequest")
    assert (sent.generation_id_or_member_epoch, sent.member_id, sent.group_instance_id) == (4, "m-1", "east")

    async def too_old(commits: Commits) -> None:
        with pytest.raises(KclientError, match="7 to"):
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    old = scripted(versions={"OffsetCommitRequest": (0, 6)})
    play(old, too_old, identity=lambda: Identity(4, "m-1", "east"))


@pytest.mark.spec("A-12", "B.15.8")
@pytest.mark.parametrize(
    ("code", "elsewhere"), [(14, False), (3, False), (100, False), (15, True), (16, True), (7, True)]
)
def test_what_passes_by_itself_is_committed_again(code: int, elsewhere: bool) -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)

    peer = play(
        scripted(
            On("OffsetCommitRequest", stored({F0: 0, F1: code})),
            On("OffsetCommitRequest", stored({F1: 0})),
        ),
        scene,
    )
    second = peer.of("OffsetCommitRequest")[1]
    assert [[p.partition_index for p in topic.partitions] for topic in second.topics] == [[1]]
    assert lookups(peer) == (2 if elsewhere else 1)


@pytest.mark.spec("B.15.8", "B.14.2", "S4-46")
@pytest.mark.parametrize(
    ("code", "elsewhere"), [(14, False), (3, False), (100, False), (15, True), (16, True), (7, True)]
)
def test_without_retry_the_same_codes_are_a_retriable_failure(code: int, elsewhere: bool) -> None:
    caught: list[CommitFailedError] = []

    async def scene(commits: Commits) -> None:
        with pytest.raises(CommitFailedError) as failed:
            await commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=False)
        caught.append(failed.value)
        if elsewhere:
            await commits.commit({}, retry=True)

    play(scripted(On("OffsetCommitRequest", stored({F0: 0, F1: code}))), scene)
    assert (caught[0].reason, caught[0].retriable) == ("retriable", True)
    assert caught[0].uncommitted == {F1: OffsetAndMetadata(6)}


@pytest.mark.spec("B.15.8", "A-05")
def test_a_lost_connection_is_committed_again_at_the_coordinator_that_is_found_then() -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", close=True), On("OffsetCommitRequest", stored({F0: 0})))
    assert lookups(play(peer, scene)) == 2


@pytest.mark.spec("B.14.2", "S4-46", "A-05")
def test_without_retry_a_lost_connection_is_a_retriable_failure() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(CommitFailedError) as failed:
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=False)
        assert failed.value.retriable

    play(scripted(On("OffsetCommitRequest", close=True)), scene)


@pytest.mark.spec("B.15.8", "D-20", "H-20")
def test_a_partition_that_the_answer_leaves_out_is_committed_again() -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", stored({F0: 0})), On("OffsetCommitRequest", stored({F1: 0})))
    play(peer, scene)


@pytest.mark.spec("B.15.8", "A-12")
@pytest.mark.parametrize("code", [12, 28, 82, 113, 42, 999])
def test_what_does_not_pass_is_told_with_its_code(code: int) -> None:
    async def scene(commits: Commits) -> None:
        expected = CommitFailedError if code == 82 else BrokerError
        with pytest.raises(expected) as caught:
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        if isinstance(caught.value, BrokerError):
            assert caught.value.code == code
            assert not caught.value.retriable

    play(scripted(On("OffsetCommitRequest", stored({F0: code}))), scene)


@pytest.mark.spec("B.15.8")
def test_a_group_that_we_may_not_read_is_told() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(GroupAuthorizationError) as caught:
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert caught.value.group == GROUP

    play(scripted(On("OffsetCommitRequest", stored({F0: 30}))), scene)


@pytest.mark.spec("B.15.8")
def test_all_topics_without_authorization_are_named_in_one_error() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(TopicAuthorizationError) as caught:
            await commits.commit({F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(6)}, retry=True)
        assert caught.value.topics == ("flights", "planes")

    peer = scripted(On("OffsetCommitRequest", stored({F0: 29, P0: 29})), topics={"flights": 1, "planes": 1})
    play(peer, scene)


@pytest.mark.spec("B.15.8")
def test_the_first_fatal_partition_decides() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(BrokerError) as caught:
            await commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)
        assert caught.value.code == 12

    play(scripted(On("OffsetCommitRequest", stored({F0: 12, F1: 28}))), scene)


@pytest.mark.spec("B.15.8", "B.14.3")
@pytest.mark.parametrize("code", [22, 25])
def test_a_commit_from_outside_of_a_group_with_members_fails_with_the_reason(code: int) -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(CommitFailedError) as caught:
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert (caught.value.reason, caught.value.uncommitted) == ("occupied", {F0: OffsetAndMetadata(5)})

    play(scripted(On("OffsetCommitRequest", stored({F0: code}))), scene)


@pytest.mark.spec("B.15.8")
def test_a_group_that_is_gone_is_a_failed_commit() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(CommitFailedError) as caught:
            await commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert caught.value.reason == "group_gone"

    play(scripted(On("OffsetCommitRequest", stored({F0: 69}))), scene)


@pytest.mark.spec("B.14.1", "S4-58", "A-12")
def test_nothing_to_commit_sends_nothing_and_a_negative_offset_is_refused() -> None:
    async def scene(commits: Commits) -> None:
        await commits.commit({}, retry=True)
        with pytest.raises(ArgumentError, match=r"flights-0"):
            await commits.commit({F0: OffsetAndMetadata(-1)}, retry=True)

    assert lookups(play(scripted(), scene)) == 0


# --- OffsetFetch


@pytest.mark.spec("S0-19", "S0-22", "S0-31", "S0-32", "B.14.7", "D-21", "D-62")
@pytest.mark.parametrize("version", range(11))
def test_committed_offsets_in_every_version(version: int) -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0, F1, P0]) == {
            F0: OffsetAndMetadata(0, 7 if version >= 5 else None, "a\0b"),
            F1: None,
            P0: OffsetAndMetadata(9),
        }

    def answer(request: Any) -> OffsetFetchResponse:
        kind = OffsetFetchResponsePartition if version < 8 else OffsetFetchResponsePartitions
        flights = [
            kind(partition_index=0, committed_offset=0, committed_leader_epoch=7, metadata="a\0b"),
            kind(partition_index=1, committed_offset=-1),
        ]
        planes = [kind(partition_index=0, committed_offset=9, metadata=None)]
        if version < 8:
            return OffsetFetchResponse(
                topics=[
                    OffsetFetchResponseTopic(name="flights", partitions=flights),
                    OffsetFetchResponseTopic(name="planes", partitions=planes),
                ]
            )
        topics = [
            OffsetFetchResponseTopics(name=name, topic_id=topic_id(name), partitions=partitions)
            for name, partitions in (("flights", flights), ("planes", planes))
        ]
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=GROUP, topics=topics)])

    peer = scripted(
        On("OffsetFetchRequest", answer),
        topics={"flights": 2, "planes": 1},
        versions={"OffsetFetchRequest": (version, version)},
    )
    play(peer, scene)
    (sent,) = peer.of("OffsetFetchRequest")
    assert sent.require_stable == (version >= 7)
    if version >= 8:
        (group,) = sent.groups
        assert (group.group_id, group.member_id, group.member_epoch) == (GROUP, None, -1)
        asked = [topic.topic_id if version == 10 else topic.name for topic in group.topics]
        assert asked == (
            [topic_id("flights"), topic_id("planes")] if version == 10 else ["flights", "planes"]
        )
        assert [topic.partition_indexes for topic in group.topics] == [[0, 1], [0]]
    else:
        assert [(topic.name, topic.partition_indexes) for topic in sent.topics] == [
            ("flights", [0, 1]),
            ("planes", [0]),
        ]


@pytest.mark.spec("B.15.7", "S0-33", "D-20")
@pytest.mark.parametrize(("code", "elsewhere"), [(14, False), (15, True), (16, True), (7, False)])
def test_a_group_code_that_passes_is_asked_again(code: int, elsewhere: bool) -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(
        On("OffsetFetchRequest", read({}, group_code=code)), On("OffsetFetchRequest", read({F0: (3, 0)}))
    )
    assert lookups(play(peer, scene)) == (2 if elsewhere else 1)


@pytest.mark.spec("B.15.7", "S0-33")
@pytest.mark.parametrize("code", [24, 25, 69, 113])
def test_a_group_code_that_does_not_pass_is_told(code: int) -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(BrokerError) as caught:
            await commits.fetch([F0])
        assert caught.value.code == code

    play(scripted(On("OffsetFetchRequest", read({}, group_code=code))), scene)


@pytest.mark.spec("B.15.7", "S0-33")
def test_a_group_whose_offsets_we_may_not_read_is_told() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(GroupAuthorizationError):
            await commits.fetch([F0])

    play(scripted(On("OffsetFetchRequest", read({}, group_code=30))), scene)


@pytest.mark.spec("B.15.7", "S0-29", "D-21")
def test_an_offset_under_an_open_transaction_is_waited_for() -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0, F1]) == {F0: OffsetAndMetadata(3), F1: None}

    peer = scripted(
        On("OffsetFetchRequest", read({F0: (-1, 88), F1: (-1, 0)})),
        On("OffsetFetchRequest", read({F0: (3, 0)})),
    )
    again = play(peer, scene).of("OffsetFetchRequest")[1]
    assert [topic.partition_indexes for topic in again.groups[0].topics] == [[0]]


@pytest.mark.spec("S0-28", "B.15.7")
def test_unauthorized_topics_are_all_named_and_come_before_unstable_ones() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(TopicAuthorizationError) as caught:
            await commits.fetch([F0, P0, F1])
        assert caught.value.topics == ("flights", "planes")

    answer = read({F0: (-1, 29), P0: (-1, 29), F1: (-1, 88)})
    play(scripted(On("OffsetFetchRequest", answer), topics={"flights": 2, "planes": 1}), scene)


@pytest.mark.spec("S0-27", "B.15.7")
def test_a_topic_that_does_not_exist_is_told() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(UnknownTopicError) as caught:
            await commits.fetch([F0])
        assert caught.value.topic == "flights"

    play(scripted(On("OffsetFetchRequest", read({F0: (-1, 3)}))), scene)


@pytest.mark.spec("B.15.7")
def test_a_topic_id_that_the_coordinator_does_not_know_is_asked_again_after_new_metadata() -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(
        On("OffsetFetchRequest", read({F0: (-1, 100)})), On("OffsetFetchRequest", read({F0: (3, 0)}))
    )
    play(peer, scene)


@pytest.mark.spec("S0-30", "B.15.7")
@pytest.mark.parametrize("code", [12, 42, 999])
def test_any_other_partition_code_is_told(code: int) -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(BrokerError) as caught:
            await commits.fetch([F0])
        assert caught.value.code == code

    play(scripted(On("OffsetFetchRequest", read({F0: (-1, code)}))), scene)


@pytest.mark.spec("D-20", "H-20")
@pytest.mark.parametrize("gap", [read({F1: (4, 0)}), OffsetFetchResponse()], ids=["partition", "group"])
def test_what_the_answer_leaves_out_is_asked_again_and_never_taken_as_no_commit(
    gap: OffsetFetchResponse,
) -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    play(scripted(On("OffsetFetchRequest", gap), On("OffsetFetchRequest", read({F0: (3, 0)}))), scene)


@pytest.mark.spec("D-20", "S0-26")
def test_a_coordinator_that_does_not_answer_is_never_taken_as_no_commit() -> None:
    async def scene(commits: Commits) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await commits.fetch([F0])

    play(scripted(On("OffsetFetchRequest")), scene)


@pytest.mark.spec("A-05", "B.15.7")
def test_a_lost_connection_is_asked_again() -> None:
    async def scene(commits: Commits) -> None:
        assert await commits.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(On("OffsetFetchRequest", close=True), On("OffsetFetchRequest", read({F0: (3, 0)})))
    assert lookups(play(peer, scene)) == 2
