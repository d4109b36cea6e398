"""A lag report for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kclient.cli.table import table
from kclient.group.description import CLASSIC, CONSUMER, SIMPLE, MemberDescription
from kclient.lag.report import GroupLag, PartitionLag
from kclient.text import printable
from kclient.types import IsolationLevel, TopicPartition

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
    """The whole report, with a line break at its end."""
    lines = [_headline(report), *_partitions(report), f"total lag {_total(report)}{_left_out(report)}"]
    if report.group.members:
        lines += ["", *_members(report.group.members)]
    return "\n".join(lines) + "\n"


def summary_text(reports: Sequence[GroupLag]) -> str:
    """One line for each group, the one furthest behind first; groups without a known lag come last."""
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
    if one.problem is not None:
        return PROBLEMS.get(one.problem, one.problem)
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
    """orders 0,1,2 payments 0."""
    topics: dict[str, list[int]] = {}
    for partition in sorted(partitions):
        topics.setdefault(partition.topic, []).append(partition.partition)
    return " ".join(f"{topic} {','.join(map(str, numbers))}" for topic, numbers in topics.items())
