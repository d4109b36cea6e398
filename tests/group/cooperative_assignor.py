"""A cooperative assignor for tests, as plain as can be: every member keeps its share, and the rest is dealt out.

What a member has beyond its share it is not given again; it is free when the group joins the next time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.group.assignors import COOPERATIVE, Assignment, Assignor, Member, Topics
from kclient.types import GroupMetadata, TopicPartition


class KeepAndShare(Assignor):
    """See the module. It records the calls of on_assignment, as a user's assignor may."""

    name = "keep-and-share"
    supported_protocols: Sequence[str] = (COOPERATIVE,)

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[TopicPartition, ...], int]] = []

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        everything = [
            TopicPartition(topic, number) for topic in topics for number in range(len(topics[topic]))
        ]
        share = -(-len(everything) // len(members))
        parts = {
            member.member_id: [tp for tp in member.subscription.owned_partitions if tp in everything][:share]
            for member in members
        }
        owned = {tp for member in members for tp in member.subscription.owned_partitions}
        for tp in everything:
            if tp not in owned:
                eager = [member.member_id for member in members if tp.topic in member.subscription.topics]
                parts[min(eager, key=lambda member_id: len(parts[member_id]))].append(tp)
        return {member_id: Assignment(tuple(part)) for member_id, part in parts.items()}

    def on_assignment(self, assignment: Assignment, metadata: GroupMetadata) -> None:
        self.calls.append((assignment.partitions, metadata.generation_id))
