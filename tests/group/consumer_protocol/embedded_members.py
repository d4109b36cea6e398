"""What the tests of this folder share: members of an embedded cluster, what went over the wire, and what was owned."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import attrs

from kclient import AsyncConsumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import KclientError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.group.consumer_protocol.member import ConsumerMembership
from kclient.group.consumer_protocol.state import ConsumerMemberState
from tests.scenarios.support import SETTINGS, play

GROUP = "g"
QUICK: dict[str, Any] = {"group.consumer.heartbeat.interval.ms": 40}
FAST = {"retry_backoff_ms": 5, "retry_backoff_max_ms": 40, "reconnect_backoff_ms": 5}


@attrs.define
class RecordingListener(RebalanceListener):
    """Records the calls of the listener. The method that `failures` names raises its exception once."""

    calls: list[tuple[str, tuple[int, ...]]] = attrs.field(factory=list)
    failures: dict[str, Exception] = attrs.field(factory=dict)
    meanwhile: Callable[[str], Awaitable[None]] | None = None

    async def note(self, what: str, partitions: Iterable[TopicPartition]) -> None:
        self.calls.append((what, tuple(tp.partition for tp in partitions)))
        if self.meanwhile is not None:
            await self.meanwhile(what)
        if what in self.failures:
            raise self.failures.pop(what)

    async def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        await self.note("assigned", partitions)

    async def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        await self.note("revoked", partitions)

    async def on_partitions_lost(self, partitions: Iterable[TopicPartition]) -> None:
        await self.note("lost", partitions)


def member(cluster: EmbeddedCluster, *topics: str, **settings: Any) -> AsyncConsumer:
    """A consumer of the new protocol in group `g`; it does not auto-commit."""
    keys: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap_servers,
        "group_id": GROUP,
        "group_protocol": "consumer",
        **SETTINGS,
        **FAST,
        **settings,
    }
    return AsyncConsumer(*topics, **keys)


def on_a_cluster(
    scenario: Callable[[EmbeddedCluster], Awaitable[None]],
    *,
    partitions: int = 4,
    brokers: int = 1,
    release: str = "4.3",
    **config: Any,
) -> None:
    """Play a scenario on a cluster of one topic `t`; broker settings with underscores for dots."""

    async def scene() -> None:
        settings = QUICK | {name.replace("_", "."): value for name, value in config.items()}
        async with EmbeddedCluster(
            brokers, release=release, topics={"t": partitions}, config=settings
        ) as cluster:
            await scenario(cluster)

    play(scene)


def numbers(consumer: AsyncConsumer) -> set[int]:
    """The numbers of the partitions that it owns."""
    return {tp.partition for tp in consumer.assignment()}


async def polled_until(
    condition: Callable[[], object], *consumers: AsyncConsumer, seconds: float = 10
) -> None:
    """Poll them all, one after the other, until something holds."""
    async with asyncio.timeout(seconds):
        while not condition():
            for consumer in consumers:
                await consumer.poll(0.01)


def membership(consumer: AsyncConsumer) -> ConsumerMembership:
    """The member after it."""
    found = consumer._core.group.membership.current
    assert isinstance(found, ConsumerMembership)
    return found


def heartbeats(cluster: EmbeddedCluster, consumer: AsyncConsumer | None = None) -> list[Any]:
    """The heartbeats that were sent, all or those of one member, oldest first."""
    api = "ConsumerGroupHeartbeat"
    sent = [seen.request for seen in cluster.requests if seen.api == api]
    ours = [one for one in sent if isinstance(one, ConsumerGroupHeartbeatRequest)]
    if consumer is None:
        return ours
    member_id = consumer._core.group.protocol.member_id
    return [one for one in ours if one.member_id == member_id]


async def quiet(consumer: AsyncConsumer) -> None:
    """Wait until the member is stable and has its four partitions."""
    await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
    await polled_until(lambda: membership(consumer).state is ConsumerMemberState.STABLE, consumer)


async def raised_by_poll(consumer: AsyncConsumer) -> KclientError:
    """The error that the next polls raise."""
    async with asyncio.timeout(10):
        while True:
            try:
                await consumer.poll(0.02)
            except KclientError as exc:
                return exc
