"""Metadata responses of a hostile broker: as many brokers and topics as fit in a frame, and impossible names."""

from __future__ import annotations

import asyncio
import logging
import time

import pytest

from kclient import errors
from kclient.config import Config
from kclient.generated.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.network.cluster import Cluster
from kclient.protocol.registry import read_message, write_message
from kclient.runtime import Runtime
from tests.hostile.bounded import run_bounded
from tests.scripted_broker import On, ScriptedBroker

BROKERS = "tests.hostile.brokers:brokers_without_end"
TOPICS = "tests.hostile.brokers:topics_without_end"


def test_a_hundred_thousand_brokers_are_refused() -> None:
    outcome = run_bounded(BROKERS, 100_000, True, seconds=3, peak_mb=300)
    assert outcome.result["ended"].startswith("ConnectError")
    assert outcome.result["bytes"] > 10_000_000
    assert outcome.blocked < 1
    assert len(outcome.result["warnings"]) == outcome.result["answers"]


def test_impossible_brokers_are_reported_once_in_each_response() -> None:
    outcome = run_bounded(BROKERS, 9_000, False, seconds=3, peak_mb=150)
    logged = outcome.result["warnings"]
    assert len(logged) == outcome.result["answers"]
    assert "9,000 impossible brokers" in logged[0]
    assert len(logged[0]) < 2_000


def test_brokers_are_prepared_when_they_are_first_used() -> None:
    outcome = run_bounded(BROKERS, 10_000, True, seconds=1, peak_mb=100)
    assert outcome.result["ended"] == "started"
    assert outcome.blocked < 0.5


@pytest.mark.parametrize(("extra", "partitions"), [(1_000_000, 2), (0, 1_250_000)])
def test_more_topics_or_partitions_than_a_response_can_have_are_refused_unread(
    extra: int, partitions: int
) -> None:
    outcome = run_bounded(TOPICS, extra, partitions, seconds=3, peak_mb=300)
    assert outcome.result["bytes"] > 30_000_000
    assert outcome.result["ended"].startswith(
        "ProtocolDecodeError: MetadataResponse version 13 has more than"
    )
    assert outcome.blocked < 1


def test_topics_that_were_not_asked_for_are_dropped() -> None:
    outcome = run_bounded(TOPICS, 90_000, seconds=3, peak_mb=300)
    assert outcome.result["ended"] == "started"
    assert outcome.result["topics"] == ["orders"]
    assert len(outcome.result["warnings"]) == 1
    assert outcome.blocked < 1


def test_looking_for_the_damage_in_a_long_response_is_bounded() -> None:
    topics = [MetadataResponseTopic(name=f"t{number}") for number in range(100_000)]
    damaged = b"".join(write_message(MetadataResponse(topics=topics), 12))[:-2]
    began = time.process_time()
    with pytest.raises(errors.ProtocolDecodeError, match="the damage is here or further on"):
        read_message("MetadataResponse", 12, damaged)
    assert time.process_time() - began < 1.5


def names(response: MetadataResponse, topics: list[str] | None) -> list[str]:
    async def main() -> list[str]:
        async with ScriptedBroker(On("MetadataRequest", response), On("MetadataRequest", response)) as peer:
            response.brokers = [MetadataResponseBroker(node_id=0, host=peer.host, port=peer.port)]
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            await cluster.start()
            found = await cluster.describe_topics(topics, allow_auto_create=False, timeout=5)
            assert sorted(cluster.metadata.topics) == sorted(topic.name or "" for topic in found.topics)
            await cluster.close(1)
            return [topic.name or "" for topic in found.topics]

    return asyncio.run(main())


HOSTILE = ["x" * 3_000, "a b", "..", "\x1b[2J", "ok", "../../etc", "a\nb"]


def test_names_that_no_topic_can_have_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    rows = [
        MetadataResponseTopic(name=name, partitions=[MetadataResponsePartition(leader_id=0)])
        for name in HOSTILE
    ]
    with caplog.at_level(logging.WARNING):
        assert names(MetadataResponse(topics=rows), None) == ["ok"]
    assert any("dropped 6 topics" in record.getMessage() for record in caplog.records)


def test_a_refused_topic_that_was_not_asked_for_is_no_error_of_the_user() -> None:
    async def main() -> None:
        strangers = [MetadataResponseTopic(name=name, error_code=29) for name in ("secret", "orders")]
        response = MetadataResponse(topics=strangers)
        async with ScriptedBroker(On("MetadataRequest", response)) as peer:
            response.brokers = [MetadataResponseBroker(node_id=0, host=peer.host, port=peer.port)]
            cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())
            cluster.set_topics(["orders"])
            await cluster.start()
            problem = cluster.metadata.take_error()
            assert isinstance(problem, errors.TopicAuthorizationError)
            assert problem.topics == ("orders",)
            assert "secret" not in problem.text
            await cluster.close(1)

    asyncio.run(main())
