"""Every decoder of records against a plain one: the same columns, the same refusals, nothing of a bad record.

A second implementation joins by a line in DECODERS; the pure one is the reference of the library, and `PlainDecoder`
the reading of the layout that both are held to.
"""

from __future__ import annotations

import copy
import pickle
from array import array
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kclient.errors import CorruptBatchError, CorruptDataError
from kclient.records.columns import Columns
from kclient.records.decoder import PYTHON_DECODER, Decoder
from kclient.records.reader import PartitionReader
from kclient.records.records import Record, Records
from kclient.records.varint import encode_signed
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType
from tests.records.plain_decoder import PlainDecoder
from tests.records.support import golden_cases
from tests.records.test_roundtrip import batches

LIMIT = 1000
DECODERS: dict[str, Decoder] = {"python": PYTHON_DECODER}
try:
    from kclient.records.decoder_native import NativeDecoder
except ImportError:  # no compiler where the package was installed
    pass
else:
    DECODERS["native"] = NativeDecoder()
PLAIN = PlainDecoder()

every_decoder = pytest.mark.parametrize("decoder", DECODERS.values(), ids=DECODERS)


# --- sections of records, sound and damaged


@attrs.frozen
class Section:
    """What `decode` is given."""

    data: bytes
    start: int
    end: int
    count: int
    previous_delta: int
    last_delta: int


def varints(low: int, high: int) -> st.SearchStrategy[bytes]:
    """Whole numbers as varints, near the places where they get longer and elsewhere."""
    edges = [edge for edge in (-65, -64, 63, 64, 8191, 8192, 2**20) if low <= edge <= high]
    return (st.integers(low, high) | st.sampled_from(edges or [low])).map(encode_signed)


BLOBS = st.none() | st.binary(max_size=5) | st.sampled_from([bytes(63), bytes(64), bytes(8200)])
HEADERS = st.lists(st.tuples(st.binary(max_size=3), st.none() | st.binary(max_size=3)), max_size=3)


def blob(content: bytes | None) -> bytes:
    return b"\x01" if content is None else encode_signed(len(content)) + content


@st.composite
def sections(draw: st.DrawFn, smallest_step: int = 1) -> Section:
    delta = previous = draw(st.sampled_from([-1, 3, 60, 8190]))
    count = draw(st.integers(1, 5))
    parts = []
    for _ in range(count):
        delta = max(0, delta + draw(st.integers(smallest_step, 3)))
        headers = draw(HEADERS)
        body = b"".join(
            [
                draw(st.binary(min_size=1, max_size=1)),
                draw(varints(-(2**63), 2**63 - 1)),
                encode_signed(delta),
                blob(draw(BLOBS)),
                blob(draw(BLOBS)),
                encode_signed(len(headers)),
                *(part for key, value in headers for part in (blob(key), blob(value))),
            ]
        )
        parts.append(encode_signed(len(body)) + body)
    before, records, behind = draw(st.binary(max_size=4)), b"".join(parts), draw(st.binary(max_size=12))
    end = len(before) + len(records)
    return Section(before + records + behind, len(before), end, count, previous, delta)


@st.composite
def damaged(draw: st.DrawFn) -> Section:
    """A section with some bytes changed, offsets out of order, its end or its count moved."""
    section = draw(sections(draw(st.sampled_from([1, 0, -1]))))
    data = bytearray(section.data)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(section.start, min(section.end, section.start + 40) - 1))
        data[place] = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 3, 0x7F, 0x80, 0xFF]))
    return attrs.evolve(
        section,
        data=bytes(data),
        end=max(section.start, section.end - draw(st.sampled_from([0, 0, 0, 1, 7]))),
        count=section.count + draw(st.sampled_from([0, 0, 1])),
        last_delta=section.last_delta - draw(st.sampled_from([0, 0, 1])),
    )


def decoded(decoder: Decoder, section: Section) -> tuple[list[Any], int | None]:
    """All columns as lists, and the position after the last record; None where it was refused."""
    columns = decoder.columns_type(section.data, TimestampType.CREATE_TIME, 7)
    position: int | None
    try:
        position = decoder.decode(
            columns,
            section.start,
            section.count,
            end=section.end,
            base_offset=1_000_000_000_000,
            base_timestamp=1_700_000_000_000,
            previous_delta=section.previous_delta,
            last_delta=section.last_delta,
            max_headers=LIMIT,
        )
    except CorruptBatchError:
        position = None
    return as_lists(columns), position


def as_lists(columns: Columns) -> list[Any]:
    return [
        list(column)
        for column in (
            columns.offsets,
            columns.timestamps,
            columns.key_sizes,
            columns.value_sizes,
            columns.headers,
            columns.raw_keys(),
            columns.raw_values(),
        )
    ]


@every_decoder
@pytest.mark.spec("B.11.1", "D-72", "H-26")
@settings(deadline=None, max_examples=200)
@given(section=sections())
def test_sound_records_give_the_columns_of_the_plain_reading(decoder: Decoder, section: Section) -> None:
    expected, position = decoded(PLAIN, section)
    assert position == section.end
    assert decoded(decoder, section) == (expected, position)


@every_decoder
@pytest.mark.spec("H-12", "H-26")
@settings(deadline=None, max_examples=500)
@given(section=damaged())
def test_damaged_records_are_refused_where_the_plain_reading_refuses(
    decoder: Decoder, section: Section
) -> None:
    assert decoded(decoder, section) == decoded(PLAIN, section)


def numbers_and_refusal(decoder: Decoder, section: Section) -> tuple[list[Any], list[Any]]:
    """All number columns, and the position or the error with its attributes."""
    columns = decoder.columns_type(section.data, TimestampType.CREATE_TIME, 7)
    limits = {"end": section.end, "previous_delta": section.previous_delta, "last_delta": section.last_delta}
    ended: list[Any]
    try:
        ended = [
            decoder.decode(
                columns,
                section.start,
                section.count,
                base_offset=5,
                base_timestamp=1_700_000_000_000,
                max_headers=2,
                **limits,
            )
        ]
    except CorruptBatchError as exc:
        ended = [type(exc), str(exc), exc.__dict__]
    return [list(column) for column in columns.number_columns()], ended


@every_decoder
@pytest.mark.spec("H-12", "H-26")
@settings(deadline=None, max_examples=500)
@given(section=damaged())
def test_every_decoder_finds_the_same_number_and_the_same_text_as_the_python_one(
    decoder: Decoder, section: Section
) -> None:
    assert numbers_and_refusal(decoder, section) == numbers_and_refusal(PYTHON_DECODER, section)


# --- whole fields, through the reader


def outcome(decoder: Decoder, data: bytes, at_once: int) -> tuple[list[Record[Any, Any]], int, type | None]:
    """The records, where it ended, and by which error."""
    reader = PartitionReader("t", 0, data, 0, decoder=decoder, max_decompressed_batch_bytes=1 << 20)
    records: list[Record[Any, Any]] = []
    try:
        while not reader.exhausted:
            records += Records[Any, Any]([reader.take(at_once)])
    except CorruptDataError as exc:
        return records, reader.next_offset, type(exc)
    return records, reader.next_offset, None


@every_decoder
@pytest.mark.spec("B.11.1")
@pytest.mark.parametrize("at_once", [1, 3, 500])
def test_golden_batches_of_java_give_the_same_records(decoder: Decoder, at_once: int) -> None:
    for case in golden_cases():
        data = bytes.fromhex(case["hex"])
        assert outcome(decoder, data, at_once) == outcome(PLAIN, data, at_once), case["case"]


@every_decoder
@pytest.mark.spec("S2-26", "B.11.1")
@settings(deadline=None)
@given(made=batches(), at_once=st.integers(1, 5))
def test_generated_batches_give_the_same_records(decoder: Decoder, made: Any, at_once: int) -> None:
    assert outcome(decoder, made[0], at_once) == outcome(PLAIN, made[0], at_once)


@every_decoder
@pytest.mark.spec("B.11.1")
@pytest.mark.parametrize("made", [None, ["x", None, {"y": 1}]])
def test_record_objects_are_named_tuples_that_own_their_bytes(
    decoder: Decoder, made: list[object] | None
) -> None:
    written = [
        NewRecord(b"k" * 300, b"v", 5, [("h", b"1"), ("\u00e9", None)]),
        NewRecord(None, None, -1),
        NewRecord(b"", b"x" * 300, 2**40),
    ]
    data = build_batch(written, base_offset=2**40)
    chunk = PartitionReader("t", 3, data, 0, decoder=decoder).take(9)
    chunk.runs[0].values = made
    values = [record.value for record in written] if made is None else made
    records = list(Records[Any, Any]([chunk]))
    chunk.runs.clear()
    sizes = [[-1 if part is None else len(part) for part in (one.key, one.value)] for one in written]
    assert records == [
        ("t", 3, 2**40 + at, one.timestamp, 0, one.key, values[at], tuple(one.headers), None, *sizes[at])
        for at, one in enumerate(written)
    ]
    assert {type(record) for record in records} == {Record}
    if made is None:
        assert [hash(record) for record in records] == [hash(tuple(record)) for record in records]
    assert pickle.loads(pickle.dumps(records)) == copy.deepcopy(records) == records
    assert [record._replace(offset=1).offset for record in records] == [1, 1, 1]


@every_decoder
def test_columns_cannot_be_changed_while_native_code_iterates_over_them(decoder: Decoder) -> None:
    chunk = PartitionReader("t", 0, build_batch([NewRecord(b"k", b"v")] * 3), 0, decoder=decoder).take(9)
    records = iter(Records[Any, Any]([chunk]))
    next(records)
    if isinstance(chunk.runs[0].offsets, array):
        with pytest.raises(BufferError):
            chunk.cut_at(1)
    assert len(list(records)) == 2
    chunk.cut_at(1)
    assert len(list(Records[Any, Any]([chunk]))) == 1
