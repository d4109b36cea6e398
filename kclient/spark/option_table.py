"""The table of the source's options: Spark's own Kafka names and ours, each with its rule and the field it fills.

A rule takes the option's text and returns the checked value, or raises ValueError with the end of a sentence that
begins with the option's name. `kafka.*` is not here: the consumer's own rules check it (`kafka_keys.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from kclient.config.values import INT64_MAX, boolean, filled_text, integer, one_of
from kclient.security.secret import HiddenText
from kclient.spark import choices
from kclient.spark.choices import Partitions
from kclient.spark.kafka_keys import is_shown
from kclient.spark.offsets import parse_partitions

Mode: TypeAlias = Literal["batch", "stream"]
Rule: TypeAlias = Callable[[str], Any]

Format: TypeAlias = Literal["raw", "string", "json", "avro", "protobuf"]
BadRecords: TypeAlias = Literal["fail", "null", "column"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
BAD_RECORDS: Final[tuple[BadRecords, ...]] = get_args(BadRecords)


MAX_ELEMENTS: Final = 1_000_000


class Option(NamedTuple):
    """A rule, the field of SourceOptions that the value fills (None: several options share one), and the modes."""

    rule: Rule
    field: str | None = None
    only: Mode | None = None
    in_batch: Rule | None = None

    def rule_in(self, mode: Mode) -> Rule:
        """The rule that holds in this mode."""
        return self.in_batch if self.in_batch is not None and mode == "batch" else self.rule


def _hidden_text(raw: str) -> HiddenText:
    return HiddenText(filled_text(raw))


_COUNT: Final = integer(1, INT64_MAX)

OPTIONS: Final[Mapping[str, Option]] = {
    # which partitions: exactly one of these
    "subscribe": Option(choices.topics),
    "subscribePattern": Option(choices.pattern),
    "assign": Option(lambda raw: Partitions(parse_partitions(raw))),
    # from where: the first that is given holds
    "startingTimestamp": Option(lambda raw: choices.timestamp("startingTimestamp", raw)),
    "startingOffsetsByTimestamp": Option(lambda raw: choices.timestamps("startingOffsetsByTimestamp", raw)),
    "startingOffsets": Option(choices.stream_start, in_batch=choices.batch_start),
    "startingOffsetsByTimestampStrategy": Option(one_of("error", "latest"), "late_start"),
    "startingOffsets.fallback": Option(one_of("error", "earliest", "latest"), "start_fallback"),
    # to where: the first that is given holds
    "endingTimestamp": Option(lambda raw: choices.timestamp("endingTimestamp", raw), only="batch"),
    "endingOffsetsByTimestamp": Option(
        lambda raw: choices.timestamps("endingOffsetsByTimestamp", raw), only="batch"
    ),
    "endingOffsets": Option(choices.batch_end, only="batch"),
    # how
    "failOnDataLoss": Option(boolean, "fail_on_data_loss"),
    "kafkaConsumer.pollTimeoutMs": Option(_COUNT, "poll_timeout_ms"),
    "fetchOffset.numRetries": Option(integer(0), "offset_retries"),
    "fetchOffset.retryIntervalMs": Option(integer(0), "offset_retry_interval_ms"),
    "maxOffsetsPerTrigger": Option(_COUNT, "max_offsets_per_trigger", "stream"),
    "minOffsetsPerTrigger": Option(_COUNT, "min_offsets_per_trigger", "stream"),
    "maxTriggerDelay": Option(choices.duration_ms, "max_trigger_delay_ms", "stream"),
    "minPartitions": Option(integer(1), "min_partitions"),
    "maxRecordsPerPartition": Option(_COUNT, "max_records_per_partition"),
    "groupIdPrefix": Option(filled_text, "client_prefix"),
    "includeHeaders": Option(boolean, "include_headers"),
    # ours
    "commit.group.id": Option(filled_text, "commit_group"),
    "commitOffsets": Option(boolean),
    "commit.metadata": Option(choices.commit_metadata, "commit_metadata", "stream"),
    "keyFormat": Option(one_of(*FORMATS), "key_format"),
    "valueFormat": Option(one_of(*FORMATS), "value_format"),
    "keySchema": Option(filled_text, "key_schema"),
    "valueSchema": Option(filled_text, "value_schema"),
    "schema.registry.url": Option(choices.registry_url, "registry_url"),
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
"""Options beside `kafka.*` whose text nobody may see."""

REGISTRY_URL: Final = "schema.registry.url"

CANONICAL: Final[Mapping[str, str]] = {name.lower(): name for name in OPTIONS}
"""Lower case, as Spark hands options over → the name as it is documented."""


def hidden(options: Mapping[str, str]) -> dict[str, str]:
    """The same texts, those that may be a secret in a form that no repr shows; so may one under an unknown name."""
    return {
        name: raw if _may_be_seen(name.lower(), raw) else HiddenText(raw) for name, raw in options.items()
    }


def _may_be_seen(lower: str, raw: str) -> bool:
    if lower == REGISTRY_URL and choices.may_hold_secret(raw):
        return False
    known = lower in CANONICAL and CANONICAL[lower] not in SECRETS
    return known or lower == "path" or (lower.startswith("kafka.") and is_shown(lower))
