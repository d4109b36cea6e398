"""A group changes its protocol while it reads: members of both protocols share it, one partition never with two.

Spec: B.17.6.
"""

from __future__ import annotations

from typing import Any

import pytest

from kclient import AsyncConsumer, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.errors import CommitFailedError
from tests.group.consumer_protocol.embedded_members import member, numbers, on_a_cluster, polled_until

CLASSIC: dict[str, Any] = {
    "group_protocol": "classic",
    "session_timeout_ms": 6_000,
    "heartbeat_interval_ms": 50,
}
COOPERATIVE = CLASSIC | {"partition_assignment_strategy": ["cooperative-sticky"]}


def disjoint(*consumers: AsyncConsumer) -> bool:
    """Whether all four partitions are owned. Fails where one is owned twice."""
    owned = [number for consumer in consumers for number in numbers(consumer)]
    assert len(owned) == len(set(owned))
    return len(owned) == 4 and all(numbers(consumer) for consumer in consumers)


async def read_all(cluster: EmbeddedCluster, expected: int, *consumers: AsyncConsumer) -> None:
    """Everything that is written now is read once, and committed."""
    for number in range(4):
        cluster.produce("t", [b"x"] * expected, partition=number)
    got: list[tuple[int, int]] = []

    async def poll_and_commit() -> bool:
        committed = True
        for consumer in consumers:
            got.extend((record.partition, record.offset) for record in await consumer.poll(0.01))
            try:
                await consumer.commit()
            except CommitFailedError as exc:  # a cooperative group joins once more after a member has revoked
                if exc.reason != "rebalancing":
                    raise
                committed = False
        return committed and len(got) >= 4 * expected

    while not await poll_and_commit():
        pass
    assert len(got) == len(set(got)) == 4 * expected
    committed = cluster.committed("g")
    assert len({committed[TopicPartition("t", number)] for number in range(4)}) == 1


@pytest.mark.spec("A-14", "B.17.6", "I-10")
@pytest.mark.parametrize("old", [CLASSIC, COOPERATIVE], ids=["eager", "cooperative"])
def test_a_group_goes_to_the_consumer_protocol_and_back_member_by_member(old: dict[str, Any]) -> None:
    async def scene(cluster: EmbeddedCluster) -> None:
        one, two = member(cluster, "t", **old), member(cluster, "t", **old)
        await polled_until(lambda: disjoint(one, two), one, two)
        await read_all(cluster, 2, one, two)
        three = member(cluster, "t")
        await polled_until(lambda: disjoint(one, two, three), one, two, three)
        await read_all(cluster, 2, one, two, three)
        await one.close()
        await two.close()
        await polled_until(lambda: disjoint(three), three)
        await read_all(cluster, 2, three)
        four = member(cluster, "t", **old)
        await polled_until(lambda: disjoint(three, four), three, four)
        await three.close()
        await polled_until(lambda: disjoint(four), four)
        await read_all(cluster, 2, four)
        await four.close()

    on_a_cluster(scene)
