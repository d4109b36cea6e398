"""`kclient offsets-history`: the history of consumer groups as tables. This module contains only options and output."""

from __future__ import annotations

import json as json_form
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import attrs
from cyclopts import Group, Parameter

from kclient.cli.exit_codes import INTERRUPTED, OK
from kclient.cli.options import ConnectionOptions, flag, option, warn_of_arguments
from kclient.cli.reporters import warnings_shown
from kclient.spark.ingest.stop_signals import stop_on_signals
from kclient.text import format_count

if TYPE_CHECKING:
    from kclient.spark.offsets_history import HistoryRun, OffsetsHistorySettings

KEEP = Group("What is kept", sort_key=1)


@warnings_shown()
def offsets_history(
    *,
    out: Annotated[str | None, option("where the tables are (required)", "DIR", group=KEEP)] = None,
    watch: Annotated[bool, flag("again and again, until interrupted", group=KEEP)] = False,
    every: Annotated[
        str | None, option("the time between two runs of a watch", "5m", group=KEEP, show_default="5m")
    ] = None,
    records_per_file: Annotated[
        str | None, option("the most records of a file", "N", group=KEEP, show_default="100000")
    ] = None,
    json: Annotated[bool, flag("one JSON object for each run, on standard output")] = False,
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
    options: Annotated[
        tuple[str, ...] | None, option("one option kafka.* of the source; again for more", "KEY=VALUE")
    ] = None,
) -> int:
    """Keep the commits, members and lag of consumer groups as tables of Parquet files.

    Each run adds what is new in __consumer_offsets since the last one. It needs READ on that topic, and no Spark.
    """
    from kclient.spark.offsets_history import OffsetsHistorySettings, run

    servers, theirs = connection.source()
    warn_of_arguments("--options", (text.partition("=")[0] for text in options or ()))
    given = [*(f"{key}={value}" for key, value in theirs.items()), *(options or ())]
    settings = OffsetsHistorySettings.parse(
        {
            "bootstrap": servers,
            "out": out,
            "every": every,
            "records_per_file": records_per_file,
            "options": given,
        }
    )
    report = _as_json if json else _as_text
    if not watch:
        report(run(settings))
        return OK
    return _watch(settings, report)


def _watch(settings: OffsetsHistorySettings, report: Callable[[HistoryRun], None]) -> int:
    """Run until SIGTERM, the normal way to stop a command that runs forever."""
    from kclient.spark.offsets_history import watch

    with stop_on_signals() as stop:
        stop.begin_work()
        watch(settings, report, stop)
    return OK if stop.signal == signal.SIGTERM else INTERRUPTED


def _as_json(result: HistoryRun) -> None:
    sys.stdout.write(json_form.dumps(attrs.asdict(result)) + "\n")
    sys.stdout.flush()


def _as_text(result: HistoryRun) -> None:
    tables = "  ".join(f"{name} {rows:,}" for name, rows in result.rows.items()) or "nothing new"
    sys.stderr.write(
        f"{'went on' if result.resumed else 'began'}  {format_count(result.records, 'record')} of "
        f"{format_count(result.partitions, 'partition')}  {format_count(result.groups, 'group')}  {tables}  "
        f"{result.seconds:.1f} s\n"
    )
