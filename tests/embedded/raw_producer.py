"""A transactional producer made of raw requests, so that a test says each of them itself.

`v2` speaks as producers of transactions V2 do (KIP-890): it adds no partition, and takes the epoch that EndTxn gives.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kclient.embedded import EmbeddedCluster
from kclient.embedded.partition import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kclient.embedded.transactions.coordinator import transactions_of
from kclient.embedded.transactions.transaction import PREPARED
from kclient.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kclient.generated.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kclient.generated.end_txn_request import EndTxnRequest
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import CONCURRENT_TRANSACTIONS, NONE
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition
from tests.embedded.raw_client import RawClient

TURNS = 200


class RawProducer:
    """One producer. Its methods give back error codes; `producer_id` and `epoch` are what it believes to be."""

    def __init__(
        self, cluster: EmbeddedCluster, raw_client: RawClient, transactional_id: str, *, v2: bool = False
    ) -> None:
        self.cluster = cluster
        self.raw_client = raw_client
        self.transactional_id = transactional_id
        self.v2 = v2
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[TopicPartition, int] = {}

    # --- who answers

    async def coordinator(self) -> int:
        """The node that keeps the transactional id; its topic is made if need be."""
        return await coordinator_of(self.cluster, self.raw_client, TRANSACTIONS_TOPIC, self.transactional_id)

    # --- requests

    async def init(
        self, *, timeout_ms: int = 60_000, expected: tuple[int, int] = (-1, -1), version: int = 4
    ) -> int:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=expected[0],
            producer_epoch=expected[1],
        )
        response = await self.raw_client.ask(request, version, node=await self.coordinator())
        if response.error_code == NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences.clear()
        return int(response.error_code)

    async def init_patiently(self, **keys: Any) -> int:
        """As clients do: again while the coordinator is busy."""
        for _ in range(TURNS):
            if (code := await self.init(**keys)) != CONCURRENT_TRANSACTIONS:
                return code
            await asyncio.sleep(0.001)
        raise AssertionError("the transaction before does not end")

    async def add(self, *partitions: TopicPartition, version: int = 3) -> list[int]:
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for tp in partitions:
            topics.setdefault(tp.topic, AddPartitionsToTxnTopic(name=tp.topic)).partitions.append(
                tp.partition
            )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=list(topics.values()),
        )
        response = await self.raw_client.ask(request, version, node=await self.coordinator())
        rows = [row for topic in response.results_by_topic_v3_and_below for row in topic.results_by_partition]
        return [row.partition_error_code for row in rows]

    async def write(self, tp: TopicPartition, *values: bytes, version: int | None = None) -> int:
        """One batch within the transaction."""
        sequence = self.sequences.get(tp, 0)
        batch = build_batch(
            [NewRecord(None, value, self.cluster.state.clock.wall_ms()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        response = await produce(
            self.cluster, self.raw_client, tp, batch, version or (12 if self.v2 else 9), self.transactional_id
        )
        if response.error_code == NONE:
            self.sequences[tp] = sequence + len(values)
        return int(response.error_code)

    async def add_group(self, group_id: str, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        return int((await self.raw_client.ask(request, version, node=await self.coordinator())).error_code)

    async def commit_offset(
        self,
        group_id: str,
        tp: TopicPartition,
        offset: int,
        *,
        member: tuple[str, int] = ("", -1),
        metadata: str | None = None,
        version: int | None = None,
    ) -> int:
        row = TxnOffsetCommitRequestPartition(
            partition_index=tp.partition, committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            member_id=member[0],
            generation_id_or_member_epoch=member[1],
            topics=[TxnOffsetCommitRequestTopic(name=tp.topic, partitions=[row])],
        )
        node = await coordinator_of(self.cluster, self.raw_client, OFFSETS_TOPIC, group_id)
        response = await self.raw_client.ask(request, version or (5 if self.v2 else 3), node=node)
        return int(response.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool, version: int | None = None) -> int:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        version = version or (5 if self.v2 else 3)
        response = await self.raw_client.ask(request, version, node=await self.coordinator())
        if response.error_code == NONE and version >= 5:
            if (response.producer_id, response.producer_epoch) != (self.producer_id, self.epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        return int(response.error_code)

    # --- what a transaction is

    async def transact(self, tp: TopicPartition, *values: bytes, commit: bool) -> None:
        """A whole transaction of one batch."""
        await self.begin_write(tp, *values)
        assert await self.end(commit=commit) == NONE

    async def begin_write(self, tp: TopicPartition, *values: bytes) -> None:
        """Write; whatever has to be asked for before is."""
        for _ in range(TURNS):
            code = (await self.add(tp))[0] if not self.v2 else await self.write(tp, *values)
            if code != CONCURRENT_TRANSACTIONS:
                break
            await asyncio.sleep(0.001)
        assert code == NONE
        if not self.v2:
            assert await self.write(tp, *values) == NONE


async def settled(cluster: EmbeddedCluster) -> None:
    """Until every marker is written."""
    for _ in range(TURNS):
        transactions = [
            transaction
            for broker in cluster.state.brokers.values()
            for transaction in transactions_of(broker).transactions.values()
        ]
        if not any(transaction.state in PREPARED for transaction in transactions):
            return
        cluster.state.clock.advance(0.01)
        await asyncio.sleep(0)
    raise AssertionError("markers are missing")


async def coordinator_of(cluster: EmbeddedCluster, raw_client: RawClient, topic: str, name: str) -> int:
    """The leader of the partition of an internal topic that a name maps to."""
    if topic not in cluster.state.topics:
        await raw_client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
    partitions = cluster.state.topics[topic].partitions
    return partitions[offsets_topic_partition(name, len(partitions))].leader


async def produce(
    cluster: EmbeddedCluster,
    raw_client: RawClient,
    tp: TopicPartition,
    batch: bytes,
    version: int = 9,
    transactional_id: str | None = None,
) -> Any:
    """The row of the response to one batch, from its leader, acks −1."""
    partition = cluster.state.partition(tp)
    assert partition is not None
    data = PartitionProduceData(index=tp.partition, records=batch)
    topic = TopicProduceData(name=tp.topic, topic_id=partition.topic.topic_id, partition_data=[data])
    request = ProduceRequest(
        transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[topic]
    )
    response = await raw_client.ask(request, version, node=partition.leader)
    return response.responses[0].partition_responses[0]
