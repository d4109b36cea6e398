"""Any order in which transactional producers work: a read_committed consumer gets exactly what was committed.

The model is a list: what was written, by which transaction, and how that ended. It knows nothing of offsets.
"""

from __future__ import annotations

import asyncio

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient import AsyncConsumer
from kclient.embedded import EmbeddedCluster
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient
from tests.embedded.raw_producer import RawProducer, produce, settled

PARTITIONS = [TopicPartition("t", number) for number in range(2)]
PRODUCERS = 3


@attrs.define
class Model:
    """Values in the order of their partition, each with the transaction that wrote it (None: none)."""

    written: dict[TopicPartition, list[tuple[bytes, int | None]]] = attrs.field(
        factory=lambda: {tp: [] for tp in PARTITIONS}
    )
    ended: dict[int, bool] = attrs.field(factory=dict)
    begun: int = 0

    def visible(self, tp: TopicPartition) -> list[bytes]:
        """What counts below the oldest open transaction."""
        found = []
        for value, transaction in self.written[tp]:
            if transaction is not None and transaction not in self.ended:
                break
            if transaction is None or self.ended[transaction]:
                found.append(value)
        return found

    def all(self, tp: TopicPartition) -> list[bytes]:
        """Whatever was written."""
        return [value for value, _ in self.written[tp]]


STEPS = st.lists(
    st.tuples(
        st.integers(0, PRODUCERS - 1),
        st.sampled_from(["write", "write", "write", "commit", "abort", "plain", "again", "move", "restart"]),
        st.integers(0, len(PARTITIONS) - 1),
        st.integers(1, 3),
    ),
    max_size=40,
)


@pytest.mark.spec("B.12", "I-05", "U-04")
@pytest.mark.fuzz
@settings(max_examples=40, deadline=None)
@given(STEPS, st.lists(st.booleans(), min_size=PRODUCERS, max_size=PRODUCERS))
def test_exactly_the_committed_is_read(steps: list[tuple[int, str, int, int]], v2: list[bool]) -> None:
    asyncio.run(play(steps, v2))


async def play(steps: list[tuple[int, str, int, int]], v2: list[bool]) -> None:
    cluster = EmbeddedCluster(brokers=2, topics={"t": len(PARTITIONS)})
    async with cluster, RawClient(cluster) as raw_client:
        model = Model()
        names = [RawProducer(cluster, raw_client, f"p{number}", v2=v2[number]) for number in range(PRODUCERS)]
        open_now: list[int | None] = [None] * PRODUCERS
        for producer in names:
            await producer.init()
        for number, (which, move, at, count) in enumerate(steps):
            producer, tp = names[which], PARTITIONS[at]
            values = [b"%d.%d" % (number, index) for index in range(count)]
            if move == "write":
                if open_now[which] is None:
                    model.begun += 1
                    open_now[which] = model.begun
                await producer.begin_write(tp, *values)
                model.written[tp] += [(value, open_now[which]) for value in values]
            elif move == "plain":
                batch = build_batch([NewRecord(None, one, cluster.state.clock.wall_ms()) for one in values])
                assert (await produce(cluster, raw_client, tp, batch)).error_code == 0
                model.written[tp] += [(value, None) for value in values]
            elif move == "move":
                cluster.move_leader("t", at)
            elif move == "restart":
                node = 1 + which % 2
                cluster.kill(node)
                await cluster.restart(node)
            elif move == "again":  # the producer was started again: what it had open is aborted
                assert await producer.init_patiently() == 0
                end(model, open_now, which, False)
            elif open_now[which] is not None:
                assert await producer.end(commit=move == "commit") == 0
                end(model, open_now, which, move == "commit")
        await settled(cluster)
        committed = {tp: model.visible(tp) for tp in PARTITIONS}
        assert await values_of(cluster, "read_committed") == committed
        written = {tp: model.all(tp) for tp in PARTITIONS}
        assert await values_of(cluster, "read_uncommitted") == written


def end(model: Model, open_now: list[int | None], which: int, commit: bool) -> None:
    if (transaction := open_now[which]) is not None:
        model.ended[transaction] = commit
        open_now[which] = None


async def values_of(cluster: EmbeddedCluster, isolation_level: str) -> dict[TopicPartition, list[bytes]]:
    """Everything up to the ends that this level sees."""
    async with AsyncConsumer(
        bootstrap_servers=cluster.bootstrap_servers,
        auto_offset_reset="earliest",
        isolation_level=isolation_level,
        max_partition_fetch_bytes=200,  # a batch or two at a time
    ) as consumer:
        await consumer.assign(PARTITIONS)
        ends = await consumer.end_offsets(PARTITIONS)
        found: dict[TopicPartition, list[bytes]] = {tp: [] for tp in PARTITIONS}
        async with asyncio.timeout(10):
            while any([await consumer.position(tp) < end for tp, end in ends.items()]):
                for record in await consumer.poll(0.02):
                    found[TopicPartition(record.topic, record.partition)].append(record.value)
        return found
