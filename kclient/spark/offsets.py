"""Offsets as JSON, `{"topic": {"0": 123}}`: the form that Spark's own Kafka source reads and writes.

What is written has one canonical order (topics by name, partitions by number), because Spark compares offsets as
text. What is read is not trusted: every key, number and size is checked. Functions raise ValueError with the end of a
sentence that begins with the option's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kclient.types import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1

MAX_JSON_CHARACTERS: Final = 4_194_304  # 100,000 partitions need about a quarter of it
MAX_PARTITION: Final = 2**31 - 1
MAX_OFFSET: Final = 2**63 - 1
_PARTITION = re.compile(r"0|[1-9][0-9]{0,9}", re.ASCII)
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


def dump_offsets(offsets: Mapping[TopicPartition, int]) -> str:
    """Return the canonical text of offsets."""
    topics: dict[str, dict[str, int]] = {}
    for topic, partition in sorted(offsets):
        topics.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return json.dumps(topics)


def parse_offsets(text: str, words: Collection[int] = ()) -> dict[TopicPartition, int]:
    """Parse `{"t": {"0": 23}}` into canonical order. `words` are the negative numbers that are allowed here."""

    def offset(number: Any) -> int:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_OFFSET:
            if number in words and not isinstance(number, bool | float):
                return int(number)
            allowed = " or ".join(["an offset of at least 0", *map(str, words)])
            raise ValueError(f"must give each partition {allowed}, not {_short(number)}")
        return number

    return _per_partition(text, offset)


def parse_timestamps(text: str) -> dict[TopicPartition, int]:
    """Parse `{"t": {"0": 1000}}`: milliseconds since 1970 per partition."""
    return parse_offsets(text)


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """Parse `{"t": [0, 1]}`; sort by topic and number."""
    found: list[TopicPartition] = []
    for topic, numbers in _topics(text).items():
        if not isinstance(numbers, list) or not numbers:
            raise ValueError(f"must give topic {topic!r} a list of partition numbers")
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= MAX_PARTITION:
                raise ValueError(f"names no partition of {topic!r}: {_short(number)}")
            found.append(TopicPartition(topic, number))
    if len(dict.fromkeys(found)) != len(found):
        raise ValueError("names a partition twice")
    return tuple(sorted(found))


def check_topic(name: str) -> str:
    """Return the name of a topic if Kafka allows it."""
    if not _TOPIC.fullmatch(name) or name in (".", ".."):
        raise ValueError(
            f"names {_short(name)}, which is not a topic name: letters, digits, '.', '_' and '-'"
        )
    return name


def _per_partition(text: str, read: Callable[[Any], int]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, partitions in _topics(text).items():
        if not isinstance(partitions, dict) or not partitions:
            raise ValueError(f'must give topic {topic!r} an object such as {{"0": 23}}')
        for key, number in partitions.items():
            if not _PARTITION.fullmatch(key) or int(key) > MAX_PARTITION:
                raise ValueError(f"names no partition of {topic!r}: {_short(key)}")
            found[TopicPartition(topic, int(key))] = read(number)
    return {tp: found[tp] for tp in sorted(found)}


def _topics(text: str) -> dict[str, Any]:
    if len(text) > MAX_JSON_CHARACTERS:
        raise ValueError(f"has {len(text)} characters; at most {MAX_JSON_CHARACTERS} are read")
    try:
        parsed = json.loads(text, object_pairs_hook=_without_repeats)
    except (json.JSONDecodeError, RecursionError) as exc:
        raise ValueError(f"is not JSON: {exc}") from None
    if not isinstance(parsed, dict) or not parsed:
        raise ValueError('must be a JSON object such as {"topic": {"0": 23}}')
    return {check_topic(topic): value for topic, value in parsed.items()}


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("names the same topic or partition twice")
    return found


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"
