"""A consumer of Arrow streams in ctypes: reads what a capsule holds without pyarrow, and checks how it is released.

ctypes calls the callbacks without the GIL, as threads of other libraries do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Final

from kclient.records.headers import Headers
from kclient.records.records import Record

Pointer = ctypes.c_void_p
STREAM: Final = b"arrow_array_stream"


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


def callback(of: type[ctypes.Structure], *out: type[ctypes.Structure]) -> Any:
    kind = None if not out else ctypes.c_int
    return ctypes.CFUNCTYPE(kind, ctypes.POINTER(of), *map(ctypes.POINTER, out))


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", Pointer),
    ("release", callback(ArrowSchema)),
    ("private_data", Pointer),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(Pointer)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", Pointer),
    ("release", callback(ArrowArray)),
    ("private_data", Pointer),
]
ArrowArrayStream._fields_ = [
    ("get_schema", callback(ArrowArrayStream, ArrowSchema)),
    ("get_next", callback(ArrowArrayStream, ArrowArray)),
    ("get_last_error", Pointer),
    ("release", callback(ArrowArrayStream)),
    ("private_data", Pointer),
]


def stream_of(capsule: object) -> ArrowArrayStream:
    """The struct in the capsule, which stays its owner. Raise ValueError for a capsule of another name."""
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = Pointer, [ctypes.py_object, ctypes.c_char_p]
    return ArrowArrayStream.from_address(get_pointer(capsule, STREAM))


def release(struct: Any) -> None:
    """Release it as its consumer does, and see that it notes that."""
    struct.release(ctypes.byref(struct))
    assert not struct.release


@contextmanager
def moved(struct: Any) -> Iterator[Any]:
    """Move a struct to another place, as consumers do, and release it there."""
    mine = type(struct).from_buffer_copy(struct)
    ctypes.memset(ctypes.addressof(struct) + type(struct).release.offset, 0, ctypes.sizeof(Pointer))
    try:
        yield mine
    finally:
        release(mine)


def described(schema: ArrowSchema) -> Any:
    """Name, format and children of each field."""
    children = [described(schema.children[index].contents) for index in range(schema.n_children)]
    return (schema.name.decode(), schema.format.decode(), *children)


def schema_of(stream: ArrowArrayStream) -> Any:
    schema = ArrowSchema()
    assert stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) == 0
    found = described(schema)
    release(schema)
    return found


def batches_of(stream: ArrowArrayStream) -> Iterator[ArrowArray]:
    """Each batch; the caller releases it."""
    while True:
        batch = ArrowArray()
        assert stream.get_next(ctypes.byref(stream), ctypes.byref(batch)) == 0
        if not batch.release:
            return
        yield batch


def numbers(array: ArrowArray, buffer: int, kind: Any, count: int) -> list[int]:
    return list((kind * count).from_address(array.buffers[buffer]))


def values(array: ArrowArray, schema: Any) -> list[Any]:
    """The values of an array as Python objects, None where its bit says null."""
    found = _values(array, schema)
    assert len(found) == array.length
    if not array.buffers[0]:
        assert array.null_count == 0
        return found
    bits = numbers(array, 0, ctypes.c_uint8, array.length // 8 + 1)
    valid = [bool(bits[row // 8] >> row % 8 & 1) for row in range(array.length)]
    assert array.null_count == valid.count(False) > 0
    return [value if known else None for value, known in zip(found, valid, strict=True)]


def _values(array: ArrowArray, schema: Any) -> list[Any]:
    _, form, *children = schema
    count = array.length
    if form in ("l", "tsu:UTC"):
        return numbers(array, 1, ctypes.c_int64, count)
    if form == "i":
        return numbers(array, 1, ctypes.c_int32, count)
    if form == "+s":
        columns = [values(array.children[at].contents, child) for at, child in enumerate(children)]
        return list(zip(*columns, strict=True)) if columns else [()] * count
    ends = numbers(array, 1, ctypes.c_int32, count + 1)
    if form == "+l":
        inner: Any = values(array.children[0].contents, children[0])
    else:
        inner = ctypes.string_at(array.buffers[2], ends[-1])
    cut = [inner[start:end] for start, end in pairwise(ends)]
    return [text.decode() for text in cut] if form == "u" else cut


def read(capsule: object) -> list[tuple[Any, ...]]:
    """The rows of all batches. The stream is moved out of the capsule and everything is released."""
    rows: list[tuple[Any, ...]] = []
    with moved(stream_of(capsule)) as stream:
        schema = schema_of(stream)
        for batch in batches_of(stream):
            rows += values(batch, schema)
            release(batch)
    return rows


def expected(record: Record[bytes | None, bytes | None]) -> tuple[Any, ...]:
    """The row of a record that was not deserialized."""
    return (
        record.key,
        record.value,
        record.topic,
        record.partition,
        record.offset,
        record.timestamp * 1000,
        int(record.timestamp_type),
        _headers(record.headers),
        record.leader_epoch,
    )


def _headers(headers: Headers) -> list[tuple[str, bytes | None]] | None:
    return list(headers) or None
