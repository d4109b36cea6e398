"""Which groups a broker coordinates: those whose partition of `__consumer_offsets` it leads.

Groups and commits live in memory and, as records, in that partition. A broker that becomes its leader reads them back
from there; one that ceases to lead it forgets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kclient.embedded.refusal import Refused
from kclient.embedded.state import OFFSETS_TOPIC
from kclient.embedded.topics import Partition
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID, NOT_COORDINATOR
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.embedded.broker import Broker


class GroupCoordinator:
    """One broker's groups. Raises `Refused` wherever a group is not to be had here."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.groups: dict[str, Any] = {}
        self.loading: set[int] = set()

    def check(self, group_id: str) -> Partition:
        """The partition that holds a group, if this broker leads it. Spec: B.21."""
        if not group_id:
            raise Refused(INVALID_GROUP_ID)
        state = self.broker.state
        number = offsets_topic_partition(group_id, state.settings.offsets_topic_num_partitions)
        partition = state.partition(TopicPartition(OFFSETS_TOPIC, number))
        if partition is None or partition.leader != self.broker.node_id:
            raise Refused(NOT_COORDINATOR)
        if number in self.loading:
            raise Refused(COORDINATOR_LOAD_IN_PROGRESS)
        return partition

    def write(self, group_id: str, records: Iterable[NewRecord]) -> None:
        """Append records to the group's partition."""
        partition = self.check(group_id)
        stored = partition.log.append(build_batch(records), partition.leader_epoch)
        partition.changed.notify()
        for observer in self.broker.state.observers:
            observer.appended(partition, stored.header)

    def leader_changed(self, partition: Partition) -> None:
        """Load a partition that this broker leads now, forget one that it leads no more."""
