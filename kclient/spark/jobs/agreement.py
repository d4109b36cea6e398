"""What the settings of an ingest job say of each other: which exclude each other, which need each other. Pure.

`found` holds the settings that were given, each of them good by itself; a problem is a whole sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

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

BATCHES: Final = frozenset({"trigger", "max_per_trigger"})
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
"""What the source advises to whoever gives it options, and what that is here."""

Found = Mapping[str, Any]


def chosen_writer(found: Found) -> dict[str, Any]:
    """The settings, with the only writer that can write tables where the sink is one."""
    table = "sink" in found and found["sink"].kind == "table"
    return {**({"writer": "spark"} if table else {}), **found}


def given_as(name: str) -> str:
    """How an option of the source was typed."""
    if name.lower().startswith(KAFKA):
        return f"--set or --properties: {name[len(KAFKA) :].replace('_', '.')}"
    return f"--options {name}"


def as_typed(problem: str, options: Collection[str] = ()) -> str:
    """What the source says of its options, said of what was typed; `options` are those that were so named."""
    for advice, here in HINTS.items():
        problem = problem.replace(advice, here)
    name = re.split(r"[^\w.]", problem, maxsplit=1)[0]
    rest = problem[len(name) :].replace(" (config)", "", 1)
    if name.lower().startswith(KAFKA) or name in options:
        return given_as(name) + rest
    typed = "--schema registry:URL" if name == "schema.registry.url" else OWN_OPTIONS.get(name.lower())
    return f"{typed}{rest}" if typed else problem


def disagreements(found: Found) -> list[str]:
    """All that cannot be together, in one list."""
    checks = (_reading, _beside, _decoding, _writing, _running, _places)
    return [problem for check in checks for problem in check(found)]


def flag_of(setting: str) -> str:
    """How a setting is typed."""
    return f"--{setting.replace('_', '-')}"


def _reading(found: Found) -> Iterator[str]:
    for name in found.get("options", {}):
        if typed := OWN_OPTIONS.get(name.lower()):
            yield f"{given_as(name)} is what {typed} says; give only that"
    options = {name.lower() for name in found.get("options", {})}
    if "target_file_mb" in found and "maxrecordsperpartition" in options:
        yield "--target-file-mb says what --options maxRecordsPerPartition would; give one of them"
    if "schema.registry.url" in options and str(found.get("schema")).startswith("registry:"):
        yield "--options schema.registry.url is what --schema registry:URL says; give one of them"
    start = found.get("start")
    if start is not None and start.word == "group" and "group" not in found:
        yield "--start group needs --group"
    if "end" in found and not found.get("backfill"):
        yield "--end is for --backfill"
    if "from_dlq" in found and (found.get("format", "raw") == "raw" or found.get("backfill")):
        yield "--from-dlq reads dead letters with --format, and without --backfill"


def _beside(found: Found) -> Iterator[str]:
    for what, useless in USELESS.items():
        for name in sorted(useless & found.keys()) if found.get(what) else ():
            yield f"{flag_of(name)} would do nothing with {flag_of(what)}: leave it out"
    start = found.get("start")
    if found.get("backfill") and "group" in found and (start is None or start.word != "group"):
        yield "--group would do nothing with --backfill, which commits nothing: leave it out, or give --start group"
    if "from_dlq" in found and not found.get("fail_on_data_loss", True):
        yield "--accept-data-loss would do nothing with --from-dlq, which reads no topic: leave it out"


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
    if form != "json" and found.get("evolve", "none") != "none":
        yield "--evolve add-columns is for --format json: the other formats say themselves how schemas change"
    if schema == "infer" and form in ("avro", "protobuf"):
        yield f"--schema infer is for --format json: {form} cannot be read without a schema"
    if schema == "infer" and found.get("engine") == "direct":
        yield "--schema infer needs --engine spark, which finds the types: give --engine direct the schema itself"


def _writing(found: Found) -> Iterator[str]:
    written = chosen_writer(found)
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


def _running(found: Found) -> Iterator[str]:
    for name in ("master", "conf"):
        if found.get("engine") == "direct" and found.get(name):
            yield f"--{name} is for --engine spark: the direct engine has no Spark"


def _places(found: Found) -> Iterator[str]:
    if "from_dlq" in found and found.get("sink") == found["from_dlq"]:
        yield "--from-dlq and --sink must be two directories"
    if "dlq" in found and found["dlq"] == found.get("from_dlq"):
        yield "--from-dlq and --dlq must be two directories"
    paths = [found[name].where for name in ("sink", "dlq") if name in found]
    if len(set(paths)) != len(paths):
        yield "--sink and --dlq must be two directories"
    if found.get("checkpoint") in paths:
        yield "--checkpoint must be another directory than the sink"
    for name in ("dlq", "from_dlq"):
        if name in found and found[name].kind != "parquet":
            yield f"{flag_of(name)} must be parquet:DIRECTORY"
