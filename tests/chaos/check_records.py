"""Checks of records: all arrived, unchanged, in order, at the owner of the partition."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.chaos.findings import Finding
from tests.chaos.history import History


def nothing_lost(history: History) -> Iterator[Finding]:
    """I-02: what was acknowledged is in the topic, and what is in the topic was seen by a member."""
    for place, value in history.acknowledged.items():
        if history.records.get(place) != value:
            yield Finding(
                "I-02",
                f"lost-write: {place} was acknowledged as {value}, the topic has {history.records.get(place)}",
            )
    seen = {(one.partition, one.offset) for one in history.deliveries}
    for place in sorted(history.records.keys() - seen):
        yield Finding("I-02", f"unseen: {place} came to nobody")


def as_written(history: History) -> Iterator[Finding]:
    """I-05: value for value what Java reads at this offset."""
    for one in history.deliveries:
        wanted = history.records.get((one.partition, one.offset))
        if one.value != wanted:
            yield Finding("I-05", f"{one} was written as {wanted}")


def in_order(history: History) -> Iterator[Finding]:
    """I-03, I-04, I-06: while a member owns a partition, each offset follows the one before. The topic has no gaps."""
    for own in history.ownerships:
        for (_, before, _), (_, after, _) in pairwise(own.rows):
            if after > before + 1:
                yield Finding("I-04", f"poll-skip: {before} and then {after}, while {own}")
            elif after == before:
                yield Finding("I-06", f"{after} came twice while {own}")
            elif after < before:
                yield Finding("I-03", f"nonmonotonic-poll: {before} and then {after}, while {own}")


def begun_where_committed(history: History) -> Iterator[Finding]:
    """I-07: a partition that is newly assigned starts at an offset that the group has committed, or at the start."""
    committed = {(one.partition, one.offset) for one in history.taken}
    for own in history.ownerships:
        if own.rows and own.rows[0][1] != 0 and (own.partition, own.rows[0][1]) not in committed:
            yield Finding("I-07", f"{own}, and begins at {own.rows[0][1]}, which nobody has committed")


def to_its_owner(history: History) -> Iterator[Finding]:
    """I-11: nothing of a partition that is not assigned, or that was given up or lost."""
    for one in history.strays:
        yield Finding("I-11", f"{one}, and does not own the partition")


CHECKS = (nothing_lost, as_written, in_order, begun_where_committed, to_its_owner)
