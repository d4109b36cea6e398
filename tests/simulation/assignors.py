"""Assignors of the applications' own, as users write them: `gradual` works with cooperative members, `odd` alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kclient.group.assignors import COOPERATIVE, EAGER, Assignment, Assignor, Member, RangeAssignor, Topics
from kclient.types import TopicPartition


class Gradual(Assignor):
    """Members keep what they have, up to their share; a surplus waits until it is given up."""

    name = "gradual"
    supported_protocols = (EAGER, COOPERATIVE)

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        everything = [
            TopicPartition(topic, number) for topic in topics for number in range(len(topics[topic]))
        ]
        owners = owners_of(members)
        share = -(-len(everything) // len(members))
        given: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for tp in everything:
            if (owner := owners.get(tp)) is not None and len(given[owner]) < share:
                given[owner].append(tp)
        kept = {tp for mine in given.values() for tp in mine}
        for tp in everything:
            if tp not in kept:
                least = min(given, key=lambda member_id: (len(given[member_id]), member_id))
                given[least].append(tp)
        return {
            member_id: Assignment(tuple(tp for tp in mine if owners.get(tp, member_id) == member_id))
            for member_id, mine in given.items()
        }


def owners_of(members: Sequence[Member]) -> dict[TopicPartition, str]:
    """Whose each partition is: of several that claim it, the one of the newest generation."""
    owners: dict[TopicPartition, str] = {}
    for member in sorted(members, key=lambda one: one.subscription.generation_id or -1):
        owners |= dict.fromkeys(member.subscription.owned_partitions, member.member_id)
    return owners


class Odd(RangeAssignor):
    """One under a unique name."""

    name = "odd"


OWN: Final[dict[str, type[Any]]] = {"gradual": Gradual, "odd": Odd}
