"""The markers that end a transaction: one control batch in each partition that it wrote to."""

from __future__ import annotations

from kclient.embedded.replication import append
from kclient.embedded.state import NO_LEADER, OFFSETS_TOPIC, ClusterState, Partition
from kclient.embedded.transactions.states import State
from kclient.embedded.transactions.transaction import Transaction
from kclient.records.writer import build_marker


def write_markers(state: ClusterState, transaction: Transaction, coordinator_epoch: int) -> bool:
    """Write to every partition that can be written to now; False if some are left."""
    left = []
    for tp in transaction.partitions:
        partition = state.partition(tp)
        if partition is None:
            continue  # its topic is gone
        if _writable(state, partition):
            _write(state, partition, transaction, coordinator_epoch)
        else:
            left.append(tp)
    transaction.partitions = left
    return not left


def _writable(state: ClusterState, partition: Partition) -> bool:
    if partition.leader == NO_LEADER:
        return False
    leader = state.brokers[partition.leader]
    return leader.running and not leader.paused


def _write(
    state: ClusterState, partition: Partition, transaction: Transaction, coordinator_epoch: int
) -> None:
    commit = transaction.state is State.PREPARE_COMMIT
    marker = build_marker(
        commit=commit,
        offset=0,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=state.clock.wall_ms(),
    )
    append(state, partition, marker)
    if partition.topic.name == OFFSETS_TOPIC:
        state.brokers[partition.leader].groups.complete(partition.number, transaction.producer_id, commit)
