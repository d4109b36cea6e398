"""Commits: never back, never ahead of what was handed over, only by an owner, and what was promised is there."""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.findings import Finding
from tests.chaos.history import Commit, History

WALL_SLACK = 0.05  # seconds by which the wall clock may be moved against the monotonic one during a cycle


def released_first(history: History) -> Iterator[Finding]:
    """I-01: when the coordinator takes an offset, every record before it has been written down by a member."""
    first: dict[tuple[int, int], float] = {}
    for one in history.deliveries:
        place = (one.partition, one.offset)
        first[place] = min(one.at, first.get(place, one.at))
    ready: dict[int, list[float]] = {}  # partition → when all before the offset were there
    for partition, offset in sorted(history.records):
        times = ready.setdefault(partition, [0.0])
        times.append(max(times[-1], first.get((partition, offset), float("inf"))))
    for one in history.taken:
        at = one.wall - history.wall
        times = ready.get(one.partition, [0.0])
        if one.offset >= len(times) or times[one.offset] > at + WALL_SLACK:
            yield Finding(
                "I-01", f"{one} was taken at {at:.3f}, before all records below it had come to somebody"
            )


def never_back(history: History) -> Iterator[Finding]:
    """I-08: in the order in which the coordinator has taken them, commits of a partition do not decrease."""
    careless = [commit for commit in history.commits if history.careless(commit.member)]
    excused = {pair for commit in careless for pair in commit.offsets.items()}
    last: dict[int, int] = {}
    for one in history.taken:
        before = last.get(one.partition, 0)
        if one.offset < before and (one.partition, one.offset) not in excused:
            yield Finding(
                "I-08", f"partition {one.partition} was committed at {before} and then at {one.offset}"
            )
        last[one.partition] = max(before, one.offset)


def to_the_end(history: History) -> Iterator[Finding]:
    """I-08: after all members have closed in peace, committed is the end."""
    ends: dict[int, int] = {}
    for partition, offset in history.records:
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    last = {one.partition: one.offset for one in history.taken}
    for partition, end in sorted(ends.items()):
        if last.get(partition) != end:
            yield Finding("I-08", f"partition {partition} ends at {end}, committed is {last.get(partition)}")


def as_promised(history: History) -> Iterator[Finding]:
    """I-08: if a member's commit succeeded, the coordinator has stored it."""
    taken = {(one.partition, one.offset) for one in history.taken}
    for commit in history.commits:
        missing = [pair for pair in commit.offsets.items() if pair not in taken]
        if commit.accepted and missing:
            yield Finding("I-08", f"{commit} was reported as done, and {missing} were never taken")


def of_what_is_owned(history: History) -> Iterator[Finding]:
    """I-08: a member commits what it owns, at most as far as it has come."""
    for commit in history.commits:
        for partition, offset in commit.offsets.items():
            own = history.owned(commit.member, partition, commit.at)
            if own is None:
                yield Finding("I-08", f"{commit} of partition {partition}, which is not its own")
            elif offset > max((row + 1 for at, row, _ in own.rows if at <= commit.at), default=0):
                yield Finding("I-08", f"{commit} is beyond what was handed over, while {own}")


def overtaken(history: History) -> Iterator[Finding]:
    """I-08: what a member commits later is not less, while it owns the partition."""
    last: dict[tuple[str, int, float], int] = {}
    for commit in _in_order(history):
        for partition, offset in commit.offsets.items():
            own = history.owned(commit.member, partition, commit.at)
            key = (commit.member, partition, own.begins if own else 0.0)
            if offset < last.get(key, 0):
                yield Finding("I-08", f"{commit} after one at {last[key]} of partition {partition}")
            last[key] = max(offset, last.get(key, 0))


def _in_order(history: History) -> list[Commit]:
    return sorted(history.commits, key=lambda commit: commit.at)


CHECKS = (released_first, never_back, to_the_end, as_promised, of_what_is_owned, overtaken)
