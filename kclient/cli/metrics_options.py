"""`--metrics`: to whom an ingest job tells its progress besides the person who started it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from rich.console import Console

from kclient.cli.ingest_events import JsonLines
from kclient.cli.ingest_metrics import Prometheus
from kclient.cli.ingest_reporters import All, IngestReporter, Lines, Screen
from kclient.errors import ConfigError, SinkError
from kclient.runtime import Runtime

LOOPBACK: Final = "127.0.0.1"
HIGHEST_PORT: Final = 65_535
FORM: Final = "is neither jsonl:FILE nor prometheus:[HOST:]PORT"


def reporters(wanted: Iterable[str], *, json: bool) -> All:
    """Everybody who is told. With `json` standard output gets the lines for machines, and people get none.

    It comes last: who reads an event there finds the file and the page up to date.

    Raises ConfigError for a `--metrics` that is none, SinkError for a file that cannot be written.
    """
    opened: list[IngestReporter] = []
    try:
        opened.extend(map(_reporter, wanted))
    except BaseException:
        All(opened).close()
        raise
    opened.append(JsonLines(sys.stdout, Runtime()) if json else _for_people())
    return All(opened)


def _for_people() -> IngestReporter:
    console = Console(stderr=True, highlight=False)
    return Screen(console) if console.is_terminal and not console.is_dumb_terminal else Lines()


def _reporter(text: str) -> IngestReporter:
    kind, colon, where = text.partition(":")
    if not (colon and where) or kind not in ("jsonl", "prometheus"):
        raise ConfigError(f"--metrics {text!r} {FORM}. Write --metrics jsonl:progress.jsonl, for one.")
    return _file(where) if kind == "jsonl" else _port(text, where)


def _file(path: str) -> JsonLines:
    try:
        return JsonLines(open(path, "a", encoding="utf-8"), Runtime())
    except OSError as exc:
        raise SinkError(
            f"--metrics jsonl:{path} cannot be written: {exc.strerror}. Give a file in a directory that is there.",
            path=path,
        ) from exc


def _port(text: str, where: str) -> Prometheus:
    host, _, port = where.rpartition(":")
    if not port.isdecimal() or int(port) > HIGHEST_PORT:
        raise ConfigError(f"--metrics {text!r} {FORM}. Write --metrics prometheus:9108, for one.")
    return Prometheus(host.strip("[]") or LOOPBACK, int(port))
