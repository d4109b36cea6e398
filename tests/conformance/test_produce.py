"""Produce: what is appended, what is refused, idempotence included."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from kclient.generated.init_producer_id_request import InitProducerIdRequest
from kclient.generated.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.generated.produce_response import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from kclient.protocol import errors
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch
from tests.conformance.target import Target, eventually

pytestmark = pytest.mark.api("Produce", few=True)

BY_ID = 13
NOW_ISH = 1_600_000_000_000


def batch(*values: bytes, **details: Any) -> bytes:
    """One batch of records."""
    return build_batch([NewRecord(value=value, timestamp=NOW_ISH) for value in values], **details)


def request(
    target: Target, topic: str, version: int, records: bytes, partition: int = 0, **fields: Any
) -> ProduceRequest:
    """Records for one partition."""
    named = {"topic_id": target.topic_id(topic)} if version >= BY_ID else {"name": topic}
    data = PartitionProduceData(index=partition, records=records)
    rows = [TopicProduceData(partition_data=[data], **named)]
    return ProduceRequest(**{"acks": -1, "timeout_ms": 10_000, "topic_data": rows, **fields})


def produce(target: Target, topic: str, version: int, records: bytes, **details: Any) -> Any:
    """Send records for one partition: what the response says of it."""
    response = target.ask(request(target, topic, version, records, **details), version)
    [row] = response.responses
    [partition] = row.partition_responses
    return partition


def refused(code: int, row: PartitionProduceResponse) -> PartitionProduceResponse:
    """A refusal of partition 0, with the texts and leader hints of `row`."""
    return PartitionProduceResponse(
        index=row.index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=row.log_start_offset,
        record_errors=row.record_errors,
        error_message=row.error_message,
        current_leader=row.current_leader,
    )


@pytest.mark.spec("C.2.1")
@pytest.mark.api("Produce")
def test_records_are_appended(target: Target, topic: str, version: int) -> None:
    for offset in (0, 2):
        response = target.ask(request(target, topic, version, batch(b"a", b"b")), version)
        named = {"topic_id": target.topic_id(topic)} if version >= BY_ID else {"name": topic}
        row = PartitionProduceResponse(
            index=0, base_offset=offset, log_append_time_ms=-1, log_start_offset=0 if version >= 5 else -1
        )
        expected = ProduceResponse(responses=[TopicProduceResponse(partition_responses=[row], **named)])
        row.error_message = response.responses[0].partition_responses[0].error_message
        assert row.error_message in (None, "")
        assert response == expected


def test_acks_of_the_leader_alone_suffice(target: Target, topic: str, version: int) -> None:
    assert produce(target, topic, version, batch(b"a"), acks=1).error_code == errors.NONE


def test_without_acks_there_is_no_response(target: Target, topic: str, version: int) -> None:
    with target.connect() as raw_client:
        raw_client.send(request(target, topic, version, batch(b"a"), acks=0), version)
        assert raw_client.silent(0.1)
    assert target.produce(topic, b"b") == 1


def test_a_refusal_without_acks_ends_the_connection(target: Target, version: int) -> None:
    topic = target.topic(max_message_bytes=100)
    with target.connect() as raw_client:
        raw_client.send(request(target, topic, version, batch(b"x" * 200), acks=0), version)
        assert raw_client.closed()


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused(target: Target, topic: str, version: int, acks: int) -> None:
    row = produce(target, topic, version, batch(b"a"), acks=acks)
    assert row == refused(errors.INVALID_REQUIRED_ACKS, row)


def test_an_unknown_topic_is_refused(target: Target, version: int) -> None:
    named = {"topic_id": uuid.uuid4().bytes} if version >= BY_ID else {"name": "no-such-topic"}
    rows = [TopicProduceData(partition_data=[PartitionProduceData(index=0, records=batch(b"a"))], **named)]
    response = target.ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=rows), version)
    [row] = response.responses[0].partition_responses
    code = errors.UNKNOWN_TOPIC_ID if version >= BY_ID else errors.UNKNOWN_TOPIC_OR_PARTITION
    assert row == refused(code, row)
    assert row.log_start_offset == -1


def test_an_unknown_partition_is_refused(target: Target, topic: str, version: int) -> None:
    row = produce(target, topic, version, batch(b"a"), partition=5)
    assert row == refused(errors.UNKNOWN_TOPIC_OR_PARTITION, row)


def test_too_large_a_batch_is_refused(target: Target, version: int) -> None:
    topic = target.topic(max_message_bytes=200)
    row = produce(target, topic, version, batch(b"x" * 300))
    assert row == refused(errors.MESSAGE_TOO_LARGE, row)
    assert produce(target, topic, version, batch(b"x" * 100)).base_offset == 0


def test_a_damaged_batch_is_refused(target: Target, topic: str, version: int) -> None:
    damaged = bytearray(batch(b"value"))
    damaged[-2] ^= 1
    row = produce(target, topic, version, bytes(damaged))
    assert row == refused(errors.CORRUPT_MESSAGE, row)
    assert produce(target, topic, version, batch(b"a")).base_offset == 0


@pytest.mark.parametrize("records", [b"", batch(b"a") + batch(b"b")], ids=["none", "two"])
def test_a_partition_must_get_exactly_one_batch(
    target: Target, topic: str, version: int, records: bytes
) -> None:
    row = produce(target, topic, version, records)
    assert row == refused(errors.INVALID_RECORD, row)


def test_a_record_without_key_is_refused_by_a_compacted_topic(target: Target, version: int) -> None:
    topic = target.topic(cleanup_policy="compact")
    row = produce(target, topic, version, batch(b"a", b"b"))
    assert row == refused(errors.INVALID_RECORD, row)
    if version >= 8:
        assert [one.batch_index for one in row.record_errors] == [0, 1]
        assert row.error_message
    keyed = build_batch([NewRecord(key=b"k", value=b"v", timestamp=NOW_ISH)])
    assert produce(target, topic, version, keyed).error_code == errors.NONE


def test_log_append_time_is_reported(target: Target, version: int) -> None:
    topic = target.topic(message_timestamp_type="LogAppendTime")
    row = produce(target, topic, version, batch(b"a"))
    assert (row.error_code, row.base_offset) == (errors.NONE, 0)
    assert row.log_append_time_ms > NOW_ISH


def test_a_timestamp_too_far_away_is_refused(target: Target, version: int) -> None:
    name = "message_timestamp_before_max_ms" if target.since("4.0") else "message_timestamp_difference_max_ms"
    topic = target.topic(**{name: 60_000})
    row = produce(target, topic, version, batch(b"a"))
    assert row == refused(errors.INVALID_TIMESTAMP, row)


def test_batches_for_control_and_of_other_formats_are_refused(
    target: Target, topic: str, version: int
) -> None:
    marker = batch(b"a", is_control=True)
    row = produce(target, topic, version, marker)
    assert row == refused(errors.INVALID_RECORD, row)
    magic_1 = struct.pack(">qiIbbq", 0, 22, 0, 1, 0, 0) + struct.pack(">ii", -1, -1)
    row = produce(target, topic, version, magic_1)
    assert row.error_code in (errors.INVALID_RECORD, errors.UNSUPPORTED_FOR_MESSAGE_FORMAT)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD])
def test_every_codec_is_taken(target: Target, topic: str, version: int, codec: int) -> None:
    row = produce(target, topic, version, batch(b"a" * 100, b"b", compression=codec))
    if codec == Compression.ZSTD and version < 7:
        assert row == refused(errors.UNSUPPORTED_COMPRESSION_TYPE, row)
    else:
        assert (row.error_code, row.base_offset) == (errors.NONE, 0)


class Producer:
    """An idempotent producer: each batch says its place in the sequence."""

    def __init__(self, target: Target, topic: str, version: int) -> None:
        self.target, self.topic, self.version = target, topic, version
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        response = eventually(
            lambda: target.ask(request, 1), lambda response: response.error_code == errors.NONE
        )
        self.producer_id = response.producer_id

    def send(self, sequence: int, count: int = 1, epoch: int = 0) -> tuple[int, int]:
        """Error code and offset of one batch."""
        values = [b"%d" % number for number in range(count)]
        records = batch(*values, producer_id=self.producer_id, producer_epoch=epoch, base_sequence=sequence)
        row = produce(self.target, self.topic, self.version, records)
        return row.error_code, row.base_offset


def test_a_batch_sent_again_is_appended_once(target: Target, topic: str, version: int) -> None:
    producer = Producer(target, topic, version)
    assert producer.send(0, 2) == (errors.NONE, 0)
    assert producer.send(2) == (errors.NONE, 2)
    assert producer.send(0, 2) == (errors.NONE, 0)
    assert producer.send(2) == (errors.NONE, 2)
    assert producer.send(3) == (errors.NONE, 3)


def test_only_the_last_five_batches_are_remembered(target: Target, topic: str, version: int) -> None:
    producer = Producer(target, topic, version)
    for number in range(6):
        assert producer.send(number) == (errors.NONE, number)
    assert producer.send(1) == (errors.NONE, 1)
    code, _ = producer.send(0)
    assert code in (errors.DUPLICATE_SEQUENCE_NUMBER, errors.OUT_OF_ORDER_SEQUENCE_NUMBER)


def test_a_gap_in_the_sequence_is_refused(target: Target, topic: str, version: int) -> None:
    producer = Producer(target, topic, version)
    assert producer.send(0) == (errors.NONE, 0)
    assert producer.send(2) == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send(1) == (errors.NONE, 1)


def test_the_first_batch_of_a_producer_need_not_begin_at_0(target: Target, topic: str, version: int) -> None:
    assert Producer(target, topic, version).send(5) == (errors.NONE, 0)


def test_a_new_epoch_begins_at_0_and_fences_the_old_one(target: Target, topic: str, version: int) -> None:
    producer = Producer(target, topic, version)
    assert producer.send(0) == (errors.NONE, 0)
    assert producer.send(1, epoch=1) == (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert producer.send(0, epoch=1) == (errors.NONE, 1)
    assert producer.send(1, epoch=0) == (errors.INVALID_PRODUCER_EPOCH, -1)


def test_an_idempotent_producer_needs_all_acks(target: Target, topic: str, version: int) -> None:
    records = batch(b"a", producer_id=5000, producer_epoch=0, base_sequence=0)
    row = produce(target, topic, version, records, acks=1)
    assert row.error_code in (errors.NONE, errors.INVALID_REQUIRED_ACKS)
