"""Brokers without the consumer protocol, and group_protocol="auto"."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any

import pytest

from kclient import OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import (
    VersionError,
)
from tests.group.consumer_protocol.embedded_members import (
    heartbeats,
    member,
    numbers,
    on_a_cluster,
    polled_until,
    raised_by_poll,
)

API = "ConsumerGroupHeartbeat"
OFFSETS = {TopicPartition("t", 0): OffsetAndMetadata(0)}


@pytest.mark.spec("A-14", "B.17.4")
@pytest.mark.parametrize("release", ["2.8", "3.9"])
def test_brokers_that_are_too_old_are_named_as_the_reason(release: str) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as consumer:
            error = await raised_by_poll(consumer)
            assert isinstance(error, VersionError)
            assert "group_protocol='consumer' needs Apache Kafka 4.0" in error.text

    on_a_cluster(scene, release=release)


@pytest.mark.spec("B.1")
@pytest.mark.parametrize(
    ("release", "protocol"),
    [("2.8", "classic"), ("3.9", "classic"), ("4.0", "consumer"), ("4.3", "consumer")],
)
def test_auto_speaks_what_the_cluster_allows_and_says_so_once(
    release: str, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t", group_protocol="auto", session_timeout_ms=20_000) as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            await consumer.unsubscribe()
            await consumer.subscribe(["t"])
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            spoken = {seen.api for seen in cluster.requests}
            assert (API in spoken) is (protocol == "consumer")
            assert ("JoinGroup" in spoken) is (protocol == "classic")

    with caplog.at_level(logging.INFO, "kclient.group"):
        on_a_cluster(scene, release=release)
    said = [record for record in caplog.records if "group protocol: " in record.getMessage()]
    (sentence,) = (record.getMessage() for record in said)
    assert f"the {protocol} group protocol" in sentence


@pytest.mark.spec("B.1")
def test_auto_falls_back_where_brokers_are_configured_not_to_speak_the_consumer_protocol(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.fail(API, "UNSUPPORTED_VERSION", times=None)
        async with member(cluster, "t", group_protocol="auto") as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            assert len(heartbeats(cluster)) == 1
            await consumer.commit(OFFSETS)

    with caplog.at_level(logging.INFO, "kclient.group"):
        on_a_cluster(scene)
    assert "using the classic group protocol: the coordinator refuses the consumer protocol" in caplog.text


@pytest.mark.spec("B.1")
def test_a_member_that_subscribed_again_before_the_fall_back_is_not_disturbed_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.fail(API, "UNSUPPORTED_VERSION", times=None)
        async with member(cluster, "t", group_protocol="auto", session_timeout_ms=20_000) as consumer:
            await consumer.poll(0)
            late: list[Coroutine[Any, Any, None]] = []
            with monkeypatch.context() as patch:
                flows = type(consumer._core.tasks)
                patch.setattr(flows, "spawn", lambda self, name, work: late.append(work))
                await polled_until(lambda: late, consumer)
            await consumer.unsubscribe()
            await consumer.subscribe(["t"])
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            joined = consumer._core.group.membership.current
            await late[0]
            assert consumer._core.group.membership.current is joined
            await polled_until(lambda: any(seen.api == "Heartbeat" for seen in cluster.requests), consumer)
        assert [seen.api for seen in cluster.requests].count("LeaveGroup") == 1

    on_a_cluster(scene)
