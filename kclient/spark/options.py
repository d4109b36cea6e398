"""The options of the source, checked as a whole: Spark's own Kafka names and ours, in any case. Pure.

Spark passes a mapping of lower-cased names to text. `option_table.py` is the table of the options, `kafka_keys.py`
holds `kafka.*`; this module checks what several options must agree on. No option is accepted and ignored except the
limits of streams: a batch ignores them with a warning, as Spark's own source does.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs

from kclient.config import Config
from kclient.config.errors import config_error
from kclient.deserializers.elements import MAX_ELEMENTS
from kclient.errors import ConfigError
from kclient.log import get_logger
from kclient.security.secret import HiddenText
from kclient.spark import option_table
from kclient.spark.kafka_keys import KafkaKeys
from kclient.spark.offsets import EARLIEST, LATEST
from kclient.spark.option_table import (
    CANONICAL,
    ENDS,
    OPTIONS,
    SELECTIONS,
    STARTS,
    STREAM_LIMITS,
    BadRecords,
    Bound,
    Format,
    Mode,
    Partitions,
    Selection,
    hidden,
)

log: Final = get_logger("kclient.spark")

SERVERS: Final = "kafka.bootstrap.servers"
WITH_SCHEMA: Final = ("json", "avro", "protobuf")
CLIENT_PREFIXES: Final[Mapping[Mode, str]] = {
    "batch": "spark-kafka-relation",
    "stream": "spark-kafka-source",
}


@attrs.frozen(kw_only=True)
class SourceOptions:
    """What one DataFrame or query reads, and how. Pickles, and holds `kafka.*` as texts instead of a connection."""

    selection: Selection
    start: Bound
    end: Bound
    kafka: KafkaKeys
    mode: Mode = "batch"
    late_start: str = "error"
    start_fallback: str = "error"
    fail_on_data_loss: bool = True
    fatal_losses: frozenset[str] = frozenset()
    """Kinds of losses that fail also where `fail_on_data_loss` is false; set by `kclient ingest`."""

    poll_timeout_ms: int = 120_000
    offset_retries: int = 3
    offset_retry_interval_ms: int = 1_000
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    client_prefix: str = "spark-kafka-relation"
    include_headers: bool = False
    include_internal_topics: bool = False
    commit_group: str | None = None
    commit_metadata: str | None = None
    key_format: Format = "raw"
    value_format: Format = "raw"
    key_schema: str | None = None
    value_schema: str | None = None
    registry_url: str | None = None
    registry_auth: HiddenText | None = None
    registry_auth_reference: str = ""
    bad_records: BadRecords = "fail"
    max_elements: int = MAX_ELEMENTS
    batch_rows: int = 10_000
    batch_bytes: int = 4_194_304
    read_ahead: int = 1
    pushdown_filters: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], mode: Mode = "batch") -> SourceOptions:
        """Check every option. Raises one ConfigError with all problems in `.problems`."""
        options = hidden(options)  # an error report may include local variables
        if _is_catalog_table(options):
            raise _error([CREATE_TABLE])
        problems: list[str] = []
        kafka = KafkaKeys.of(options)
        values = _values(options, mode, problems)
        _settle_registry_auth(values, problems)
        problems += _problems_of_selection(options)
        start = _first(values, STARTS) or Bound("startingOffsets", offset=_default_start(mode))
        end = _first(values, ENDS) or Bound("endingOffsets", offset=LATEST)
        selection = _first(values, SELECTIONS)
        assigned = selection.partitions if isinstance(selection, Partitions) else None
        problems += option_table.disagreements(
            start, end, assigned, values.get("startingOffsets.fallback", "error")
        )
        problems += _problems_of_group(values, kafka, start, mode)
        problems += _problems_of_formats(values)
        problems += _problems_of_limits(values)
        problems += _problems_of_kafka(kafka)
        if problems:
            raise _error(problems)
        fields = {
            option.field: values[name] for name, option in OPTIONS.items() if option.field and name in values
        }
        fields.setdefault("client_prefix", CLIENT_PREFIXES[mode])
        fields["registry_auth_reference"] = values.get("registry_auth_reference", "")
        return cls(selection=selection, start=start, end=end, kafka=kafka, mode=mode, **fields)

    @property
    def group(self) -> str | None:
        """The group whose committed offsets `startingOffsets=group` uses."""
        return self.commit_group or self.kafka.get("group.id")

    def config(self, role: str) -> Config:
        """Return the client's configuration in the process that connects; `role` ends its client id."""
        return self.kafka.config(f"{self.client_prefix}-{role}")


def _default_start(mode: Mode) -> int:
    return EARLIEST if mode == "batch" else LATEST


def _values(options: Mapping[str, str], mode: Mode, problems: list[str]) -> dict[str, Any]:
    """Return the checked values by canonical name; add every problem to `problems`."""
    values: dict[str, Any] = {}
    for written, raw in options.items():
        name = CANONICAL.get(written.lower())
        if name is None:
            problems += _unknown_option(written, raw, OPTIONS)
        elif mode == "batch" and name in STREAM_LIMITS:
            log.warning("option %s limits streams; a batch ignores it", name)
        elif OPTIONS[name].only not in (None, mode):
            problems += _in_other_mode(name, raw, mode)
        else:
            try:
                values[name] = OPTIONS[name].rule_in(mode)(raw)
            except ValueError as exc:
                problems.append(f"{name}{_shown(raw)} {exc}")
    return values


def _first(values: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the value of the option that takes precedence."""
    return next((values[name] for name in names if name in values), None)


def _problems_of_selection(options: Mapping[str, str]) -> Iterator[str]:
    given = [name for name in options if CANONICAL.get(name.lower()) in SELECTIONS]
    if len(given) != 1:
        yield "give exactly one of subscribe, subscribePattern and assign"


def _problems_of_group(values: dict[str, Any], kafka: KafkaKeys, start: Bound, mode: Mode) -> Iterator[str]:
    """Yield problems with the group to commit to, and set it: the alias commitOffsets takes it from kafka.group.id."""
    label, group = kafka.get("group.id"), values.get("commit.group.id")
    if values.get("commitOffsets") and mode == "batch":
        yield "commitOffsets would do nothing: a batch commits nothing; leave it out"
    elif values.get("commitOffsets"):
        if label is None and group is None:
            yield "commitOffsets=true needs kafka.group.id, the group to commit to; or give commit.group.id"
        elif label is not None and group not in (None, label):
            yield f"commit.group.id={group!r} and kafka.group.id={label!r} with commitOffsets=true; keep one group"
        else:
            values["commit.group.id"] = group or label
    if start.group and label is None and group is None:
        yield "startingOffsets=group needs a group: give commit.group.id"
    if mode == "batch" and group is not None and not start.group:
        yield "commit.group.id would do nothing: a batch commits nothing; use it with startingOffsets=group"
    if "commit.metadata" in values and values.get("commit.group.id") is None:
        yield "commit.metadata needs commit.group.id, the group to commit to"


def _problems_of_formats(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield problems with formats, schemas and the registry, which need each other."""
    url = values.get("schema.registry.url")
    formats = [values.get(name, "raw") for name in ("keyFormat", "valueFormat")]
    for part, chosen in zip(("key", "value"), formats, strict=True):
        schema = values.get(f"{part}Schema")
        if chosen in WITH_SCHEMA and schema is None and url is None:
            yield f"{part}Format={chosen} needs {part}Schema or schema.registry.url"
        if chosen not in WITH_SCHEMA and schema is not None:
            yield f"{part}Schema would do nothing with {part}Format={chosen}; leave it out or choose a format"
    if url is None and "schema.registry.auth" in values:
        yield "schema.registry.auth needs schema.registry.url"
    if url is not None and not any(chosen in WITH_SCHEMA for chosen in formats):
        yield "schema.registry.url would do nothing: no keyFormat or valueFormat has schemas"
    if url is not None and url.startswith("http:") and not values.get("schema.registry.allowHttp"):
        yield "schema.registry.url must be https; over a network that you trust set schema.registry.allowHttp=true"
    if values.get("badRecords", "fail") != "fail" and formats == ["raw", "raw"]:
        yield "badRecords would do nothing: keyFormat and valueFormat are raw, which is never bad"


def _problems_of_limits(values: Mapping[str, Any]) -> Iterator[str]:
    least, most = values.get("minOffsetsPerTrigger"), values.get("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        yield f"minOffsetsPerTrigger ({least}) must not be larger than maxOffsetsPerTrigger ({most})"


def _problems_of_kafka(kafka: KafkaKeys) -> Iterator[str]:
    if not kafka.get("bootstrap.servers"):
        yield f"{SERVERS} is missing: give host:port. In SQL, {CREATE_TABLE}"
    yield from kafka.problems()


def _settle_registry_auth(values: dict[str, Any], problems: list[str]) -> None:
    """Store the registry's credentials and the kind of reference, given by at most one of three options."""
    ways = [name for name in values if name.startswith("schema.registry.auth")]
    if len(ways) > 1:
        problems.append(f"{', '.join(sorted(ways))} say the same thing; keep one of them")
    for name in ways:
        values["schema.registry.auth"] = values[name]
        values["registry_auth_reference"] = name.removeprefix("schema.registry.auth").replace(".", "_")


def _shown(raw: str) -> str:
    shown = repr(raw)
    return f"={shown}" if len(shown) <= 82 else f"={shown[:81]}'…"


def _error(problems: list[str]) -> ConfigError:
    return config_error("The options of format('kclient') have", problems, "load again")


# --- options that the source recognizes and refuses -----------------------------------------------------------------


CREATE_TABLE: Final = (
    "CREATE TABLE loses options in Spark 4.3; use CREATE TEMPORARY VIEW … USING kclient OPTIONS (…)"
)


ONLY_THERE: Final[Mapping[Mode, str]] = {
    "batch": "is for streams",
    "stream": "is for batches: a stream has no end, so filter by the column timestamp or read a batch",
}
OTHER_MODE: Final[Mapping[Mode, Mapping[str, str]]] = {
    "batch": {"commit.metadata": "is for streams: a batch commits nothing"},
    "stream": {"pushdownFilters": "is for batches: Spark pushes no filters into a stream"},
}
"""The reason for which an option of the other mode is refused in this one."""

SPARK_SETTINGS: Final = ("spark.kafka.", "spark.sql.")


def _is_catalog_table(options: Mapping[str, str]) -> bool:
    """Return whether these are the properties of a catalog's table, where options are called `option.…`."""
    return "provider" in options and any(name.startswith("option.") for name in options)


def _unknown_option(written: str, raw: str, known: Iterable[str]) -> list[str]:
    """Return the problem with an option that no rule accepts; none for a harmless one or `kafka.*`."""
    lower = written.lower()
    if lower.startswith("kafka."):
        return []
    if lower == "path":
        return [f"load({raw!r}) is not how topics are named; use option('subscribe', {raw!r}).load()"]
    if lower.startswith(SPARK_SETTINGS):
        return [
            f"{written} is a setting of Spark's own Kafka source; this source has no use for it, leave it out"
        ]
    return [_suggestion(written, [*known, "kafka.bootstrap.servers"])]


def _in_other_mode(name: str, raw: str, mode: Mode) -> list[str]:
    """Return the problem with an option of the other mode; none where its value requests nothing."""
    if name == "pushdownFilters" and raw.strip().lower() == "false":
        return []
    return [f"{name} {OTHER_MODE[mode].get(name, ONLY_THERE[mode])}; leave it out"]


def _suggestion(written: str, known: Iterable[str]) -> str:
    names = {name.lower(): name for name in known}
    near = difflib.get_close_matches(written.lower(), sorted(names), n=1, cutoff=0.5)
    if near:
        return f"{written} is unknown; did you mean {names[near[0]]}?"
    return f"{written} is unknown; keys of Kafka itself begin with kafka."


# --- secrets that Spark may show -------------------------------------------------------------------------------------


HIDDEN_BY_SPARK: Final = re.compile(r"secret|password|token|access[.]?key|credential", re.IGNORECASE)
"""What `spark.redaction.regex` is by default."""

PUBLIC: Final = ("kafka.ssl.truststore.certificates", "kafka.ssl.keystore.certificate.chain")
"""Secrets to our configuration, which treats all of a store alike, but nothing that a certificate does not show."""


def exposed(options: SourceOptions) -> list[str]:
    """Return the options that hold a secret as text under a name that Spark does not hide."""
    names = [f"kafka.{name}" for name in options.kafka.secrets()]
    if options.registry_auth is not None and not options.registry_auth_reference:
        names.append("schema.registry.auth")
    return [name for name in names if not HIDDEN_BY_SPARK.search(name) and name not in PUBLIC]


def warn_of_secrets(options: SourceOptions) -> None:
    """Log one WARNING for the options that Spark may show."""
    names = exposed(options)
    if names:
        log.warning(
            "%s: Spark may show what these options hold, for spark.redaction.regex does not hide their names by "
            "default. Give references instead, read again for each connection: %s.file=/path or %s.env=NAME",
            ", ".join(names), names[0], names[0],
        )  # fmt: skip
