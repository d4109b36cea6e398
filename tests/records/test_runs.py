"""Long stretches of records of one shape, whole and with something else in the middle, against the plain reading.

What a run must not do: pass over a byte that differs, take a delta for one that is wider, or go on behind a limit.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import CorruptBatchError
from kclient.records.columns import Columns
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.runs import SHORTEST, read_run
from kclient.records.varint import encode_signed
from kclient.types import TimestampType
from tests.records.plain_decoder import PlainDecoder

PLAIN = PlainDecoder()
BASE_OFFSET = 1_000_000_000_000
BASE_TIMESTAMP = 1_700_000_000_000


@attrs.define
class Shape:
    """One record, but for its offset delta."""

    timestamp: int = 0
    key: bytes | None = b"12345678"
    value: bytes | None = b"v" * 40
    headers: int = 0
    attributes: int = 0

    def encode(self, delta: int) -> bytes:
        body = b"".join(
            [
                bytes([self.attributes]),
                encode_signed(self.timestamp),
                encode_signed(delta),
                *(
                    b"\x01" if one is None else encode_signed(len(one)) + one
                    for one in (self.key, self.value)
                ),
                encode_signed(self.headers),
                b"\x02h\x01" * self.headers,
            ]
        )
        return encode_signed(len(body)) + body


SHAPES = st.builds(
    Shape,
    timestamp=st.sampled_from([0, 1, 63, 64, -65, 8191, 8192, 2**31, -(2**40), 2**62, 2**63 - 1]),
    key=st.sampled_from([None, b"", b"k" * 8, b"k" * 64]),
    value=st.sampled_from([None, b"", b"v", b"v" * 40, b"v" * 63, b"v" * 64, b"v" * 200]),
    headers=st.sampled_from([0, 0, 0, 0, 1]),
    attributes=st.integers(0, 255),
)


def encode(shapes: list[Shape], deltas: list[int]) -> bytes:
    return b"".join(shape.encode(delta) for shape, delta in zip(shapes, deltas, strict=True))


def outcome(
    decoder: Decoder, data: bytes, count: int, first: int, last: int, end: int | None = None
) -> tuple[list[Any], int | None]:
    columns = decoder.columns_type(data, TimestampType.CREATE_TIME, 7)
    position: int | None
    try:
        position = decoder.decode(
            columns,
            0,
            count,
            end=len(data) if end is None else end,
            base_offset=BASE_OFFSET,
            base_timestamp=BASE_TIMESTAMP,
            previous_delta=first - 1,
            last_delta=last,
            max_headers=10,
        )
    except CorruptBatchError:
        position = None
    return [*attrs.astuple(columns, recurse=False), columns.raw_keys(), columns.raw_values()], position


@st.composite
def stretches(draw: st.DrawFn) -> tuple[list[Shape], list[int]]:
    """Stretches of one shape each; offsets ascend, with a gap now and then."""
    shapes: list[Shape] = []
    deltas: list[int] = []
    delta = draw(st.sampled_from([0, 40, 1000, 8150, 2**20]))
    for _ in range(draw(st.integers(1, 4))):
        shape, count = draw(SHAPES), draw(st.sampled_from([1, 2, 16, 17, 18, 70, 130]))
        shapes += [attrs.evolve(shape, timestamp=shape.timestamp - (index & 1)) for index in range(count)]
        deltas += range(delta, delta + count)
        delta += count + draw(st.sampled_from([0, 0, 1, 300]))
    return shapes, deltas


@pytest.mark.spec("B.11.1", "H-12")
@settings(deadline=None, max_examples=150)
@given(made=stretches())
def test_stretches_give_what_the_plain_reading_gives(made: tuple[list[Shape], list[int]]) -> None:
    shapes, deltas = made
    data = encode(shapes, deltas)
    expected = outcome(PLAIN, data, len(shapes), deltas[0], deltas[-1])
    assert expected[1] == len(data)
    assert outcome(PYTHON_DECODER, data, len(shapes), deltas[0], deltas[-1]) == expected


@pytest.mark.spec("B.11.1", "H-12", "H-26")
@settings(deadline=None, max_examples=400)
@given(made=stretches(), drawn=st.data())
def test_a_stretch_with_one_byte_changed_gives_what_the_plain_reading_gives(
    made: tuple[list[Shape], list[int]], drawn: st.DataObject
) -> None:
    shapes, deltas = made
    data = bytearray(encode(shapes, deltas))
    damaged = drawn.draw(st.integers(0, len(shapes) - 1), label="record")
    before = len(encode(shapes[:damaged], deltas[:damaged]))
    size = len(shapes[damaged].encode(deltas[damaged]))
    place = drawn.draw(st.sampled_from([*range(min(size, 25)), size - 1]), label="place")
    data[before + place] = drawn.draw(st.integers(0, 255), label="byte")
    count = len(shapes) + drawn.draw(st.sampled_from([0, 0, 1]), label="more claimed")
    last = deltas[-1] - drawn.draw(st.sampled_from([0, 0, 1]), label="below the last delta")
    end = len(data) - drawn.draw(st.sampled_from([0, 0, 1]), label="cut off")
    given_to_both = (bytes(data), count, deltas[0], last, end)
    assert outcome(PYTHON_DECODER, *given_to_both) == outcome(PLAIN, *given_to_both)


# --- how far a run goes


def run_behind(
    first: Shape, *others: Shape, deltas: range, most: int = 10_000, end: int | None = None
) -> int:
    """How many of the others are taken in one run after the first."""
    data = encode([first, *others], list(deltas))
    model = len(first.encode(deltas[0]))
    columns = Columns(data, TimestampType.CREATE_TIME, None)
    PLAIN.decode(
        columns,
        0,
        1,
        end=len(data),
        base_offset=0,
        base_timestamp=0,
        previous_delta=deltas[0] - 1,
        last_delta=deltas[-1],
        max_headers=10,
    )
    end = len(data) if end is None else end
    count = read_run(columns, 0, model, min(most, len(others)), end, 0, 0)
    assert len(columns) == 1 + count
    return count


def test_a_run_takes_all_of_one_shape() -> None:
    assert run_behind(*[Shape()] * 41, deltas=range(41)) == 40


@pytest.mark.spec("H-12")
def test_a_run_ends_where_a_record_is_longer_has_other_sizes_or_headers() -> None:
    same = [Shape()] * 21
    for other in (
        Shape(value=b"v" * 41),
        Shape(key=b"1234567", value=b"v" * 41),
        Shape(value=b"v" * 37, headers=1),
        Shape(key=None, value=b"v" * 48),
    ):
        assert run_behind(*same, other, *same, deltas=range(43)) == 20


def test_a_run_ends_at_the_limits_of_the_caller() -> None:
    shapes = [Shape()] * 41
    whole = len(encode(shapes, list(range(41))))
    assert run_behind(*shapes, deltas=range(41), most=30) == 30
    assert run_behind(*shapes, deltas=range(41), end=whole - 1) == 39


def test_a_run_is_not_begun_for_few_records_nor_with_headers() -> None:
    assert run_behind(*[Shape()] * SHORTEST, deltas=range(SHORTEST)) == 0
    assert run_behind(*[Shape(headers=1)] * 41, deltas=range(41)) == 0


def test_a_run_goes_as_far_as_its_offset_deltas_keep_their_width() -> None:
    assert run_behind(*[Shape()] * 41, deltas=range(40, 81)) == 23
