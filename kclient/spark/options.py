"""The options of the source, checked as a whole: Spark's own Kafka names and ours, in any case. Pure.

Spark hands over a mapping of lower-cased names to text. Nothing is accepted and ignored but the limits of streams,
which Spark's own source ignores in a batch too and which are told in a warning.

Spec: SP-39…SP-42, SP-44, SP-48.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kclient.config import Config, load
from kclient.config.model import SECRET_KEYS
from kclient.config.values import INT64_MAX, boolean, filled_text, integer, one_of
from kclient.errors import ConfigError
from kclient.spark import choices, unsupported
from kclient.spark.choices import Bound, Partitions, Selection
from kclient.spark.offsets import EARLIEST, LATEST, parse_partitions

log = logging.getLogger("kclient.spark")

KAFKA: Final = "kafka."
SERVERS: Final = "kafka.bootstrap.servers"
FETCH_BYTES: Final = 8_388_608

Rule = Callable[[str], Any]

RULES: Final[Mapping[str, Rule]] = {
    "subscribe": choices.topics,
    "subscribePattern": choices.pattern,
    "assign": lambda raw: Partitions(parse_partitions(raw)),
    "startingTimestamp": lambda raw: choices.timestamp("startingTimestamp", raw),
    "startingOffsetsByTimestamp": lambda raw: choices.timestamps("startingOffsetsByTimestamp", raw),
    "startingOffsets": lambda raw: choices.start_offsets("startingOffsets", raw),
    "startingOffsetsByTimestampStrategy": one_of("error", "latest"),
    "startingOffsets.fallback": one_of("error", "earliest"),
    "endingTimestamp": lambda raw: choices.timestamp("endingTimestamp", raw),
    "endingOffsetsByTimestamp": lambda raw: choices.timestamps("endingOffsetsByTimestamp", raw),
    "endingOffsets": lambda raw: choices.end_offsets("endingOffsets", raw),
    "failOnDataLoss": boolean,
    "kafkaConsumer.pollTimeoutMs": integer(1, INT64_MAX),
    "fetchOffset.numRetries": integer(0),
    "fetchOffset.retryIntervalMs": integer(0),
    "minPartitions": integer(1),
    "maxRecordsPerPartition": integer(1, INT64_MAX),
    "groupIdPrefix": filled_text,
    "includeHeaders": boolean,
    "includeInternalTopics": boolean,
    "arrow.batch.rows": integer(1, 1_000_000),
    "arrow.batch.bytes": integer(65_536, 67_108_864),
    "fetch.readAhead": integer(0, 1),
}
"""Every option that a batch honours, and what its value may be. `kafka.*` is checked by the consumer's own rules."""

STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")


def _hidden(kafka: Mapping[str, str]) -> str:
    """The `kafka.*` options as a repr may show them. They stay text, because a Secret does not travel to workers."""
    return repr(
        {key: "***" if key.replace(".", "_") in SECRET_KEYS else value for key, value in kafka.items()}
    )


@attrs.frozen(kw_only=True)
class SourceOptions:
    """What one DataFrame reads and how. It pickles, and holds the `kafka.*` texts instead of a connection."""

    selection: Selection
    start: Bound
    end: Bound
    kafka: Mapping[str, str] = attrs.field(repr=_hidden)
    late_start: str = "error"
    start_fallback: str = "error"
    fail_on_data_loss: bool = True
    poll_timeout_ms: int = 120_000
    offset_retries: int = 3
    offset_retry_interval_ms: int = 1_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    client_prefix: str = "spark-kafka-relation"
    include_headers: bool = False
    include_internal_topics: bool = False
    batch_rows: int = 10_000
    batch_bytes: int = 4_194_304
    read_ahead: int = 1

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Check every option of a batch. Raises one ConfigError with all problems in `.problems`."""
        if unsupported.is_table(options):
            raise _error([unsupported.CREATE_TABLE])
        problems: list[str] = []
        kafka = {
            name[len(KAFKA) :]: value for name, value in _lowered(options).items() if name.startswith(KAFKA)
        }
        values = _values(options, problems)
        selected = [values[name] for name in SELECTIONS if name in values]
        if sum(name.lower() in _lowered(options) for name in SELECTIONS) != 1:
            problems.append("give exactly one of subscribe, subscribePattern and assign")
        start = _first(values, STARTS) or Bound("startingOffsets", offset=EARLIEST)
        end = _first(values, ENDS) or Bound("endingOffsets", offset=LATEST)
        assigned = selected[0].partitions if selected and isinstance(selected[0], Partitions) else None
        problems += choices.disagreements(start, end, assigned)
        problems += _problems_of_kafka(kafka)
        if problems:
            raise _error(problems)
        given = {name: values[option] for option, name in _FIELDS.items() if option in values}
        return cls(selection=selected[0], start=start, end=end, kafka=kafka, **given)

    def config(self, role: str) -> Config:
        """The client's configuration in the process that connects; `role` ends its client id."""
        return _config(self.kafka, f"{self.client_prefix}-{role}")


_FIELDS: Final = {
    "startingOffsetsByTimestampStrategy": "late_start",
    "startingOffsets.fallback": "start_fallback",
    "failOnDataLoss": "fail_on_data_loss",
    "kafkaConsumer.pollTimeoutMs": "poll_timeout_ms",
    "fetchOffset.numRetries": "offset_retries",
    "fetchOffset.retryIntervalMs": "offset_retry_interval_ms",
    "minPartitions": "min_partitions",
    "maxRecordsPerPartition": "max_records_per_partition",
    "groupIdPrefix": "client_prefix",
    "includeHeaders": "include_headers",
    "includeInternalTopics": "include_internal_topics",
    "arrow.batch.rows": "batch_rows",
    "arrow.batch.bytes": "batch_bytes",
    "fetch.readAhead": "read_ahead",
}


def _lowered(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _values(options: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """The checked values by canonical name; whatever is wrong goes to `problems`."""
    canonical = {name.lower(): name for name in RULES}
    values: dict[str, Any] = {}
    for written, raw in options.items():
        name = canonical.get(written.lower())
        if name is None:
            problems += unsupported.problems(written, raw, RULES)
            continue
        try:
            values[name] = RULES[name](raw)
        except ValueError as error:
            problems.append(f"{name}={_shown(raw)} {error}")
    return values


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Bound | None:
    """The bound of the option that beats the others."""
    return next((values[name] for name in names if name in values), None)


def _problems_of_kafka(kafka: Mapping[str, str]) -> list[str]:
    problems = [
        f"{KAFKA}{name} cannot be set: {hint}"
        for name, hint in unsupported.KAFKA_KEYS.items()
        if name in kafka
    ]
    if not kafka.get("bootstrap.servers"):
        problems.append(f"{SERVERS} is missing: give host:port. In SQL, {unsupported.CREATE_TABLE}")
        kafka = {**kafka, "bootstrap.servers": "localhost:9092"}
    try:
        _config({name: value for name, value in kafka.items() if name not in unsupported.KAFKA_KEYS}, "check")
    except ConfigError as error:
        problems += [f"{KAFKA}{problem}" for problem in error.problems]
    return problems


def _config(kafka: Mapping[str, str], client_id: str) -> Config:
    """Kafka's keys over our defaults: large fetches, receive buffers as the system has them, no new topics."""
    ours: dict[str, Any] = {
        "client_id": kafka.get("group.id", client_id),
        "max_partition_fetch_bytes": FETCH_BYTES,
        "receive_buffer_bytes": -1,
        "allow_auto_create_topics": False,
    }
    theirs = {name.replace(".", "_"): value for name, value in kafka.items()}
    return load({}, config={**ours, **theirs})


def _shown(raw: str) -> str:
    return repr(raw) if len(raw) <= 80 else f"{raw[:80]!r}…"


def _error(problems: list[str]) -> ConfigError:
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return ConfigError(
        f"The options of format('kclient') have {count}:{listed}\nCorrect what is listed and load again.",
        problems=tuple(problems),
    )
