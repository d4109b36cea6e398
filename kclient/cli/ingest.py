"""`kclient ingest`: topics into Parquet, exactly once. Here is only what a person or a machine sees of the job.

ingest              the job itself, a default command
ingest status       the state of a checkpoint, without Spark
ingest verify       whether every offset is in the job's table once
ingest gc           what killed batches left, taken away
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
from cyclopts import App, Group, Parameter

from kclient.cli import program
from kclient.cli.exit_codes import FAILED, INTERRUPTED, OK, exit_code
from kclient.cli.ingest_gc import gc
from kclient.cli.ingest_status import status
from kclient.cli.ingest_verify import verify
from kclient.cli.options import ConnectionOptions, choice, flag, option, warn_of_arguments
from kclient.cli.reporters import IngestReporter, JsonLines, plan_line, reporters, warnings_shown
from kclient.errors import ConfigError, InternalError, KclientError, SinkError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import IngestResult
from kclient.spark.ingest.settings import (
    Codec,
    Engine,
    Format,
    IngestSettings,
    OnBadRecord,
    OnNewField,
    Writer,
)
from kclient.spark.sink.store import is_remote

WHAT: Final = Group("What and where to (required)", sort_key=1)
READ: Final = Group("What is read", sort_key=2)
DECODE: Final = Group("How it is decoded", sort_key=3)
WRITE: Final = Group("How it is written", sort_key=4)
RUN: Final = Group("How it runs", sort_key=5)

Text = str | None


@attrs.frozen(kw_only=True)
class IngestOptions:
    """One job."""

    topics: Annotated[
        Text, option("topics and regular expressions for whole names", "orders,clicks.*", group=WHAT)
    ] = None
    sink: Annotated[
        Text,
        option(
            "where the rows go; DIR is also a URL: s3://BUCKET/PREFIX, gs://… or abfss://…",
            "parquet:DIR|iceberg:CATALOG.NAMESPACE.TABLE|delta:DIR|table:CATALOG.DATABASE.NAME",
            group=WHAT,
        ),
    ] = None
    checkpoint: Annotated[
        Text,
        option(
            "the state of the job; a run with the same one continues where it stopped", "DIR|URL", group=WHAT
        ),
    ] = None

    start: Annotated[
        Text,
        option(
            "where a new job starts: earliest, latest, group, a time as 2026-11-20T14:00Z or -3d, or offsets in a file",
            "START|@TIME|FILE",
            group=READ,
            show_default="earliest",
        ),
    ] = None
    group: Annotated[
        Text, option("commit progress to this consumer group, for tools that show lag", "NAME", group=READ)
    ] = None
    trigger: Annotated[
        Text,
        option(
            "when a batch starts: until all is read, once without limits, or forever at an interval",
            "availableNow|once|10s",
            group=READ,
            show_default="availableNow",
        ),
    ] = None
    max_per_trigger: Annotated[Text, option("the most records of a batch", "5e6", group=READ)] = None
    backfill: Annotated[
        bool,
        flag(
            "read from --start to --end once, into the same layout as the job's own batches",
            group=READ,
        ),
    ] = False
    end: Annotated[
        Text,
        option(
            "where a backfill ends",
            "latest|@TIME|FILE",
            group=READ,
            show_default="latest",
        ),
    ] = None
    from_dlq: Annotated[
        Text,
        option(
            "read dead letters instead of topics, and write those that can be decoded now",
            "parquet:DIR",
            group=READ,
        ),
    ] = None
    fail_on_data_loss: Annotated[
        bool,
        flag(
            "exit with 6 if records were deleted before they were read",
            group=READ,
            negative="--accept-data-loss",
        ),
    ] = True

    format: Annotated[Text, choice("the format of the values", Format, group=DECODE, show_default="raw")] = (
        None
    )
    schema: Annotated[
        Text,
        option(
            "the columns, as DDL or a schema of the format; registry:URL; or infer: from the first records, then kept",
            "FILE|TEXT|infer",
            group=DECODE,
        ),
    ] = None
    on_new_field: Annotated[
        Text,
        choice(
            "a field that the schema does not name: left out, kept in _rescued, added as a column, or a bad record",
            OnNewField,
            group=DECODE,
            show_default="rescue",
        ),
    ] = None
    on_bad_record: Annotated[
        Text,
        choice(
            "how a value that cannot be decoded is handled",
            OnBadRecord,
            group=DECODE,
            show_default="fail",
        ),
    ] = None
    dlq: Annotated[Text, option("where dead letters go", "parquet:DIR", group=DECODE)] = None

    catalog: Annotated[
        Text, option("the Iceberg catalogs, in the form of pyiceberg", "FILE", group=WRITE)
    ] = None
    job: Annotated[
        Text,
        option(
            "the job's name in its table",
            "NAME",
            group=WRITE,
            show_default="of cluster, topics and sink",
        ),
    ] = None
    partition_by: Annotated[
        Text,
        option(
            "directories; of a table also columns, year, month, day, hour, bucket and truncate of them",
            "topic[,date(timestamp)]",
            group=WRITE,
            show_default="topic",
        ),
    ] = None
    codec: Annotated[Text, choice("compression of the files", Codec, group=WRITE, show_default="zstd")] = None
    target_file_mb: Annotated[Text, option("files of about this size", "MB", group=WRITE)] = None
    max_latency: Annotated[
        Text, option("a batch waits for files of that size, but no longer than this", "60s", group=WRITE)
    ] = None
    headers: Annotated[
        bool, flag("a column with the headers of the records", group=WRITE, negative="--no-headers")
    ] = True
    writer: Annotated[
        Text,
        choice(
            "the tasks themselves with a manifest, or Spark's own sink",
            Writer,
            group=WRITE,
            show_default="direct",
        ),
    ] = None

    engine: Annotated[
        Text, choice("Spark, or this process alone", Engine, group=RUN, show_default="spark")
    ] = None
    parallelism: Annotated[Text, option("about this many tasks per batch", "32", group=RUN)] = None
    master: Annotated[Text, option("Spark's master", "URL", group=RUN, show_default="local[*,4]")] = None
    conf: Annotated[
        tuple[str, ...] | None, option("one setting of Spark; repeat for more", "KEY=VALUE", group=RUN)
    ] = None
    options: Annotated[
        tuple[str, ...] | None,
        option(
            "one option of the source, as of format('kclient'); repeat for more",
            "KEY=VALUE",
            group=RUN,
        ),
    ] = None

    def settings(self, connection: ConnectionOptions) -> IngestSettings:
        """Return the checked settings. Raise ConfigError with every problem."""
        given: dict[str, Any] = attrs.asdict(self, recurse=False)
        servers, theirs = connection.source()
        warn_of_arguments("--options", (text.partition("=")[0] for text in self.options or ()))
        given["options"] = [*(f"{key}={value}" for key, value in theirs.items()), *(self.options or ())]
        return IngestSettings.parse({"bootstrap": servers, **given})


OUTPUT: Final = Group("Output", sort_key=6)
TERMINAL: Final = "-"

HELP: Final = f"""Land topics in tables or as Parquet files, exactly once, also across kill -9.

```
{program()} ingest -b localhost:9092 --topics orders \\
    --sink parquet:/lake/raw --checkpoint /lake/_ckpt/raw --engine direct
```

The same command again continues from the checkpoint. SIGTERM or Ctrl-C ends it after the current batch, a second
one at once; neither loses records. It exits with 0 when all is read, 6 if records are lost or bad, 8 if the sink or
the checkpoint cannot be written, 130 if it was interrupted.
"""


def ingest_app(group: Group) -> App:
    """Build the sub-app: `ingest` itself and its subcommands."""
    app = App(name="ingest", help=HELP, group=group, group_commands=Group("Afterwards", sort_key=20))
    app.default(ingest)
    app.command(status)
    app.command(verify)
    app.command(gc)
    return app


def ingest(
    *,
    job: Annotated[IngestOptions, Parameter(name="*")] = IngestOptions(),
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
    dry_run: Annotated[bool, flag("print the plan and stop; nothing is written", group=RUN)] = False,
    metrics: Annotated[
        tuple[str, ...] | None,
        option(
            "also write metrics: jsonl:FILE or prometheus:[HOST:]PORT; repeat for more", "WHERE", group=OUTPUT
        ),
    ] = None,
    json: Annotated[
        bool, flag("one JSON object a line on standard output for each event, instead of text", group=OUTPUT)
    ] = False,
    spark_log: Annotated[
        str | None,
        option(
            "the file for Spark's own output; - for the terminal",
            "FILE",
            group=OUTPUT,
            show_default="CHECKPOINT/kclient/spark.log; a temporary file for one in an object store",
        ),
    ] = None,
) -> int:
    """Run the job."""
    settings = job.settings(connection)
    if settings.engine == "direct" and spark_log is not None:
        raise ConfigError("--spark-log is for --engine spark: the direct engine has no Spark. Leave it out.")
    if dry_run:
        return _plan(settings, json=json)
    quiet = settings.engine == "spark" and spark_log != TERMINAL
    log = (spark_log or log_beside(settings.checkpoint)) if quiet else TERMINAL
    with redirected_output(log) if quiet else contextlib.nullcontext():
        reporter = reporters(metrics or (), json=json)
        with contextlib.closing(reporter), warnings_shown(reporter):
            return _run(settings, reporter)


def log_beside(checkpoint: str) -> str:
    """Return the file for Spark's output where none was given. An object store takes no file that grows."""
    if not is_remote(checkpoint):
        return os.path.join(checkpoint, "kclient", "spark.log")
    file, path = tempfile.mkstemp(prefix="kclient-spark-", suffix=".log")
    os.close(file)
    sys.stderr.write(f"Spark's own output goes to {path}; --spark-log gives another file\n")
    return path


def _plan(settings: IngestSettings, *, json: bool) -> int:
    from kclient.spark.ingest.run import plan

    events = JsonLines(sys.stdout, Runtime()) if json else None
    with warnings_shown(events):
        found = plan(settings)
    if events is not None:
        events.planned(found)
    else:
        sys.stdout.write(plan_line(found) + "\n")
    return OK


def _run(settings: IngestSettings, reporter: IngestReporter) -> int:
    from kclient.spark.ingest.run import run

    with _failures_reported(reporter):
        result = run(settings, reporter)
    return _code(settings, result)


@contextlib.contextmanager
def _failures_reported(reporter: IngestReporter) -> Iterator[None]:
    """Report a failure to the machine-readable reporters before it is raised; an unexpected error counts as a bug."""
    try:
        yield
    except KclientError as exc:
        reporter.failed(exc, exit_code(exc))
        raise
    except KeyboardInterrupt as exc:
        reporter.failed(exc, INTERRUPTED)
        raise
    except Exception as exc:
        bug = InternalError.of("kclient ingest", exc)
        reporter.failed(bug, FAILED)
        raise bug from exc


def _code(settings: IngestSettings, result: IngestResult) -> int:
    """Return 0 when all is drained. SIGTERM is the ordered end of a job without an end, not an interruption."""
    ordered = settings.trigger.kind == "interval" and result.signal == signal.SIGTERM
    return OK if result.ended == "drained" or ordered else INTERRUPTED


@contextlib.contextmanager
def redirected_output(path: str | Path) -> Iterator[None]:
    """Redirect the output of Spark's JVM and Python workers to a file in this block. Raise SinkError for the file.

    They inherit the descriptors 1 and 2 of this process: these lead to the file, and our own streams to where they led
    before.
    """
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as exc:
        raise SinkError(
            f"Spark's log {path} cannot be written: {exc.strerror}. Give another file with --spark-log, or '-' for "
            "the terminal.",
            path=str(path),
        ) from exc
    out, err = sys.stdout, sys.stderr
    out.flush()
    err.flush()
    kept = os.dup(1), os.dup(2)
    try:
        sys.stdout, sys.stderr = (os.fdopen(os.dup(one), "w", encoding="utf-8", buffering=1) for one in kept)
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # already reported where it occurred
            sys.stdout.close()
            sys.stderr.close()
        sys.stdout, sys.stderr = out, err
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)
        os.close(file)
