"""What becomes of a record whose deserializer failed, other than an error that stops the partition.

    skip   it is left out
    keep   it is handed out with `Undecoded` in place of the key or value that failed
    dlq    its bytes go to the dead-letter sink, and it is left out

A sink that fails stops the partition as if nothing had been asked for: a record is never lost between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from kclient.errors import DecodeError
from kclient.types import DeadLetter

DeadLetterSink: TypeAlias = Callable[[DeadLetter], None]


@attrs.frozen(repr=False, eq=False)
class Undecoded:
    """Stands where a key or value would be: its bytes, and the error, whose cause is what the deserializer raised."""

    raw: bytes
    error: DecodeError

    def __repr__(self) -> str:
        return f"<Undecoded: {len(self.raw)} bytes, {type(self.error.__cause__).__name__}>"


@attrs.frozen
class Undecodable:
    """`on_decode_error` as configured. `keeps`: hand out `Undecoded`; else `sink`, if there is one, gets the record."""

    keeps: bool = False
    sink: DeadLetterSink | None = None


def undecodable(on_decode_error: str, dead_letters: DeadLetterSink | None) -> Undecodable | None:
    """What the checked configuration asks for; None: the error."""
    if on_decode_error == "raise":
        return None
    return Undecodable(on_decode_error == "keep", dead_letters if on_decode_error == "dlq" else None)


def dead_letter(failure: DecodeError) -> DeadLetter:
    """The record as it came, with headers that say where from and what failed."""
    cause = failure.__cause__
    details = {
        "topic": failure.topic,
        "partition": str(failure.partition),
        "offset": str(failure.offset),
        "timestamp": str(failure.timestamp),
        "part": failure.part,
        "class": type(cause).__name__,
        "message": str(cause),
    }
    headers = [(f"kclient.error.{name}", text.encode(errors="replace")) for name, text in details.items()]
    return DeadLetter(
        failure.topic,
        failure.partition,
        failure.offset,
        failure.timestamp,
        failure.raw_key,
        failure.raw_value,
        (*failure.headers, *headers),
    )
