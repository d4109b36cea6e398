"""Raw requests about the records of one topic, sent to the leader of the partition unless a node is given.

on = OneTopic(cluster, raw_client, "orders")
row = await on.produce(batch(b"one"))
row = await on.fetch(0)
"""

from __future__ import annotations

import time
from typing import Any

from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import Partition
from kclient.embedded.releases import versions_of
from kclient.generated.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kclient.generated.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.message import Message
from kclient.records.batch import read_batches
from kclient.records.sections import columns_for, open_batch
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient

MANY = 1 << 20
NOW = int(time.time() * 1000)  # retention takes older records away


def batch(*values: bytes | None, key: bytes | None = b"key", timestamp: int = NOW, **options: Any) -> bytes:
    """Records with these values in one batch of format 2."""
    return build_batch([NewRecord(key, value, timestamp) for value in values], **options)


def records(data: Any) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records of whole batches, markers left out."""
    found = []
    for header in read_batches(data or b""):
        if not header.is_control:
            section = open_batch(header)
            columns = columns_for(section)
            section.read_into(columns, MANY)
            found += list(zip(columns.offsets, columns.raw_keys(), columns.raw_values(), strict=True))
    return found


def values(row: Any) -> list[bytes | None]:
    """The values that a row of a Fetch response brings."""
    return [value for _, _, value in records(row.records)]


class OneTopic:
    """See the module. `partition` is 0 unless given; versions are the newest of the cluster that name topics."""

    def __init__(self, cluster: EmbeddedCluster, raw_client: RawClient, topic: str) -> None:
        self.cluster = cluster
        self.raw_client = raw_client
        self.topic = topic

    def partition(self, number: int = 0) -> Partition:
        """What the cluster knows of a partition."""
        found = self.cluster.state.partition(TopicPartition(self.topic, number))
        assert found is not None
        return found

    async def ask(self, request: Message, version: int, newest: int, node: int | None, number: int) -> Any:
        """The response of the leader or a node; version −1 is the newest up to `newest`."""
        offered = versions_of(self.cluster.state.release)[request.API_KEY or 0][1]
        version = min(newest, offered) if version < 0 else version
        return await self.raw_client.ask(request, version, node or self.partition(number).leader)

    async def produce(
        self,
        data: bytes | None,
        *,
        version: int = -1,
        acks: int = -1,
        timeout_ms: int = 1000,
        node: int | None = None,
        partition: int = 0,
    ) -> Any:
        """The row of the response."""
        row = PartitionProduceData(index=partition, records=data)
        topic = TopicProduceData(name=self.topic, partition_data=[row])
        request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[topic])
        response = await self.ask(request, version, 12, node, partition)
        return response.responses[0].partition_responses[0]

    async def fetch(
        self,
        offset: int,
        *,
        version: int = -1,
        node: int | None = None,
        partition: int = 0,
        max_bytes: int = MANY,
        **options: Any,
    ) -> Any:
        """The row of the response. Options are those of the request, and of the partition."""
        row = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        for name in ("current_leader_epoch", "last_fetched_epoch"):
            setattr(row, name, options.pop(name, -1))
        options = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": MANY, **options}
        request = FetchRequest(topics=[FetchTopic(topic=self.topic, partitions=[row])], **options)
        response = await self.ask(request, version, 12, node, partition)
        return response.responses[0].partitions[0]

    async def listed(
        self,
        timestamp: int,
        *,
        version: int = -1,
        node: int | None = None,
        isolation: int = 0,
        replica: int = -1,
    ) -> Any:
        """The row of a ListOffsets response for partition 0."""
        row = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(
            replica_id=replica,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=self.topic, partitions=[row])],
        )
        response = await self.ask(request, version, 11, node, 0)
        return response.topics[0].partitions[0]

    async def epoch_end(self, epoch: int, current: int = -1, node: int | None = None) -> Any:
        """The row of an OffsetForLeaderEpoch response for partition 0."""
        row = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=self.topic, partitions=[row])]
        )
        response = await self.ask(request, -1, 4, node, 0)
        return response.topics[0].partitions[0]
