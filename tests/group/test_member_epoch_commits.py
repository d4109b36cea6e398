"""Commits of a member whose epoch moves on while it keeps its partitions (KIP-848)."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from kclient.errors import BrokerError, CommitFailedError, VersionError
from kclient.group.membership import Identity
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.group.offset_requests import F0, F1, Asking, committing, play, read, stored
from tests.group.scripted_group import scripted
from tests.scripted_broker import On, ScriptedBroker
from tests.waiting import until

STALE, LOADING = 113, 14


@attrs.define
class Member:
    """Who it is now: a heartbeat may bring another epoch at any time, and the end."""

    epoch: int | None = 3
    owned: list[TopicPartition] = attrs.field(factory=lambda: [F0, F1])

    def identity(self) -> Identity:
        if self.epoch is None:
            raise CommitFailedError("no member", reason="evicted")
        return Identity(self.epoch, "m-1", by_epoch=True)

    def reader(self) -> Identity:
        return Identity() if self.epoch is None else self.identity()

    def has(self, partition: TopicPartition) -> bool:
        return partition in self.owned


def sent(peer: ScriptedBroker) -> list[tuple[int, str, int]]:
    """Epoch, member id and offset of every commit."""
    return [
        (r.generation_id_or_member_epoch, r.member_id, r.topics[0].partitions[0].committed_offset)
        for r in peer.of("OffsetCommitRequest")
    ]


def as_member(peer: ScriptedBroker, member: Member, scene: Any, **keys: Any) -> ScriptedBroker:
    keys |= {"identity": member.identity, "reader": member.reader, "is_assigned": member.has}
    return play(peer, scene, **keys)


@pytest.mark.spec("B.14.8", "M-81")
def test_a_stale_epoch_fails_a_commit_which_is_not_tried_again() -> None:
    async def scene(asking: Asking) -> None:
        for retry in (True, False):
            with pytest.raises(CommitFailedError) as failed:
                await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=retry)
            assert (failed.value.reason, failed.value.retriable) == ("stale_epoch", False)
            assert failed.value.uncommitted == {F0: OffsetAndMetadata(5)}

    responses = [On("OffsetCommitRequest", stored({F0: STALE})) for _ in range(2)]
    peer = as_member(scripted(*responses), Member(), scene)
    assert sent(peer) == [(3, "m-1", 5)] * 2


@pytest.mark.spec("B.14.8", "M-81", "I-23")
def test_the_commit_before_a_revocation_is_built_again_for_the_next_epoch_and_not_before() -> None:
    member, offsets = Member(), {F0: OffsetAndMetadata(5)}

    async def scene(asking: Asking) -> None:
        committing = asyncio.create_task(asking.commits.commit_newest(lambda: offsets))
        await until(lambda: peer.of("OffsetCommitRequest"))
        await asyncio.sleep(0.2)  # dozens of back-offs: nothing is sent again under the stale epoch
        assert sent(peer) == [(3, "m-1", 5)]
        member.epoch, offsets[F0] = 4, OffsetAndMetadata(7)
        assert await committing == {F0: OffsetAndMetadata(7)}

    peer = scripted(
        On("OffsetCommitRequest", stored({F0: STALE})), On("OffsetCommitRequest", stored({F0: 0}))
    )
    as_member(peer, member, scene)
    assert sent(peer) == [(3, "m-1", 5), (4, "m-1", 7)]


@pytest.mark.spec("B.14.8")
def test_the_commit_before_a_revocation_ends_with_the_membership() -> None:
    member = Member()

    async def scene(asking: Asking) -> None:
        committing = asyncio.create_task(asking.commits.commit_newest(lambda: {F0: OffsetAndMetadata(5)}))
        await until(lambda: peer.of("OffsetCommitRequest"))
        member.epoch = None
        with pytest.raises(CommitFailedError, match="no member"):
            await committing

    peer = scripted(On("OffsetCommitRequest", stored({F0: STALE})))
    as_member(peer, member, scene)
    assert len(sent(peer)) == 1


@pytest.mark.spec("B.14.8", "I-08")
@pytest.mark.parametrize("keeps", [True, False])
def test_another_try_goes_under_the_newest_epoch_if_the_partition_is_still_ours(keeps: bool) -> None:
    member = Member()

    async def scene(asking: Asking) -> None:
        committing = asyncio.create_task(asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True))
        await until(lambda: peer.of("OffsetCommitRequest"))
        member.epoch = 4
        if not keeps:
            member.owned.remove(F0)
        if keeps:
            await committing
        else:
            with pytest.raises(CommitFailedError) as failed:
                await committing
            assert failed.value.reason == "rebalancing"

    responses = [stored({F0: LOADING}), stored({F0: 0})][: 1 + keeps]
    peer = scripted(*(On("OffsetCommitRequest", response) for response in responses))
    as_member(peer, member, scene, retry_backoff_ms=100)
    assert sent(peer) == [(3, "m-1", 5), (4, "m-1", 5)][: 1 + keeps]


@pytest.mark.spec("B.17.6")
def test_an_epoch_is_never_sent_to_a_coordinator_that_would_read_it_as_a_generation() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(VersionError):
            await asking.commits.commit({F0: OffsetAndMetadata(5)}, retry=True)

    peer = as_member(scripted(versions={"OffsetCommitRequest": (2, 8)}), Member(), scene)
    assert sent(peer) == []


@pytest.mark.spec("B.14.7", "B.14.8", "B.15.7")
def test_reading_reports_the_epoch_and_asks_again_under_the_newest() -> None:
    member = Member()

    async def scene(asking: Asking) -> None:
        reading = asyncio.create_task(asking.committed.fetch([F0]))
        await until(lambda: peer.of("OffsetFetchRequest"))
        member.epoch = 4
        assert await reading == {F0: OffsetAndMetadata(7)}

    peer = scripted(
        On("OffsetFetchRequest", read({}, group_code=STALE)), On("OffsetFetchRequest", read({F0: (7, 0)}))
    )
    as_member(peer, member, scene, retry_backoff_ms=50)
    asked = [(r.groups[0].member_id, r.groups[0].member_epoch) for r in peer.of("OffsetFetchRequest")]
    assert asked == [("m-1", 3), ("m-1", 4)]


@pytest.mark.spec("B.14.8", "B.15.7")
def test_a_member_that_has_no_epoch_any_more_is_notified_that_reading_failed() -> None:
    member = Member()

    async def scene(asking: Asking) -> None:
        reading = asyncio.create_task(asking.committed.fetch([F0]))
        await until(lambda: peer.of("OffsetFetchRequest"))
        member.epoch = None
        with pytest.raises(BrokerError) as failed:
            await reading
        assert failed.value.code == STALE

    peer = scripted(On("OffsetFetchRequest", read({}, group_code=STALE), delay=0.05))
    as_member(peer, member, scene)


@pytest.mark.spec("B.14.7")
def test_a_member_that_has_no_epoch_reads_as_any_client() -> None:
    async def run() -> None:
        peer = scripted(On("OffsetFetchRequest", read({F0: (7, 0)})))
        async with peer, committing(peer) as asking:
            assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(7)}
        (request,) = peer.of("OffsetFetchRequest")
        assert (request.groups[0].member_id, request.groups[0].member_epoch) == (None, -1)

    asyncio.run(run())
