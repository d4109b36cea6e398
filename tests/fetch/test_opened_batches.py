"""How much a poll may decompress: no further batch once those it opened take `buffer_memory_bytes`."""

from __future__ import annotations

import asyncio

import pytest

from kclient.fetch.delivery import PIECE_BYTES
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.call_counter import CallCounter
from tests.fetch.fetch_support import ON_1, P0, P1, P2, DeliveryPipeline

BUFFER = 10_000
MOST_CALLS = 175  # of functions, for one record


def packed(first: int, records: int = 2, size: int = 3_000) -> bytes:
    """A compressed batch of `records` values of `size` bytes."""
    values = [NewRecord(None, bytes(size))] * records
    return build_batch(values, base_offset=first, compression=Compression.ZSTD)


def open_bytes(pipeline: DeliveryPipeline, tp: TopicPartition) -> int:
    return pipeline.buffer.queue(tp)[0].open_bytes


def test_a_poll_ends_with_the_batch_that_reaches_the_limit_and_the_next_continues() -> None:
    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=BUFFER)
    pipeline.arrive(P0, b"".join(packed(first) for first in range(0, 10, 2)))
    assert pipeline.offsets() == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert pipeline.offsets() == [(0, 4), (0, 5), (0, 6), (0, 7)]
    assert pipeline.offsets() == [(0, 8), (0, 9)]


def test_the_limit_counts_over_partitions() -> None:
    pipeline = DeliveryPipeline(P0, P1, buffer_memory_bytes=BUFFER)
    pipeline.arrive(P0, packed(0, size=6_000))
    pipeline.arrive(P1, packed(0, size=6_000))
    assert pipeline.offsets() == [(0, 0), (0, 1)]
    assert pipeline.offsets() == [(1, 0), (1, 1)]


def test_a_batch_larger_than_the_limit_is_returned_alone_over_several_polls() -> None:
    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=BUFFER)
    pipeline.arrive(P0, packed(0, 6, size=5_000) + packed(6))
    assert [len(pipeline.offsets(4)) for _ in range(3)] == [4, 4, 0]


def test_batches_that_are_not_compressed_count_as_what_was_fetched_already() -> None:
    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=BUFFER)
    pipeline.arrive(
        P0, b"".join(build_batch([NewRecord(None, bytes(9_000))], base_offset=n) for n in range(5))
    )
    assert len(pipeline.offsets()) == 5


def test_a_deserializer_sees_every_record_once_and_in_order() -> None:
    seen: list[int] = []

    def note(topic: str, headers: object, data: bytes) -> int:
        seen.append(len(data))
        return len(data)

    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=BUFFER, value_deserializer=note)
    pipeline.arrive(P0, b"".join(packed(n, 1, size=6_000 + n) for n in range(5)))
    assert [len(pipeline.offsets()) for _ in range(3)] == [2, 2, 1]
    assert seen == [6_000, 6_001, 6_002, 6_003, 6_004]


@pytest.mark.parametrize("half_read", [[P0], [P0, P1]])
def test_paused_partitions_keep_no_decompressed_batches_beyond_the_limit(
    half_read: list[TopicPartition],
) -> None:
    pipeline = DeliveryPipeline(P0, P1, P2, buffer_memory_bytes=BUFFER)
    for tp in half_read:
        pipeline.arrive(tp, packed(0, 3))  # 9 kB
        assert pipeline.offsets(1) == [(tp.partition, 0)]
        pipeline.positions.pause(tp)
    pipeline.arrive(P2, packed(0))
    assert pipeline.offsets() == [(2, 0), (2, 1)]
    assert sum(open_bytes(pipeline, tp) for tp in half_read) <= BUFFER
    for tp in half_read:
        pipeline.positions.resume(tp)
    assert sorted(pipeline.offsets() + pipeline.offsets()) == [
        (tp.partition, n) for tp in half_read for n in (1, 2)
    ]


def test_a_seek_into_a_later_batch_opens_none_before_it() -> None:
    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=1_024)
    pipeline.positions.seek(P0, OffsetAndMetadata(8), ON_1)
    pipeline.arrive(P0, b"".join(packed(first) for first in range(0, 10, 2)))
    assert pipeline.offsets() == [(0, 8), (0, 9)]


def test_a_record_of_an_uncompressed_batch_pays_nothing_for_the_limit_on_decompressed_ones() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, build_batch([NewRecord(None, b"v")] * 10))
    pipeline.offsets(1)
    with CallCounter() as calls:
        pipeline.offsets(1)
    assert calls.count < MOST_CALLS


def test_reading_ahead_has_a_limit_of_its_own() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, b"".join(packed(first) for first in range(0, 10, 2)))
    task = pipeline.delivery.begin(500, ahead=True, max_unpacked_bytes=BUFFER)
    assert task is not None
    assert task.decode()
    assert len(pipeline.delivery.finish(task)) == 4


def test_a_slice_of_time_opens_no_more_than_a_piece_of_it() -> None:
    """An event loop must not wait until 500 large records are decompressed."""

    async def slices() -> list[int]:
        task = pipeline.delivery.begin(500)
        assert task is not None
        found = [0]
        while not task.decode(0.0):
            found.append(sum(len(decoded.chunk) for decoded in task.decoded))
        return found

    pipeline = DeliveryPipeline(P0, buffer_memory_bytes=20 * PIECE_BYTES)
    pipeline.arrive(P0, b"".join(packed(first, size=PIECE_BYTES // 4) for first in range(0, 12, 2)))
    assert asyncio.run(slices()) == [0, 4, 8]
