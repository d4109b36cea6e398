"""`kclient ingest`: topics into Parquet, exactly once. Here is only what a person or a machine sees of the job.

ingest              the job itself, a default command
ingest status       what a checkpoint says, without Spark
ingest gc           what killed batches left, taken away
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from typing import Annotated, Final

from cyclopts import App, Group, Parameter

from kclient.cli.exit_codes import FAILED, INTERRUPTED, OK, exit_code
from kclient.cli.ingest_events import JsonLines
from kclient.cli.ingest_gc import gc
from kclient.cli.ingest_options import RUN, IngestOptions
from kclient.cli.ingest_reporters import IngestReporter
from kclient.cli.ingest_status import status
from kclient.cli.ingest_text import plan_line
from kclient.cli.metrics_options import reporters
from kclient.cli.options import Connection, flag, option
from kclient.cli.program import program
from kclient.cli.redirect import talk_into
from kclient.errors import ConfigError, InternalError, KclientError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import IngestResult
from kclient.spark.ingest.settings import IngestSettings

TELL: Final = Group("What it tells", sort_key=6)
TERMINAL: Final = "-"

HELP: Final = f"""Land topics as Parquet files, exactly once, also across kill -9.

```
{program()} ingest -b localhost:9092 --topics orders \\
    --sink parquet:/lake/raw --checkpoint /lake/_ckpt/raw --engine direct
```

The same command again goes on where the checkpoint stands. SIGTERM or Ctrl-C ends it after the batch at work, a second
one at once; both lose nothing. It ends with 0 when all is drained, 6 when records are lost or bad, 8 when the sink or
the checkpoint cannot be written, 130 when it was interrupted.
"""


def ingest_app(group: Group) -> App:
    """The sub-app: `ingest` itself with its small sisters."""
    app = App(name="ingest", help=HELP, group=group, group_commands=Group("Afterwards", sort_key=20))
    app.default(ingest)
    app.command(status)
    app.command(gc)
    return app


def ingest(
    *,
    job: Annotated[IngestOptions, Parameter(name="*")] = IngestOptions(),  # noqa: B008 – frozen
    connection: Annotated[Connection, Parameter(name="*")] = Connection(),  # noqa: B008 – frozen
    dry_run: Annotated[bool, flag("print the plan and stop; nothing is written", group=RUN)] = False,
    metrics: Annotated[
        tuple[str, ...] | None,
        option(
            "tell machines too: jsonl:FILE or prometheus:[HOST:]PORT; again for more", "WHERE", group=TELL
        ),
    ] = None,
    json: Annotated[
        bool, flag("one JSON object a line on standard output for each event, instead of text", group=TELL)
    ] = False,
    spark_log: Annotated[
        str | None,
        option(
            "where Spark's own talk goes; - for the terminal",
            "FILE",
            group=TELL,
            show_default="CHECKPOINT/kclient/spark.log",
        ),
    ] = None,
) -> int:
    """Run the job."""
    settings = job.settings(connection)
    if settings.engine == "direct" and spark_log is not None:
        raise ConfigError("--spark-log is for --engine spark: the direct engine has no Spark. Leave it out.")
    if dry_run:
        return _plan(settings, json=json)
    log = spark_log or os.path.join(settings.checkpoint, "kclient", "spark.log")
    quiet = settings.engine == "spark" and log != TERMINAL
    with talk_into(log) if quiet else contextlib.nullcontext():
        told = reporters(metrics or (), json=json)
        with contextlib.closing(told):
            return _run(settings, told)


def _plan(settings: IngestSettings, *, json: bool) -> int:
    from kclient.spark.ingest.run import plan

    found = plan(settings)
    if json:
        JsonLines(sys.stdout, Runtime()).planned(found)
    else:
        sys.stdout.write(plan_line(found) + "\n")
    return OK


def _run(settings: IngestSettings, told: IngestReporter) -> int:
    from kclient.spark.ingest.run import run

    with _failures_told(told):
        result = run(settings, told)
    return _code(settings, result)


@contextlib.contextmanager
def _failures_told(told: IngestReporter) -> Iterator[None]:
    """Machines learn of a failure before the person does; what nobody expected is told as a bug."""
    try:
        yield
    except KclientError as exc:
        told.failed(exc, exit_code(exc))
        raise
    except KeyboardInterrupt as exc:
        told.failed(exc, INTERRUPTED)
        raise
    except Exception as exc:
        bug = InternalError.of("kclient ingest", exc)
        told.failed(bug, FAILED)
        raise bug from exc


def _code(settings: IngestSettings, result: IngestResult) -> int:
    """0 when all is drained. A job without an end is ended by SIGTERM, which is no interruption."""
    ordered = settings.trigger.kind == "interval" and result.signal == signal.SIGTERM
    return OK if result.ended == "drained" or ordered else INTERRUPTED
