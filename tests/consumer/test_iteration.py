"""NativeIteration and PythonIteration: the same records and the same place in any loop, whatever was ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.consumer.iteration import Iteration, LastRecord, NativeIteration, PythonIteration, iteration
from kclient.records.decoder import PYTHON_DECODER
from kclient.records.reader import Chunk, PartitionReader
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition

KINDS = ["native", "python"]
FIRST_OFFSET = 10


def chunk(partition: int, batches: list[int], decoder: Any) -> Chunk:
    """One partition with so many records in each batch, from offset 10 on; each batch is a run."""
    data, offset = b"", FIRST_OFFSET
    for count in batches:
        data += build_batch([NewRecord(value=b"x")] * count, base_offset=offset, partition_leader_epoch=4)
        offset += count
    reader = PartitionReader("t", partition, data, FIRST_OFFSET, decoder=decoder)
    runs = [run for _ in batches for run in reader.take(max(batches)).runs]
    return Chunk(reader.partition, reader.next_offset, reader.leader_epoch, runs)


def decoder_of(kind: str) -> Any:
    if kind == "python":
        return PYTHON_DECODER
    native = pytest.importorskip("kclient.records.decoder_native", reason="the native decoder is not built")
    return native.NativeDecoder()


def iteration_of(kind: str, partitions: list[list[int]]) -> Iteration:
    chunks = [chunk(at, one, decoder_of(kind)) for at, one in enumerate(partitions)]
    return NativeIteration(chunks) if kind == "native" else PythonIteration(chunks)


def of(partition: int, offset: int) -> LastRecord:
    return LastRecord(TopicPartition("t", partition), offset, 4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_place_follows_the_loop_over_runs_and_chunks(kind: str) -> None:
    one = iteration_of(kind, [[2, 1], [2]])
    records = iter(one)
    places = [one.place()]
    for _ in range(5):
        next(records)
        places.append(one.place())
    assert places == [
        (0, None),
        (0, of(0, 10)),
        (0, of(0, 11)),
        (0, of(0, 12)),
        (1, of(1, 10)),
        (1, of(1, 11)),
    ]
    assert next(records, None) is None
    assert one.place() == (2, None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_chunk_that_is_ended_while_it_is_handed_out_keeps_its_last_record_as_the_place(kind: str) -> None:
    one = iteration_of(kind, [[3, 3], [1], [1]])
    records = iter(one)
    next(records)
    one.end(0)
    one.end(1)
    assert one.place() == (0, of(0, 10))
    assert next(records).partition == 2
    assert one.place() == (2, of(2, 10))


@settings(max_examples=200)
@given(st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=1, max_size=3), st.data())
def test_both_hand_out_the_same_and_have_the_same_place(
    partitions: list[list[int]], data: st.DataObject
) -> None:
    """Also with two loops in turns, and chunks that are ended before, inside and after their records."""
    both = [iteration_of(kind, partitions) for kind in KINDS]
    loops = [[iter(one), iter(one)] for one in both]
    for _ in range(data.draw(st.integers(1, 30))):
        action = data.draw(st.sampled_from(["next", "next", "next", "new loop", "end"]))
        which = data.draw(st.integers(0, 1))
        if action == "next":
            seen = [taken(each[which]) for each in loops]
            assert seen[0] == seen[1]
        elif action == "new loop":
            for one, each in zip(both, loops, strict=True):
                each[which] = iter(one)
        else:
            index = data.draw(st.integers(0, len(partitions) - 1))
            for one in both:
                one.end(index)
        assert both[0].place() == both[1].place()


def taken(records: Iterator[Any]) -> tuple[int, int] | None:
    record = next(records, None)
    return None if record is None else (record.partition, record.offset)


def test_lists_of_numbers_are_handed_out_by_python() -> None:
    mixed = [chunk(0, [1], decoder_of("native")), chunk(1, [1], PYTHON_DECODER)]
    assert isinstance(iteration(mixed[:1]), NativeIteration)
    assert isinstance(iteration(mixed), PythonIteration)
