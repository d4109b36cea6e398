"""The target assignment of the coordinator and the current assignment of the member, by topic id. No I/O.

    target    the assignment of the last response that had one; `local_epoch` counts its changes
    owned     what the application has taken over, and in which local epoch

Reconciling needs topic names, and metadata may not have all of them yet: then the known topics are taken over first,
and the rest when metadata has arrived. The first assignment of a membership is reconciled even if it is empty, as in
Java: the listener learns that this member has joined and owns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from kclient.generated.consumer_group_heartbeat_request import TopicPartitions
from kclient.generated.consumer_group_heartbeat_response import Assignment as ResponseAssignment
from kclient.protocol.primitives import Uuid
from kclient.types import TopicPartition

ById = Mapping[Uuid, tuple[int, ...]]
NameOf = Callable[[Uuid], str | None]


@attrs.frozen
class LocalAssignment:
    """Partitions by topic id in a local epoch; the same partitions in a newer epoch are acknowledged again."""

    local_epoch: int = 0
    partitions: ById = attrs.field(factory=dict)

    def to_request(self) -> list[TopicPartitions]:
        """Return the rows for ConsumerGroupHeartbeat."""
        return [TopicPartitions(topic_id=one, partitions=list(some)) for one, some in self.partitions.items()]


@attrs.frozen
class ReconciliationStep:
    """The partitions to own next. `same`: they are owned already, and only have to be acknowledged."""

    owned: LocalAssignment
    names: Mapping[Uuid, str]
    same: bool

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions with topic names, sorted."""
        rows = self.owned.partitions.items()
        return tuple(sorted(TopicPartition(self.names[one], number) for one, some in rows for number in some))


class AssignmentTracker:
    """Target and owned assignment of one member."""

    def __init__(self) -> None:
        self.local_epoch: int = 0
        self.target: ById = {}
        self.owned: LocalAssignment = LocalAssignment()
        self._names: Mapping[Uuid, str] = {}  # of the owned topics, in case metadata drops one
        self._received = False  # this membership has received an assignment
        self._taken_over = False  # the listener was called for one

    @property
    def settled(self) -> bool:
        """Whether the owned partitions are exactly the target."""
        return self.owned == LocalAssignment(self.local_epoch, self.target)

    def update_target(self, response: ResponseAssignment | None) -> bool:
        """Take over the assignment of a response, None if it has none. Return whether the target has changed."""
        if response is None:
            return False
        rows = {row.topic_id: tuple(sorted(row.partitions)) for row in response.topic_partitions}
        # In one order: the same partitions in another order are not a new target.
        target = {topic_id: rows[topic_id] for topic_id in sorted(rows) if rows[topic_id]}
        if self._received and target == self.target:
            return False
        self._received, self.target = True, target
        self.local_epoch += 1
        return True

    def next_step(self, name_of: NameOf) -> ReconciliationStep | None:
        """Return the step to the part of the target whose topics have names; None if it is owned already."""
        known = {one: name for one in self.target if (name := self._name(one, name_of)) is not None}
        owned = LocalAssignment(self.local_epoch, {one: self.target[one] for one in known})
        first = not self._taken_over and len(known) == len(self.target)
        same = owned.partitions == self.owned.partitions and not first
        return None if owned == self.owned else ReconciliationStep(owned, known, same)

    def unresolved_topic_ids(self, name_of: NameOf) -> tuple[Uuid, ...]:
        """Return the topic ids of the target that metadata cannot name yet."""
        return tuple(one for one in self.target if self._name(one, name_of) is None)

    def mark_reconciled(self, step: ReconciliationStep) -> None:
        """Record that the application owns the partitions of the step."""
        self.owned, self._names = step.owned, step.names
        self._taken_over = self._taken_over or not step.same

    def forget(self) -> None:
        """Forget target and owned partitions: the membership has ended."""
        self.target, self.owned, self._names = {}, LocalAssignment(self.local_epoch), {}
        self._received = self._taken_over = False

    def _name(self, topic_id: Uuid, name_of: NameOf) -> str | None:
        return name_of(topic_id) or self._names.get(topic_id)
