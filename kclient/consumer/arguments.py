"""Check the arguments of the public calls, and raise ArgumentError for what no request can carry. Pure.

The check comes first in each call: a request that cannot be written would fail later, and a Fetch with one bad offset
fails for every partition of its node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from kclient.consumer.callbacks import ASSIGNED, LOST, METHODS, REVOKED, RebalanceListener
from kclient.errors import ArgumentError
from kclient.types import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

OFFSET_BITS: Final = 63  # an offset is a non-negative INT64 of the protocol
EPOCH_BITS: Final = 31
OTHER_CLIENTS_NAMES: Final = {
    "on_assign": ASSIGNED,
    "on_revoke": REVOKED,
    "on_lost": LOST,
}  # confluent-kafka's


def checked_topics(topics: Iterable[str]) -> tuple[str, ...]:
    """Topic names, sorted, each once. Raise ArgumentError for anything else."""
    if isinstance(topics, str | bytes):
        raise ArgumentError(f"Topics must be a list of names, not the single {topics!r}. Write [{topics!r}].")
    if not isinstance(topics, Iterable):
        raise ArgumentError(f"Topics must be a list of names, not {topics!r}. Without one, leave them out.")
    names = tuple(topics)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            # Only its type, for a mapping may hold secrets.
            shown = repr(name) if isinstance(name, str) else f"a {type(name).__name__}"
            raise ArgumentError(
                f"A topic's name is text that is not blank, not {shown}. "
                "Give a Consumer each name as an argument of its own, and a mapping of settings as config=."
            )
    return tuple(sorted(dict.fromkeys(names)))


def checked_partitions(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    """Partitions in the given order, each once. Raise ArgumentError for anything else."""
    if not isinstance(partitions, Iterable):
        raise ArgumentError(
            f"Partitions must be a list of TopicPartition(topic, number), not {partitions!r}."
        )
    found: dict[TopicPartition, None] = {}
    for item in [partitions] if isinstance(partitions, TopicPartition) else partitions:
        if not isinstance(item, tuple) or len(item) != 2 or not isinstance(item[0], str):
            raise ArgumentError(
                f"{item!r} is not a partition. Give a list of TopicPartition(topic, partition).{_own_partition(item)}"
            )
        if not item[0].strip() or not is_number(item[1], bits=31):
            raise ArgumentError(
                f"{item!r} is not a partition: the topic is blank, or the number is not an int from 0 to 2**31 - 1."
            )
        found[TopicPartition(*item)] = None
    return tuple(found)


def _own_partition(item: object) -> str:
    """Return how to make the partition of what has one: a PartitionInfo, a Record."""
    has = isinstance(getattr(item, "topic", None), str) and hasattr(item, "partition")
    return " For this one write TopicPartition(one.topic, one.partition)." if has else ""


def _own_offset(given: object) -> str:
    """Return which offset was meant: that of what offsets_for_times() and committed() return, or the next record's."""
    if isinstance(given, OffsetAndTimestamp | OffsetAndMetadata):
        return "its .offset"
    if given is None:
        return "that of end_offsets() where offsets_for_times() returned None: no record is that new"
    return "that of the next record to consume"


def is_number(given: Any, bits: int) -> bool:
    """Whether this is an int from 0 on that so many bits can hold."""
    return isinstance(given, int) and not isinstance(given, bool) and 0 <= given < 2**bits


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit: OffsetAndMetadata or int as given. Raises ArgumentError for anything else."""
    if not isinstance(offsets, Mapping):
        raise ArgumentError(
            f"Offsets are a mapping of TopicPartition to an offset or OffsetAndMetadata, not {offsets!r}. After a "
            "record it is {TopicPartition(record.topic, record.partition): record.offset + 1}."
        )
    return {
        tp: checked_offset(tp, at)
        for tp, at in zip(checked_partitions(offsets), offsets.values(), strict=True)
    }


def checked_offset(partition: TopicPartition, at: Any) -> OffsetAndMetadata:
    """One offset: OffsetAndMetadata or int as given. Raises ArgumentError."""
    if isinstance(at, int):
        at = OffsetAndMetadata(at)
    if not isinstance(at, OffsetAndMetadata):
        raise ArgumentError(
            f"The offset for {partition} is {at!r}. Give the offset of the next record to consume, or "
            "OffsetAndMetadata(offset)."
        )
    if not is_number(at.offset, OFFSET_BITS):
        raise ArgumentError(
            f"The offset for {partition} is {at.offset!r}. Offsets are of type int, from 0 on and "
            f"below 2**{OFFSET_BITS}. Give {_own_offset(at.offset)}."
        )
    if at.leader_epoch is not None and not is_number(at.leader_epoch, EPOCH_BITS):
        raise ArgumentError(
            f"The leader epoch of the offset for {partition} is {at.leader_epoch!r}. Epochs are of type int, from 0 "
            f"on and below 2**{EPOCH_BITS}. Give that of the record, or None where it is not known."
        )
    if not isinstance(at.metadata, str):
        raise ArgumentError(f"The metadata of the offset for {partition} is {at.metadata!r}. Give text.")
    return at


def checked_listener(listener: Any) -> Any:
    """Return the listener. Raise ArgumentError if it has none of the three methods, or one under a misspelt name."""
    if listener is None:
        return None
    for written, meant in _misspelt_methods(listener):
        raise ArgumentError(
            f"The method {written} of {type(listener).__name__} would never be called: there is no such callback. "
            f"Did you mean {meant}?"
        )
    if any(callable(getattr(listener, name, None)) for name in METHODS):
        return listener
    raise ArgumentError(
        f"{listener!r} is not a listener: it has none of {', '.join(METHODS)}. Inherit from kclient.RebalanceListener."
    )


def _misspelt_methods(listener: Any) -> Iterator[tuple[str, str]]:
    """Methods whose names look like that of a callback which the listener does not define, and that callback."""
    defined = {
        name for base in type(listener).__mro__ if base is not RebalanceListener for name in vars(base)
    }
    missing = {_plain(name): name for name in METHODS if name not in defined}
    for name in sorted(defined - {*METHODS}):
        written = _plain(OTHER_CLIENTS_NAMES.get(name, name))
        near = get_close_matches(written, missing, n=1, cutoff=0.9)
        if near and callable(getattr(listener, name, None)):
            yield name, missing[near[0]]


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def compiled_pattern(pattern: re.Pattern[str] | str) -> re.Pattern[str]:
    """Return the pattern, compiled. Raise ArgumentError if it is not a regular expression."""
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise ArgumentError(f"The pattern {pattern!r} is not a regular expression: {exc}.") from exc
    except TypeError:
        raise ArgumentError(f"The pattern must be text or a compiled one, not {pattern!r}.") from None


def checked_max_records(max_records: Any) -> int:
    """Return the number of records. Raise ArgumentError unless it is an int of at least 1."""
    if isinstance(max_records, bool) or not isinstance(max_records, int) or max_records < 1:
        raise ArgumentError(f"max_records is a whole number, 1 or more, not {max_records!r}.")
    return max_records


def check_leave(leave: Any) -> None:
    """Raise ArgumentError unless `leave` is True, False or None."""
    if leave not in (None, True, False):
        raise ArgumentError(
            f"leave is True, False, or None for what the kind of member calls for, not {leave!r}."
        )
