"""What the coordinator wants this member to own, and what it owns. Both speak of topics by id. Pure.

    target    the last assignment of an answer; `local_epoch` counts its changes
    owned     what the application has taken over, and in which round

The way from one to the other leads through names, which metadata knows, maybe not yet for every topic: then what is
known is taken over first, and the rest when metadata has come. The first assignment of a membership is a step also if
it is empty, as in Java: the listener learns that this member has joined and owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kclient.generated.consumer_group_heartbeat_request import TopicPartitions
from kclient.generated.consumer_group_heartbeat_response import Assignment as Answered
from kclient.protocol.primitives import Uuid
from kclient.types import TopicPartition

ById = Mapping[Uuid, tuple[int, ...]]
NameOf = Callable[[Uuid], str | None]


@attrs.frozen
class LocalAssignment:
    """Partitions by topic id, as of a round; the same partitions in a newer round are worth telling again."""

    local_epoch: int = 0
    partitions: ById = attrs.field(factory=dict)

    def to_request(self) -> list[TopicPartitions]:
        """As heartbeats say it."""
        return [TopicPartitions(topic_id=one, partitions=list(some)) for one, some in self.partitions.items()]


@attrs.frozen
class ReconciliationStep:
    """What to own next. `same`: we own exactly that already, and have only to acknowledge it."""

    owned: LocalAssignment
    names: Mapping[Uuid, str]
    same: bool

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The same by name, in the order of names."""
        rows = self.owned.partitions.items()
        return tuple(sorted(TopicPartition(self.names[one], number) for one, some in rows for number in some))


class AssignmentTracker:
    """Target and owned assignment of one member."""

    def __init__(self) -> None:
        self.local_epoch = 0
        self.target: ById = {}
        self.owned = LocalAssignment()
        self._names: Mapping[Uuid, str] = {}  # of what we own, should metadata forget it
        self._received = False  # this membership was sent an assignment
        self._taken_over = False  # the application has taken one over: the listener was called

    @property
    def settled(self) -> bool:
        """Whether we own what the coordinator wants, all of it and nothing else."""
        return self.owned == LocalAssignment(self.local_epoch, self.target)

    def update_target(self, answer: Answered | None) -> bool:
        """An answer's assignment, None where it has none. Returns whether the target is another one now."""
        if answer is None:
            return False
        rows = {row.topic_id: tuple(sorted(row.partitions)) for row in answer.topic_partitions}
        told = {one: rows[one] for one in sorted(rows) if rows[one]}
        if self._received and told == self.target:
            return False
        self._received, self.target = True, told
        self.local_epoch += 1
        return True

    def next_step(self, name_of: NameOf) -> ReconciliationStep | None:
        """The way to as much of the target as has names; None where we have come as far as we can."""
        known = {one: name for one in self.target if (name := self._name(one, name_of)) is not None}
        owned = LocalAssignment(self.local_epoch, {one: self.target[one] for one in known})
        first = not self._taken_over and len(known) == len(self.target)
        same = owned.partitions == self.owned.partitions and not first
        return None if owned == self.owned else ReconciliationStep(owned, known, same)

    def unresolved_topic_ids(self, name_of: NameOf) -> tuple[Uuid, ...]:
        """The topics of the target that metadata must name first."""
        return tuple(one for one in self.target if self._name(one, name_of) is None)

    def mark_reconciled(self, step: ReconciliationStep) -> None:
        """The application owns what the step says."""
        self.owned, self._names = step.owned, step.names
        self._taken_over = self._taken_over or not step.same

    def forget(self) -> None:
        """No member any more: nothing is owned, and nothing is wanted."""
        self.target, self.owned, self._names = {}, LocalAssignment(self.local_epoch), {}
        self._received = self._taken_over = False

    def _name(self, topic_id: Uuid, name_of: NameOf) -> str | None:
        return name_of(topic_id) or self._names.get(topic_id)
