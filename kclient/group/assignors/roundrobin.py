"""`roundrobin`: all partitions in order of topic and number, dealt to the members in order.

A member that is not subscribed to the partition's topic is skipped.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from kclient.group.assignors.base import (
    Assignment,
    Assignor,
    Member,
    Topics,
    as_assignments,
    member_key,
    subscribers,
)
from kclient.types import TopicPartition


class RoundRobinAssignor(Assignor):
    """The assignor that brokers and other clients know as `roundrobin`."""

    name = "roundrobin"

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        """Deal the partitions to the members in turn."""
        given: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        turn = itertools.cycle([member.member_id for member in sorted(members, key=member_key)])
        for topic, wanted_by in subscribers(topics, members).items():
            wanting = {member.member_id for member in wanted_by}
            for number in range(len(topics[topic])):
                member_id = next(member_id for member_id in turn if member_id in wanting)
                given[member_id].append(TopicPartition(topic, number))
        return as_assignments(given)
