"""Sends records to the leaders of a topic's partitions, for `kclient produce` alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from kclient.cli.admin_client import AdminClient
from kclient.embedded.partitioner import batches, spread
from kclient.errors import ArgumentError, KclientError, TopicAuthorizationError
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import PartitionProduceResponse, ProduceResponse
from kclient.group.coordinator import expect
from kclient.lag.measure import limit_time
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord
from kclient.types import TopicPartition

ALL_REPLICAS: Final = -1
BY_NAME_UNTIL: Final = 12  # version 13 has topic ids
FORMAT_2_SINCE: Final = 3
REFUSED: Final = (  # before anything was stored
    codes.NOT_LEADER_OR_FOLLOWER,
    codes.LEADER_NOT_AVAILABLE,
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.NOT_ENOUGH_REPLICAS,
)
NO_RESULT: Final = PartitionProduceResponse(error_code=codes.UNKNOWN_SERVER_ERROR)


def _refused(tp: TopicPartition, result: PartitionProduceResponse) -> KclientError:
    if result.error_code == codes.TOPIC_AUTHORIZATION_FAILED:
        return TopicAuthorizationError(
            f"Writing to {tp} was refused with TOPIC_AUTHORIZATION_FAILED (29). The principal of this connection lacks "
            f"a permission. Grant it WRITE on Topic:{tp.topic}.",
            topics=(tp.topic,),
        )
    return broker_error(result.error_code, f"Writing to {tp}", message=result.error_message)


class RecordSender:
    """Sends records to the leaders of one topic's partitions; `counts` has how many each partition got."""

    def __init__(self, client: AdminClient, topic: str, partition: int | None, codec: Compression) -> None:
        self.counts: Counter[int] = Counter()
        self._client = client
        self._topic = topic
        self._partition = partition
        self._codec = codec
        self._partitions = 0
        self._turn = 0

    async def open(self) -> None:
        """Look the topic up. Raise UnknownTopicError, ArgumentError for a partition that it does not have."""
        topics = (await self._client.metadata([self._topic])).topics
        topic = next(one for one in topics if one.name == self._topic)
        self._partitions = len(topic.partitions)
        if not self._partitions:  # no leader yet, or a name that no topic can have
            code = topic.error_code or codes.LEADER_NOT_AVAILABLE
            raise broker_error(code, f"Describing topic {self._topic}", topics=[self._topic])
        if self._partition is not None and not 0 <= self._partition < self._partitions:
            raise ArgumentError(
                f"--partition {self._partition}: topic {self._topic} has the partitions 0 to {self._partitions - 1}"
            )

    async def send(self, records: Sequence[NewRecord]) -> None:
        """Send records and wait until they are stored. Raise BrokerError, TopicAuthorizationError, ConnectError."""
        if self._partition is None:
            numbers = spread(records, self._partitions, self._turn)
            self._turn += len(records)
        else:
            numbers = [self._partition] * len(records)
        by_partition: dict[int, list[NewRecord]] = {}
        for number, record in zip(numbers, records, strict=True):
            by_partition.setdefault(number, []).append(record)
        async with limit_time(self._client.timeout, f"the records of topic {self._topic} to be stored"):
            try:
                async with asyncio.TaskGroup() as tasks:
                    for number, some in by_partition.items():
                        tasks.create_task(self._send_all(number, some))
            except* KclientError as errors:
                raise errors.exceptions[0] from errors

    async def _send_all(self, number: int, records: Sequence[NewRecord]) -> None:
        """Send the batches of a partition one after another."""
        for batch in batches(records, self._codec):
            await self._send_batch(TopicPartition(self._topic, number), batch)
        self.counts[number] += len(records)

    async def _send_batch(self, tp: TopicPartition, batch: bytes) -> None:
        """Send one batch until it is stored; a broker that refused it has stored nothing of it."""
        backoff = Backoff.for_retries(self._client.config, self._client.runtime)
        request = ProduceRequest(
            acks=ALL_REPLICAS,
            timeout_ms=self._client.config.request_timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=tp.topic, partition_data=[PartitionProduceData(index=tp.partition, records=batch)]
                )
            ],
        )
        cluster = self._client.cluster
        while True:
            leader = cluster.metadata.leader(tp).node_id
            if leader is not None:
                response = await cluster.request(
                    leader, request, min_version=FORMAT_2_SINCE, max_version=BY_NAME_UNTIL
                )
                topics = expect(ProduceResponse, response).responses
                results = [result for topic in topics for result in topic.partition_responses]
                result = results[0] if results else NO_RESULT
                if result.error_code == codes.NONE:
                    return
                if result.error_code not in REFUSED:
                    raise _refused(tp, result)
            await asyncio.sleep(backoff.next())
            await self._client.metadata([tp.topic])
