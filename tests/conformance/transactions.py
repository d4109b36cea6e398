"""One transactional producer, step by step, in whatever versions the target has."""

from __future__ import annotations

import time
from typing import Any

from kclient.generated.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kclient.generated.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kclient.generated.end_txn_request import EndTxnRequest
from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kclient.protocol import errors
from kclient.protocol.primitives import ZERO_UUID
from kclient.records.writer import NewRecord, build_batch
from tests.conformance.target import Target, eventually, fresh

TRANSACTION = 1
BY_CLIENTS = 3  # the newest AddPartitionsToTxn for clients; brokers use those after it
BUSY = (
    errors.CONCURRENT_TRANSACTIONS,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_NOT_AVAILABLE,
)


class Producer:
    """`producer_id` and `epoch` are what InitProducerId said; `EndTxn` up to version 4 leaves them as they are."""

    def __init__(self, target: Target, transactional_id: str | None = None, timeout_ms: int = 60_000) -> None:
        self.target = target
        self.transactional_id = target.coordinated(transactional_id or fresh("transaction"), TRANSACTION)
        self.timeout_ms = timeout_ms
        self.sequences: dict[str, int] = {}
        self.producer_id, self.epoch = -1, -1

    def init(self, version: int | None = None, **fields: Any) -> Any:
        """InitProducerId, again while the transaction before is being ended."""
        request = InitProducerIdRequest(
            **{"transactional_id": self.transactional_id, "transaction_timeout_ms": self.timeout_ms, **fields}
        )
        response = eventually(
            lambda: self.target.ask(request, version), lambda response: response.error_code not in BUSY
        )
        if response.error_code == errors.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences.clear()
        return response

    def begun(self) -> Producer:
        """The same, after its first InitProducerId."""
        assert self.init().error_code == errors.NONE
        return self

    def add(self, topic: str, *partitions: int, version: int | None = None, **fields: Any) -> dict[int, int]:
        """AddPartitionsToTxn: partition → error code."""
        rows = [AddPartitionsToTxnTopic(name=topic, partitions=list(partitions or (0,)))]
        request = AddPartitionsToTxnRequest(
            **{
                "v3_and_below_transactional_id": self.transactional_id,
                "v3_and_below_producer_id": self.producer_id,
                "v3_and_below_producer_epoch": self.epoch,
                "v3_and_below_topics": rows,
                **fields,
            }
        )
        used = BY_CLIENTS if version is None else version
        response = eventually(
            lambda: self.target.ask(request, used),
            lambda response: (
                response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
                not in BUSY
            ),
        )
        [row] = response.results_by_topic_v3_and_below
        return {one.partition_index: one.partition_error_code for one in row.results_by_partition}

    def send(self, topic: str, *values: bytes, partition: int = 0, epoch: int | None = None) -> int:
        """Produce one transactional batch: its error code."""
        sequence = self.sequences.get(topic, 0)
        now = int(time.time() * 1000)  # a marker bears the present; old records would be in another segment
        rows = [NewRecord(value=value, timestamp=now) for value in values]
        batch = build_batch(
            rows,
            producer_id=self.producer_id,
            producer_epoch=self.epoch if epoch is None else epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        [row] = self.target.ask(request, 9).responses[0].partition_responses
        if row.error_code == errors.NONE:
            self.sequences[topic] = sequence + len(values)
        return int(row.error_code)

    def write(self, topic: str, *values: bytes) -> None:
        """Add partition 0 of a topic and produce to it."""
        assert self.add(topic) == {0: errors.NONE}
        assert self.send(topic, *values) == errors.NONE

    def end(self, committed: bool, version: int = 3, **fields: Any) -> int:
        """EndTxn: its error code."""
        request = EndTxnRequest(
            **{
                "transactional_id": self.transactional_id,
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "committed": committed,
                **fields,
            }
        )
        response = eventually(
            lambda: self.target.ask(request, version), lambda response: response.error_code not in BUSY
        )
        if version >= 5 and response.error_code == errors.NONE:
            self.producer_id, self.epoch = response.producer_id, response.producer_epoch
            self.sequences.clear()
        return int(response.error_code)

    def add_offsets(self, group: str, version: int = 3, **fields: Any) -> int:
        """AddOffsetsToTxn: its error code."""
        request = AddOffsetsToTxnRequest(
            **{
                "transactional_id": self.transactional_id,
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "group_id": group,
                **fields,
            }
        )
        response = eventually(
            lambda: self.target.ask(request, version), lambda response: response.error_code not in BUSY
        )
        return int(response.error_code)

    def _topic_id(self, topic: str, version: int) -> bytes:
        """What names a topic since version 6 of TxnOffsetCommit."""
        return self.target.topic_id(topic) if version >= 6 else ZERO_UUID

    def commit_offset(
        self, group: str, topic: str, offset: int = 7, version: int = 3, metadata: str = "", **fields: Any
    ) -> int:
        """TxnOffsetCommit for partition 0: its error code."""
        row = TxnOffsetCommitRequestPartition(
            partition_index=fields.pop("partition", 0), committed_offset=offset, committed_metadata=metadata
        )
        request = TxnOffsetCommitRequest(
            **{
                "transactional_id": self.transactional_id,
                "group_id": self.target.coordinated(group),
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "topics": [
                    TxnOffsetCommitRequestTopic(
                        name=topic, topic_id=self._topic_id(topic, version), partitions=[row]
                    )
                ],
                **fields,
            }
        )
        [response] = self.target.ask(request, version).topics
        return int(response.partitions[0].error_code)
