"""Controls of groups and transactions. The modules of `groups/` are imported with the first call that needs them."""

from __future__ import annotations

from kclient.embedded import controller
from kclient.embedded.control import leaders
from kclient.embedded.loop_thread import control
from kclient.embedded.partition import OFFSETS_TOPIC, Partition
from kclient.embedded.state import ClusterState
from kclient.errors import ArgumentError, UsageError
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.types import TopicPartition


class GroupControls:
    """Methods of `EmbeddedCluster`."""

    state: ClusterState

    @control
    def prepare_groups(self) -> None:
        """Create `__consumer_offsets` now, as in a cluster that had groups before; else the first group waits for it.

        It needs up to three brokers that are up: call it before a test kills a broker and then starts its first group.
        """
        _offsets_partition(self.state, "")

    @control
    def coordinator_of(self, group: str) -> int:
        """Return the broker that coordinates a group."""
        return leaders.leader(_offsets_partition(self.state, group))

    @control
    def move_coordinator(self, group: str, node: int | None = None) -> None:
        """Let another broker coordinate a group; it loads the group's partition of `__consumer_offsets` first."""
        leaders.move(self.state, _offsets_partition(self.state, group), node)

    set_coordinator = move_coordinator

    @control
    def committed(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group. Raise UsageError while it has no coordinator."""
        from kclient.embedded.groups.loading import groups_of

        broker = self.state.brokers[leaders.leader(_offsets_partition(self.state, group))]
        if not broker.running:
            raise UsageError(
                f"Broker {broker.node_id}, the coordinator of {group!r}, is down; `heal` the cluster."
            )
        found = groups_of(broker).groups.get(group)
        if found is None:
            return {}
        return {tp: commit.offset for tp, commit in found.offsets.committed.items()}

    @control
    def rebalance(self, group: str | None = None) -> None:
        """Begin a rebalance of a group, or of every group that has members."""
        from kclient.embedded.groups import inspection

        found = inspection.groups(self.state)
        with_members = {name: one for name, one in found.items() if not one.empty}
        if group is None:
            for one in with_members.values():
                inspection.rebalance(one)
        elif group in with_members:
            inspection.rebalance(with_members[group])
        else:
            known = ", ".join(with_members) or "none"
            raise ArgumentError(f"Group {group!r} has no members; groups with members are {known}.")

    @control
    def expire_member(self, group: str, member_id: str) -> None:
        """End the session of a member of a group, as if its heartbeats had stopped."""
        from kclient.embedded.groups import inspection

        inspection.expire_member(self.state, group, member_id)

    @control
    def delay_markers(self, ms: float) -> None:
        """Write the markers of a transaction this much later than EndTxn is answered; until then no one reads it."""
        self.state.marker_delay = ms / 1000


def _offsets_partition(state: ClusterState, group: str) -> Partition:
    """Return the partition of `__consumer_offsets` that holds a group. Raise UsageError if it cannot be created."""
    if controller.create_internal_topic(state, OFFSETS_TOPIC) is None:
        raise UsageError(f"Too few brokers are up to make {OFFSETS_TOPIC}.")
    number = offsets_topic_partition(group, state.settings.offsets_topic_num_partitions)
    return leaders.find(state, OFFSETS_TOPIC, number)
