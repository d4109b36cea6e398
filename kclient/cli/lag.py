"""`kclient lag GROUP`: the distance of a group's commits from the ends of its partitions.

One report for each group; with `--json` one object on a line of its own. A failure of one group is reported, and the
others are still looked at; the exit code is that of the first failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json as json_form
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import attrs
from cyclopts import Parameter

from kclient.cli import program
from kclient.cli.exit_codes import OK, exit_code
from kclient.cli.options import ConnectionOptions, choice, flag, option, seconds
from kclient.cli.table import table
from kclient.config import Config
from kclient.errors import ArgumentError, KclientError
from kclient.group.describe import CLASSIC, CONSUMER, SIMPLE, MemberDescription
from kclient.lag.measure import LagReader
from kclient.lag.report import GroupLag, PartitionLag
from kclient.runtime import Runtime
from kclient.text import printable
from kclient.types import IsolationLevel, TopicPartition

CLEAR: Final = "\x1b[H\x1b[J"
WATCH_SECONDS: Final = 5.0
_TIME: Final = re.compile(r"-?[\d.]+(ms|s|m|h)?", re.ASCII)  # looks like an interval, valid or not
PATIENCE_SECONDS: Final = 1.0  # then a terminal shows what the command waits for

Isolation = Literal["read_uncommitted", "read_committed"]


@attrs.frozen
class _Asked:
    """The arguments of one run: the groups, and the output format."""

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
        Parameter(name="GROUP", required=False, help="the group's name; several are read one by one"),
    ],
    all_groups: Annotated[bool, flag("every consumer group of the cluster")] = False,
    topic: Annotated[
        list[str] | None, option("only this topic, with all its partitions; repeat for more", "NAME")
    ] = None,
    all_topics: Annotated[bool, flag("all that the group has committed or holds (the default)")] = False,
    isolation_level: Annotated[
        str | None,
        choice(
            "the end of the log: the high watermark (default), or the last stable offset",
            Isolation,
        ),
    ] = None,
    json: Annotated[bool, flag("one JSON object on a line for each group")] = False,
    watch: Annotated[
        float | None,
        option(
            f"repeat every {WATCH_SECONDS:g} seconds, or at the given interval, until interrupted",
            "[5s]",
            converter=seconds,
        ),
    ] = None,
    timeout: Annotated[
        float | None, option("how long to wait for responses (default 60)", "60s", converter=seconds)
    ] = None,
    connection: Annotated[ConnectionOptions, Parameter(name="*")] = ConnectionOptions(),  # noqa: B008 – frozen
    group: Annotated[str | None, Parameter(show=False)] = None,
) -> int:
    """Show the lag of groups: for every partition the committed offset, the end of the log and the distance.

    Classic groups, groups of the consumer protocol (KIP-848) and groups that only store offsets. The command
    changes nothing. Without a commit the lag is shown as '-'; if no partition has a lag, the total is unknown (null in
    JSON). The lag of a commit below the log start counts from there. The exit code does not depend on the lag.
    """
    if group is not None:
        raise ArgumentError(f"give the group's name without --group. Type: {program()} lag {group}")
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
    """Return the tokens of `lag` with the default interval after a bare `--watch`, whatever word follows it."""
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
    history = History(runtime)
    async with LagReader(config, runtime) as meter:
        while True:
            code, text = await _round(meter, asked, history)
            if asked.watch is not None and asked.separator:
                text = CLEAR + text if sys.stdout.isatty() else f"{_now(runtime)}\n{text}\n"
            sys.stdout.write(text)
            sys.stdout.flush()
            if asked.watch is None:
                return code
            await asyncio.sleep(asked.watch)


def _now(runtime: Runtime) -> str:
    """Return the current time as text, for a reader of the output in a log."""
    return datetime.fromtimestamp(runtime.wall_ms() / 1000, UTC).isoformat(timespec="seconds")


async def _round(meter: LagReader, asked: _Asked, history: History) -> tuple[int, str]:
    """Measure every group once; return the exit code and the output."""
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
            texts.append(asked.show(reports[-1]) + (history.line(reports[-1]) if asked.separator else ""))
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
    """Write what the command waits for, on a terminal, once it takes long."""
    if not sys.stderr.isatty():
        yield
        return
    timer = asyncio.get_running_loop().call_later(
        PATIENCE_SECONDS, sys.stderr.write, f"asking for group {printable(group_id)} …\n"
    )
    try:
        yield
    finally:
        timer.cancel()


def _as_json(report: GroupLag) -> str:
    return json_form.dumps(report.to_json()) + "\n"


PLOTTED: Final = 40
BARS: Final = "▁▂▃▄▅▆▇█"
ASCII_BARS: Final = "_.:-=+*#"


class History:
    """The total lag of each group in the last rounds of `--watch`, and its plot."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._totals: dict[str, deque[tuple[float, int]]] = {}

    def line(self, report: GroupLag) -> str:
        """Add a report; return the plot and the trend as a line, "" before there are two rounds with a known lag."""
        rounds = self._totals.setdefault(report.group.group_id, deque(maxlen=PLOTTED))
        if report.total is not None:
            rounds.append((self._runtime.now(), report.total))
        if len(rounds) < 2:
            return ""
        (began, first), (now, last) = rounds[0], rounds[-1]
        plot = sparkline([total for _, total in rounds], sys.stdout.encoding)
        return f"{plot}  {trend(last - first, now - began, last)}\n"


def sparkline(numbers: Sequence[int], encoding: str | None) -> str:
    """Return one character for each number, from the lowest bar for 0 to the highest for the largest number."""
    try:
        BARS.encode(encoding or "ascii")
        bars = BARS
    except UnicodeEncodeError:
        bars = ASCII_BARS
    most = max(numbers)
    return "".join(bars[number * (len(bars) - 1) // most if most else 0] for number in numbers)


def trend(change: int, seconds: float, left: int) -> str:
    """Return how the lag changed, per second, and when it will be gone if it goes on like this."""
    rate = change / seconds if seconds else 0.0
    if change == 0:
        return f"unchanged for {seconds:,.0f} s"
    if change > 0:
        return f"growing by {rate:,.1f}/s"
    return f"falling by {-rate:,.1f}/s" + (f", gone in {left / -rate:,.0f} s" if left else "")


NOTHING: Final = "-"
UNKNOWN: Final = "unknown"
KINDS: Final = {CONSUMER: "consumer protocol (KIP-848)", CLASSIC: "classic", SIMPLE: "offsets only"}
END_TITLES: Final = {IsolationLevel.READ_UNCOMMITTED: "END", IsolationLevel.READ_COMMITTED: "END(LSO)"}
PROBLEMS: Final = {
    "UNKNOWN_TOPIC_OR_PARTITION": "does not exist (deleted?)",
    "LEADER_NOT_AVAILABLE": "has no leader",
    "TOPIC_AUTHORIZATION_FAILED": "may not be seen: grant DESCRIBE",
}


def lag_text(report: GroupLag) -> str:
    """Return the whole report, with a line break at its end."""
    lines = [_headline(report), *_partitions(report), f"total lag {_total(report)}{_left_out(report)}"]
    if report.group.members:
        lines += ["", *_members(report.group.members)]
    return "\n".join(lines) + "\n"


def summary_text(reports: Sequence[GroupLag]) -> str:
    """Return one line for each group, largest lag first; groups without a known lag come last."""
    ranked = sorted(reports, key=lambda one: (one.total is None, -(one.total or 0), one.group.group_id))
    rows = [
        (
            one.group.group_id,
            one.group.state,
            str(len(one.group.members)),
            str(len(one.partitions)),
            str(one.unknown) if one.unknown else NOTHING,
            _total(one),
        )
        for one in ranked
    ]
    numbers = ("MEMBERS", "PARTITIONS", "WITHOUT LAG", "TOTAL LAG")
    return "\n".join(table(("GROUP", "STATE", *numbers), rows, right=numbers)) + "\n"


def _total(report: GroupLag) -> str:
    return UNKNOWN if report.total is None else f"{report.total:,}"


def _headline(report: GroupLag) -> str:
    group = report.group
    words = [f"group {group.group_id}", group.state, KINDS[group.kind]]
    if group.group_epoch is not None:
        words.append(f"epoch {group.group_epoch}")
    if group.assignor:
        words.append(f"assignor {group.assignor}")
    words += [f"members {len(group.members)}", f"coordinator {group.coordinator}"]
    words.append(f"isolation {report.isolation_level.name.lower()}")
    return "  ".join(map(printable, words))


def _partitions(report: GroupLag) -> list[str]:
    if not report.partitions:
        return ["nothing is committed, and no member holds a partition"]
    end = END_TITLES[report.isolation_level]
    titles = ("TOPIC", "PARTITION", "COMMITTED", end, "LAG", "CLIENT", "NOTE")
    return table(
        titles, [_row(one) for one in report.partitions], right=("PARTITION", "COMMITTED", end, "LAG")
    )


def _row(one: PartitionLag) -> tuple[str, ...]:
    return (
        one.partition.topic,
        str(one.partition.partition),
        NOTHING if one.committed is None else f"{one.committed.offset:,}",
        NOTHING if one.end is None else f"{one.end:,}",
        NOTHING if one.lag is None else f"{one.lag:,}",
        NOTHING if one.member is None else _client(one.member),
        _note(one),
    )


def _note(one: PartitionLag) -> str:
    if one.error is not None:
        return PROBLEMS.get(one.error, one.error)
    if one.committed is None:
        return "no commit"
    if one.log_start is not None and one.committed.offset < one.log_start:
        return f"the log begins at {one.log_start:,}"
    if one.end is not None and one.committed.offset > one.end:
        return "committed beyond the end"
    return ""


def _left_out(report: GroupLag) -> str:
    if report.total is None:
        return ": no partition has both a commit and an end" if report.partitions else ""
    unknown = report.unknown
    return f" (without {unknown} of {len(report.partitions)} partitions)" if unknown else ""


def _members(members: Iterable[MemberDescription]) -> list[str]:
    rows = [
        (
            _client(member),
            member.group_instance_id or NOTHING,
            member.member_id,
            _short(member.partitions) or NOTHING,
        )
        for member in members
    ]
    return table(("CLIENT", "INSTANCE", "MEMBER", "PARTITIONS"), rows, right=())


def _client(member: MemberDescription) -> str:
    return f"{member.client_id}@{member.client_host}"


def _short(partitions: Iterable[TopicPartition]) -> str:
    """Format partitions in short: orders 0,1,2 payments 0."""
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return " ".join(f"{topic} {','.join(map(str, numbers))}" for topic, numbers in topics.items())
