"""What a listener may do while its consumer leaves the group."""

from __future__ import annotations

import pytest

from kclient import RebalanceListener, TopicPartition
from tests.consumer.broker import MiniBroker
from tests.consumer.support import A0, consumer, with_broker


@pytest.mark.spec("S3-34", "B.13.8", "B.18", "I-12")
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_commit_while_leaving_is_that_of_a_member(way: str) -> None:
    """Generation and member id go with it: a coordinator refuses commits from outside of a group with members."""

    async def scenario(broker: MiniBroker) -> None:
        class Committing(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                await c.commit()

        async with consumer(broker, "a", listener=Committing(), enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            member = c.group_metadata()
            await getattr(c, way)()
            (sent,) = broker.of("OffsetCommitRequest")
            assert (sent.generation_id_or_member_epoch, sent.member_id) == (
                member.generation_id,
                member.member_id,
            )
            assert broker.committed[A0].offset == 5
            names = [seen.name for seen in broker.requests]
            assert names.index("OffsetCommitRequest") < names.index("LeaveGroupRequest")

    with_broker(scenario)


@pytest.mark.spec("B.13.8", "D-15")
def test_a_listener_that_unsubscribes_while_leaving_is_told_once() -> None:
    async def scenario(broker: MiniBroker) -> None:
        told: list[tuple[TopicPartition, ...]] = []

        class Leaving(RebalanceListener):
            async def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                told.append(partitions)
                await c.unsubscribe()

        async with consumer(broker, "a", listener=Leaving()) as c:
            await c.poll(5)
        assert told == [(A0,)]
        assert len(broker.of("LeaveGroupRequest")) == 1

    with_broker(scenario)


@pytest.mark.spec("S3-34", "B.18")
@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_an_asynchronous_commit_while_leaving_is_answered_before_the_member_goes(way: str) -> None:
    async def scenario(broker: MiniBroker) -> None:
        answered: list[Exception | None] = []

        class Committing(RebalanceListener):
            def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
                c.commit_async(callback=lambda offsets, error: answered.append(error))

        async with consumer(broker, "a", listener=Committing(), enable_auto_commit=False) as c:
            assert len(await c.poll(5)) == 5
            await getattr(c, way)()
            assert answered == [None]
            assert broker.committed[A0].offset == 5

    with_broker(scenario)
