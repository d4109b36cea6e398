"""OffsetFetch, row by row (B.15.7)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kclient.errors import (
    BrokerError,
    GroupAuthorizationError,
    KclientError,
    TopicAuthorizationError,
    UnknownTopicError,
    VersionError,
)
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kclient.group.membership import Identity
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.default_responses import topic_id
from tests.group.offset_requests import F0, F1, P0, Asking, lookups, play, read
from tests.group.scripted_group import GROUP, scripted
from tests.scripted_broker import On
from tests.waiting import until


@pytest.mark.spec("S0-19", "S0-22", "S0-31", "S0-32", "B.14.7", "D-21", "D-62")
@pytest.mark.parametrize("version", range(1, 11))
def test_committed_offsets_in_every_version(version: int) -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0, F1, P0]) == {
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


@pytest.mark.spec("S1-01")
def test_version_0_is_never_used_because_its_offsets_would_come_from_zookeeper() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(
            VersionError, match=r"reads them from ZooKeeper.*offers versions 0 to 0"
        ) as refused:
            await asking.committed.fetch([F0])
        assert (refused.value.api, refused.value.retriable) == ("OffsetFetch", False)

    peer = play(scripted(versions={"OffsetFetchRequest": (0, 0)}), scene)
    assert peer.of("OffsetFetchRequest") == []


@pytest.mark.spec("B.15.7", "S0-33", "D-20")
@pytest.mark.parametrize(("code", "elsewhere"), [(14, False), (15, True), (16, True), (7, False)])
def test_a_group_code_that_passes_is_asked_again(code: int, elsewhere: bool) -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(
        On("OffsetFetchRequest", read({}, group_code=code)), On("OffsetFetchRequest", read({F0: (3, 0)}))
    )
    assert lookups(play(peer, scene)) == (2 if elsewhere else 1)


@pytest.mark.spec("B.15.7", "S0-33")
@pytest.mark.parametrize("code", [24, 25, 69, 113])
def test_a_group_code_that_does_not_pass_is_reported(code: int) -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(BrokerError) as caught:
            await asking.committed.fetch([F0])
        assert caught.value.code == code

    play(scripted(On("OffsetFetchRequest", read({}, group_code=code))), scene)


@pytest.mark.spec("B.15.7", "S0-33", "D-20")
@pytest.mark.parametrize("rows", [{F0: (-1, 0)}, {F0: (7, 0)}, {F0: (-1, 3)}])
def test_under_a_group_code_the_partitions_say_nothing(rows: dict[TopicPartition, tuple[int, int]]) -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(
        On("OffsetFetchRequest", read(rows, group_code=16)), On("OffsetFetchRequest", read({F0: (3, 0)}))
    )
    assert lookups(play(peer, scene)) == 2


@pytest.mark.spec("B.15.7", "S0-33")
def test_a_group_whose_offsets_we_may_not_read_is_reported() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(GroupAuthorizationError):
            await asking.committed.fetch([F0])

    play(scripted(On("OffsetFetchRequest", read({}, group_code=30))), scene)


@pytest.mark.spec("B.15.7", "S0-29", "D-21")
def test_an_offset_under_an_open_transaction_is_waited_for() -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0, F1]) == {F0: OffsetAndMetadata(3), F1: None}

    peer = scripted(
        On("OffsetFetchRequest", read({F0: (-1, 88), F1: (-1, 0)})),
        On("OffsetFetchRequest", read({F0: (3, 0)})),
    )
    again = play(peer, scene).of("OffsetFetchRequest")[1]
    assert [topic.partition_indexes for topic in again.groups[0].topics] == [[0]]


@pytest.mark.spec("S0-63", "B.15.7", "U-28")
@pytest.mark.parametrize(
    ("response", "message"),
    [
        (read({F0: (-1, 88), F1: (2, 0)}), "UNSTABLE_OFFSET_COMMIT (88) for flights-0"),
        (read({F1: (2, 0)}), "nothing for flights-0"),
        (read({}, group_code=14), "COORDINATOR_LOAD_IN_PROGRESS (14) for flights-0, flights-1"),
    ],
)
def test_the_log_says_why_offsets_are_asked_for_again(
    response: OffsetFetchResponse, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(asking: Asking) -> None:
        await asking.committed.fetch([F0, F1])

    with caplog.at_level(logging.DEBUG, "kclient.commit"):
        play(
            scripted(
                On("OffsetFetchRequest", response),
                On("OffsetFetchRequest", read({F0: (1, 0), F1: (2, 0)})),
            ),
            scene,
        )
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            logging.DEBUG,
            f"group {GROUP}: committed offsets not read yet: the coordinator answered {message}",
        )
    ]


@pytest.mark.spec("S0-28", "B.15.7")
def test_unauthorized_topics_are_all_named_and_come_before_unstable_ones() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(TopicAuthorizationError) as caught:
            await asking.committed.fetch([F0, P0, F1])
        assert caught.value.topics == ("flights", "planes")

    response = read({F0: (-1, 29), P0: (-1, 29), F1: (-1, 88)})
    play(scripted(On("OffsetFetchRequest", response), topics={"flights": 2, "planes": 1}), scene)


@pytest.mark.spec("S0-27", "B.15.7")
def test_a_topic_that_does_not_exist_is_reported() -> None:
    async def scene(asking: Asking) -> None:
        with pytest.raises(UnknownTopicError) as caught:
            await asking.committed.fetch([F0])
        assert caught.value.topic == "flights"

    play(scripted(On("OffsetFetchRequest", read({F0: (-1, 3)}))), scene)


@pytest.mark.spec("S0-27", "B.15.7")
def test_a_member_by_epoch_asks_again_for_a_topic_that_its_coordinator_does_not_know() -> None:
    """Its assignment may name a topic before the coordinator's metadata do."""

    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0, P0]) == {F0: OffsetAndMetadata(3), P0: OffsetAndMetadata(4)}

    peer = scripted(
        On("OffsetFetchRequest", read({F0: (3, 0), P0: (-1, 3)})),
        On("OffsetFetchRequest", read({P0: (4, 0)})),
        topics={"flights": 2, "planes": 1},
    )
    play(peer, scene, reader=lambda: Identity(5, "m-1", by_epoch=True))


@pytest.mark.spec("B.15.7")
def test_a_topic_id_that_the_coordinator_does_not_know_is_asked_again_after_new_metadata() -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(
        On("OffsetFetchRequest", read({F0: (-1, 100)})), On("OffsetFetchRequest", read({F0: (3, 0)}))
    )
    play(peer, scene)


@pytest.mark.spec("S0-30", "B.15.7")
@pytest.mark.parametrize("code", [7, 12, 14, 42, 999])
def test_any_other_partition_code_is_reported(code: int) -> None:
    """Also a code that is retried if it is the group's."""

    async def scene(asking: Asking) -> None:
        with pytest.raises(BrokerError) as caught:
            await asking.committed.fetch([F0])
        assert (caught.value.code, caught.value.retriable) == (code, False)

    play(scripted(On("OffsetFetchRequest", read({F0: (-1, code)}))), scene)


@pytest.mark.spec("S0-27", "S0-30", "B.15.7")
@pytest.mark.parametrize(("code", "raised"), [(3, UnknownTopicError), (42, BrokerError)])
def test_a_partition_code_that_ends_the_request_goes_before_what_others_say(
    code: int, raised: type[KclientError]
) -> None:
    """It ends the lookup at once: later partitions are not looked at, and what was collected before is not returned."""

    async def scene(asking: Asking) -> None:
        with pytest.raises(raised, match="flights-1"):
            await asking.committed.fetch([F0, F1, P0])

    rows = {F0: (-1, 29), F1: (-1, code), P0: (-1, 12)}
    peer = scripted(On("OffsetFetchRequest", read(rows)), topics={"flights": 2, "planes": 1})
    assert len(play(peer, scene).of("OffsetFetchRequest")) == 1


@pytest.mark.spec("D-20", "H-20")
@pytest.mark.parametrize("gap", [read({F1: (4, 0)}), OffsetFetchResponse()], ids=["partition", "group"])
def test_what_the_response_leaves_out_is_asked_again_and_never_taken_as_no_commit(
    gap: OffsetFetchResponse,
) -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    play(scripted(On("OffsetFetchRequest", gap), On("OffsetFetchRequest", read({F0: (3, 0)}))), scene)


@pytest.mark.spec("D-20", "S0-26")
def test_a_coordinator_that_does_not_answer_is_never_taken_as_no_commit() -> None:
    async def scene(asking: Asking) -> None:
        fetching = asyncio.create_task(asking.committed.fetch([F0]))
        await until(lambda: peer.of("OffsetFetchRequest"))
        done, _ = await asyncio.wait([fetching], timeout=0.2)
        assert not done
        fetching.cancel()
        await asyncio.wait([fetching])

    peer = scripted(On("OffsetFetchRequest"))
    play(peer, scene)


@pytest.mark.spec("A-05", "B.15.7")
def test_a_lost_connection_is_asked_again() -> None:
    async def scene(asking: Asking) -> None:
        assert await asking.committed.fetch([F0]) == {F0: OffsetAndMetadata(3)}

    peer = scripted(On("OffsetFetchRequest", close=True), On("OffsetFetchRequest", read({F0: (3, 0)})))
    assert lookups(play(peer, scene)) == 2
