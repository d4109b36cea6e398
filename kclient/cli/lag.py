"""`kclient lag GROUP`: how far a group is behind the ends of its partitions.

One report for each group; with `--json` one object on a line of its own. What fails for one group is told, and the
others are still looked at; the exit code is that of the first failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json as json_form
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import attrs
from cyclopts import Parameter

from kclient.cli.exit_codes import OK, exit_code
from kclient.cli.lag_text import lag_text, summary_text
from kclient.cli.options import Connection, choice, flag, option, seconds
from kclient.cli.program import program
from kclient.config import Config
from kclient.errors import ArgumentError, KclientError
from kclient.lag.measure import LagReader
from kclient.lag.report import GroupLag
from kclient.runtime import Runtime
from kclient.text import printable

CLEAR: Final = "\x1b[H\x1b[J"
WATCH_SECONDS: Final = 5.0
_TIME: Final = re.compile(r"-?[\d.]+(ms|s|m|h)?", re.ASCII)  # what is meant as one, whether or not it can be
PATIENCE_SECONDS: Final = 1.0  # then a terminal is told what is waited for

Isolation = Literal["read_uncommitted", "read_committed"]


@attrs.frozen
class _Asked:
    """What to look at, and how to show it."""

    groups: tuple[str, ...]  # none: all of them
    topics: list[str] | None
    timeout: float
    watch: float | None
    show: Callable[[GroupLag], str]
    separator: str
    summary: bool


def lag(
    *groups: Annotated[
        str,
        Parameter(name="GROUP", required=False, help="the group's name; several are looked at one by one"),
    ],
    all_groups: Annotated[bool, flag("every group of consumers that there is")] = False,
    topic: Annotated[
        list[str] | None, option("only this topic, with all its partitions; again for more", "NAME")
    ] = None,
    all_topics: Annotated[bool, flag("all that the group has committed or holds (the default)")] = False,
    isolation_level: Annotated[
        str | None,
        choice(
            "what counts as the end: all records (default), or those below the first open transaction",
            Isolation,
        ),
    ] = None,
    json: Annotated[bool, flag("one JSON object on a line for each group")] = False,
    watch: Annotated[
        float | None,
        option(
            f"again and again, every {WATCH_SECONDS:g} seconds or as said, until interrupted",
            "[5s]",
            converter=seconds,
        ),
    ] = None,
    timeout: Annotated[
        float | None, option("how long to wait for answers (default 60)", "60s", converter=seconds)
    ] = None,
    connection: Annotated[Connection, Parameter(name="*")] = Connection(),  # noqa: B008 – frozen
    group: Annotated[str | None, Parameter(show=False)] = None,
) -> int:
    """Tell how far groups are behind: for every partition the committed offset, the end of the log and the distance.

    Classic groups, groups of the consumer protocol (KIP-848) and groups that only store offsets. Looking changes
    nothing. Without a commit there is no lag, shown as '-'; of a group without any the total is unknown (null in JSON).
    A commit below the start of the log is behind by what is still there. The exit code does not depend on the lag.
    """
    if group is not None:
        raise ArgumentError(f"the group's name stands without --group. Type: {program()} lag {group}")
    if groups and all_groups:
        raise ArgumentError(f"--all-groups is not allowed with {groups[0]}. Type: {program()} lag --help")
    if not groups and not all_groups:
        raise ArgumentError(
            f"name at least one GROUP. Type: {program()} lag --all-groups -b HOST:PORT to see which there are."
        )
    if topic and all_topics:
        raise ArgumentError(f"--all-topics is not allowed with --topic. Type: {program()} lag --help")
    config = connection.config(isolation_level=isolation_level)
    asked = _Asked(
        groups,
        topic,
        config.default_api_timeout_ms / 1000 if timeout is None else timeout,
        watch,
        _as_json if json else lag_text,
        "" if json else "\n",
        summary=all_groups and not json,
    )
    return asyncio.run(_run(asked, config))


def with_interval(tokens: Sequence[str]) -> list[str]:
    """The tokens of `lag` with the default interval after a bare `--watch`, whatever word follows it."""
    found = list(tokens)
    if found[:1] != [lag.__name__]:
        return found
    for place, word in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ""
        if word == "--watch" and not _TIME.fullmatch(following):
            found[place] = f"--watch={WATCH_SECONDS:g}"
    return found


async def _run(asked: _Asked, config: Config) -> int:
    runtime = Runtime()
    async with LagReader(config, runtime) as meter:
        while True:
            code, text = await _round(meter, asked)
            if asked.watch is not None and asked.separator:
                text = CLEAR + text if sys.stdout.isatty() else f"{_now(runtime)}\n{text}\n"
            sys.stdout.write(text)
            sys.stdout.flush()
            if asked.watch is None:
                return code
            await asyncio.sleep(asked.watch)


def _now(runtime: Runtime) -> str:
    """When a log's reader may know that the block below was true."""
    return datetime.fromtimestamp(runtime.wall_ms() / 1000, UTC).isoformat(timespec="seconds")


async def _round(meter: LagReader, asked: _Asked) -> tuple[int, str]:
    """Every group once: the exit code, and what to show."""
    texts: list[str] = []
    reports: list[GroupLag] = []
    code = OK
    groups = asked.groups or await meter.groups(asked.timeout)
    if not groups:
        sys.stderr.write(f"{program()} lag: this cluster has no group of consumers\n")
    for group_id in groups:
        try:
            with _patience(group_id):
                reports.append(await meter.measure(group_id, asked.topics, asked.timeout))
            texts.append(asked.show(reports[-1]))
        except KclientError as exc:
            if len(groups) == 1 and asked.watch is None:
                raise
            sys.stderr.write(f"{program()} lag: {exc}\n")
            code = code or exit_code(exc)
    if asked.summary and reports:
        texts.append(summary_text(reports))
    return code, asked.separator.join(texts)


@contextlib.contextmanager
def _patience(group_id: str) -> Iterator[None]:
    """Who looks at a terminal is told what takes so long."""
    if not sys.stderr.isatty():
        yield
        return
    told = asyncio.get_running_loop().call_later(
        PATIENCE_SECONDS, sys.stderr.write, f"asking for group {printable(group_id)} …\n"
    )
    try:
        yield
    finally:
        told.cancel()


def _as_json(report: GroupLag) -> str:
    return json_form.dumps(report.to_json()) + "\n"
