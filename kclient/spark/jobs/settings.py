"""The settings of `kclient ingest`, checked as a whole before anything is opened. Pure.

`IngestSettings.parse` takes what a command line or a program says, by the long names of the options with underscores:
texts as people write them, or values. All that is wrong comes in one ConfigError.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from kclient.config.problems import config_error
from kclient.config.values import boolean, filled_text, one_of, servers
from kclient.errors import ConfigError
from kclient.spark.jobs import starts, values
from kclient.spark.jobs.agreement import as_typed, chosen_writer, disagreements, flag_of
from kclient.spark.jobs.starts import EARLIEST, LATEST, Start
from kclient.spark.jobs.values import DRAIN, Location, Trigger
from kclient.spark.options import SourceOptions
from kclient.types import TopicPartition

Format: TypeAlias = Literal["raw", "string", "json", "avro", "protobuf"]
Engine: TypeAlias = Literal["spark", "direct"]
Codec: TypeAlias = Literal["zstd", "snappy", "lz4", "gzip", "none"]
Writer: TypeAlias = Literal["direct", "spark"]
OnBadRecord: TypeAlias = Literal["fail", "null", "dlq"]

Rule = Callable[[Any], Any]

RULES: Final[Mapping[str, Rule]] = {
    "bootstrap": lambda raw: ",".join(servers(raw)),
    "topics": values.topics,
    "sink": values.location,
    "checkpoint": values.directory,
    "group": filled_text,
    "trigger": values.trigger,
    "start": starts.start,
    "end": starts.end,
    "backfill": boolean,
    "format": one_of("raw", "string", "json", "avro", "protobuf"),
    "schema": values.schema,
    "evolve": one_of("none", "add-columns"),
    "partition_by": values.partition_by,
    "headers": boolean,
    "max_per_trigger": values.count,
    "parallelism": values.count,
    "engine": one_of("spark", "direct"),
    "writer": one_of("direct", "spark"),
    "codec": one_of("zstd", "snappy", "lz4", "gzip", "none"),
    "target_file_mb": values.count,
    "dlq": values.location,
    "on_bad_record": one_of("fail", "null", "dlq"),
    "from_dlq": values.location,
    "fail_on_data_loss": boolean,
    "master": filled_text,
    "conf": values.pairs,
    "options": values.pairs,
}
"""Setting → what it may be. `options` are those of the source, `kafka.*` among them; `conf` is Spark's."""


def _names(pairs: Mapping[str, str]) -> str:
    """What a repr shows of texts that may be secrets."""
    return repr(sorted(pairs))


REGISTRY: Final = "registry:"
INFER: Final = "infer"
BAD_RECORDS: Final[Mapping[str, str]] = {"fail": "fail", "null": "column", "dlq": "column"}


@attrs.frozen(kw_only=True)
class IngestSettings:
    """What one ingest job lands, from where, how and where to. Paths are absolute.

    `rescue` follows from the others: fields of JSON that the schema does not name are kept.
    """

    bootstrap: str
    topics: tuple[str, ...]
    sink: Location
    checkpoint: str
    group: str | None = None
    trigger: Trigger = DRAIN
    start: Start = EARLIEST
    end: Start = LATEST
    backfill: bool = False
    format: Format = "raw"
    schema: str | None = None
    evolve: Literal["none", "add-columns"] = "none"
    partition_by: tuple[str, ...] = ("topic",)
    headers: bool = True
    max_per_trigger: int | None = None
    parallelism: int | None = None
    engine: Engine = "spark"
    writer: Writer = "direct"
    codec: Codec = "zstd"
    target_file_mb: int | None = None
    dlq: Location | None = None
    on_bad_record: OnBadRecord = "fail"
    from_dlq: Location | None = None
    fail_on_data_loss: bool = True
    master: str = "local[*,4]"
    rescue: bool = False
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
        rescue = found.get("schema") == INFER or found.get("evolve", "none") != "none"
        settings = cls(**chosen_writer(found), rescue=rescue)
        try:
            if settings.backfill:
                SourceOptions.parse(settings.batch_options())
            SourceOptions.parse(settings.stream_options(), "stream")
        except ConfigError as exc:  # what only the source can refuse
            raise _error([as_typed(problem, settings.options) for problem in exc.problems]) from exc
        return settings

    def stream_options(
        self, start: Mapping[TopicPartition, int] | None = None, rows_per_file: int | None = None
    ) -> dict[str, str]:
        """The options of the source: cluster, topics, formats, limits, and what was said of `kafka.*`.

        `start` is where an earlier run decided to begin; without it, it is what `--start` says. `rows_per_file` cuts
        ranges in place of `--parallelism`.
        """
        limits = {
            "maxOffsetsPerTrigger": self.max_per_trigger,
            "minPartitions": None if rows_per_file else self.parallelism,
            "maxRecordsPerPartition": rows_per_file,
        }
        begin = Start(offsets=start) if start else self.start
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
        """The options of a backfill: the same, from `--start` to `--end`."""
        options = self.stream_options(rows_per_file=rows_per_file)
        options.pop("maxOffsetsPerTrigger", None)
        return options | self.end.end_options()

    def _selection(self) -> dict[str, str]:
        pattern = values.expression(self.topics)
        return {"subscribe": ",".join(self.topics)} if pattern is None else {"subscribePattern": pattern}

    def _format(self) -> dict[str, str]:
        """What the source decodes; nothing before the schema is known that is to be found in the records."""
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
    """Whether a problem is about one of these options: to what is wrong by itself nothing else can be said."""
    return any(option in options for option in re.findall("--[a-z-]+", problem))


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    return f"{name} is no setting of an ingest job{hint}"
