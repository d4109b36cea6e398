from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, TypeVar

R = TypeVar("R", bound=tuple[Any, ...])

def decode(
    data: bytes,
    position: int,
    count: int,
    end: int,
    base_offset: int,
    base_timestamp: int,
    previous_delta: int,
    last_delta: int,
    max_headers: int,
    /,
) -> tuple[int, int, int, int, bytes, bytes, bytes, bytes, bytes, bytes, bytes]: ...
def find_batches(
    field: bytes,
    position: int,
    next_offset: int,
    most_records: int,
    most_batches: int,
    most_bytes: int,
    with_transactions: bool,
    /,
) -> tuple[list[tuple[int, int, int, int]], int, int]: ...
def decode_batches(
    field: bytes,
    batches: list[tuple[int, int, int, int]],
    data: bytes,
    sizes: list[int] | None,
    max_headers: int,
    /,
) -> tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, bytes]: ...
def records(
    kind: type[R],
    topic: str,
    partition: int,
    timestamp_type: int,
    leader_epoch: int | None,
    data: bytes,
    offsets: Any,
    timestamps: Any,
    key_starts: Any,
    key_sizes: Any,
    value_starts: Any,
    value_sizes: Any,
    header_starts: Any,
    keys: list[object] | None,
    values: list[object] | None,
    /,
) -> RecordIterator[R]: ...

class RecordIterator(Iterator[R]):
    handed_out: int
    ended: bool
    def __next__(self) -> R: ...
    def end(self) -> None: ...

def async_records(
    next_iterator: Callable[[], Iterator[R]], refill: Callable[[], Awaitable[R]]
) -> AsyncIterator[R]: ...
def joined_records(next_iterator: Callable[[], Iterator[R] | None], /) -> Iterator[R]: ...
def arrow_stream(names: tuple[str, ...], /) -> object: ...
def arrow_schema(stream: object, /) -> object: ...
def arrow_append(stream: object, runs: tuple[tuple[Any, ...], ...], most_bytes: int, /) -> bool: ...
