"""The parts of the options that are more than a number or a word: which partitions, and from where to where."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias
from urllib.parse import urlsplit

import attrs

from kclient.config.values import INT64_MAX, integer, items, text
from kclient.spark.offsets import EARLIEST, LATEST, check_topic, parse_offsets, parse_timestamps
from kclient.types import TopicPartition

MAX_METADATA_BYTES: Final = 4_096  # the broker's default of offset.metadata.max.bytes
MICROSECONDS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""Spark's units of time."""

_DURATION = re.compile(r"(?P<number>\d{1,12})(?P<unit>[a-z]+)?", re.ASCII)
_milliseconds: Final = integer(0, INT64_MAX)


@attrs.frozen
class Topics:
    """`subscribe`: all partitions of these topics."""

    names: tuple[str, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        return self.names


@attrs.frozen
class Pattern:
    """`subscribePattern`: all topics in whose name the expression is found."""

    expression: str

    @property
    def topics(self) -> None:
        """All: which ones match is only known when the cluster was asked."""


@attrs.frozen
class Partitions:
    """`assign`: these partitions."""

    partitions: tuple[TopicPartition, ...]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tp.topic for tp in self.partitions))


Selection: TypeAlias = Topics | Pattern | Partitions


@attrs.frozen
class Bound:
    """Where to start or to end: `offset` or `timestamp` hold for all partitions, `offsets` or `timestamps` for each.

    `group` means the committed offsets of the options' group. Exactly one of the five is set. `option` is the one that
    was given, for messages.
    """

    option: str
    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None
    group: bool = False

    @property
    def named(self) -> Mapping[TopicPartition, int] | None:
        """The partitions that the option names, None where it is for all."""
        return self.offsets if self.timestamps is None else self.timestamps


def topics(raw: str) -> Topics:
    """A list of topics with commas between."""
    names = tuple(dict.fromkeys(check_topic(name) for name in items(raw)))
    if not names:
        raise ValueError("must name at least one topic")
    return Topics(names)


def pattern(raw: str) -> Pattern:
    """A regular expression; a match anywhere in the name is enough."""
    if not raw.strip():
        raise ValueError("must not be empty")
    try:
        re.compile(raw)
    except re.error as exc:
        raise ValueError(f"is no regular expression: {exc}") from None
    return Pattern(raw)


def stream_start(raw: str) -> Bound:
    """`earliest`, `latest`, `group`, or JSON with −2 for earliest and −1 for latest."""
    return _start(raw, {"earliest": EARLIEST, "latest": LATEST})


def batch_start(raw: str) -> Bound:
    """`earliest`, `group`, or JSON with −2 for earliest."""
    if text(raw).lower() == "latest":
        raise ValueError("cannot be latest in a batch, which would read nothing; write earliest or offsets")
    return _start(raw, {"earliest": EARLIEST})


def batch_end(raw: str) -> Bound:
    """`latest`, or JSON with −1 for latest."""
    if text(raw).lower() == "earliest":
        raise ValueError("cannot be earliest: a batch would read nothing; write latest or offsets")
    return _offsets("endingOffsets", raw, {"latest": LATEST}, ())


def timestamp(option: str, raw: str) -> Bound:
    """Milliseconds since 1970 for all partitions."""
    return Bound(option, timestamp=_milliseconds(raw))


def timestamps(option: str, raw: str) -> Bound:
    """JSON of milliseconds since 1970 per partition."""
    return Bound(option, timestamps=parse_timestamps(raw))


def duration_ms(raw: str) -> int:
    """Milliseconds of a duration in Spark's notation: a whole number and us, ms, s, m, min, h or d; none means ms."""
    match = _DURATION.fullmatch(text(raw).lower())
    unit = MICROSECONDS.get(match["unit"] or "ms") if match else None
    if match is None or unit is None:
        raise ValueError("must be a duration such as 15m, 10s or 500ms (us, ms, s, m, min, h, d)")
    return int(match["number"]) * unit // 1000


def commit_metadata(raw: str) -> str:
    """What is stored beside each committed offset, as the broker's default bounds it."""
    size = len(raw.encode("utf-8", "surrogatepass"))
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"must have at most {MAX_METADATA_BYTES} bytes; it has {size}")
    return raw


def registry_url(raw: str) -> str:
    """The address of a schema registry, without a password in it; whether http may be is for the options together."""
    try:
        parts = urlsplit(text(raw))
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("must be an address such as https://registry:8081")
    if may_hold_secret(raw):
        raise ValueError("must not hold a user, password or query; give credentials as schema.registry.auth")
    return text(raw).rstrip("/")


def may_hold_secret(address: str) -> bool:
    """Whether there is more to an address than where: a user, a query. Their text may be no address at all."""
    return any(sign in address for sign in "@?#")


def _start(raw: str, words: Mapping[str, int]) -> Bound:
    if text(raw).lower() == "group":
        return Bound("startingOffsets", group=True)
    return _offsets("startingOffsets", raw, words, ("group",))


def _offsets(option: str, raw: str, words: Mapping[str, int], others: tuple[str, ...]) -> Bound:
    word = text(raw).lower()
    if word in words:
        return Bound(option, offset=words[word])
    if not word.startswith("{"):
        raise ValueError(f'must be {", ".join((*words, *others))} or JSON such as {{"topic": {{"0": 23}}}}')
    return Bound(option, offsets=parse_offsets(raw, words.values()))


def disagreements(
    start: Bound, end: Bound, partitions: Collection[TopicPartition] | None, fallback: str
) -> list[str]:
    """What start, end and `assign` say differently, one sentence each; `fallback` other than error fills gaps."""
    problems = [
        f"{bound.option} must name exactly the partitions of assign"
        for bound in (start, end)
        if partitions is not None and bound.named is not None and set(bound.named) != set(partitions)
        if bound is end or fallback == "error" or not set(bound.named) <= set(partitions)
    ]
    if start.named is not None and end.named is not None and set(start.named) != set(end.named):
        problems.append(f"{start.option} and {end.option} must name the same partitions")
    if start.offsets is not None and end.offsets is not None:
        for tp, offset in start.offsets.items():
            last = end.offsets.get(tp, LATEST)
            if offset > last >= 0:
                problems.append(f"{tp} would start at {offset} and end before it, at {last}")
    return problems
