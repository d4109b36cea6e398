"""A client of any Kafka with the methods of `EmbeddedCluster` that need no fault injection: topics, records, commits.

The same tests can run against a real cluster. On exit it deletes the topics that it created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final, Self, cast

from kclient.config import load
from kclient.embedded.loop_thread import ClusterLoop, control
from kclient.embedded.partitioner import Value, batches, codec_of, spread, to_records
from kclient.errors import ArgumentError, KclientError, UsageError
from kclient.generated.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kclient.generated.create_topics_response import CreateTopicsResponse
from kclient.generated.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kclient.generated.delete_topics_response import DeleteTopicsResponse
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import ProduceResponse
from kclient.network.cluster import Cluster
from kclient.network.errors import broker_error
from kclient.protocol.errors import LEADER_NOT_AVAILABLE, NONE
from kclient.protocol.message import Message
from kclient.protocol.primitives import ZERO_UUID
from kclient.records.writer import NewRecord
from kclient.runtime import Runtime
from kclient.sync import Consumer
from kclient.types import TopicPartition

SECONDS: Final = 15.0
PAUSE_SECONDS: Final = 0.1


class RemoteCluster:
    """Any Kafka at `bootstrap_servers`. Raise ConnectError if it is unreachable."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._runtime = Runtime()
        self._made: dict[str, int] = {}  # topics with their partitions
        self._turns: dict[str, int] = {}
        self._cluster_loop: ClusterLoop | None = None
        self._cluster: Cluster | None = None

    # --- life

    @property
    def cluster_loop(self) -> ClusterLoop:
        """The loop of its connections. Raise UsageError outside of the `with` block."""
        if self._cluster_loop is None:
            raise UsageError("Use the cluster inside of its `with` block.")
        return self._cluster_loop

    def __enter__(self) -> Self:
        self._cluster_loop = ClusterLoop.new()
        try:
            self._cluster_loop.call(self._start)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for topic in list(self._made):
                self.delete_topic(topic)
        finally:
            self._leave()

    def _leave(self) -> None:
        cluster_loop = self.cluster_loop
        try:
            cluster_loop.call(self._stop)
        finally:
            self._cluster_loop = None
            cluster_loop.end()

    async def _start(self) -> None:
        self._cluster = Cluster(load({"bootstrap_servers": self.bootstrap_servers}), self._runtime)
        await self._cluster.start()

    async def _stop(self) -> None:
        if self._cluster is not None:
            await self._cluster.close(1.0)

    @property
    def connected(self) -> Cluster:
        """The client's side of it. Raise UsageError outside of the `with` block."""
        if self._cluster is None:
            raise UsageError("Use the cluster inside of its `with` block.")
        return self._cluster

    # --- what any Kafka can do

    @property
    def brokers(self) -> int:
        """How many brokers it has."""
        return len(self.connected.metadata.brokers)

    @control
    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> Any:
        """Make a topic, with as many replicas as there are brokers (at most 3) unless said otherwise."""
        return self._create(name, partitions, replication, config)

    create = create_topic

    @control
    def delete_topic(self, name: str) -> Any:
        """Delete a topic that was made here. Raise ArgumentError for any other."""
        return self._delete(name)

    @control
    def produce(
        self,
        topic: str,
        values: Iterable[Value],
        *,
        partition: int | None = None,
        codec: str = "none",
        timestamp_ms: int | None = None,
    ) -> Any:
        """Append records to a topic that was made here, or is made now; gives back partition and offset of each."""
        timestamp = self._runtime.wall_ms() if timestamp_ms is None else timestamp_ms
        return self._produce(topic, to_records(values, timestamp), partition, codec)

    def committed(self, group: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group in the topics that were made here."""
        partitions = [
            TopicPartition(name, number) for name, count in self._made.items() for number in range(count)
        ]
        with Consumer(bootstrap_servers=self.bootstrap_servers, group_id=group) as consumer:
            found = consumer.committed(partitions)
        return {tp: position.offset for tp, position in found.items() if position is not None}

    # --- how

    async def _create(
        self, name: str, partitions: int, replication: int | None, config: Mapping[str, str] | None
    ) -> None:
        replicas = min(3, self.brokers) if replication is None else replication
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
        wanted = CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=replicas, configs=configs
        )
        response = cast(CreateTopicsResponse, await self._control(CreateTopicsRequest(topics=[wanted])))
        result = response.topics[0]
        if result.error_code != NONE:
            raise broker_error(
                result.error_code, f"Making topic {name!r}", topic=name, message=result.error_message
            )
        self._made[name] = partitions
        self.connected.set_topics(self._made)

    async def _delete(self, name: str) -> None:
        if name not in self._made:
            raise ArgumentError(f"Topic {name!r} was not made here, so it is not deleted here.")
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)], topic_names=[name], timeout_ms=10_000
        )
        response = cast(DeleteTopicsResponse, await self._control(request))
        del self._made[name]
        if (code := response.responses[0].error_code) != NONE:
            raise broker_error(code, f"Deleting topic {name!r}", topic=name)

    async def _control(self, request: Message) -> Message:
        controller = self.connected.metadata.controller_id
        if controller is None:
            return (await self.connected.request_any(request))[1]
        return await self.connected.request(controller, request)

    async def _produce(
        self, topic: str, records: list[NewRecord], partition: int | None, codec: str
    ) -> list[tuple[int, int]]:
        if topic not in self._made:
            await self._create(topic, 1, None, None)
        turn = self._turns.get(topic, 0)
        self._turns[topic] = turn + len(records)
        places = spread(records, self._made[topic], turn) if partition is None else [partition] * len(records)
        next_offset: dict[int, int] = {}
        for number in sorted(set(places)):
            mine = (record for record, place in zip(records, places, strict=True) if place == number)
            for batch in batches(mine, codec_of(codec)):
                base = await self._patiently(TopicPartition(topic, number), batch)
                next_offset.setdefault(number, base)
        offsets = []
        for place in places:
            offsets.append((place, next_offset[place]))
            next_offset[place] += 1
        return offsets

    async def _patiently(self, tp: TopicPartition, batch: bytes) -> int:
        """Retry until the batch is stored: a new topic has no leader at first. Raise the last error."""
        deadline = self._runtime.now() + SECONDS
        while True:
            try:
                return await self._send(tp, batch)
            except KclientError as exc:
                if not exc.retriable or self._runtime.now() > deadline:
                    raise
            self.connected.request_update("a record was refused")
            await asyncio.sleep(PAUSE_SECONDS)

    async def _send(self, tp: TopicPartition, batch: bytes) -> int:
        metadata, doing = self.connected.metadata, f"Producing to {tp}"
        leader = metadata.leader(tp).node_id
        if leader is None:
            raise broker_error(LEADER_NOT_AVAILABLE, doing, topic=tp.topic)
        data = PartitionProduceData(index=tp.partition, records=batch)
        topic_id = metadata.topic_id(tp.topic) or ZERO_UUID
        topic = TopicProduceData(name=tp.topic, topic_id=topic_id, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        response = cast(ProduceResponse, await self.connected.request(leader, request))
        result = response.responses[0].partition_responses[0]
        if result.error_code != NONE:
            raise broker_error(result.error_code, doing, topic=tp.topic, message=result.error_message)
        return result.base_offset
