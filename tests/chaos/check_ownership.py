"""Ownership: one at a time. A member that the group has given up overlaps with the next one until it learns of it.

The group gives up a member whose process stands still for longer than its session, or one that could not reach a
coordinator in time because brokers had faults. Nothing else excuses two owners.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.chaos.findings import Finding
from tests.chaos.history import History, Ownership

# How long the members may take to notice, once all is well again: a heartbeat, a request that waits, the next poll.
LEARN_SECONDS = 15.0
# The session started again with the last heartbeat, up to so long before the process stood still.
BEFORE_SECONDS = 2.0


def exclusive(history: History) -> Iterator[Finding]:
    """I-10: of two owners of a partition, the first one had given it up, or was given up."""
    for first, second in overlaps(history):
        if not (_stood_still(history, first, second) or _was_cut_off(history, first)):
            yield Finding("I-10", f"{second}, while {first}")


def fenced(history: History) -> Iterator[Finding]:
    """I-09: who was given up commits nothing any more."""
    for first, second in overlaps(history):
        for commit in history.commits:
            mine = commit.member == first.member and first.partition in commit.offsets
            if mine and commit.accepted and second.begins < commit.at <= first.ends:
                yield Finding("I-09", f"{commit} was accepted at {commit.at:.3f}, although {second}")


def overlaps(history: History) -> Iterator[tuple[Ownership, Ownership]]:
    """Pairs of ownerships of one partition, by different members, that hold at the same time; the older one first."""
    parts: dict[int, list[Ownership]] = {}
    for own in sorted(history.ownerships, key=lambda own: own.begins):
        mine = parts.setdefault(own.partition, [])
        held = (other for other in mine if own.begins < other.ends and own.member != other.member)
        yield from ((other, own) for other in held if not history.careless(other.member))
        mine.append(own)


def _stood_still(history: History, first: Ownership, second: Ownership) -> bool:
    return any(
        fault.what == "stop"
        and second.begins >= fault.begins + history.session - BEFORE_SECONDS
        and first.ends <= fault.ends + LEARN_SECONDS
        for fault in history.faults_of(first.member)
    )


def _was_cut_off(history: History, first: Ownership) -> bool:
    """It lost the partition because of brokers."""
    return first.how == "lost" and any(
        fault.begins <= first.ends <= fault.ends + LEARN_SECONDS for fault in history.faults_of_brokers()
    )


CHECKS = (exclusive, fenced)
