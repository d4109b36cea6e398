"""Handing out: how many, in which order, from where, and what moves the position."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kclient.generated.fetch_response import AbortedTransaction
from kclient.records.writer import build_batch, build_marker
from kclient.types import LeaderAndEpoch, OffsetAndMetadata
from tests.fetch.fetch_support import ON_1, P0, P1, P2, DeliveryPipeline, batch


@pytest.mark.spec("S2-05", "S2-20", "S2-22")
def test_a_fetch_of_1000_is_returned_in_polls_of_300() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(*range(1000)))
    assert [len(pipeline.offsets(300)) for _ in range(4)] == [300, 300, 300, 100]
    assert pipeline.offset(P0) == 1000
    assert pipeline.poll() is None


@pytest.mark.spec("S2-20", "S2-23", "B.10.7")
def test_the_limit_counts_over_partitions_and_each_partition_is_in_offset_order() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(0, 1, 2))
    pipeline.arrive(P1, batch(0, 1, 2))
    assert pipeline.offsets(4) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert pipeline.offsets(4) == [(1, 1), (1, 2)]


@pytest.mark.spec("S2-39", "S2-41", "D-22")
def test_the_position_moves_only_when_records_are_returned() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1, 2))
    task = pipeline.delivery.begin(2)
    assert task is not None
    task.decode()
    assert pipeline.offset(P0) == 0
    pipeline.delivery.finish(task)
    assert pipeline.offset(P0) == 2


@pytest.mark.spec("S2-26", "D-32")
def test_records_below_the_position_are_skipped() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.positions.seek(P0, OffsetAndMetadata(3), ON_1)
    pipeline.arrive(P0, batch(0, 1, 2, 3, 4))
    assert pipeline.offsets() == [(0, 3), (0, 4)]


@pytest.mark.spec("S2-49")
def test_a_hole_between_two_parts_costs_no_second_fetch() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1, 5, 6))
    assert pipeline.offsets(2) == [(0, 0), (0, 1)]
    assert pipeline.offsets(2) == [(0, 5), (0, 6)]


@pytest.mark.spec("S2-39", "S2-49")
def test_a_hole_between_two_records_of_one_part_counts_in_the_position() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 5, 6, 7))
    assert pipeline.offsets(2) == [(0, 0), (0, 5)]
    assert pipeline.offset(P0) == 6
    assert pipeline.offsets(2) == [(0, 6), (0, 7)]


@pytest.mark.spec("B.10.10", "D-50")
def test_after_a_compacted_batch_the_position_is_after_the_batch() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 7, last_offset=9))
    assert pipeline.buffer.queue(P0)[0].end_offset == 10
    assert pipeline.offsets() == [(0, 0), (0, 7)]
    assert pipeline.offset(P0) == 10


@pytest.mark.spec("B.10.9", "S2-41", "E8")
def test_an_empty_batch_moves_the_position_and_ends_the_poll_without_records() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, build_batch([], base_offset=0, last_offset=9, partition_leader_epoch=4))
    records = pipeline.poll()
    assert records is not None
    assert len(records) == 0
    assert records.next_offsets() == {P0: OffsetAndMetadata(10, 4)}
    assert pipeline.offset(P0) == 10


@pytest.mark.spec("S2-36")
def test_an_entry_without_bytes_gives_no_records_and_is_used_up() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0)
    records = pipeline.poll()
    assert records is None or (len(records), records.next_offsets()) == (0, {})
    assert pipeline.offset(P0) == 0
    assert len(pipeline.buffer) == 0
    pipeline.arrive(P0, batch(0))
    assert pipeline.offsets() == [(0, 0)]


@pytest.mark.spec("B.12", "D-51")
def test_aborted_data_alone_moves_the_position() -> None:
    pipeline = DeliveryPipeline(P0, isolation_level="read_committed")
    aborted = batch(0, 1, producer_id=7, producer_epoch=0, is_transactional=True)
    marker = build_marker(commit=False, offset=2, producer_id=7, producer_epoch=0)
    pipeline.arrive(P0, aborted + marker, aborted=[AbortedTransaction(producer_id=7, first_offset=0)])
    records = pipeline.poll()
    assert records is not None
    assert len(records) == 0
    assert pipeline.offset(P0) == 3


@pytest.mark.spec("D-33", "B.9")
def test_the_committed_epoch_is_that_of_the_last_batch() -> None:
    pipeline = DeliveryPipeline(P0)
    marker = build_marker(commit=True, offset=2, producer_id=7, producer_epoch=0, partition_leader_epoch=4)
    pipeline.arrive(P0, batch(0, 1, epoch=3) + marker)
    pipeline.poll()
    assert pipeline.positions.all_consumed() == {P0: OffsetAndMetadata(3, 4)}


MOVES: dict[str, Callable[[DeliveryPipeline], None]] = {
    "seek": lambda pipeline: pipeline.positions.seek(P0, OffsetAndMetadata(40), ON_1),
    "seek to where it is": lambda pipeline: pipeline.positions.seek(P0, OffsetAndMetadata(0), ON_1),
    "revoked and back": lambda pipeline: (
        pipeline.positions.assign([]),
        pipeline.positions.assign([P0]),
        pipeline.positions.seek(P0, OffsetAndMetadata(0), ON_1),
    ),  # type: ignore[dict-item,return-value]
    "revoked": lambda pipeline: pipeline.positions.assign([]),
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("moment", ["buffered", "half handed out", "while decoding"])
@pytest.mark.spec("S2-25", "S2-37", "S2-40", "D-28", "D-31", "D-60")
def test_what_was_fetched_before_a_move_is_never_returned(
    move: Callable[[DeliveryPipeline], None], moment: str
) -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1, 2, 3))
    if moment == "half handed out":
        assert pipeline.offsets(2) == [(0, 0), (0, 1)]
    task = pipeline.delivery.begin(1) if moment == "while decoding" else None
    move(pipeline)
    if task is not None:
        task.decode()
        assert len(pipeline.delivery.finish(task)) == 0
    assert pipeline.poll() is None
    assert pipeline.buffer.bytes_used == 0
    assert pipeline.offset(P0) in (40, 0, None) if P0 in pipeline.positions else True


@pytest.mark.spec("D-43", "S0-18", "B.6.3")
def test_nothing_fetched_before_a_validation_is_returned_during_or_after_it() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.positions.advance(P0, 0, 4)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.positions.follow_leader(P0, LeaderAndEpoch(2, 6), can_validate=True)
    assert pipeline.poll() is None
    pipeline.positions.complete_validation(P0)
    assert pipeline.poll() is None
    assert pipeline.offset(P0) == 0


@pytest.mark.spec("S2-24", "S2-38", "B.10.7", "D-22")
def test_a_paused_partition_keeps_its_data_and_the_others_continue() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(*range(200)))
    assert len(pipeline.offsets(50)) == 50
    pipeline.positions.pause(P0)
    pipeline.arrive(P1, batch(0, 1))
    assert pipeline.offsets() == [(1, 0), (1, 1)]
    assert pipeline.poll() is None
    assert pipeline.positions.all_consumed()[P0].offset == 50
    pipeline.positions.resume(P0)
    assert [offset for _, offset in pipeline.offsets()] == list(range(50, 200))


@pytest.mark.spec("B.10.7", "D-22")
def test_a_pause_while_decoding_returns_nothing() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    task = pipeline.delivery.begin(500)
    assert task is not None
    task.decode()
    pipeline.positions.pause(P0)
    assert len(pipeline.delivery.finish(task)) == 0
    assert pipeline.offset(P0) == 0


@pytest.mark.spec("B.6.3", "D-60")
def test_a_partition_that_is_being_revoked_returns_no_records() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.positions.mark_pending_revocation([P0])
    assert pipeline.poll() is None
    pipeline.positions.assign([P0])
    assert pipeline.offsets() == [(0, 0), (0, 1)]


@pytest.mark.spec("S2-21", "B.10.5", "D-59")
def test_a_partition_that_never_ends_lets_the_others_have_their_turn() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(*range(4)))
    pipeline.arrive(P0, batch(*range(4, 8)))
    pipeline.arrive(P1, batch(0))
    turns = [pipeline.offsets(4)[0][0] for _ in range(3)]
    assert turns == [0, 1, 0]


@pytest.mark.spec("S2-40")
def test_a_gap_in_what_was_fetched_is_dropped_instead_of_skipped() -> None:
    pipeline = DeliveryPipeline(P0)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P0, batch(5, 6), at=5)
    assert pipeline.offsets(2) == [(0, 0), (0, 1)]
    assert pipeline.poll() is None
    assert pipeline.offset(P0) == 2


@pytest.mark.spec("D-60", "A-13")
def test_a_poll_that_was_cancelled_while_decoding_loses_nothing() -> None:
    pipeline = DeliveryPipeline(P0, P1)
    pipeline.arrive(P0, batch(0, 1))
    pipeline.arrive(P1, batch(0, 1))
    task = pipeline.delivery.begin(2)
    assert task is not None
    task.decode()
    assert pipeline.offsets() == [(1, 0), (1, 1)]
    assert pipeline.offset(P0) == 0
    pipeline.arrive(P0, batch(0, 1))
    assert pipeline.offsets() == [(0, 0), (0, 1)]


def test_decoding_under_a_budget_is_done_in_slices() -> None:
    import asyncio

    async def scenario() -> int:
        pipeline = DeliveryPipeline(*(P0, P1, P2))
        for tp in (P0, P1, P2):
            pipeline.arrive(tp, batch(*range(10)))
        task = pipeline.delivery.begin(30)
        assert task is not None
        slices = 1
        while not task.decode(budget_seconds=0.0):
            slices += 1
        assert len(pipeline.delivery.finish(task)) == 30
        return slices

    assert asyncio.run(scenario()) == 3


@pytest.mark.spec("S2-21", "S2-23")
def test_a_partition_is_decoded_to_its_end_before_the_next_one_in_slices_too() -> None:
    import asyncio

    async def scenario() -> list[tuple[int, int]]:
        pipeline = DeliveryPipeline(
            P0, P1, value_deserializer=lambda topic, headers, raw: raw
        )  # slices of one record
        pipeline.arrive(P0, batch(0, 1, 2))
        pipeline.arrive(P1, batch(0, 1, 2))
        task = pipeline.delivery.begin(6)
        assert task is not None
        while not task.decode(budget_seconds=0.0):
            continue
        return [(record.partition, record.offset) for record in pipeline.delivery.finish(task)]

    assert asyncio.run(scenario()) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
