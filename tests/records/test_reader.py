"""A fetched partition taken in pieces: positions, transactions, faults, deserializers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from kclient.embedded.old_formats import message
from kclient.errors import BatchTooLargeError, CorruptBatchError, DecodeError, TooManyHeadersError
from kclient.records.compression import Compression, compress
from kclient.records.headers import Headers
from kclient.records.reader import STALE, PartitionReader
from kclient.records.records import Records
from kclient.records.writer import NewRecord, build_batch, build_marker
from kclient.types import IsolationLevel
from tests.records.support import records_of, take_all


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int


def plain(base_offset: int, count: int, **options: Any) -> bytes:
    values = [NewRecord(value=b"%d" % (base_offset + n)) for n in range(count)]
    return build_batch(values, base_offset=base_offset, **options)


def transactional(base_offset: int, count: int, producer_id: int, **options: Any) -> bytes:
    return plain(
        base_offset,
        count,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        **{"is_transactional": True} | options,
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return build_marker(commit=commit, offset=offset, producer_id=producer_id, producer_epoch=0)


def offsets(data: bytes, fetch_offset: int = 0, **options: Any) -> list[int]:
    return [record.offset for record in records_of(data, fetch_offset, **options)]


def committed(data: bytes, *aborted: Aborted, fetch_offset: int = 0) -> list[int]:
    return offsets(
        data, fetch_offset, isolation_level=IsolationLevel.READ_COMMITTED, aborted_transactions=aborted
    )


# --- positions


@pytest.mark.spec("S2-26", "D-32", "B.11.7")
@pytest.mark.parametrize("compression", range(5))
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_records_below_the_position_are_dropped(compression: int, at_once: int) -> None:
    data = plain(0, 10, compression=compression) + plain(10, 5)
    assert offsets(data, 7, at_once=at_once) == list(range(7, 15))


@pytest.mark.spec("S2-39", "S2-49", "B.10.7")
def test_a_gap_between_two_pieces_loses_nothing() -> None:
    reader = PartitionReader("t", 0, build_batch([NewRecord(offset=n) for n in (0, 1, 5, 6)]), 0)
    first, second = reader.take(2), reader.take(2)
    assert [list(run.offsets) for run in first.runs + second.runs] == [[0, 1], [5, 6]]
    assert (first.next_offset, second.next_offset) == (2, 7)
    assert reader.exhausted


@pytest.mark.spec("B.10.10", "D-50")
def test_the_position_ends_after_the_batch_not_after_its_last_record() -> None:
    reader = PartitionReader("t", 0, build_batch([NewRecord(offset=7)], last_offset=9), 0)
    assert reader.take(1).next_offset == 10


@pytest.mark.spec("B.10.9", "B.12", "D-51")
def test_control_and_empty_batches_move_the_position_without_records() -> None:
    data = build_batch([], base_offset=3, last_offset=8) + marker(9, 1, commit=True)
    chunk = PartitionReader("t", 0, data, 3).take(500)
    assert (len(chunk), chunk.next_offset) == (0, 10)


@pytest.mark.spec("B.11.7", "D-33")
def test_the_epoch_is_that_of_the_last_batch_entered_even_a_control_batch() -> None:
    control = build_marker(commit=True, offset=2, producer_id=1, producer_epoch=0, partition_leader_epoch=4)
    reader = PartitionReader("t", 0, plain(0, 2, partition_leader_epoch=3) + control, 0)
    assert [reader.take(1).leader_epoch, reader.take(1).leader_epoch, reader.take(1).leader_epoch] == [
        3,
        3,
        4,
    ]
    assert reader.exhausted


@pytest.mark.spec("B.11.7")
def test_an_epoch_of_minus_one_is_none() -> None:
    assert PartitionReader("t", 0, plain(0, 1), 0).take(1).leader_epoch is None


@pytest.mark.spec("B.11.2", "H-10")
@pytest.mark.parametrize("kept", [0, 1, 11, 12, 16, 17, 60, 61, 68])
def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch(kept: int) -> None:
    reader = PartitionReader("t", 0, plain(0, 3) + plain(3, 1)[:kept], 0)
    assert len(reader.take(500)) == 3
    assert (reader.next_offset, reader.exhausted) == (3, True)


@pytest.mark.spec("B.10.8")
@pytest.mark.parametrize("kept", [1, 12, 40, 70])
def test_a_fetch_without_one_whole_batch_says_which_limit_to_raise(kept: int) -> None:
    reader = PartitionReader("t", 5, plain(9, 3)[:kept], 9)
    for _ in range(2):
        with pytest.raises(BatchTooLargeError, match="max_partition_fetch_bytes") as caught:
            reader.take(500)
        assert (caught.value.partition, caught.value.base_offset, caught.value.limit) == (5, 9, kept)


@pytest.mark.spec("SP-62")
def test_a_range_of_offsets_is_cut_at_its_end() -> None:
    reader = PartitionReader("t", 0, plain(0, 4, compression=1) + plain(4, 4), 2, value_deserializer=text)
    chunk = reader.take(500)
    chunk.cut_at(5)
    assert [(r.offset, r.value) for r in Records[None, str]([chunk])] == [(2, "2"), (3, "3"), (4, "4")]
    assert (len(chunk), chunk.next_offset) == (3, 8)
    chunk.cut_at(0)
    assert len(chunk) == 0


def test_an_empty_fetch_is_exhausted_at_once() -> None:
    assert PartitionReader("t", 0, b"", 4).exhausted


def test_records_own_their_bytes_and_the_frame_may_be_reused() -> None:
    frame = bytearray(plain(0, 2))
    reader = PartitionReader("t", 0, memoryview(frame), 0)
    frame[:] = bytes(len(frame))
    assert [record.value for record in Records[None, bytes]([reader.take(5)])] == [b"0", b"1"]


# --- transactions


@pytest.mark.spec("B.12", "D-51")
def test_aborted_data_are_hidden_and_the_position_moves_past_them() -> None:
    data = transactional(0, 3, 7) + marker(3, 7, commit=False)
    reader = PartitionReader(
        "t", 0, data, 0, isolation_level=IsolationLevel.READ_COMMITTED, aborted_transactions=[Aborted(7, 0)]
    )
    chunk = reader.take(500)
    assert (len(chunk), chunk.next_offset, reader.exhausted) == (0, 4, True)


@pytest.mark.spec("B.12")
def test_read_uncommitted_returns_aborted_data_but_no_markers() -> None:
    assert offsets(transactional(0, 3, 7) + marker(3, 7, commit=False)) == [0, 1, 2]


@pytest.mark.spec("B.12", "D-52", "H-17")
def test_an_abort_marker_without_a_transaction_is_legal() -> None:
    assert committed(marker(0, 7, commit=False) + transactional(1, 1, 7) + marker(2, 7, commit=True)) == [1]


@pytest.mark.spec("B.12", "D-52")
def test_a_producer_aborts_commits_and_aborts_again() -> None:
    data = (
        transactional(0, 2, 7)
        + marker(2, 7, commit=False)
        + transactional(3, 2, 7)
        + marker(5, 7, commit=True)
        + transactional(6, 2, 7)
        + marker(8, 7, commit=False)
    )
    assert committed(data, Aborted(7, 6), Aborted(7, 0)) == [3, 4]


@pytest.mark.spec("B.12", "D-52")
def test_an_empty_control_batch_ends_no_transaction() -> None:
    emptied = build_batch(
        [], base_offset=1, producer_id=7, producer_epoch=0, is_control=True, is_transactional=True
    )
    data = transactional(0, 1, 7) + emptied + transactional(2, 1, 7) + marker(3, 7, commit=False)
    assert committed(data, Aborted(7, 0)) == []


@pytest.mark.spec("B.12", "D-52")
def test_a_commit_marker_ends_no_aborted_transaction() -> None:
    data = transactional(0, 1, 7) + marker(1, 7, commit=True) + transactional(2, 1, 7)
    assert committed(data, Aborted(7, 0)) == []


@pytest.mark.spec("B.12")
def test_idempotent_batches_and_other_producers_are_returned() -> None:
    data = (
        transactional(0, 1, 7)
        + transactional(1, 1, 7, is_transactional=False)
        + transactional(2, 1, 8)
        + plain(3, 1)
    )
    assert committed(data, Aborted(7, 0)) == [1, 2, 3]


@pytest.mark.spec("H-17")
@pytest.mark.parametrize("key", [None, b"", b"\0\0\0"])
def test_a_marker_without_a_type_is_corrupt(key: bytes | None) -> None:
    data = build_batch(
        [NewRecord(key)], producer_id=7, producer_epoch=0, is_control=True, is_transactional=True
    )
    with pytest.raises(CorruptBatchError, match="marker"):
        committed(data)


@pytest.mark.spec("B.11.3", "H-17")
def test_a_marker_of_an_unknown_type_changes_nothing() -> None:
    unknown = build_batch(
        [NewRecord(b"\0\0\0\5"), NewRecord(b"")],
        base_offset=1,
        producer_id=7,
        producer_epoch=0,
        is_control=True,
    )
    assert committed(transactional(0, 1, 7) + unknown + transactional(3, 1, 7), Aborted(7, 0)) == []


# --- faults


def with_wrong_crc(batch: bytes) -> bytes:
    """The last value changed: the structure is sound, the CRC is not."""
    return batch[:-2] + bytes((batch[-2] ^ 1,)) + batch[-1:]


@pytest.mark.spec("B.10.11", "B.11.7", "D-58")
def test_what_is_sound_comes_first_then_the_fault_is_raised_every_time() -> None:
    reader = PartitionReader("t", 3, plain(0, 2) + with_wrong_crc(plain(2, 4)) + plain(6, 1), 0)
    assert len(reader.take(500)) == 2
    for _ in range(3):
        with pytest.raises(CorruptBatchError) as caught:
            reader.take(500)
        error = caught.value
        assert (error.topic, error.partition, error.base_offset, error.next_offset) == ("t", 3, 2, 6)
        assert "t-3" in str(error)
        assert "seek to offset 6" in str(error)
    assert (reader.next_offset, reader.exhausted) == (2, False)
    assert offsets(plain(6, 1), 6) == [6]


@pytest.mark.spec("B.10.12")
def test_without_check_crcs_a_wrong_crc_is_not_looked_at() -> None:
    assert offsets(with_wrong_crc(plain(0, 3)), check_crcs=False) == [0, 1, 2]


def old_message(offset: int, magic: int) -> bytes:
    return message(offset, magic, 0, 7, None, b"number %d" % offset)


@pytest.mark.spec("B.10.12", "B.11.4")
@pytest.mark.parametrize("magic", [0, 1])
def test_a_damaged_old_message_before_the_fetch_offset_is_dropped_as_the_others_there_are(magic: int) -> None:
    """As in Java, which checks a message of format 0 or 1 only if it hands it out."""
    data = b"".join(
        [
            old_message(3, magic),
            with_wrong_crc(old_message(4, magic)),
            with_wrong_crc(old_message(5, magic)),
            old_message(6, magic),
            old_message(7, magic),
        ]
    )
    assert offsets(data, 6) == [6, 7]
    assert offsets(data, 7) == [7]
    with pytest.raises(CorruptBatchError) as refused:
        offsets(data, 5)
    assert (refused.value.base_offset, refused.value.next_offset) == (5, 6)
    assert "seek to offset 6" in str(refused.value)


@pytest.mark.spec("B.10.12", "B.11.4")
@pytest.mark.parametrize("magic", [0, 1])
def test_a_damaged_message_in_a_wrapper_counts_from_the_fetch_offset_on(magic: int) -> None:
    first = 0 if magic == 0 else 3
    inner = [old_message(offset - first, magic) for offset in range(3, 7)]
    inner[1] = with_wrong_crc(inner[1])
    wrapper = message(6, magic, Compression.GZIP, 7, None, compress(Compression.GZIP, b"".join(inner)))
    assert offsets(wrapper, 5) == [5, 6]
    assert offsets(with_wrong_crc(wrapper) + old_message(7, magic), 7) == [7]
    for fetch_offset in (3, 4):
        with pytest.raises(CorruptBatchError, match="a message within it has a wrong CRC"):
            offsets(wrapper, fetch_offset)


@pytest.mark.spec("B.11.4")
def test_a_wrapper_that_does_not_say_its_offset_is_opened_whatever_the_fetch_offset() -> None:
    """Old producers left it at 0."""
    packed = compress(Compression.GZIP, b"".join(old_message(offset, 1) for offset in range(4)))
    assert offsets(message(0, 1, Compression.GZIP, 7, None, packed), 2) == [2, 3]


@pytest.mark.spec("H-27")
def test_one_call_does_a_bounded_amount_of_work() -> None:
    data = b"".join(build_batch([], base_offset=offset) for offset in range(1000))
    reader = PartitionReader("t", 0, data, 0)
    calls = len(take_all(reader, 500))
    assert calls == 5
    assert reader.next_offset == 1000


# --- deserializers


def text(topic: str, headers: Headers, data: bytes) -> str:
    return data.decode()


@pytest.mark.spec("B.11.6", "D-79", "S2-48")
def test_null_is_not_deserialized_and_empty_is() -> None:
    seen: list[tuple[str, Headers, bytes]] = []

    def note(topic: str, headers: Headers, data: bytes) -> str:
        seen.append((topic, headers, data))
        return f"<{data.decode()}>"

    data = build_batch([NewRecord(None, b""), NewRecord(b"k", None, headers=[("h", None)])])
    records = records_of(data, key_deserializer=note, value_deserializer=note)
    assert [(record.key, record.value) for record in records] == [(None, "<>"), ("<k>", None)]
    assert [(record.serialized_key_size, record.serialized_value_size) for record in records] == [
        (-1, 0),
        (1, -1),
    ]
    assert seen == [("t", (), b""), ("t", (("h", None),), b"k")]


@pytest.mark.spec("B.10.11", "B.11.7", "D-23", "S2-48")
def test_a_failing_deserializer_keeps_the_position_and_is_tried_again() -> None:
    broken = True

    def fails_on_two(topic: str, headers: Headers, data: bytes) -> str:
        if broken and data == b"2":
            raise ValueError("no")
        return data.decode()

    rows = [NewRecord(b"k", b"%d" % n, 1000 + n, [("h", b"x")]) for n in range(5)]
    reader = PartitionReader("t", 1, build_batch(rows) + plain(5, 2), 0, value_deserializer=fails_on_two)
    assert [record.value for record in Records[bytes, str]([reader.take(500)])] == ["0", "1"]
    for _ in range(2):
        assert reader.next_offset == 2
        with pytest.raises(DecodeError, match="offset 2 of t-1") as caught:
            reader.take(500)
        error = caught.value
        assert (error.topic, error.partition, error.offset, error.timestamp) == ("t", 1, 2, 1002)
        assert (error.raw_key, error.raw_value, error.headers) == (b"k", b"2", (("h", b"x"),))
        assert error.part == "value"
        assert isinstance(error.__cause__, ValueError)
    broken = False
    chunks = [reader.take(1), reader.take(500)]
    assert [record.value for record in Records[bytes, str](chunks)] == ["2", "3", "4", "5", "6"]
    assert (reader.next_offset, reader.exhausted) == (7, True)


@pytest.mark.spec("B.10.11", "D-32")
def test_the_user_may_seek_past_the_record_that_fails() -> None:
    data = plain(0, 2) + build_batch([NewRecord(value=b"\xff"), NewRecord(value=b"3")], base_offset=2)
    with pytest.raises(DecodeError):
        records_of(data, 2, value_deserializer=text)
    assert [record.value for record in records_of(data, 3, value_deserializer=text)] == ["3"]


@pytest.mark.spec("B.10.11")
def test_a_fault_after_a_failing_record_waits_for_it() -> None:
    data = build_batch([NewRecord(value=b"\xff")]) + with_wrong_crc(plain(1, 1))
    reader = PartitionReader("t", 0, data, 0, value_deserializer=text)
    with pytest.raises(DecodeError):
        reader.take(5)


@pytest.mark.spec("D-77")
def test_an_interrupt_in_a_deserializer_makes_the_reader_stale() -> None:
    def interrupted(topic: str, headers: Headers, data: bytes) -> str:
        raise KeyboardInterrupt

    reader = PartitionReader("t", 0, plain(0, 2), 0, value_deserializer=interrupted)
    with pytest.raises(KeyboardInterrupt):
        reader.take(5)
    assert reader.next_offset == STALE


@pytest.mark.spec("B.10.11", "H-26")
def test_a_record_with_more_headers_than_the_limit_is_refused_after_those_before_it() -> None:
    headers = [("name", b"value"), ("name", None), ("", b"")]
    sound, bad = NewRecord(value=b"sound", headers=headers[:2]), NewRecord(value=b"bad", headers=headers)
    reader = PartitionReader("t", 7, build_batch([sound, bad], base_offset=40), 40, max_headers_per_record=2)
    assert [record.headers for record in Records([reader.take(10)])] == [tuple(headers[:2])]
    with pytest.raises(
        TooManyHeadersError, match=r"offset 41 has 3 headers, more than 2.*seek to offset 42"
    ) as caught:
        reader.take(10)
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.next_offset) == ("t", 7, 41, 42)
    assert (error.count, error.limit) == (3, 2)
