"""A member joins, gets its share, rebalances and leaves: its requests, and what the application sees."""

from __future__ import annotations

import asyncio
import re

import pytest

from kclient.embedded import EmbeddedCluster
from tests.group.consumer_protocol.embedded_members import (
    RecordingListener,
    heartbeats,
    member,
    membership,
    numbers,
    on_a_cluster,
    polled_until,
)


@pytest.mark.spec("A-14", "B.17.2")
def test_the_first_heartbeat_is_full_and_later_ones_have_only_changes() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t", client_rack="r1", group_remote_assignor="range") as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            seen = len(heartbeats(cluster))
            await polled_until(lambda: len(heartbeats(cluster)) >= seen + 3, consumer)
            first, *later = heartbeats(cluster)
        assert (first.member_epoch, first.rebalance_timeout_ms, first.rack_id) == (0, 300_000, "r1")
        assert (first.subscribed_topic_names, first.topic_partitions) == (["t"], [])
        assert (first.instance_id, first.server_assignor) == (None, "range")
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", first.member_id)
        said = [one.topic_partitions for one in later if one.topic_partitions is not None]
        assert [(row.topic_id, row.partitions) for owned in said for row in owned] == [
            (cluster.state.topics["t"].topic_id, [0, 1, 2, 3])
        ]
        for one in later:
            assert one.member_id == first.member_id
            assert (one.rebalance_timeout_ms, one.subscribed_topic_names) == (-1, None)
            assert (one.rack_id, one.server_assignor, one.subscribed_topic_regex) == (None, None, None)

    on_a_cluster(scene)


@pytest.mark.spec("A-14", "B.17.3", "B.17.5")
def test_partitions_move_when_their_owner_has_given_them_up_and_come_back_when_the_other_leaves() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        first, second = RecordingListener(), RecordingListener()
        async with member(cluster, "t", listener=first) as one:
            await polled_until(lambda: len(numbers(one)) == 4, one)
            async with member(cluster, "t", listener=second) as two:

                def shared() -> bool:
                    assert not numbers(one) & numbers(two)
                    return len(numbers(one)) == len(numbers(two)) == 2

                await polled_until(shared, one, two)
                taken = tuple(sorted(numbers(two)))
                assert one.group_metadata().generation_id == two.group_metadata().generation_id > 0
            await polled_until(lambda: len(numbers(one)) == 4, one)
        assert first.calls == [
            ("assigned", (0, 1, 2, 3)),
            ("revoked", taken),
            ("assigned", ()),
            ("assigned", taken),
            ("revoked", (0, 1, 2, 3)),
        ]
        assert second.calls == [("assigned", ()), ("assigned", taken), ("revoked", taken)]
        assert [beat.member_epoch for beat in heartbeats(cluster) if beat.member_epoch < 0] == [-1, -1]

    on_a_cluster(scene)


@pytest.mark.spec("B.17.2")
def test_another_subscription_is_reported_at_once_and_unsubscribing_leaves() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        cluster.create_topic("u", partitions=1)
        async with member(cluster, "t") as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            await consumer.subscribe(["u"])
            await polled_until(lambda: [tp.topic for tp in consumer.assignment()] == ["u"], consumer)
            before = membership(consumer)._status.member_id
            await consumer.unsubscribe()
            assert heartbeats(cluster)[-1].member_epoch == -1
            await consumer.subscribe(["t"])
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            assert membership(consumer)._status.member_id == before

    on_a_cluster(scene, group_consumer_heartbeat_interval_ms=20_000)


@pytest.mark.spec("B.17.2")
def test_heartbeats_continue_in_the_brokers_interval_whatever_the_application_does() -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        async with member(cluster, "t") as consumer:
            await polled_until(lambda: len(numbers(consumer)) == 4, consumer)
            await asyncio.sleep(0.2)
            before = len(heartbeats(cluster))
            await asyncio.sleep(0.5)
            assert 3 <= len(heartbeats(cluster)) - before <= 6

    on_a_cluster(scene, group_consumer_heartbeat_interval_ms=100)
