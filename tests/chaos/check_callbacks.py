"""Checks of callbacks (I-12): one at a time, inside the member's own calls, for its own partitions, lost with cause."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.check_ownership import LEARN_SECONDS
from tests.chaos.findings import Finding
from tests.chaos.history import History
from tests.chaos.journal import Line

CALLBACKS = ("assigned", "revoked", "lost")
ID = "I-12"


def callbacks(history: History) -> Iterator[Finding]:
    """I-12, member by member."""
    for member, lines in history.lines.items():
        yield from _of_member(history, member, lines)


def _of_member(history: History, member: str, lines: list[Line]) -> Iterator[Finding]:
    owned: set[int] = set()
    running = ""
    for line in lines:
        if line.event in CALLBACKS:
            if running:
                yield Finding(ID, f"{member}: {line.event} while {running} runs")
            yield from _judge(history, member, owned, line)
            running = line.event
            if line.event == "assigned":
                owned |= set(line["partitions"])
        elif line.event.endswith(" over"):
            running = ""
            if line.event != "assigned over":
                owned -= set(line["partitions"])
        elif line.event == "delivered" and running:
            yield Finding(ID, f"{member}: records came while {running} runs")


def _judge(history: History, member: str, owned: set[int], line: Line) -> Iterator[Finding]:
    parts = set(line["partitions"])
    if not line["inside"]:
        yield Finding(ID, f"{member}: {line.event} outside of all calls")
    if line.event == "assigned":
        if parts & owned:
            yield Finding(ID, f"{member} was assigned {sorted(parts & owned)} twice")
        if history.eager and owned:
            yield Finding(ID, f"{member} was assigned {sorted(parts)} before {sorted(owned)} were revoked")
    elif parts - owned:
        yield Finding(ID, f"{member}: {line.event} of {sorted(parts - owned)}, which it does not have")
    if line.event == "lost" and not _has_a_reason(history, member, line):
        yield Finding(ID, f"{member} was told at {line.at:.3f} that {sorted(parts)} are lost, for no reason")


def _has_a_reason(history: History, member: str, line: Line) -> bool:
    """A fault was injected; or the member forgot to say that it had given up, and was put out for that."""
    if line["inside"] == "close" or history.careless(member):
        return True
    faults = [*history.faults_of(member), *history.faults_of_brokers()]
    return any(fault.begins <= line.at <= fault.ends + LEARN_SECONDS for fault in faults)


CHECKS = (callbacks,)
