"""Batches, responses and a delivery over them, without a broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kclient.fetch.buffer import CompletedFetch, FetchBuffer, ResponseMemory, end_of
from kclient.fetch.delivery import RecordDelivery
from kclient.generated.fetch_response import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from kclient.positions.table import Positions
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch
from kclient.types import LeaderAndEpoch, OffsetAndMetadata, TopicPartition
from tests.positions.fake_cluster import config

P0, P1, P2 = (TopicPartition("orders", n) for n in range(3))
ON_1 = LeaderAndEpoch(1, 5)


def batch(*offsets: int, epoch: int = 5, **options: Any) -> bytes:
    """One batch whose records have these offsets and the values b"v<offset>"."""
    records = [NewRecord(None, b"v%d" % offset, 1000 + offset, offset=offset) for offset in offsets]
    return build_batch(records, base_offset=offsets[0], partition_leader_epoch=epoch, **options)


def data(
    tp: TopicPartition, records: bytes | None = None, **fields: Any
) -> tuple[TopicPartition, PartitionData]:
    fields.setdefault("high_watermark", 100)
    view = None if records is None else memoryview(records)
    return tp, PartitionData(partition_index=tp.partition, records=view, **fields)


def answer(*partitions: tuple[TopicPartition, PartitionData], **fields: Any) -> FetchResponse:
    topics = [FetchableTopicResponse(topic=tp.topic, partitions=[one]) for tp, one in partitions]
    return FetchResponse(responses=topics, **fields)


class DeliveryPipeline:
    """Positions, a buffer and a delivery; `arrive` stands for the fetcher."""

    def __init__(self, *partitions: TopicPartition, **keys: Any) -> None:
        self.config = config(**keys)
        self.positions = Positions()
        self.buffer = FetchBuffer()
        self.delivery = RecordDelivery(self.positions, self.buffer, self.config)
        self.positions.assign(partitions)
        for tp in partitions:
            self.positions.seek(tp, OffsetAndMetadata(0), ON_1)

    def arrive(
        self,
        tp: TopicPartition,
        records: bytes = b"",
        *,
        at: int | None = None,
        error_code: int = 0,
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> None:
        """A fetch of the partition ends; it began at the position or the end of what is buffered, or `at`."""
        queue = self.buffer.queue(tp)
        position = self.positions.state(tp).position
        if at is None:
            at = queue[-1].end_offset if queue else position and position.offset
        assert at is not None
        view = memoryview(records)
        end = end_of(view) if records else None
        position_version = self.positions.state(tp).position_version
        frame = ResponseMemory(len(records))
        self.buffer.add([CompletedFetch(tp, position_version, at, frame, view, end, aborted, error_code)])

    def poll(self, max_records: int = 500) -> Records[Any, Any] | None:
        """One poll; None where there was nothing to decode."""
        task = self.delivery.begin(max_records)
        if task is None:
            return None
        while not task.decode():
            pass
        return self.delivery.finish(task)

    def offsets(self, max_records: int = 500) -> list[tuple[int, int]]:
        """(partition, offset) of the records of one poll."""
        return [(record.partition, record.offset) for record in self.poll(max_records) or ()]

    def offset(self, tp: TopicPartition) -> int | None:
        position = self.positions.position(tp)
        return None if position is None else position.offset
