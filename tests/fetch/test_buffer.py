"""The buffer: its line of partitions, and its count of bytes."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kclient.fetch.buffer import (
    SMALLEST_FETCH_BYTES,
    CompletedFetch,
    FetchBuffer,
    MemoryBudget,
    ResponseMemory,
    end_of,
)
from kclient.types import TopicPartition
from tests.fetch.fetch_support import P0, P1, P2, batch
from tests.positions.fake_cluster import config


def fetch(tp: TopicPartition, frame: ResponseMemory) -> CompletedFetch:
    return CompletedFetch(tp, 1, 0, frame)


@pytest.mark.spec("S2-07")
def test_a_frame_counts_until_the_last_partition_that_came_with_it_is_drained() -> None:
    buffer, frame = FetchBuffer(), ResponseMemory(1000)
    both = [fetch(P0, frame), fetch(P1, frame)]
    buffer.add(both)
    assert buffer.bytes_used == 1000
    buffer.remove_head(both[0])
    assert buffer.bytes_used == 1000
    buffer.drop([P1])
    assert buffer.bytes_used == 0
    assert len(buffer) == 0


@pytest.mark.spec("D-60")
def test_a_partition_that_was_dropped_and_filled_again_is_queued_once() -> None:
    buffer = FetchBuffer()
    buffer.add([fetch(P0, ResponseMemory(1))])
    buffer.drop([P0])
    buffer.add([fetch(P0, ResponseMemory(1))])
    assert buffer.take_ready() is not None
    assert buffer.take_ready() is None


operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "take", "front", "behind", "park", "unpark", "drop", "remove"]),
        st.integers(0, 2),
    ),
    max_size=40,
)


@given(operations)
@settings(max_examples=200, deadline=None)
@pytest.mark.spec("D-60")
def test_any_order_of_calls_keeps_bytes_and_line_right(steps: list[tuple[str, int]]) -> None:
    buffer, partitions, taken = FetchBuffer(), (P0, P1, P2), dict[TopicPartition, CompletedFetch]()
    for step, index in steps:
        tp = partitions[index]
        if step == "add":
            frame = ResponseMemory(10)
            buffer.add([fetch(tp, frame), fetch(partitions[index - 1], frame)])
        elif step == "take" and (head := buffer.take_ready()) is not None:
            assert head.tp not in taken
            taken[head.tp] = head
        elif step in ("front", "behind") and taken.pop(tp, None):
            buffer.put_back(tp, in_front=step == "front")
        elif step == "park" and taken.pop(tp, None):
            buffer.park(tp)
        elif step == "unpark":
            buffer.unpark()
        elif step == "drop":
            buffer.drop([tp])
            taken.pop(tp, None)
        elif step == "remove" and (head := taken.pop(tp, None)):
            buffer.remove_head(head)
            buffer.put_back(tp, in_front=False)
    frames = {id(f.memory): f.memory.size_bytes for tp in buffer.partitions() for f in buffer.queue(tp)}
    assert buffer.bytes_used == sum(frames.values())
    for tp in list(taken):
        buffer.put_back(tp, in_front=True)
    buffer.unpark()
    line = []
    while (head := buffer.take_ready()) is not None:
        line.append(head.tp)
    assert sorted(line) == sorted(buffer.partitions())


@pytest.mark.spec("B.10.10")
def test_the_end_of_a_chunk_is_read_off_its_last_whole_batch() -> None:
    two = batch(0, 1) + batch(2, 3, last_offset=9)
    assert end_of(memoryview(two)) == 10
    assert end_of(memoryview(two + batch(10, 11)[:-1])) == 10
    assert end_of(memoryview(two + batch(10, 11)[:5])) == 10
    assert end_of(memoryview(batch(0, 1)[:-1])) is None


def test_the_end_of_formats_0_and_1_and_of_broken_bytes_is_left_to_decoding() -> None:
    old = bytearray(batch(0, 1))
    old[16] = 1
    assert end_of(memoryview(bytes(old))) is None
    broken = bytearray(batch(0, 1))
    broken[0] = 0x80
    assert end_of(memoryview(bytes(broken))) is None
    assert end_of(memoryview(b"\xff" * 40)) is None


def budget(**keys: int) -> tuple[MemoryBudget, FetchBuffer]:
    buffer = FetchBuffer()
    return MemoryBudget(buffer, config(**keys)), buffer


@pytest.mark.spec("S2-11")
def test_requests_share_one_budget_with_what_is_buffered() -> None:
    one, buffer = budget(buffer_memory_bytes=10_000_000)
    assert one.grant(partitions=3, nodes=2) == 3 * 1_048_576
    assert one.grant(partitions=30, nodes=2) == 5_000_000
    one.reserve(5_000_000)
    buffer.add([fetch(P0, ResponseMemory(4_000_000))])
    assert one.grant(partitions=30, nodes=2) == 1_000_000
    one.release(5_000_000)
    one.reserve(6_000_000 - SMALLEST_FETCH_BYTES + 1)
    assert one.grant(partitions=30, nodes=2) is None


@pytest.mark.spec("S2-11")
def test_with_nothing_in_memory_there_is_always_a_request_however_small_the_budget() -> None:
    one, _ = budget(buffer_memory_bytes=10)
    assert one.grant(partitions=3, nodes=2) == 5


@pytest.mark.spec("S2-11")
def test_a_node_gets_its_share_beside_the_reservation_of_another() -> None:
    one, _ = budget(buffer_memory_bytes=2_000)
    one.reserve(one.grant(partitions=3, nodes=2) or 0)
    assert one.grant(partitions=3, nodes=2) == 1_000
