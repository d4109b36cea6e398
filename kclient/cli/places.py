"""Places in a partition as they are typed: `beginning`, `end`, `17`, `-100`, `@2026-11-20T14:00Z`, `@-1h`, `@now`.

beginning, earliest     the first record that the log still has
end, latest             after the last record
17                      this offset
-100                    100 offsets before the end
@TIME                   the first record at or after the time: ISO 8601 with its zone, or 2026-11-20Z for a whole
                        day's beginning; ms since 1970, now, or an age such as -90s, -1h, -2d
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

import attrs

from kclient.config.values import UNIT_MS, time_ms
from kclient.errors import ArgumentError
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.sync import Consumer

WORDS: Final[dict[str, Literal["beginning", "end"]]] = {
    "beginning": "beginning",
    "earliest": "beginning",
    "end": "end",
    "latest": "end",
}
_SIMPLE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)", re.ASCII)
_ISO_DURATION: Final = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII | re.IGNORECASE
)
FORMS: Final = (
    "beginning, end, an offset such as 17, -100 for the last 100, or @TIME such as @2026-11-20T14:00Z or @-1h"
)


@attrs.frozen
class Place:
    """One of: a word, an offset, a number of offsets before the end, a time in ms since 1970."""

    word: Literal["beginning", "end"] | None = None
    offset: int | None = None
    last: int | None = None
    timestamp_ms: int | None = None


def parse_place(raw: str, option: str, runtime: Runtime) -> Place:
    """Return the place that the user typed for an option. Raise ArgumentError."""
    if word := WORDS.get(raw.lower()):
        return Place(word=word)
    if raw.isascii() and raw.isdecimal():
        return Place(offset=int(raw))
    if raw.startswith("-") and raw[1:].isascii() and raw[1:].isdecimal():
        return Place(last=int(raw[1:]))
    if raw.startswith("@"):
        return Place(timestamp_ms=parse_time(raw[1:], option, runtime))
    raise ArgumentError(f"{option} {raw} is not a place in a partition. Give {FORMS}.")


def parse_time(raw: str, option: str, runtime: Runtime) -> int:
    """Return ms since 1970 for a time as `time_ms` reads it. Raise ArgumentError."""
    try:
        return time_ms(raw, runtime.wall_ms())
    except ValueError as exc:
        raise ArgumentError(f"{option} {exc}.") from None


def parse_duration_ms(raw: str, option: str) -> int:
    """Return the ms of 90s, 1h or 2d, or of an ISO 8601 duration such as PT1H30M or P2D. Raise ArgumentError."""
    if simple := _SIMPLE.fullmatch(raw):
        return int(float(simple[1]) * UNIT_MS[simple[2]])
    found = _ISO_DURATION.fullmatch(raw)
    if found is None or not any(found.groups()):
        raise ArgumentError(f"{option} {raw} is not a duration. Write 90s, 1h, 2d, or as ISO 8601 PT1H30M.")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def time_text(timestamp_ms: int) -> str:
    """Return a timestamp of a record in UTC, with milliseconds: 2026-11-20T14:00:00.000Z."""
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (OverflowError, ValueError, OSError):  # a producer may write any number
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def offsets_of(
    consumer: Consumer, partitions: Iterable[TopicPartition], place: Place
) -> dict[TopicPartition, int]:
    """Return the offset of a place in each partition, between the first offset and the end of its log."""
    wanted = list(partitions)
    begin, end = consumer.beginning_offsets(wanted), consumer.end_offsets(wanted)
    if place.timestamp_ms is not None:
        times = consumer.offsets_for_times(dict.fromkeys(wanted, place.timestamp_ms))
        found = {tp: end[tp] if at is None else at.offset for tp, at in times.items()}
    elif place.last is not None:
        found = {tp: end[tp] - place.last for tp in wanted}
    elif place.offset is not None:
        found = dict.fromkeys(wanted, place.offset)
    else:
        found = begin if place.word == "beginning" else end
    return {tp: min(max(found[tp], begin[tp]), end[tp]) for tp in wanted}
