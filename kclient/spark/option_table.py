"""The table of the source's options: Spark's own Kafka names and ours, each with its rule and the field it fills.

A rule takes the option's text and returns the checked value, or raises ValueError with the end of a sentence that
begins with the option's name. The rules for topics, bounds and durations come first, the table is at the end. `kafka.*`
is not here: the consumer's own rules check it (`kafka_keys.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args
from urllib.parse import urlsplit

import attrs

from kclient.config.values import INT64_MAX, boolean, filled_text, integer, items, one_of, text
from kclient.security.secret import HiddenText
from kclient.spark.kafka_keys import is_shown
from kclient.spark.offsets import (
    EARLIEST,
    LATEST,
    check_topic,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
)
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
        """None: which topics match is only known after a lookup."""


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
    """Where to start or to end: `offset` and `timestamp` apply to all partitions, `offsets` and `timestamps` to each.

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
        """The partitions that the option names, None if it applies to all."""
        return self.offsets if self.timestamps is None else self.timestamps


def topics(raw: str) -> Topics:
    """Parse a comma-separated list of topics."""
    names = tuple(dict.fromkeys(check_topic(name) for name in items(raw)))
    if not names:
        raise ValueError("must name at least one topic")
    return Topics(names)


def pattern(raw: str) -> Pattern:
    """Parse a regular expression; a match anywhere in the name is enough."""
    if not raw.strip():
        raise ValueError("must not be empty")
    try:
        re.compile(raw)
    except re.error as exc:
        raise ValueError(f"is not a regular expression: {exc}") from None
    return Pattern(raw)


def stream_start(raw: str) -> Bound:
    """Parse `earliest`, `latest`, `group`, or JSON with −2 for earliest and −1 for latest."""
    return _start(raw, {"earliest": EARLIEST, "latest": LATEST})


def batch_start(raw: str) -> Bound:
    """Parse `earliest`, `group`, or JSON with −2 for earliest."""
    if text(raw).lower() == "latest":
        raise ValueError("cannot be latest in a batch, which would read nothing; write earliest or offsets")
    return _start(raw, {"earliest": EARLIEST})


def batch_end(raw: str) -> Bound:
    """Parse `latest`, or JSON with −1 for latest."""
    if text(raw).lower() == "earliest":
        raise ValueError("cannot be earliest: a batch would read nothing; write latest or offsets")
    return _offsets("endingOffsets", raw, {"latest": LATEST}, ())


def timestamp(option: str, raw: str) -> Bound:
    """Parse milliseconds since 1970 for all partitions."""
    return Bound(option, timestamp=_milliseconds(raw))


def timestamps(option: str, raw: str) -> Bound:
    """Parse JSON of milliseconds since 1970 per partition."""
    return Bound(option, timestamps=parse_timestamps(raw))


def duration_ms(raw: str) -> int:
    """Parse a duration of Spark, a whole number and us, ms, s, m, min, h, d or no unit (ms), into milliseconds."""
    match = _DURATION.fullmatch(text(raw).lower())
    unit = MICROSECONDS.get(match["unit"] or "ms") if match else None
    if match is None or unit is None:
        raise ValueError("must be a duration such as 15m, 10s or 500ms (us, ms, s, m, min, h, d)")
    return int(match["number"]) * unit // 1000


def commit_metadata(raw: str) -> str:
    """Check the metadata to store beside each committed offset against the broker's default limit."""
    size = len(raw.encode("utf-8", "surrogatepass"))
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"must have at most {MAX_METADATA_BYTES} bytes; it has {size}")
    return raw


def registry_url(raw: str) -> str:
    """Check the address of a schema registry, which holds no password. `schema.registry.allowHttp` is checked later."""
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
    """Return whether an address has more than a location: a user or a query. The text may be an invalid address."""
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
    """Return what start, end and `assign` contradict, one sentence each; a `fallback` other than error fills gaps."""
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


# --- the table -------------------------------------------------------------------------------------------------------


Mode: TypeAlias = Literal["batch", "stream"]
Rule: TypeAlias = Callable[[str], Any]

Format: TypeAlias = Literal["raw", "string", "json", "avro", "protobuf"]
BadRecords: TypeAlias = Literal["fail", "null", "column"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
BAD_RECORDS: Final[tuple[BadRecords, ...]] = get_args(BadRecords)


class Option(NamedTuple):
    """A rule, the field of SourceOptions that the value fills (None: several options share one), and the modes."""

    rule: Rule
    field: str | None = None
    only: Mode | None = None
    in_batch: Rule | None = None

    def rule_in(self, mode: Mode) -> Rule:
        """Return the rule for this mode."""
        return self.in_batch if self.in_batch is not None and mode == "batch" else self.rule


def _hidden_text(raw: str) -> HiddenText:
    return HiddenText(filled_text(raw))


_COUNT: Final = integer(1, INT64_MAX)

OPTIONS: Final[Mapping[str, Option]] = {
    # which partitions: exactly one of these
    "subscribe": Option(topics),
    "subscribePattern": Option(pattern),
    "assign": Option(lambda raw: Partitions(parse_partitions(raw))),
    # where to start: the first that is given takes precedence
    "startingTimestamp": Option(lambda raw: timestamp("startingTimestamp", raw)),
    "startingOffsetsByTimestamp": Option(lambda raw: timestamps("startingOffsetsByTimestamp", raw)),
    "startingOffsets": Option(stream_start, in_batch=batch_start),
    "startingOffsetsByTimestampStrategy": Option(one_of("error", "latest"), "late_start"),
    "startingOffsets.fallback": Option(one_of("error", "earliest", "latest"), "start_fallback"),
    # where to end: the first that is given takes precedence
    "endingTimestamp": Option(lambda raw: timestamp("endingTimestamp", raw), only="batch"),
    "endingOffsetsByTimestamp": Option(lambda raw: timestamps("endingOffsetsByTimestamp", raw), only="batch"),
    "endingOffsets": Option(batch_end, only="batch"),
    # how
    "failOnDataLoss": Option(boolean, "fail_on_data_loss"),
    "kafkaConsumer.pollTimeoutMs": Option(_COUNT, "poll_timeout_ms"),
    "fetchOffset.numRetries": Option(integer(0), "offset_retries"),
    "fetchOffset.retryIntervalMs": Option(integer(0), "offset_retry_interval_ms"),
    "maxOffsetsPerTrigger": Option(_COUNT, "max_offsets_per_trigger", "stream"),
    "minOffsetsPerTrigger": Option(_COUNT, "min_offsets_per_trigger", "stream"),
    "maxTriggerDelay": Option(duration_ms, "max_trigger_delay_ms", "stream"),
    "minPartitions": Option(integer(1), "min_partitions"),
    "maxRecordsPerPartition": Option(_COUNT, "max_records_per_partition"),
    "groupIdPrefix": Option(filled_text, "client_prefix"),
    "includeHeaders": Option(boolean, "include_headers"),
    # ours
    "commit.group.id": Option(filled_text, "commit_group"),
    "commitOffsets": Option(boolean),
    "commit.metadata": Option(commit_metadata, "commit_metadata", "stream"),
    "keyFormat": Option(one_of(*FORMATS), "key_format"),
    "valueFormat": Option(one_of(*FORMATS), "value_format"),
    "keySchema": Option(filled_text, "key_schema"),
    "valueSchema": Option(filled_text, "value_schema"),
    "schema.registry.url": Option(registry_url, "registry_url"),
    "schema.registry.allowHttp": Option(boolean),
    "schema.registry.auth": Option(_hidden_text, "registry_auth"),
    "schema.registry.auth.env": Option(filled_text),
    "schema.registry.auth.file": Option(filled_text),
    "badRecords": Option(one_of(*BAD_RECORDS), "bad_records"),
    "maxElementsPerValue": Option(integer(1, INT64_MAX), "max_elements"),
    "arrow.batch.rows": Option(integer(1, 1_000_000), "batch_rows"),
    "arrow.batch.bytes": Option(integer(65_536, 67_108_864), "batch_bytes"),
    "fetch.readAhead": Option(integer(0, 4), "read_ahead"),
    "pushdownFilters": Option(boolean, "pushdown_filters", "batch"),
    "includeInternalTopics": Option(boolean, "include_internal_topics"),
}

SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")
STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
STREAM_LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
"""A batch ignores these with a warning, as Spark's own source does: programs move over from it."""

SECRETS: Final = ("schema.registry.auth",)
"""Options beside `kafka.*` whose text is never shown."""

REGISTRY_URL: Final = "schema.registry.url"

CANONICAL: Final[Mapping[str, str]] = {name.lower(): name for name in OPTIONS}
"""Lower case, as Spark hands options over → the name as it is documented."""


def hidden(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with every value that may be a secret hidden from reprs, unknown names included."""
    return {
        name: raw if _may_be_seen(name.lower(), raw) else HiddenText(raw) for name, raw in options.items()
    }


def _may_be_seen(lower: str, raw: str) -> bool:
    if lower == REGISTRY_URL and may_hold_secret(raw):
        return False
    known = lower in CANONICAL and CANONICAL[lower] not in SECRETS
    return known or lower == "path" or (lower.startswith("kafka.") and is_shown(lower))
