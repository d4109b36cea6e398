"""The parts of the options that are more than a number or a word: which partitions, and from where to where.

Spec: spark 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

import attrs

from kclient.config.values import INT64_MAX, integer, items, text
from kclient.spark.offsets import EARLIEST, LATEST, check_topic, parse_offsets, parse_timestamps
from kclient.types import TopicPartition

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

    Exactly one of the four is set. `option` is the one that was given, for messages.
    """

    option: str
    offset: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None
    timestamp: int | None = None
    timestamps: Mapping[TopicPartition, int] | None = None

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
    except re.error as error:
        raise ValueError(f"is no regular expression: {error}") from None
    return Pattern(raw)


def start_offsets(option: str, raw: str) -> Bound:
    """`earliest`, or JSON with −2 for earliest."""
    word = text(raw).lower()
    if word == "latest":
        raise ValueError("cannot be latest in a batch, which would read nothing; write earliest or offsets")
    if word == "group":
        raise ValueError("cannot be group yet; give the offsets themselves as JSON")
    return _offsets(option, word, raw, {"earliest": EARLIEST})


def end_offsets(option: str, raw: str) -> Bound:
    """`latest`, or JSON with −1 for latest."""
    word = text(raw).lower()
    if word == "earliest":
        raise ValueError("cannot be earliest: a batch would read nothing; write latest or offsets")
    return _offsets(option, word, raw, {"latest": LATEST})


def timestamp(option: str, raw: str) -> Bound:
    """Milliseconds since 1970 for all partitions."""
    return Bound(option, timestamp=_milliseconds(raw))


def timestamps(option: str, raw: str) -> Bound:
    """JSON of milliseconds since 1970 per partition."""
    return Bound(option, timestamps=parse_timestamps(raw))


def _offsets(option: str, word: str, raw: str, words: Mapping[str, int]) -> Bound:
    if word in words:
        return Bound(option, offset=words[word])
    if not word.startswith("{"):
        raise ValueError(f'must be {" or ".join(words)}, or JSON such as {{"topic": {{"0": 23}}}}')
    return Bound(option, offsets=parse_offsets(raw, words.values()))


def disagreements(start: Bound, end: Bound, partitions: Collection[TopicPartition] | None) -> list[str]:
    """What start, end and `assign` say differently, one sentence each."""
    problems = [
        f"{bound.option} must name exactly the partitions of assign"
        for bound in (start, end)
        if partitions is not None and bound.named is not None and set(bound.named) != set(partitions)
    ]
    if start.named is not None and end.named is not None and set(start.named) != set(end.named):
        problems.append(f"{start.option} and {end.option} must name the same partitions")
    if start.offsets is not None and end.offsets is not None:
        for tp, offset in start.offsets.items():
            last = end.offsets.get(tp, LATEST)
            if offset > last >= 0:
                problems.append(f"{tp} would start at {offset} and end before it, at {last}")
    return problems
