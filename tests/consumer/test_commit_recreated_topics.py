"""Commits of offsets of a topic that was deleted and created again under its name."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import AsyncConsumer, OffsetAndMetadata
from kclient.embedded import EmbeddedCluster
from kclient.errors import CommitFailedError
from tests.scenarios.support import T0, consumer_of, play, read
from tests.waiting import until

QUICK: dict[str, Any] = {"group_id": "g", "retry_backoff_ms": 20, "metadata_max_age_ms": 100}


async def at_the_new_beginning(consumer: AsyncConsumer) -> None:
    """Nothing of the new topic was delivered yet."""
    while await consumer.position(T0) != 0:
        assert not list(await consumer.poll(0.05))


async def knows_the_new_topic(cluster: EmbeddedCluster, consumer: AsyncConsumer) -> None:
    state = consumer._core.positions.state(T0)
    await until(lambda: state.topic_id == cluster.state.topics["t"].topic_id)


@pytest.mark.spec("I-14", "I-01")
def test_an_offset_of_the_old_topic_is_not_stored_for_the_new_one() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=2, topics={"t": 1}) as cluster:
            cluster.produce("t", ["old"] * 20, partition=0)
            consumer = consumer_of(cluster, "t", **QUICK)
            await read(consumer, 20)
            cluster.recreate_topic("t")
            await at_the_new_beginning(consumer)
            old = {
                T0: OffsetAndMetadata(20, leader_epoch=9)
            }  # an epoch that says nothing of the new topic's leader
            with pytest.raises(CommitFailedError, match="deleted and created again") as caught:
                await consumer.commit(old)
            assert (caught.value.reason, caught.value.uncommitted) == ("topic_replaced", old)
            assert cluster.committed("g") == {}
            await consumer.commit()  # the position, which is one in the new topic
            assert cluster.committed("g") == {T0: 0}
            cluster.move_leader("t", 0)
            cluster.produce("t", ["new"] * 3, partition=0)
            await read(consumer, 3)
            await consumer.commit({T0: OffsetAndMetadata(2)})
            assert cluster.committed("g") == {T0: 2}
            await consumer.close()

    play(scenario)


@pytest.mark.spec("I-14", "I-01")
def test_records_of_the_old_topic_are_not_committed_for_the_new_one() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            cluster.produce("t", ["old"] * 20, partition=0)
            consumer = consumer_of(cluster, "t", **QUICK)
            async for record in consumer:
                if record.offset == 4:
                    break
            cluster.recreate_topic("t")
            state = consumer._core.positions.state(T0)
            await until(lambda: state.position is not None and state.position.offset == 0)
            with pytest.raises(CommitFailedError, match="deleted and created again"):
                await consumer.commit()  # what the loop was given, 4, and not the position
            assert cluster.committed("g") == {}
            cluster.produce("t", ["new"] * 3, partition=0)
            assert [record.value for record in await read(consumer, 3)] == [b"new"] * 3
            await consumer.commit()
            assert cluster.committed("g") == {T0: 3}
            await consumer.close()

    play(scenario)


@pytest.mark.spec("I-14")
def test_where_the_user_has_gone_in_the_new_topic_can_be_committed() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(topics={"t": 1}) as cluster:
            cluster.produce("t", ["old"] * 20, partition=0)
            consumer = consumer_of(cluster, "t", **QUICK)
            await read(consumer, 20)
            cluster.recreate_topic("t")
            cluster.produce("t", ["new"] * 3, partition=0)
            await knows_the_new_topic(cluster, consumer)
            consumer.seek(T0, 1)
            await consumer.commit({T0: OffsetAndMetadata(2)})
            assert cluster.committed("g") == {T0: 2}
            await consumer.close()

    play(scenario)
