"""Publishing on our own codecs and batch writer: what a producer would do, as little of it as the demo needs.

Records of one key go to one partition (CRC-32 of the key, as librdkafka spreads them). Batches of one partition are
sent one behind the other, those of different partitions side by side; every one must be acknowledged by all replicas in
sync. There is no retry: a broker that fails while publishing fails the demo.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from typing import Final, cast

from demo.flights import Flight
from kclient.config import load
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import ProduceResponse
from kclient.network.cluster import Cluster
from kclient.network.failures import broker_error
from kclient.protocol.errors import NONE
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch
from kclient.runtime import Runtime
from kclient.types import TopicPartition

BATCH_RECORDS: Final = 1_000
IN_FLIGHT: Final = 8
ALL_REPLICAS: Final = -1
REQUEST_SECONDS: Final = 30.0


async def publish(
    servers: str, topic: str, partitions: int, flights: Iterable[Flight], on_progress: Callable[[int], None]
) -> dict[int, int]:
    """Send every flight and return how many records each partition acknowledged."""
    cluster = Cluster(load({"bootstrap_servers": servers, "client_id": "demo-publisher"}), Runtime())
    cluster.set_topics([topic])
    await cluster.start()
    try:
        publisher = Publisher(cluster, topic, partitions, on_progress)
        for flight in flights:
            await publisher.add(flight)
        await publisher.flush()
        return publisher.acknowledged
    finally:
        await cluster.close(1.0)


class Publisher:
    """Fills one batch a partition and keeps a bounded number of them on their way."""

    def __init__(
        self, cluster: Cluster, topic: str, partitions: int, on_progress: Callable[[int], None]
    ) -> None:
        self.acknowledged = dict.fromkeys(range(partitions), 0)
        self._cluster = cluster
        self._topic = topic
        self._on_progress = on_progress
        self._filling: dict[int, list[NewRecord]] = {partition: [] for partition in range(partitions)}
        self._turns = {partition: asyncio.Lock() for partition in range(partitions)}
        self._room = asyncio.Semaphore(IN_FLIGHT)
        self._sending: list[asyncio.Task[None]] = []

    async def add(self, flight: Flight) -> None:
        """Put a record into its partition's batch; a full batch goes out."""
        partition = zlib.crc32(flight.key) % len(self._filling)
        batch = self._filling[partition]
        batch.append(NewRecord(flight.key, flight.value, flight.timestamp))
        if len(batch) >= BATCH_RECORDS:
            await self._send(partition)

    async def flush(self) -> None:
        """Send what is left and wait for every answer. Raises the first failure."""
        for partition, batch in self._filling.items():
            if batch:
                await self._send(partition)
        await asyncio.gather(*self._sending)

    async def _send(self, partition: int) -> None:
        records, self._filling[partition] = self._filling[partition], []
        await self._room.acquire()
        for task in self._sending:
            if task.done():
                task.result()
        self._sending = [task for task in self._sending if not task.done()]
        self._sending.append(asyncio.create_task(self._produce(partition, records)))

    async def _produce(self, partition: int, records: list[NewRecord]) -> None:
        try:
            async with self._turns[partition]:
                await self._request(partition, build_batch(records, compression=Compression.LZ4))
            self.acknowledged[partition] += len(records)
            self._on_progress(sum(self.acknowledged.values()))
        finally:
            self._room.release()

    async def _request(self, partition: int, batch: bytes) -> None:
        metadata = self._cluster.metadata
        leader = metadata.leader(TopicPartition(self._topic, partition)).node_id
        if leader is None:
            raise RuntimeError(f"{self._topic}-{partition} has no leader")
        topic = TopicProduceData(
            name=self._topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
        )
        topic.topic_id = metadata.topic_id(self._topic) or topic.topic_id
        request = ProduceRequest(
            acks=ALL_REPLICAS, timeout_ms=int(REQUEST_SECONDS * 1000), topic_data=[topic]
        )
        answer = cast(ProduceResponse, await self._cluster.request(leader, request, timeout=REQUEST_SECONDS))
        result = answer.responses[0].partition_responses[0]
        if result.error_code != NONE:
            doing = f"Publishing to {self._topic}-{partition}"
            raise broker_error(result.error_code, doing, topic=self._topic, message=result.error_message)
