"""The settings of `kclient ingest`, checked as a whole before anything is opened. Pure.

`IngestSettings.parse` takes the settings by the long names of the command line's options, with underscores: as text or
as values. First each setting is checked by its own rule, then the settings against each other. One ConfigError lists
all problems; a problem between settings is a whole sentence.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from kclient.config.errors import config_error
from kclient.config.values import boolean, filled_text, one_of, servers
from kclient.errors import ConfigError
from kclient.spark.ingest import setting_values
from kclient.spark.ingest.setting_values import (
    DRAIN,
    EARLIEST,
    LATEST,
    PARTITION_KEYS,
    Location,
    StartPosition,
    Trigger,
)
from kclient.spark.options import SourceOptions
from kclient.spark.sink.store import is_remote, places_overlap
from kclient.types import TopicPartition

Format: TypeAlias = Literal["raw", "string", "json", "avro", "protobuf"]
Engine: TypeAlias = Literal["spark", "direct"]
Codec: TypeAlias = Literal["zstd", "snappy", "lz4", "gzip", "none"]
Writer: TypeAlias = Literal["direct", "spark"]
OnBadRecord: TypeAlias = Literal["fail", "null", "dlq"]
OnNewField: TypeAlias = Literal["ignore", "rescue", "add", "fail"]

Rule = Callable[[Any], Any]

RULES: Final[Mapping[str, Rule]] = {
    "bootstrap": lambda raw: ",".join(servers(raw)),
    "topics": setting_values.topics,
    "sink": setting_values.location,
    "catalog": setting_values.file,
    "job": setting_values.job_name,
    "checkpoint": setting_values.place,
    "group": filled_text,
    "trigger": setting_values.trigger,
    "start": setting_values.start,
    "end": setting_values.end,
    "backfill": boolean,
    "format": one_of("raw", "string", "json", "avro", "protobuf"),
    "schema": setting_values.schema,
    "on_new_field": one_of("ignore", "rescue", "add", "fail"),
    "partition_by": setting_values.partition_by,
    "headers": boolean,
    "max_per_trigger": setting_values.count,
    "parallelism": setting_values.count,
    "engine": one_of("spark", "direct"),
    "writer": one_of("direct", "spark"),
    "codec": one_of("zstd", "snappy", "lz4", "gzip", "none"),
    "target_file_mb": setting_values.count,
    "max_latency": setting_values.interval_ms,
    "dlq": setting_values.location,
    "on_bad_record": one_of("fail", "null", "dlq"),
    "from_dlq": setting_values.location,
    "fail_on_data_loss": boolean,
    "master": filled_text,
    "conf": setting_values.pairs,
    "options": setting_values.pairs,
}
"""Setting → what it may be. `options` are those of the source, `kafka.*` among them; `conf` is Spark's."""


def _names(pairs: Mapping[str, str]) -> str:
    """Return the names only, for a repr: the texts may be secrets."""
    return repr(sorted(pairs))


REGISTRY: Final = "registry:"
INFER: Final = "infer"
WITH_NEW_FIELDS: Final = ("json", "avro", "protobuf")
"""Formats whose values may have fields that a schema does not name."""
BAD_RECORDS: Final[Mapping[str, str]] = {"fail": "fail", "null": "column", "dlq": "column"}


@attrs.frozen(kw_only=True)
class IngestSettings:
    """What one ingest job lands, from where, how and where to. Paths are absolute.

    `max_latency` is in milliseconds. `on_new_field` says what becomes of fields that the schema does not name:
    `parse` makes it `rescue` for formats that have such fields, because the topic does not keep them for ever.
    """

    bootstrap: str
    topics: tuple[str, ...]
    sink: Location
    checkpoint: str
    catalog: str | None = None
    job: str | None = None
    group: str | None = None
    trigger: Trigger = DRAIN
    start: StartPosition = EARLIEST
    end: StartPosition = LATEST
    backfill: bool = False
    format: Format = "raw"
    schema: str | None = None
    on_new_field: OnNewField = "ignore"
    partition_by: tuple[str, ...] = ("topic",)
    headers: bool = True
    max_per_trigger: int | None = None
    parallelism: int | None = None
    engine: Engine = "spark"
    writer: Writer = "direct"
    codec: Codec = "zstd"
    target_file_mb: int | None = None
    max_latency: int | None = None
    dlq: Location | None = None
    on_bad_record: OnBadRecord = "fail"
    from_dlq: Location | None = None
    fail_on_data_loss: bool = True
    master: str = "local[*,4]"
    conf: Mapping[str, str] = attrs.field(factory=dict, repr=_names)
    options: Mapping[str, str] = attrs.field(factory=dict, repr=_names)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> IngestSettings:
        """Check every setting; None counts as not given. Raises one ConfigError with all problems in `.problems`."""
        problems: list[str] = []
        found: dict[str, Any] = {}
        wrong: list[str] = []
        for name, raw in given.items():
            if name not in RULES:
                problems.append(_unknown(name))
            elif raw is not None:
                try:
                    found[name] = RULES[name](raw)
                except ValueError as exc:
                    wrong.append(flag_of(name))
                    problems.append(f"{wrong[-1]} {exc}")
        missing = [name for name in ("bootstrap", "topics", "sink", "checkpoint") if given.get(name) is None]
        problems += [f"--{name} is missing" for name in missing]
        problems += [problem for problem in disagreements(found) if not _names_one(problem, wrong)]
        if problems:
            raise _error(problems)
        if found.get("format") in WITH_NEW_FIELDS:
            found.setdefault("on_new_field", "rescue")  # nothing is lost unasked
        settings = cls(**with_default_writer(found))
        try:
            if settings.backfill:
                SourceOptions.parse(settings.batch_options())
            SourceOptions.parse(settings.stream_options(), "stream")
        except ConfigError as exc:  # what only the source can refuse
            raise _error([as_typed(problem, settings.options) for problem in exc.problems]) from exc
        return settings

    @property
    def evolves(self) -> bool:
        """Whether the job may add fields to its schema, and columns to a table."""
        return self.on_new_field == "add"

    @property
    def rescue(self) -> bool:
        """Whether fields that the schema does not name land in a column of their own."""
        return self.format in WITH_NEW_FIELDS and self.on_new_field in ("rescue", "add")

    def stream_options(
        self,
        start: Mapping[TopicPartition, int] | None = None,
        rows_per_file: int | None = None,
        min_rows: int | None = None,
    ) -> dict[str, str]:
        """Return the options of the source: cluster, topics, formats, limits, and the `kafka.*` settings.

        `start` is where an earlier run decided to begin; without it, it is what `--start` says. `rows_per_file` cuts
        ranges in place of `--parallelism`. A batch waits for `min_rows`, for `max_latency` at most.
        """
        limits = {
            "maxOffsetsPerTrigger": self.max_per_trigger,
            "minOffsetsPerTrigger": min_rows,
            "maxTriggerDelay": None if min_rows is None else self.max_latency,
            "minPartitions": None if rows_per_file else self.parallelism,
            "maxRecordsPerPartition": rows_per_file,
        }
        begin = StartPosition(offsets=start) if start else self.start
        fallback = {"startingOffsets.fallback": "earliest"} if start else {}
        return {
            **self.options,
            **self._selection(),
            **self._format(),
            **begin.options(),
            **fallback,
            **{name: str(number) for name, number in limits.items() if number is not None},
            **({"commit.group.id": self.group} if begin.word == "group" and self.group else {}),
            "kafka.bootstrap.servers": self.bootstrap,
            "includeHeaders": str(self.headers).lower(),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
        }

    def batch_options(self, rows_per_file: int | None = None) -> dict[str, str]:
        """Return the options of a backfill: those of a stream, with `--start` and `--end`."""
        options = self.stream_options(rows_per_file=rows_per_file)
        options.pop("maxOffsetsPerTrigger", None)
        return options | self.end.end_options()

    def _selection(self) -> dict[str, str]:
        pattern = setting_values.expression(self.topics)
        return {"subscribe": ",".join(self.topics)} if pattern is None else {"subscribePattern": pattern}

    def _format(self) -> dict[str, str]:
        """Return the options of the source's format; none while the schema must still be inferred from records."""
        if self.format == "raw" or self.schema == INFER:
            return {}
        chosen = {"valueFormat": self.format, "badRecords": BAD_RECORDS[self.on_bad_record]}
        if self.schema is None:
            return chosen
        if self.schema.startswith(REGISTRY):
            return chosen | {"schema.registry.url": self.schema.removeprefix(REGISTRY)}
        return chosen | {"valueSchema": self.schema}


def _error(problems: list[str]) -> ConfigError:
    return config_error("The settings of this ingest job have", problems, "start it again")


def _names_one(problem: str, options: list[str]) -> bool:
    """Return whether a problem names one of these options: a wrong setting needs no second message."""
    return any(option in options for option in re.findall("--[a-z-]+", problem))


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is not a setting of an ingest job{hint}"


# --- rules between settings ------------------------------------------------------------------------------------------


OWN_OPTIONS: Final[Mapping[str, str]] = {
    "kafka.bootstrap.servers": "--bootstrap",
    "subscribe": "--topics",
    "subscribepattern": "--topics",
    "assign": "--topics",
    "startingoffsets": "--start",
    "startingoffsetsbytimestamp": "--start",
    "startingtimestamp": "--start",
    "startingoffsetsbytimestampstrategy": "--start",
    "endingoffsets": "--end",
    "endingoffsetsbytimestamp": "--end",
    "endingtimestamp": "--end",
    "maxoffsetspertrigger": "--max-per-trigger",
    "minpartitions": "--parallelism",
    "valueformat": "--format",
    "valueschema": "--schema",
    "badrecords": "--on-bad-record",
    "commit.group.id": "--group",
    "commitoffsets": "--group",
    "kafka.group.id": "--group",
    "includeheaders": "--headers or --no-headers",
    "failondataloss": "--fail-on-data-loss or --accept-data-loss",
}
"""Options of the source, and what is typed in place of each."""

BATCHES: Final = frozenset({"trigger", "max_per_trigger", "max_latency"})
USELESS: Final[Mapping[str, frozenset[str]]] = {
    "backfill": BATCHES,
    "from_dlq": BATCHES | {"start", "group", "parallelism", "target_file_mb", "master", "conf"},
}
"""What lands beside a job, and the settings that it has no use for: all of it is one batch."""

KAFKA: Final = "kafka."
HINTS: Final[Mapping[str, str]] = {
    "set schema.registry.allowHttp": "give --options schema.registry.allowHttp",
    "use startingOffsets": "use --start",
    "give commit.group.id": "give --group",
    "set option failOnDataLoss to false": "give --accept-data-loss",
    "set startingOffsets.fallback to earliest": "give --options startingOffsets.fallback=earliest",
}
"""Advice in the source's errors → the same for the options of `kclient ingest`."""

Found = Mapping[str, Any]


def with_default_writer(found: Found) -> dict[str, Any]:
    """Return the settings; for a table, default to the only writer that supports tables."""
    table = "sink" in found and found["sink"].kind == "table"
    return {**({"writer": "spark"} if table else {}), **found}


def given_as(name: str) -> str:
    """Return how the user typed an option of the source."""
    if name.lower().startswith(KAFKA):
        return f"--set or --properties: {name[len(KAFKA) :].replace('_', '.')}"
    return f"--options {name}"


def as_typed(problem: str, options: Collection[str] = ()) -> str:
    """Rewrite a problem of the source's options with the names that the user typed."""
    for advice, here in HINTS.items():
        problem = problem.replace(advice, here)
    name = re.split(r"[^\w.]", problem, maxsplit=1)[0]
    rest = problem[len(name) :].replace(" (config)", "", 1)
    if name.lower().startswith(KAFKA) or name in options:
        return given_as(name) + rest
    typed = "--schema registry:URL" if name == "schema.registry.url" else OWN_OPTIONS.get(name.lower())
    return f"{typed}{rest}" if typed else problem


def disagreements(found: Found) -> list[str]:
    """Return every contradiction between settings."""
    checks = (_reading, _beside, _decoding, _writing, _into_tables, _running, _places, _stores)
    return [problem for check in checks for problem in check(found)]


def flag_of(setting: str) -> str:
    """Return the command-line flag of a setting."""
    return f"--{setting.replace('_', '-')}"


def _reading(found: Found) -> Iterator[str]:
    for name in found.get("options", {}):
        if typed := OWN_OPTIONS.get(name.lower()):
            yield f"{given_as(name)} repeats {typed}; give only that"
    yield from _repeated(found.get("options", {}))
    options = {name.lower() for name in found.get("options", {})}
    if "target_file_mb" in found and "maxrecordsperpartition" in options:
        yield "--target-file-mb and --options maxRecordsPerPartition both set the size of files; give one of them"
    yield from _gathering(found, options)
    if "schema.registry.url" in options and str(found.get("schema")).startswith("registry:"):
        yield "--options schema.registry.url repeats --schema registry:URL; give one of them"
    start = found.get("start")
    if start is not None and start.word == "group" and "group" not in found:
        yield "--start group needs --group"
    if "end" in found and not found.get("backfill"):
        yield "--end is for --backfill: a job goes on for as long as records come; give --backfill, or leave it out"
    yield from _order(found)
    if "from_dlq" in found and (found.get("format", "raw") == "raw" or found.get("backfill")):
        yield "--from-dlq reads dead letters with --format, and without --backfill"


def _repeated(options: Collection[str]) -> Iterator[str]:
    """Yield options that are given in two spellings: the source reads them without regard to case."""
    first: dict[str, str] = {}
    for name in options:
        if (other := first.setdefault(name.lower(), name)) != name:
            yield f"{given_as(name)} repeats {given_as(other)}; give one of them"


def _order(found: Found) -> Iterator[str]:
    """Yield what is wrong with two times that have nothing between them: all would be done, and nothing landed."""
    start, end = found.get("start", EARLIEST).timestamp_ms, found.get("end", LATEST).timestamp_ms
    if None not in (start, end) and end <= start:
        yield "--end is not after --start: there is nothing between them to land"


def _gathering(found: Found, options: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with --max-latency."""
    if "max_latency" not in found:
        return
    if "target_file_mb" not in found:
        yield "--max-latency needs --target-file-mb: a batch waits for files of that size, for this long at most"
    if found.get("trigger", DRAIN).kind != "interval":
        yield "--max-latency is for --trigger DURATION, such as 10s: other runs take what is there, and end"
    if given := {"minoffsetspertrigger", "maxtriggerdelay"} & set(options):
        yield f"--max-latency and --options {', '.join(sorted(given))} both say how long a batch waits; give only one"


def _beside(found: Found) -> Iterator[str]:
    for what, useless in USELESS.items():
        for name in sorted((useless & found.keys()) - _used_beside(found, what)) if found.get(what) else ():
            yield f"{flag_of(name)} would do nothing with {flag_of(what)}: {_instead(name, what)}"
    start = found.get("start")
    if found.get("backfill") and "group" in found and (start is None or start.word != "group"):
        yield "--group would do nothing with --backfill, which commits nothing: leave it out, or give --start group"
    if "from_dlq" in found and not found.get("fail_on_data_loss", True):
        yield "--accept-data-loss would do nothing with --from-dlq, which reads no topic: leave it out"


def _used_beside(found: Found, what: str) -> set[str]:
    """Return what a backfill uses in a table, which knows how far it came: there it has batches."""
    sink = found.get("sink")
    return {"max_per_trigger"} if what == "backfill" and sink is not None and sink.is_lake else set()


def _instead(name: str, what: str) -> str:
    """Return what to do in place of a useless setting: a backfill of files is one batch, so days cut it."""
    if (name, what) == ("max_per_trigger", "backfill"):
        return "leave it out, or cut the backfill with --start and --end, one run for each day"
    return "leave it out"


def _decoding(found: Found) -> Iterator[str]:
    form, schema = found.get("format", "raw"), found.get("schema")
    if form in ("raw", "string") and schema is not None:
        yield "--schema is for --format json, avro and protobuf"
    if form in ("json", "avro", "protobuf") and schema is None:
        yield f"--format {form} needs --schema"
    if form == "raw" and found.get("on_bad_record", "fail") != "fail":
        yield "--on-bad-record is for formats that are decoded: give --format"
    if (found.get("on_bad_record") == "dlq") != ("dlq" in found):
        yield "--on-bad-record dlq and --dlq need each other"
    yield from _new_fields(form, found)
    if schema == "infer" and form in ("avro", "protobuf"):
        yield f"--schema infer is for --format json: {form} cannot be read without a schema"
    if schema == "infer" and found.get("engine") == "direct":
        yield "--schema infer needs --engine spark, which finds the types: give --engine direct the schema itself"


def _new_fields(form: str, found: Found) -> Iterator[str]:
    rule = found.get("on_new_field", "ignore")
    if rule != "ignore" and form not in WITH_NEW_FIELDS:
        yield f"--on-new-field {rule} is for --format json, avro and protobuf: give --format, or leave it out"


def _writing(found: Found) -> Iterator[str]:
    written = with_default_writer(found)
    if written.get("writer") != "spark":
        if "sink" in found and found["sink"].kind == "table":
            yield "--writer direct writes files: a table needs --writer spark"
        for name in found.get("options", {}):
            if name.lower().startswith("arrow.batch."):
                yield f"--options {name} is for --writer spark: the direct writer's batches have a size of their own"
        return
    if found.get("engine") == "direct":
        what = "--writer spark" if "writer" in found else "a table"
        yield f"--engine direct has no Spark, so {what} cannot be: give --engine spark"
    if found.get("on_bad_record") == "dlq":
        yield "--on-bad-record dlq needs --writer direct: Spark's sink cannot write to two places in one batch"
    for name in ("backfill", "from_dlq"):
        if found.get(name):
            yield f"{flag_of(name)} lands through a manifest: it needs --writer direct"


def _into_tables(found: Found) -> Iterator[str]:
    sink, keys = found.get("sink"), found.get("partition_by", PARTITION_KEYS[:1])
    if sink is not None and not sink.is_lake and keys not in (PARTITION_KEYS[:1], PARTITION_KEYS):
        yield "--partition-by must be topic, or topic,date(timestamp): other keys are for --sink iceberg:… and delta:…"
    if sink is not None and "job" in found and not sink.is_lake:
        yield "--job names a job in its table: it is for --sink iceberg:… and delta:…"
    if sink is not None and "catalog" in found and sink.kind != "iceberg":
        yield "--catalog is for --sink iceberg:…: leave it out"
    if sink is None or not sink.is_lake:
        return
    if found.get("writer") == "spark":
        yield f"--sink {sink.kind}:… is written by the job itself: leave --writer out, or give --sink table:…"


def _running(found: Found) -> Iterator[str]:
    for name in ("master", "conf"):
        if found.get("engine") == "direct" and found.get(name):
            yield f"--{name} is for --engine spark: the direct engine has no Spark"


def _places(found: Found) -> Iterator[str]:
    places = {name: found[name].where for name in ("sink", "dlq", "from_dlq") if _is_place(found.get(name))}
    places |= {"checkpoint": found["checkpoint"]} if "checkpoint" in found else {}
    for one, other in itertools.combinations(places, 2):
        if places_overlap(places[one], places[other]):
            yield (
                f"{flag_of(one)} and {flag_of(other)} must be two places, and neither inside the other: what cleans or "
                "replaces files of the one would take those of the other"
            )
    for name in ("dlq", "from_dlq"):
        if name in found and found[name].kind != "parquet":
            yield f"{flag_of(name)} must be parquet:DIRECTORY, or parquet:s3://BUCKET/PREFIX"


def _is_place(location: Location | None) -> bool:
    """Return whether a location is a place of files, and not the name of a table."""
    return location is not None and location.kind in ("parquet", "delta")


def _stores(found: Found) -> Iterator[str]:
    """Yield what cannot be done in an object store."""
    sink = found.get("sink")
    if is_remote(str(found.get("checkpoint", ""))) and with_default_writer(found).get("writer") == "spark":
        yield (
            "--checkpoint must be a directory with --writer spark, which keeps it through Hadoop's file systems: mount "
            "a share, or give --writer direct, or --sink iceberg:… or delta:… in place of table:…"
        )
    if sink is None or sink.kind != "parquet" or not is_remote(sink.where):
        return
    if found.get("writer") == "spark":
        yield f"--writer spark writes through Hadoop's file systems: {sink} needs --writer direct"
