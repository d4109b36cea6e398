"""Lanes and committable offsets, without a consumer: the worked example of in_flight.py, and positions that move."""

from __future__ import annotations

from typing import Any

from kclient.handlers.in_flight import InFlight, InFlightRecord, Ordering
from kclient.records.headers import Headers
from kclient.records.records import Record
from kclient.types import OffsetAndMetadata, TimestampType, TopicPartition

TP = TopicPartition("t", 0)


class Polled(list[Record[Any, Any]]):
    """What a poll returned: records, and the position after them."""

    def __init__(self, records: list[Record[Any, Any]], position: int) -> None:
        super().__init__(records)
        self.position = position

    def next_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {TP: OffsetAndMetadata(self.position, 7)}


def record(offset: int, key: Any) -> Record[Any, Any]:
    """A record of t-0."""
    return Record("t", 0, offset, 0, TimestampType.CREATE_TIME, key, b"", Headers(()), 7, 0, 0)


def in_flight_of(ordered_by: Ordering | None, keys: str, position: int = 15) -> InFlight:
    """Records from offset 10 on, one for each key; "-" stands for none."""
    in_flight = InFlight(ordered_by)
    records = [record(10 + at, None if key == "-" else key) for at, key in enumerate(keys)]
    polled: Any = Polled(records, position)
    in_flight.add(polled, 0.0)
    return in_flight


def finish(in_flight: InFlight, offset: int) -> None:
    """The handler of a record has finished."""
    in_flight.end(found(in_flight, offset), finished=True)


def found(in_flight: InFlight, offset: int) -> InFlightRecord:
    """The record in flight with this offset."""
    return next(one for one in in_flight.partitions[TP].records if one.offset == offset)


def committable(in_flight: InFlight) -> int | None:
    """The offset that may be committed."""
    offset = in_flight.partitions[TP].committable
    return None if offset is None else offset.offset


def test_the_committable_offset_is_after_the_longest_finished_prefix() -> None:
    in_flight = in_flight_of("key", "ABACB", position=17)  # two markers follow
    finish(in_flight, 11)
    finish(in_flight, 13)
    assert committable(in_flight) is None
    finish(in_flight, 10)
    assert committable(in_flight) == 12
    finish(in_flight, 14)
    assert committable(in_flight) == 12
    assert in_flight.count == 1
    finish(in_flight, 12)
    assert committable(in_flight) == 17
    assert in_flight.partitions[TP].resume_at is None


def test_a_lane_has_the_records_of_one_key_or_partition_or_one_record() -> None:
    def lanes(ordered_by: Ordering | None) -> list[list[int]]:
        in_flight = in_flight_of(ordered_by, "AB-A-")
        found = []
        for lane in tuple(in_flight.lanes.values()):
            found.append([])
            while (one := in_flight.next(lane)) is not None:
                found[-1].append(one.offset)
        assert in_flight.lanes == {}
        return found

    assert lanes("key") == [[10, 13], [11], [12], [14]]
    assert lanes("partition") == [[10, 11, 12, 13, 14]]
    assert lanes(None) == [[10], [11], [12], [13], [14]]


def test_dropped_records_are_not_begun_and_hold_back_the_commit() -> None:
    in_flight = in_flight_of("partition", "ABC")
    (lane,) = in_flight.lanes.values()
    running = in_flight.next(lane)
    assert running is not None
    in_flight.drop([TP])
    assert in_flight.count == 1
    in_flight.end(running, finished=True)
    assert in_flight.next(lane) is None
    assert committable(in_flight) == 11
    assert in_flight.partitions[TP].resume_at == OffsetAndMetadata(11, 7)


def test_after_a_seek_back_what_was_in_flight_does_not_count_and_its_key_still_waits_for_it() -> None:
    in_flight = in_flight_of("key", "AAA")
    (lane,) = in_flight.lanes.values()
    running = in_flight.next(lane)
    assert running is not None
    again: Any = Polled([record(10, "A"), record(11, "A")], 12)
    assert in_flight.add(again, 1.0) == []  # no lane of its own
    in_flight.end(running, finished=True)
    assert committable(in_flight) is None
    redelivered = in_flight.next(lane)
    assert redelivered is not None
    assert (redelivered.offset, redelivered.since) == (10, 1.0)
