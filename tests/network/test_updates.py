"""When metadata is asked for: by need, by age, with backoff, and what its failures lead to."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import Any

import pytest

from kclient.errors import DeadlineError, VersionError
from kclient.generated.metadata_request import MetadataRequest
from kclient.generated.metadata_response import MetadataResponse
from kclient.network.metadata_updater import metadata_request
from kclient.types import TopicPartition
from tests.default_responses import metadata
from tests.network.test_cluster import started
from tests.realtime import within
from tests.scripted_broker import On, ScriptedBroker
from tests.waiting import until


def questions(peer: ScriptedBroker) -> list[list[str] | None]:
    """The topics that each Metadata request asked for."""
    return [
        None if request.topics is None else [topic.name for topic in request.topics]
        for request in peer.of("MetadataRequest")
    ]


def pauses(peer: ScriptedBroker) -> list[float]:
    times = [seen.at for seen in peer.requests if seen.name == "MetadataRequest"]
    return [after - before for before, after in itertools.pairwise(times)]


@pytest.mark.spec("B.5.1", "D-24", "D-84")
def test_no_topics_ask_for_none_and_all_topics_for_null() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"a": 1, "b": 2}) as peer, started(peer.address) as cluster:
            assert questions(peer) == [[]]
            cluster.set_topics(["b"])
            await until(lambda: cluster.metadata.partition_count("b") == 2)
            cluster.set_topics(None)
            await until(lambda: cluster.metadata.partition_count("a") == 1)
            assert questions(peer) == [[], ["b"], None]

    asyncio.run(main())


@pytest.mark.spec("B.5.2")
def test_a_new_topic_is_asked_for_at_once_with_all_the_others() -> None:
    async def main() -> None:
        config = {"retry_backoff_ms": 5000, "retry_backoff_max_ms": 5000}
        async with (
            ScriptedBroker(topics={"a": 1, "b": 1}) as peer,
            started(peer.address, **config) as cluster,
        ):
            for topics in (["a"], ["a", "b"]):
                cluster.set_topics(topics)
                await until(lambda: cluster.metadata.partition_count(topics[-1]) == 1, 0.5)  # noqa: B023
            assert questions(peer) == [[], ["a"], ["a", "b"]]

    asyncio.run(main())


@pytest.mark.spec("B.5.2")
def test_a_response_to_an_older_request_keeps_what_was_requested_since() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"a": 1, "b": 1}) as peer, started(peer.address) as cluster:
            peer.script.append(On("MetadataRequest", partial(metadata, peer), delay=0.1))
            cluster.set_topics(["a"])
            await until(lambda: questions(peer) == [[], ["a"]])
            cluster.set_topics(["a", "b"])
            seen = cluster.metadata.version
            cluster.metadata.apply(metadata(peer, metadata_request(["b"], False)[0]), 12, whole=False)
            while cluster.metadata.partition_count("a") is None:
                seen = await cluster.metadata.changed.wait(seen)
            assert cluster.metadata.partition_count("b") == 1

    asyncio.run(main())


def test_fewer_topics_need_no_update() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"a": 1, "b": 1}) as peer, started(peer.address) as cluster:
            cluster.set_topics(["a", "b"])
            await until(lambda: cluster.metadata.partition_count("b") == 1)
            cluster.set_topics(["a"])
            await asyncio.sleep(0.05)
            assert len(questions(peer)) == 2

    asyncio.run(main())


@pytest.mark.spec("B.5.2")
def test_old_metadata_is_renewed() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address, metadata_max_age_ms=150):
            await until(lambda: len(questions(peer)) == 4, 2)
            assert all(0.14 < pause < 0.4 for pause in pauses(peer)[1:])

    asyncio.run(main())


@pytest.mark.spec("B.5.2", "I-26")
def test_responses_without_news_are_followed_by_longer_and_longer_pauses() -> None:
    async def main() -> None:
        config = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 160}
        async with ScriptedBroker(topics={}) as peer, started(peer.address, **config) as cluster:
            cluster.set_topics(["missing"])
            await until(lambda: len(questions(peer)) >= 8, 3)
            last = pauses(peer)[-2:]
            assert min(last) > 0.1
            assert cluster.metadata.take_error() is None

    asyncio.run(main())


@pytest.mark.spec("B.5.2")
def test_asking_again_begins_the_backoff_again_but_asking_on_does_not() -> None:
    async def main() -> None:
        config = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 60_000}
        async with ScriptedBroker(topics={"a": 1}) as peer, started(peer.address, **config) as cluster:
            for _ in range(5):  # a stale leader: the pause grows to 640 ms
                seen = len(questions(peer))
                cluster.request_update("stale leader", reset_backoff=False)
                await until(lambda: len(questions(peer)) > seen)  # noqa: B023
            cluster.request_update("stale leader", reset_backoff=False)
            await asyncio.sleep(0.2)
            before = len(questions(peer))
            cluster.request_update("a new reason")
            await until(lambda: len(questions(peer)) > before, 0.2)

    asyncio.run(main())


@pytest.mark.spec("B.5.2")
def test_news_of_a_leader_begins_the_backoff_again() -> None:
    async def main() -> None:
        config = {"retry_backoff_ms": 40, "retry_backoff_max_ms": 60_000}
        async with ScriptedBroker(topics={"a": 1}) as peer, started(peer.address, **config) as cluster:
            cluster.set_topics(["a"])
            await until(
                lambda: cluster.metadata.version == 2
            )  # responses, not requests: the fifth brings no news
            for responses in (3, 4, 5, 6, 7):
                peer.leader_epoch = responses // 6  # the sixth brings news
                cluster.request_update("again", reset_backoff=False)
                await until(lambda: cluster.metadata.version == responses)  # noqa: B023
            *_, longest, after_news = pauses(peer)
            assert after_news < longest

    asyncio.run(main())


@pytest.mark.spec("B.5.2", "B.5.3", "I-26")
def test_asking_again_does_not_cut_the_pause_after_a_failure() -> None:
    async def main() -> None:
        config = {"retry_backoff_ms": 20, "retry_backoff_max_ms": 60_000}
        async with ScriptedBroker(topics={}) as peer, started(peer.address, **config) as cluster:
            peer.default_responses["MetadataRequest"] = MetadataResponse()
            for _ in range(50):
                cluster.request_update("again")
                await asyncio.sleep(0.01)
            assert len(questions(peer)) <= 8

    asyncio.run(main())


def test_many_requests_for_an_update_are_one() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            for n in range(50):
                cluster.request_update(f"reason {n}")
            await asyncio.sleep(0.25)
            assert len(questions(peer)) == 2

    asyncio.run(main())


@pytest.mark.spec("B.15.11", "B.5.4")
def test_an_unknown_topic_is_found_once_it_exists() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            cluster.set_topics(["later"])
            await until(lambda: len(questions(peer)) == 3)
            assert cluster.metadata.partition_count("later") is None
            peer.topics["later"] = 3
            await until(lambda: cluster.metadata.partition_count("later") == 3, 2)

    asyncio.run(main())


@pytest.mark.spec("B.15.11")
def test_a_topic_that_a_response_leaves_out_is_asked_for_again() -> None:
    async def main() -> None:
        left_out = On("MetadataRequest", lambda request: metadata(peer, MetadataRequest(topics=[])))
        async with ScriptedBroker(topics={"orders": 3}) as peer, started(peer.address) as cluster:
            peer.script.append(left_out)
            cluster.set_topics(["orders"])
            await until(lambda: cluster.metadata.partition_count("orders") == 3, 2)
            assert questions(peer) == [[], ["orders"], ["orders"]]

    asyncio.run(main())


@pytest.mark.spec("B.4.8", "B.5.3")
def test_a_failed_update_is_tried_again_with_backoff() -> None:
    async def main() -> None:
        empty = MetadataResponse()
        async with ScriptedBroker(topics={"a": 1}) as peer, started(peer.address) as cluster:
            peer.script += [On("MetadataRequest", close=True), On("MetadataRequest", empty)]
            cluster.set_topics(["a"])
            await until(lambda: cluster.metadata.partition_count("a") == 1, 3)
            assert questions(peer)[1:] == [["a"]] * 3

    asyncio.run(main())


@pytest.mark.spec("B.5.9", "B.15.11")
def test_a_broker_may_ask_to_begin_again() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            connections = len(peer.connections)
            peer.script.append(
                On("MetadataRequest", MetadataResponse(error_code=129), check=lambda request: True)
            )
            await cluster.update_now(3)
            assert len(peer.connections) > connections
            assert list(cluster.metadata.brokers) == [0]

    asyncio.run(main())


@pytest.mark.spec("B.5.9")
def test_metadata_that_stays_away_too_long_makes_the_client_begin_again() -> None:
    async def main() -> None:
        config = {"metadata_recovery_rebootstrap_trigger_ms": 200}
        async with ScriptedBroker(topics={}) as peer, started(peer.address, **config) as cluster:
            connections = len(peer.connections)
            peer.script.append(On("MetadataRequest"))  # the broker lives, and does not answer
            with within(2) as elapsed:
                await cluster.update_now(5)
            assert elapsed.seconds >= 0.2
            assert len(peer.connections) > connections

    asyncio.run(main())


def test_an_update_that_does_not_come_in_time_is_a_deadline_error() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            peer.script.append(On("MetadataRequest"))
            with pytest.raises(DeadlineError) as caught:
                await cluster.update_now(0.2)
            assert (caught.value.waiting_for, caught.value.timeout) == ("metadata", 0.2)

    asyncio.run(main())


@pytest.mark.spec("B.5.10")
@pytest.mark.parametrize(
    ("topics", "allow", "wants", "lowest"),
    [(["a"], True, True, 1), (["a"], False, False, 4), ([], False, True, 1), (None, False, True, 1)],
)
def test_not_creating_topics_needs_version_4(
    topics: list[str] | None, allow: bool, wants: bool, lowest: int
) -> None:
    request, version = metadata_request(topics, allow)
    assert (request.allow_auto_topic_creation, version) == (wants, lowest)


@pytest.mark.spec("B.5.10")
@pytest.mark.parametrize("allowed", [True, False])
def test_a_broker_that_cannot_be_kept_from_creating_topics_is_refused_unless_it_may_create_them(
    allowed: bool,
) -> None:
    async def main() -> None:
        old, config = {"MetadataRequest": (0, 3)}, {"allow_auto_create_topics": allowed}
        async with (
            ScriptedBroker(topics={"a": 1}, versions=old) as peer,
            started(peer.address, **config) as cluster,
        ):
            describing = cluster.describe_topics(["a"], allow_auto_create=False, timeout=1)
            if allowed:
                assert [topic.name for topic in (await describing).topics] == ["a"]
                assert peer.requests[-1].version == 3
                return
            with pytest.raises(VersionError) as caught:
                await describing
            assert caught.value.api == "Metadata"

    asyncio.run(main())


def test_describing_topics_asks_once_and_leaves_the_wanted_topics_alone() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"a": 1, "b": 2}) as peer, started(peer.address) as cluster:
            cluster.set_topics(["a"])
            await until(lambda: cluster.metadata.partition_count("a") == 1)
            response = await cluster.describe_topics(["b"], allow_auto_create=False, timeout=1)
            assert [topic.name for topic in response.topics] == ["b"]
            assert cluster.metadata.partition_count("b") == 2
            assert not peer.of("MetadataRequest")[-1].allow_auto_topic_creation
            assert cluster.metadata.leader(TopicPartition("a", 0)).node_id == 0

    asyncio.run(main())


def test_describing_topics_tries_again_and_ends_with_its_timeout() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={"b": 2}) as peer, started(peer.address) as cluster:
            peer.script.append(On("MetadataRequest", close=True))
            response: Any = await cluster.describe_topics(["b"], allow_auto_create=True, timeout=2)
            assert len(response.topics[0].partitions) == 2
            peer.default_responses["MetadataRequest"] = None  # from now on no response
            with pytest.raises(DeadlineError, match="describing topics"):
                await cluster.describe_topics(["b"], allow_auto_create=True, timeout=0.2)

    asyncio.run(main())


@pytest.mark.spec("B.15.1")
def test_an_error_that_does_not_pass_is_kept_for_the_user() -> None:
    async def main() -> None:
        async with ScriptedBroker(topics={}) as peer, started(peer.address) as cluster:
            peer.script.append(On("MetadataRequest", MetadataResponse(error_code=31)))
            cluster.request_update("test")
            await until(lambda: not peer.script)
            await asyncio.sleep(0.02)
            error: Any = cluster.metadata.take_error()
            assert (error.code, error.retriable) == (31, False)

    asyncio.run(main())
