"""Errors at delivery: raised in order, once or until the user acts, and no collected record is lost."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.errors import (
    BatchTooLargeError,
    BrokerError,
    CorruptBatchError,
    DecodeError,
    TopicAuthorizationError,
)
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata
from tests.fetch.fetch_support import ON_1, P0, P1, P2, DeliveryPipeline, batch


def fails_on(*values: bytes) -> Any:
    def deserialize(topic: str, headers: Any, raw: bytes) -> str:
        if raw in values:
            raise ValueError("cannot be read")
        return raw.decode()

    return deserialize


def damaged(*offsets: int) -> bytes:
    whole = bytearray(batch(*offsets))
    whole[-1] ^= 0xFF
    return bytes(whole)


@pytest.mark.spec("U-03", "B.10.11", "S2-48", "D-23", "D-58")
def test_records_before_a_bad_one_are_returned_and_the_position_stays_on_it() -> None:
    pipeline = DeliveryPipeline(P0, value_deserializer=fails_on(b"v3"))
    pipeline.arrive(P0, batch(0, 1, 2, 3, 4))
    assert pipeline.offsets() == [(0, 0), (0, 1), (0, 2)]
    for _ in range(2):
        with pytest.raises(DecodeError) as caught:
            pipeline.poll()
        assert (caught.value.offset, caught.value.raw_value) == (3, b"v3")
        assert pipeline.offset(P0) == 3
    pipeline.positions.seek(P0, OffsetAndMetadata(4), ON_1)
    assert pipeline.poll() is None
    pipeline.arrive(P0, batch(0, 1, 2, 3, 4))
    assert pipeline.offsets() == [(0, 4)]


@pytest.mark.spec("B.10.11", "D-58")
def test_a_bad_record_waits_while_another_partition_has_records() -> None:
    pipeline = DeliveryPipeline(P0, P1, value_deserializer=fails_on(b"v0"))
    pipeline.arrive(P0, batch(1, 2), at=0)
    pipeline.arrive(P1, batch(0, 1))
    assert pipeline.offsets() == [(0, 1), (0, 2)]
    with pytest.raises(DecodeError):
        pipeline.poll()


@pytest.mark.spec("B.10.7", "B.10.11")
def test_decoding_stops_before_the_first_failure() -> None:
    pipeline = DeliveryPipeline(P0, P1, P2, value_deserializer=fails_on(b"v0"))
    pipeline.arrive(P0, batch(1), at=0)
    pipeline.arrive(P1, batch(0))
    pipeline.arrive(P2, batch(1), at=0)
    assert pipeline.offsets() == [(0, 1)]
    with pytest.raises(DecodeError):
        pipeline.poll()
    assert pipeline.offsets() == [(2, 1)]


@pytest.mark.spec("U-03", "B.10.11")
def test_a_bad_record_stops_no_other_partition() -> None:
    pipeline = DeliveryPipeline(P0, P1, P2, value_deserializer=fails_on(b"v0"))
    pipeline.arrive(P0, batch(0, 1))
    with pytest.raises(DecodeError):
        pipeline.poll()
    for tp in (P1, P2):
        pipeline.arrive(tp, batch(1, 2), at=0)
    assert pipeline.offsets() == [(1, 1), (1, 2), (2, 1), (2, 2)]
    with pytest.raises(DecodeError):
        pipeline.poll()


@pytest.mark.spec("H-11", "B.10.12")
def test_a_batch_that_was_damaged_on_the_way_is_fetched_again_without_an_error() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1) + damaged(2, 3))
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    assert pipeline.offsets() == []
    assert (pipeline.offset(P0), len(pipeline.buffer)) == (2, 0)
    pipeline.arrive(P0, batch(2, 3))
    assert pipeline.offsets() == [(0, 2), (0, 3)]


@pytest.mark.spec("H-11")
def test_a_poll_that_waits_comes_back_for_others_when_a_damaged_batch_is_fetched_again() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, damaged(0, 1))
    pipeline.arrive(P1, batch(0))
    seen = pipeline.buffer.changed.count
    assert pipeline.offsets(max_records=1) == []
    assert pipeline.buffer.changed.count > seen
    assert pipeline.offsets(max_records=1) == [(1, 0)]


@pytest.mark.spec("S2-48", "B.10.11", "B.10.12", "S2-06", "H-11")
def test_a_damaged_batch_is_reported_by_every_poll_until_a_seek() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1) + damaged(2, 3))
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    assert pipeline.offsets() == []
    pipeline.arrive(P0, damaged(2, 3))
    for _ in range(2):
        with pytest.raises(CorruptBatchError) as caught:
            pipeline.poll()
        assert (caught.value.base_offset, caught.value.next_offset) == (2, 4)
    assert pipeline.offset(P0) == 2
    assert pipeline.buffer.queue(P0)[0].is_blocked


@pytest.mark.spec("S2-06")
def test_without_check_crcs_a_wrong_crc_is_not_looked_at() -> None:
    pipeline = DeliveryPipeline(P0, check_crcs=False)
    whole = bytearray(batch(0, 1))
    whole[17] ^= 0xFF
    pipeline.arrive(P0, bytes(whole))
    assert pipeline.offsets() == [(0, 0), (0, 1)]


@pytest.mark.spec("S2-28", "B.10.8")
def test_bytes_without_one_whole_batch_are_reported() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1)[:-1])
    with pytest.raises(BatchTooLargeError, match="max_partition_fetch_bytes") as caught:
        pipeline.poll()
    assert (caught.value.topic, caught.value.partition, caught.value.base_offset) == ("orders", 0, 0)


@pytest.mark.spec("S2-33", "B.15.12", "S2-50", "U-07")
def test_refused_topics_are_reported_together_and_once() -> None:
    audit = P0._replace(topic="audit")
    pipeline = DeliveryPipeline(P0, P1, audit)
    for tp in (P0, P1, audit):
        pipeline.arrive(tp, error_code=29)
    with pytest.raises(TopicAuthorizationError) as caught:
        pipeline.poll()
    assert caught.value.topics == ("audit", "orders")
    assert pipeline.poll() is None
    assert len(pipeline.buffer) == 0


@pytest.mark.parametrize(
    ("code", "error"), [(2, CorruptBatchError), (76, BrokerError), (109, BrokerError), (999, BrokerError)]
)
@pytest.mark.spec("S2-35", "B.15.12", "B.10.17")
def test_other_errors_are_reported_once_with_their_place(code: int, error: type[Exception]) -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, error_code=code)
    with pytest.raises(error, match="orders-0"):
        pipeline.poll()
    assert pipeline.poll() is None
    assert pipeline.offset(P0) == 0


@pytest.mark.spec("D-58", "B.10.7", "S2-50")
def test_an_error_after_records_waits_for_the_next_poll() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P1, error_code=29)
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    with pytest.raises(TopicAuthorizationError):
        pipeline.poll()


@pytest.mark.spec("S2-30", "S2-31", "S2-50")
def test_out_of_range_at_the_position_is_passed_to_the_position_updater() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, error_code=1)
    assert pipeline.poll() is None
    assert list(pipeline.positions.take_out_of_range()) == [P0]
    assert not pipeline.positions.is_fetchable(P0)


@pytest.mark.spec("S2-30", "E7")
def test_out_of_range_of_an_older_offset_means_nothing() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.positions.seek(P0, OffsetAndMetadata(10**6), ON_1)
    pipeline.arrive(P0, at=10**6 - 1, error_code=1)
    assert pipeline.poll() is None
    assert not pipeline.positions.take_out_of_range()
    assert pipeline.positions.is_fetchable(P0)


@pytest.mark.spec("S2-30", "E7")
def test_offsets_are_compared_by_value() -> None:
    """Java compared boxed longs by identity once: equal only up to 127."""
    pipeline = DeliveryPipeline(P0)
    pipeline.positions.seek(P0, OffsetAndMetadata(10**6), ON_1)
    pipeline.arrive(P0, at=int("1000000"), error_code=1)
    assert pipeline.poll() is None
    assert list(pipeline.positions.take_out_of_range()) == [P0]


@pytest.mark.spec("S2-30", "S2-39")
def test_out_of_range_ahead_of_the_position_acts_when_the_data_before_it_are_gone() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P0, error_code=1)
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    assert not pipeline.positions.take_out_of_range()
    assert pipeline.poll() is None
    assert list(pipeline.positions.take_out_of_range()) == [P0]


@pytest.mark.parametrize("code", [1, 29])
@pytest.mark.spec("S2-52")
def test_the_error_of_a_revoked_partition_is_forgotten(code: int) -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, error_code=code)
    pipeline.positions.assign([P1])
    assert pipeline.poll() is None
    assert not pipeline.positions.take_out_of_range()


@pytest.mark.spec("S2-52")
def test_the_error_of_a_paused_partition_is_reported_as_usual() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, error_code=29)
    pipeline.positions.pause(P0)
    with pytest.raises(TopicAuthorizationError):
        pipeline.poll()


@pytest.mark.spec("A-13", "D-13")
def test_an_interrupt_in_a_deserializer_passes_through_and_loses_nothing() -> None:
    def interrupt(topic: str, headers: Any, raw: bytes) -> bytes:
        if armed and raw == b"v1":
            armed.pop()
            raise KeyboardInterrupt
        return raw

    armed = [True]
    pipeline = DeliveryPipeline(P0, value_deserializer=interrupt)
    pipeline.arrive(P0, batch(0, 1, 2))
    with pytest.raises(KeyboardInterrupt):
        pipeline.poll()
    assert pipeline.offset(P0) == 0
    assert pipeline.poll() is None
    pipeline.arrive(P0, batch(0, 1, 2))
    assert pipeline.offsets() == [(0, 0), (0, 1), (0, 2)]


def test_headers_keys_and_timestamps_arrive_with_the_record() -> None:
    pipeline = DeliveryPipeline(P0, key_deserializer=lambda topic, headers, raw: raw.decode())
    rows = [NewRecord(b"k", b"v", 123, [("h", None)])]
    pipeline.arrive(P0, build_batch(rows))
    (record,) = pipeline.poll() or ()
    assert (record.key, record.value, record.timestamp, record.headers) == ("k", b"v", 123, (("h", None),))


@pytest.mark.spec("B.10.7", "B.10.11", "D-58")
def test_a_broken_record_and_a_refused_topic_are_reported_in_turn_and_neither_is_forgotten() -> None:
    bad = [b"v0"]

    def deserialize(topic: str, headers: Any, raw: bytes) -> str:
        return str(fails_on(*bad)(topic, headers, raw))

    pipeline = DeliveryPipeline(P0, P1, value_deserializer=deserialize)
    pipeline.arrive(P0, batch(0))
    with pytest.raises(DecodeError):
        pipeline.poll()
    pipeline.arrive(P1, error_code=29)
    raised = []
    for _ in range(3):
        with pytest.raises((DecodeError, TopicAuthorizationError)) as caught:
            pipeline.poll()
        raised.append(caught.type)
    assert set(raised) == {DecodeError, TopicAuthorizationError}
    bad.clear()
    assert pipeline.offsets() == [(0, 0)]


def test_reading_ahead_ends_before_an_error_also_when_the_data_before_it_are_dropped() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P1, error_code=TOPIC_AUTHORIZATION_FAILED)
    pipeline.positions.seek(P0, OffsetAndMetadata(5), ON_1)
    assert pipeline.delivery.begin(500, ahead=True) is None
    with pytest.raises(TopicAuthorizationError):
        pipeline.poll()


def test_reading_ahead_leaves_a_bad_batch_to_a_poll() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, damaged(0, 1))
    assert not pipeline.poll()  # it is fetched once more
    pipeline.arrive(P0, damaged(0, 1))
    with pytest.raises(CorruptBatchError):
        pipeline.poll()
    assert pipeline.delivery.begin(500, ahead=True) is None
    with pytest.raises(CorruptBatchError):
        pipeline.poll()


def test_reading_ahead_neither_raises_nor_fetches_a_damaged_batch_again() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, damaged(0, 1))
    for _ in range(2):
        task = pipeline.delivery.begin(500, ahead=True)
        assert task is not None
        assert task.decode()
        assert not pipeline.delivery.finish(task).chunks
        assert P0 in pipeline.buffer.partitions()  # still there, for the poll that reaches it
    assert not pipeline.poll()  # it is fetched once more
    assert P0 not in pipeline.buffer.partitions()
