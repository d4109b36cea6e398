"""`kclient groups`: list and describe groups, move what they have committed, delete them.

`reset` and `delete` print what they would do; `--execute` does it. The options of `reset` are those of Kafka's
kafka-consumer-groups, and `--export` prints the CSV that `--from-file` reads.
"""

from __future__ import annotations

import asyncio
import csv
import json as json_form
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import attrs
from cyclopts import App, Parameter, Token
from cyclopts import Group as OptionGroup

from kclient.cli.admin_client import AdminClient
from kclient.cli.exit_codes import OK
from kclient.cli.lag import lag
from kclient.cli.options import ConnectionOptions, flag, option
from kclient.cli.places import parse_duration_ms, parse_time
from kclient.cli.table import table
from kclient.config import Config
from kclient.errors import ArgumentError, UsageError
from kclient.lag.report import GroupLag, PartitionLag
from kclient.runtime import Runtime
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.secret import problem_of
from kclient.text import format_count, format_names, printable
from kclient.types import TopicPartition

NOTHING: Final = "-"
MOST_DIGITS: Final = 19  # of an int64
COMMANDS = OptionGroup("Commands", sort_key=0)
WHICH = OptionGroup("Which partitions", sort_key=1)
WHERE = OptionGroup("Where to: exactly one", sort_key=2)
Connection = Annotated[ConnectionOptions, Parameter(name="*")]
NO_CONNECTION: Final = ConnectionOptions()
Execute = Annotated[bool, flag("do it; without this the command only prints what it would do")]
Json = Annotated[bool, flag("JSON on standard output")]


def groups_app(group: OptionGroup) -> App:
    """Build the sub-app of the commands for groups; without a command it lists them."""
    app = App(
        name="groups",
        help="List groups, describe them, move what they have committed, delete them.",
        group=group,
    )
    app.default(list_command)
    app.command(list_command, name="list")
    app.command(describe)
    app.command(reset)
    app.command(delete)
    return app


def list_command(*, json: Json = False, connection: Connection = NO_CONNECTION) -> int:
    """List the groups of the cluster: name, state and type. `lag --all-groups` shows their lag."""
    return asyncio.run(_list(connection.config(), json))


async def _list(config: Config, json: bool) -> int:
    async with AdminClient(config, Runtime()) as client:
        found = await client.listed_groups()
    rows = [(one.group_id, one.group_state, one.group_type, one.protocol_type) for one in found]
    if json:
        keys = ("group", "state", "type", "protocol_type")
        lines = [
            json_form.dumps({key: cell or None for key, cell in zip(keys, row, strict=True)}) for row in rows
        ]
    else:
        cells = [[cell or NOTHING for cell in row] for row in rows]
        lines = table(("GROUP", "STATE", "TYPE", "PROTOCOL"), cells, right=())
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return OK


def describe(
    *groups: Annotated[str, Parameter(name="GROUP", required=False, help="the groups")],
    json: Json = False,
    connection: Connection = NO_CONNECTION,
) -> int:
    """Describe groups: state, members with their partitions, committed offsets and lag; the same as `lag GROUP`."""
    return lag(*groups, json=json, connection=connection)


# --- reset


@attrs.frozen
class Target:
    """Where to move a group: exactly one field is set."""

    earliest: bool = False
    latest: bool = False
    current: bool = False
    offset: int | None = None
    shift: int | None = None
    timestamp_ms: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None

    def offset_of(self, one: PartitionLag, at_time: Mapping[TopicPartition, int]) -> int | None:
        """Return the new offset of a partition, before it is kept inside the log; None leaves it as it is."""
        committed = None if one.committed is None else one.committed.offset
        if self.earliest:
            return one.log_start
        if self.latest:
            return one.end
        if self.current:
            return one.end if committed is None else committed
        if self.shift is not None:
            return None if committed is None else committed + self.shift
        if self.timestamp_ms is not None:
            return at_time.get(one.partition, one.end)
        if self.offsets is not None:
            return self.offsets.get(one.partition)
        return self.offset


@attrs.frozen
class Move:
    """One partition of a plan: what is committed, what shall be, and a remark."""

    row: PartitionLag
    new: int | None
    note: str = ""

    @property
    def committed(self) -> int | None:
        """The committed offset, None if there is none."""
        return None if self.row.committed is None else self.row.committed.offset

    def to_json(self) -> dict[str, Any]:
        """Return one entry of `partitions`."""
        return {
            "topic": self.row.partition.topic,
            "partition": self.row.partition.partition,
            "committed": self.committed,
            "new": self.new,
            "log_start": self.row.log_start,
            "end": self.row.end,
            "note": self.note,
        }


def _number_of_records(_type: Any, tokens: Sequence[Token]) -> int:
    """Convert `--shift-by`. Raise ArgumentError, which names the option for times."""
    try:
        return int(tokens[0].value)
    except ValueError as exc:
        raise ArgumentError(
            f"--shift-by counts records, and {tokens[0].value} is not a whole number. "
            "Write --shift-by -100, or --by-duration 1h for the last hour."
        ) from exc


def reset(
    group: Annotated[str, Parameter(help="the group, which must have no members")],
    /,
    *,
    topic: Annotated[
        list[str] | None, option("this topic, or TOPIC:0,1 of it; repeat for more", "TOPIC", group=WHICH)
    ] = None,
    all_topics: Annotated[bool, flag("all that the group has committed", group=WHICH)] = False,
    to_earliest: Annotated[bool, flag("the beginning of the log", group=WHERE)] = False,
    to_latest: Annotated[bool, flag("the end of the log", group=WHERE)] = False,
    to_current: Annotated[bool, flag("where it is; the end if nothing is committed", group=WHERE)] = False,
    to_offset: Annotated[int | None, option("this offset", "N", group=WHERE)] = None,
    shift_by: Annotated[
        int | None,
        option(
            "so many records on, or back with -N",
            "N",
            group=WHERE,
            converter=_number_of_records,
            allow_leading_hyphen=True,
        ),
    ] = None,
    to_datetime: Annotated[
        str | None,
        option(
            "the first record at or after 2026-11-20T14:00Z, or -1h",
            "TIME",
            group=WHERE,
            allow_leading_hyphen=True,
        ),
    ] = None,
    by_duration: Annotated[
        str | None, option("the first record of the last 90m, 2h, 7d or PT1H30M", "DURATION", group=WHERE)
    ] = None,
    from_file: Annotated[
        str | None, option("the offsets of a CSV file: topic,partition,offset", "FILE", group=WHERE)
    ] = None,
    execute: Execute = False,
    export: Annotated[bool, flag("print the new offsets as CSV for --from-file")] = False,
    json: Json = False,
    connection: Connection = NO_CONNECTION,
) -> int:
    """Move what a group has committed. It prints the plan; --execute carries it out.

    The group must have no members: they would go on from where they are, and commit that. To be able to undo a
    reset, keep what is committed now:

        kclient groups reset billing --all-topics --to-current --export > before.csv
    """
    runtime = Runtime()
    options = {
        "--to-earliest": to_earliest or None,
        "--to-latest": to_latest or None,
        "--to-current": to_current or None,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        "--to-datetime": to_datetime,
        "--by-duration": by_duration,
        "--from-file": from_file,
    }
    given = [name for name, value in options.items() if value is not None]
    if len(given) != 1:
        raise ArgumentError(
            f"give exactly one of {', '.join(options)}" + (f", not {' and '.join(given)}" if given else "")
        )
    if export and json:
        raise ArgumentError("--export is not allowed with --json")
    timestamp = None if to_datetime is None else parse_time(to_datetime, "--to-datetime", runtime)
    if by_duration is not None:
        timestamp = max(0, runtime.wall_ms() - parse_duration_ms(by_duration, "--by-duration"))
    offsets = None if from_file is None else read_offsets(from_file)
    if from_file is not None and not (topic or all_topics):
        topic = sorted({f"{tp.topic}:{tp.partition}" for tp in offsets or ()})
    if bool(topic) == all_topics:
        raise ArgumentError(
            "say which partitions: with --topic NAME, or with --all-topics for all that is committed"
        )
    target = Target(to_earliest, to_latest, to_current, to_offset, shift_by, timestamp, offsets)
    wanted = None if topic is None else [_partitions(one) for one in topic]
    return asyncio.run(_reset(connection.config(), group, wanted, target, execute, _printer(export, json)))


Wanted = tuple[str, frozenset[int] | None]


def _partitions(raw: str) -> Wanted:
    """Parse TOPIC or TOPIC:0,1. Raise ArgumentError."""
    name, colon, numbers = raw.partition(":")
    parts = numbers.split(",") if colon else []
    if not name or not all(map(_is_number, parts)):
        raise ArgumentError(f"--topic {raw} is neither TOPIC nor TOPIC:0,1")
    return name, frozenset(map(int, parts)) if colon else None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS


async def _reset(
    config: Config,
    group_id: str,
    wanted: Sequence[Wanted] | None,
    target: Target,
    execute: bool,
    show: Any,
) -> int:
    async with AdminClient(config, Runtime()) as client:
        topics = None if wanted is None else list(dict.fromkeys(name for name, _ in wanted))
        report = await client.measure(group_id, topics, client.timeout, must_exist=wanted is None)
        rows = report.partitions if wanted is None else _chosen(report, wanted)
        at_time: Mapping[TopicPartition, int] = {}
        if target.timestamp_ms is not None:
            readable = [one.partition for one in rows if one.error is None]
            at_time = await client.offsets(readable, target.timestamp_ms, client.timeout)
        moves = [_move(one, target, at_time) for one in rows]
        if report.group.members:
            raise _has_members(report, "reset")
        if execute:
            await client.commit(
                group_id, {one.row.partition: one.new for one in moves if one.new is not None}
            )
    show(group_id, moves, execute)
    return OK


def _chosen(report: GroupLag, wanted: Iterable[Wanted]) -> list[PartitionLag]:
    """Return the rows of the wanted partitions. Raise ArgumentError for one that its topic does not have."""
    chosen: dict[TopicPartition, PartitionLag] = {}
    for name, numbers in wanted:
        rows = {one.partition.partition: one for one in report.partitions if one.partition.topic == name}
        missing = (numbers or frozenset()) - rows.keys()
        if missing:
            raise ArgumentError(f"topic {name} has no partition {min(missing)}, only {len(rows)} from 0 on")
        chosen |= {one.partition: one for number, one in rows.items() if numbers is None or number in numbers}
    return [chosen[tp] for tp in sorted(chosen)]


def _move(one: PartitionLag, target: Target, at_time: Mapping[TopicPartition, int]) -> Move:
    """Return the move of a partition: inside its log, as Kafka's own tool does."""
    if one.error is not None or one.log_start is None or one.end is None:
        return Move(one, None, f"left as it is: {one.error or 'its log cannot be seen'}")
    offset = target.offset_of(one, at_time)
    if offset is None:
        return Move(
            one, None, "left as it is: nothing is committed" if target.shift is not None else "left as it is"
        )
    new = min(max(offset, one.log_start), one.end)
    if new != offset:
        return Move(one, new, f"{offset:,} is {'below the log start' if new > offset else 'beyond the end'}")
    return Move(one, new)


def _has_members(report: GroupLag, what: str) -> UsageError:
    members = report.group.members
    clients = format_names(sorted({f"{one.client_id}@{one.client_host}" for one in members}))
    return UsageError(
        f"Group {report.group.group_id} is {report.group.state} and has {format_count(len(members), 'member')} "
        f"({clients}). They would go on from where they are. Stop them, wait until it is empty, and {what} it again."
    )


def _printer(export: bool, json: bool) -> Any:
    return _as_csv if export else _as_json if json else _as_table


def _as_table(group_id: str, moves: Sequence[Move], executed: bool) -> None:
    titles = ("TOPIC", "PARTITION", "COMMITTED", "NEW", "READ AGAIN", "SKIPPED", "NOTE")
    rows = [
        (one.row.partition.topic, str(one.row.partition.partition), *_numbers(one), one.note) for one in moves
    ]
    sys.stdout.writelines(f"{line}\n" for line in table(titles, rows, right=titles[1:-1]))
    _say(group_id, executed)


def _numbers(one: Move) -> tuple[str, str, str, str]:
    """Return what is committed, the new offset, and how far it goes back or forward."""
    step = 0 if one.new is None or one.committed is None else one.new - one.committed
    cells = (one.committed, one.new, -step if step < 0 else None, step if step > 0 else None)
    first, second, third, fourth = (NOTHING if cell is None else f"{cell:,}" for cell in cells)
    return first, second, third, fourth


def _as_csv(group_id: str, moves: Sequence[Move], executed: bool) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerows((*one.row.partition, one.new) for one in moves if one.new is not None)
    _say(group_id, executed)


def _as_json(group_id: str, moves: Sequence[Move], executed: bool) -> None:
    found = {"group": group_id, "executed": executed, "partitions": [one.to_json() for one in moves]}
    sys.stdout.write(json_form.dumps(found) + "\n")


def _say(group_id: str, executed: bool) -> None:
    name = printable(group_id)
    sys.stderr.write(
        f"group {name}: the new offsets are committed\n"
        if executed
        else f"group {name}: nothing was changed; add --execute to commit the new offsets\n"
    )


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Return the offsets of a CSV file with lines topic,partition,offset. Raise ArgumentError."""
    try:
        content = read_local(Path(path), LARGEST_TEXT).decode()
        rows = [*csv.reader(content.splitlines())]
    except (OSError, ValueError) as exc:
        raise ArgumentError(f"--from-file {path} cannot be read: {problem_of(exc)}") from exc
    except csv.Error as exc:  # a cell of 128 kB
        raise ArgumentError(f"--from-file {path} has no lines topic,partition,offset: {exc}") from exc
    found: dict[TopicPartition, int] = {}
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        if len(cells) != 3 or not all(_is_number(cell) for cell in cells[1:]):
            raise ArgumentError(f"--from-file {path}, line {number} is not topic,partition,offset")
        found[TopicPartition(cells[0], int(cells[1]))] = int(cells[2])
    if not found:
        raise ArgumentError(f"--from-file {path} has no line topic,partition,offset")
    return found


# --- delete


def delete(
    *groups: Annotated[str, Parameter(name="GROUP", help="the groups, which must have no members")],
    execute: Execute = False,
    json: Json = False,
    connection: Connection = NO_CONNECTION,
) -> int:
    """Delete groups and all that they have committed. It prints what would go; --execute deletes it.

    A group that is deleted begins again at its auto.offset.reset.
    """
    return asyncio.run(_delete(connection.config(), list(dict.fromkeys(groups)), execute, json))


async def _delete(config: Config, groups: Sequence[str], execute: bool, json: bool) -> int:
    async with AdminClient(config, Runtime()) as client:
        reports = [await client.measure(group, None, client.timeout) for group in groups]
        for report in reports:
            if report.group.members:
                raise _has_members(report, "delete")
        for group in groups if execute else ():
            await client.delete_group(group)
    rows = [
        (one.group.group_id, one.group.state, sum(row.committed is not None for row in one.partitions))
        for one in reports
    ]
    if json:
        lines = [
            json_form.dumps(
                {"group": name, "state": state, "committed_partitions": count, "deleted": execute}
            )
            for name, state, count in rows
        ]
    else:
        lines = table(
            ("GROUP", "STATE", "COMMITTED PARTITIONS"),
            [(name, state, str(n)) for name, state, n in rows],
            right=(),
        )
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if not json:
        sys.stderr.write("deleted\n" if execute else "nothing was changed; add --execute to delete them\n")
    return OK
