"""OffsetCommit, row by row (B.15.8), by a consumer without membership."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kclient.errors import (
    ArgumentError,
    BrokerError,
    CommitFailedError,
    GroupAuthorizationError,
    KclientError,
    TopicAuthorizationError,
    VersionError,
)
from kclient.group.membership import Identity
from kclient.protocol.errors import error
from kclient.types import OffsetAndMetadata
from tests.default_responses import topic_id
from tests.group.offset_requests import F0, F1, P0, Asking, committing, lookups, play, stored
from tests.group.scripted_group import GROUP, refused, scripted
from tests.scripted_broker import On


@pytest.mark.spec("S1-26", "S1-29", "S1-30", "S1-31", "S1-32", "S1-38", "B.14.3", "B.14.4")
@pytest.mark.parametrize("version", range(1, 11))
def test_a_commit_in_every_version(version: int) -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit(
            {F0: OffsetAndMetadata(5, 3, "a\0b"), P0: OffsetAndMetadata(0)}, retry=True
        )

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


@pytest.mark.spec("S1-38")
@pytest.mark.parametrize("version", [9, 10])
def test_the_partitions_of_a_topic_stand_in_one_entry(version: int) -> None:
    async def scene(asking: Asking) -> None:
        offsets = {F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(6), F1: OffsetAndMetadata(7)}
        await asking.commits.commit(offsets, retry=True)

    peer = scripted(
        On("OffsetCommitRequest", stored({F0: 0, F1: 0, P0: 0})),
        topics={"flights": 2, "planes": 1},
        versions={"OffsetCommitRequest": (version, version)},
    )
    play(peer, scene)
    (sent,) = peer.of("OffsetCommitRequest")
    rows = [
        [(row.partition_index, row.committed_offset) for row in topic.partitions] for topic in sent.topics
    ]
    assert rows == [[(0, 5), (1, 7)], [(0, 6)]]


@pytest.mark.spec("S1-31")
@pytest.mark.parametrize("version", range(1, 11))
def test_each_partition_has_a_code_of_its_own_in_every_version(version: int) -> None:
    async def scene(asking: Asking) -> None:
        offsets = {F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6), P0: OffsetAndMetadata(7)}
        await asking.commits.commit(offsets, retry=True)

    responses = [stored({F0: 0, F1: 14, P0: 0}), stored({F1: 0})]
    peer = scripted(
        *(On("OffsetCommitRequest", response) for response in responses),
        topics={"flights": 2, "planes": 1},
        versions={"OffsetCommitRequest": (version, version)},
    )
    play(peer, scene)
    _, again = peer.of("OffsetCommitRequest")
    assert [[row.partition_index for row in topic.partitions] for topic in again.topics] == [[1]]


@pytest.mark.spec("S1-27", "S1-28", "B.14.3")
@pytest.mark.parametrize("version", range(1, 11))
def test_a_member_commits_under_its_generation_and_its_member_id_in_every_version(version: int) -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    script = On("OffsetCommitRequest", stored({F0: 0}))
    peer = scripted(script, versions={"OffsetCommitRequest": (version, version)})
    play(peer, scene, identity=lambda: Identity(4, "m-1"))
    (sent,) = peer.of("OffsetCommitRequest")
    assert (sent.generation_id_or_member_epoch, sent.member_id, sent.group_instance_id) == (4, "m-1", None)


@pytest.mark.spec("S1-01")
@pytest.mark.parametrize("retry", [True, False])
def test_version_0_is_never_used_because_its_offsets_would_go_to_zookeeper(retry: bool) -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(VersionError, match=r"kept them in ZooKeeper.*offers versions 0 to 0") as refused:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=retry)
        assert (refused.value.api, refused.value.retriable) == ("OffsetCommit", False)

    peer = play(scripted(versions={"OffsetCommitRequest": (0, 0)}), scene)
    assert peer.of("OffsetCommitRequest") == []


@pytest.mark.spec("B.14.7", "D-47")
def test_a_topic_without_a_known_id_keeps_the_commit_below_version_10() -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(6)}, retry=True)

    peer = play(scripted(On("OffsetCommitRequest", stored({F0: 0, P0: 0}))), scene)  # it knows flights alone
    assert [seen.version for seen in peer.requests if seen.name == "OffsetCommitRequest"] == [9]


@pytest.mark.spec("B.13.10")
def test_a_static_member_commits_in_version_7_or_newer_with_its_instance_id() -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", stored({F0: 0})))
    play(peer, scene, identity=lambda: Identity(4, "m-1", "east"))
    (sent,) = peer.of("OffsetCommitRequest")
    assert (sent.generation_id_or_member_epoch, sent.member_id, sent.group_instance_id) == (4, "m-1", "east")

    async def too_old(asking: Asking) -> None:
        with pytest.raises(KclientError, match="7 to"):
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    old = scripted(versions={"OffsetCommitRequest": (0, 6)})
    play(old, too_old, identity=lambda: Identity(4, "m-1", "east"))


@pytest.mark.spec("S1-31", "A-12", "B.15.8")
@pytest.mark.parametrize(
    ("code", "elsewhere"), [(14, False), (3, False), (100, False), (15, True), (16, True), (7, True)]
)
def test_what_passes_automatically_is_committed_again(code: int, elsewhere: bool) -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)

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

    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as failed:
            await asking.commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=False)
        caught.append(failed.value)
        if elsewhere:
            await asking.commits.commit({}, retry=True)

    play(scripted(On("OffsetCommitRequest", stored({F0: 0, F1: code}))), scene)
    assert (caught[0].reason, caught[0].retriable) == ("retriable", True)
    assert caught[0].uncommitted == {F1: OffsetAndMetadata(6)}
    text = f"Committing offsets of group {GROUP} failed: the coordinator answered {error(code).name} ({code}) for {F1}."
    assert str(caught[0]).startswith(text)


@pytest.mark.spec("B.15.8", "U-12")
def test_a_commit_that_was_not_stored_names_the_error_of_each_partition() -> None:
    async def scene(asking: Asking) -> None:
        offsets = dict.fromkeys((F0, F1, P0), OffsetAndMetadata(5))
        with pytest.raises(CommitFailedError) as failed:
            await asking.commits.commit(offsets, retry=False)
        assert "UNKNOWN_TOPIC_OR_PARTITION (3) for planes-0; nothing for flights-0, flights-1. " in str(
            failed.value
        )

    play(scripted(On("OffsetCommitRequest", stored({P0: 3})), topics={"flights": 2, "planes": 1}), scene)


@pytest.mark.spec("B.15.8", "U-12")
def test_the_log_says_why_a_commit_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    with caplog.at_level(logging.DEBUG, "kclient.commit"):
        play(
            scripted(
                On("OffsetCommitRequest", stored({F0: 14})),
                On("OffsetCommitRequest", stored({F0: 0})),
            ),
            scene,
        )
    assert (
        "not stored yet: the coordinator answered COORDINATOR_LOAD_IN_PROGRESS (14) for flights-0"
        in caplog.text
    )


@pytest.mark.spec("B.15.8", "A-05")
def test_a_lost_connection_is_committed_again_at_the_coordinator_that_is_found_then() -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", close=True), On("OffsetCommitRequest", stored({F0: 0})))
    assert lookups(play(peer, scene)) == 2


@pytest.mark.spec("B.14.2", "S4-46", "A-05")
def test_without_retry_a_lost_connection_is_a_retriable_failure() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as failed:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=False)
        assert failed.value.retriable

    play(scripted(On("OffsetCommitRequest", close=True)), scene)


@pytest.mark.spec("B.15.8", "D-20", "H-20")
def test_a_partition_that_the_response_leaves_out_is_committed_again() -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)

    peer = scripted(On("OffsetCommitRequest", stored({F0: 0})), On("OffsetCommitRequest", stored({F1: 0})))
    play(peer, scene)


@pytest.mark.spec("B.15.8", "A-12")
@pytest.mark.parametrize("code", [12, 28, 82, 113, 42, 999])
def test_what_does_not_pass_is_reported_with_its_code(code: int) -> None:
    async def scene(asking: Asking) -> None:
        expected = CommitFailedError if code == 82 else BrokerError
        with pytest.raises(expected) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        if isinstance(caught.value, BrokerError):
            assert caught.value.code == code
            assert not caught.value.retriable

    play(scripted(On("OffsetCommitRequest", stored({F0: code}))), scene)


@pytest.mark.spec("B.15.8")
def test_a_group_that_we_may_not_read_is_reported() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(GroupAuthorizationError) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert caught.value.group == GROUP

    play(scripted(On("OffsetCommitRequest", stored({F0: 30}))), scene)


@pytest.mark.spec("B.15.8")
def test_all_topics_without_authorization_are_named_in_one_error() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(TopicAuthorizationError) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(6)}, retry=True)
        assert caught.value.topics == ("flights", "planes")

    peer = scripted(On("OffsetCommitRequest", stored({F0: 29, P0: 29})), topics={"flights": 1, "planes": 1})
    play(peer, scene)


@pytest.mark.spec("B.15.8")
def test_the_first_fatal_partition_decides() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(BrokerError) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5), F1: OffsetAndMetadata(6)}, retry=True)
        assert caught.value.code == 12

    play(scripted(On("OffsetCommitRequest", stored({F0: 12, F1: 28}))), scene)


@pytest.mark.spec("B.15.8", "B.14.3")
@pytest.mark.parametrize("code", [22, 25])
def test_a_commit_from_outside_of_a_group_with_members_fails_with_the_reason(code: int) -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert (caught.value.reason, caught.value.uncommitted) == ("occupied", {F0: OffsetAndMetadata(5)})

    play(scripted(On("OffsetCommitRequest", stored({F0: code}))), scene)


@pytest.mark.spec("B.15.8")
def test_a_group_that_is_gone_is_a_failed_commit() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
        assert caught.value.reason == "group_gone"

    play(scripted(On("OffsetCommitRequest", stored({F0: 69}))), scene)


@pytest.mark.spec("I-14", "D-25")
def test_an_offset_of_a_topic_that_was_created_again_is_reported_and_the_others_are_stored() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError, match="deleted and created again") as caught:
            await asking.commits.commit({F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(7)}, retry=True)
        assert (caught.value.reason, caught.value.uncommitted) == (
            "topic_replaced",
            {F0: OffsetAndMetadata(5)},
        )

    ids = {"flights": bytes(15) + b"x", "planes": topic_id("planes")}
    peer = play(scripted(On("OffsetCommitRequest", stored({P0: 0}))), scene, ids=ids)
    (sent,) = peer.of("OffsetCommitRequest")
    assert [topic.topic_id for topic in sent.topics] == [topic_id("planes")]


@pytest.mark.spec("I-14")
@pytest.mark.parametrize(
    "refusal", [On("OffsetCommitRequest", stored({P0: 14})), On("OffsetCommitRequest", close=True)]
)
def test_a_commit_that_is_tried_once_reports_offsets_of_topics_created_again_too(refusal: On) -> None:
    offsets = {F0: OffsetAndMetadata(5), P0: OffsetAndMetadata(7)}

    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as caught:
            await asking.commits.commit(offsets, retry=False)
        assert (caught.value.reason, caught.value.uncommitted) == ("retriable", offsets)

    play(scripted(refusal), scene, ids={"flights": bytes(15) + b"x", "planes": topic_id("planes")})


@pytest.mark.spec("B.14.1", "S4-58", "A-12")
def test_nothing_to_commit_sends_nothing_and_a_negative_offset_is_refused() -> None:
    async def scene(asking: Asking) -> None:
        await asking.commits.commit({}, retry=True)
        with pytest.raises(ArgumentError, match=r"flights-0"):
            await asking.commits.commit({F0: OffsetAndMetadata(-1)}, retry=True)

    assert lookups(play(scripted(), scene)) == 0


@pytest.mark.spec("S4-46", "S4-18", "B.14.2", "A-05")
def test_without_retry_the_coordinator_is_looked_up_once() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(CommitFailedError) as failed:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=False)
        assert failed.value.retriable

    assert lookups(play(scripted(On("FindCoordinatorRequest", refused(15))), scene)) == 1


@pytest.mark.spec("B.13.9", "I-08")
def test_a_commit_whose_generation_ends_while_the_coordinator_is_sought_is_not_sent() -> None:
    async def run() -> None:
        identities = iter([Identity(1, "m-1"), Identity(2, "m-1")])
        async with scripted() as peer, committing(peer, lambda: next(identities)) as asking:
            with pytest.raises(CommitFailedError) as failed:
                await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)
            assert failed.value.reason == "rebalancing"
            assert lookups(peer) == 1
            assert not peer.of("OffsetCommitRequest")

    asyncio.run(run())


@pytest.mark.spec("B.14.2")
def test_a_commit_in_turn_is_sent_after_its_turn_and_before_anything_else_can_be() -> None:
    """A commit that went out later than one asked for after it would take the committed offset back."""
    order: list[str] = []

    async def scene(asking: Asking) -> None:
        first_may_go = asyncio.Event()

        async def turn_of_first() -> None:
            await first_may_go.wait()
            order.append("first")

        async def turn_of_second() -> None:
            order.append("second asks")
            first_may_go.set()
            await asyncio.sleep(0.02)
            order.append("second")

        first = asyncio.create_task(
            asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=False, before_send=turn_of_first)
        )
        await asking.commits.commit({F0: OffsetAndMetadata(6)}, retry=False, before_send=turn_of_second)
        await first

    responses = [On("OffsetCommitRequest", stored({F0: 0})) for _ in range(2)]
    peer = play(scripted(*responses), scene)
    assert order == ["second asks", "first", "second"]
    sent = [one.topics[0].partitions[0].committed_offset for one in peer.of("OffsetCommitRequest")]
    assert sent == [5, 6]


@pytest.mark.spec("B.14.2")
def test_a_commit_whose_connection_is_gone_when_its_turn_comes_is_not_sent() -> None:
    """It would have to wait for another one, and others could overtake it."""

    async def scene(asking: Asking) -> None:
        async def turn() -> None:
            asking.coordinator.mark_unknown("the test says so")

        with pytest.raises(CommitFailedError) as failed:
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=False, before_send=turn)
        assert failed.value.retriable
        assert failed.value.uncommitted == {F0: OffsetAndMetadata(5)}

    assert not play(scripted(), scene).of("OffsetCommitRequest")
