"""Publishing on our own codecs and batch writer: what a producer would do, as little of it as the demo needs.

Records of one key go to one partition (CRC-32 of the key, as librdkafka spreads them). Every partition has a lane of
its own: its batches are sent one after the other, those of different lanes side by side, and each must be acknowledged
by all replicas in sync. Batches carry a producer id and sequence numbers, so that a batch which is sent again after a
lost answer is stored once.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias, TypeVar, cast

import attrs

from demo.flights import Flight
from kclient.config import load
from kclient.errors import KclientError
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.init_producer_id_response import InitProducerIdResponse
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import ProduceResponse
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol.errors import DUPLICATE_SEQUENCE_NUMBER, LEADER_NOT_AVAILABLE, NONE
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch
from kclient.runtime import Runtime
from kclient.types import TopicPartition

BATCH_RECORDS: Final = 1_000
BATCHES_WAITING: Final = 2
ALL_REPLICAS: Final = -1
ATTEMPTS: Final = 20
PAUSE_SECONDS: Final = 0.5

T = TypeVar("T")
Queue: TypeAlias = asyncio.Queue[list[NewRecord]]


async def publish(
    servers: str, topic: str, partitions: int, flights: Iterable[Flight], on_progress: Callable[[int], None]
) -> list[int]:
    """Send every flight and return how many records each partition acknowledged. Raises the first failure."""
    try:
        async with open_lanes(servers, topic, partitions) as lanes, asyncio.TaskGroup() as group:
            for lane in lanes:
                group.create_task(lane.run())
            await _distribute(flights, lanes, lambda: on_progress(sum(lane.acknowledged for lane in lanes)))
    except ExceptionGroup as exc:
        raise exc.exceptions[0] from None
    return [lane.acknowledged for lane in lanes]


@asynccontextmanager
async def open_lanes(servers: str, topic: str, partitions: int) -> AsyncIterator[list[Lane]]:
    """Open a lane to each partition, over one connection to each broker."""
    cluster = Cluster(load({"bootstrap_servers": servers, "client_id": "demo-publisher"}), Runtime())
    cluster.set_topics([topic])
    await cluster.start()
    try:
        producer = await _retry(cluster, lambda: _producer(cluster))
        yield [Lane(cluster, TopicPartition(topic, number), producer) for number in range(partitions)]
    finally:
        await cluster.close(1.0)


async def _distribute(flights: Iterable[Flight], lanes: list[Lane], on_batch: Callable[[], None]) -> None:
    """Fill one batch a lane; the bounded queues hold this back where the broker is slower. An empty batch ends."""
    filling: list[list[NewRecord]] = [[] for _ in lanes]
    for flight in flights:
        number = zlib.crc32(flight.key) % len(lanes)
        filling[number].append(NewRecord(flight.key, flight.value, flight.timestamp))
        if len(filling[number]) == BATCH_RECORDS:
            await lanes[number].queue.put(filling[number])
            filling[number] = []
            on_batch()
    for lane, rest in zip(lanes, filling, strict=True):
        if rest:
            await lane.queue.put(rest)
        await lane.queue.put([])


@attrs.frozen
class Producer:
    """What the broker knows this publisher by."""

    id: int
    epoch: int


@attrs.define(eq=False)
class Lane:
    """The way to one partition. What was acknowledged is also the next sequence number."""

    cluster: Cluster
    tp: TopicPartition
    producer: Producer
    acknowledged: int = 0
    queue: Queue = attrs.field(factory=lambda: asyncio.Queue(BATCHES_WAITING))

    async def run(self) -> None:
        """Send batch after batch until an empty one."""
        while records := await self.queue.get():
            batch = build_batch(
                records,
                compression=Compression.LZ4,
                producer_id=self.producer.id,
                producer_epoch=self.producer.epoch,
                base_sequence=self.acknowledged,
            )
            await _retry(self.cluster, lambda: self._produce(batch))  # noqa: B023 (awaited in this turn)
            self.acknowledged += len(records)

    async def _produce(self, batch: bytes) -> None:
        metadata, doing = self.cluster.metadata, f"Publishing to {self.tp}"
        leader = metadata.leader(self.tp).node_id
        if leader is None:
            raise broker_error(LEADER_NOT_AVAILABLE, doing, topic=self.tp.topic)
        data = PartitionProduceData(index=self.tp.partition, records=batch)
        topic = TopicProduceData(name=self.tp.topic, partition_data=[data])
        topic.topic_id = metadata.topic_id(self.tp.topic) or topic.topic_id
        request = ProduceRequest(acks=ALL_REPLICAS, timeout_ms=10_000, topic_data=[topic])
        answer = cast(ProduceResponse, await self.cluster.request(leader, request))
        result = answer.responses[0].partition_responses[0]
        if result.error_code not in (NONE, DUPLICATE_SEQUENCE_NUMBER):
            raise broker_error(result.error_code, doing, topic=self.tp.topic, message=result.error_message)


async def _producer(cluster: Cluster) -> Producer:
    """Return a new producer id, without transactions."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    _, message = await cluster.request_any(request)
    answer = cast(InitProducerIdResponse, message)
    if answer.error_code != NONE:
        raise broker_error(answer.error_code, "Asking for a producer id")
    return Producer(answer.producer_id, answer.producer_epoch)


async def _retry(cluster: Cluster, ask: Callable[[], Awaitable[T]]) -> T:
    """Retry temporary failures. Raise the last one."""
    for _ in range(ATTEMPTS):
        try:
            return await ask()
        except KclientError as exc:
            if not exc.retriable:
                raise
        cluster.request_update("publishing failed", reset_backoff=False)
        await asyncio.sleep(PAUSE_SECONDS)
    return await ask()
