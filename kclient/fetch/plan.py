"""Who is asked for what next: one Fetch per node that has none in flight, with every partition that has room for more.

Per partition at most one entry is being drained and one waits; the next fetch begins at the end of what is buffered. A
node is left alone while one of its partitions is full and being drained, or while it is asked where one begins: a
request without that partition could be held back by the broker for the whole of fetch.max.wait while data for it are
there.

Spec: S2-08…S2-15, B.10.1…B.10.3, B.10.5 (with design decision 5).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.request import PartitionFetch
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.metadata import MetadataCache
    from kclient.positions.state import PartitionState
    from kclient.positions.table import Positions

MAX_BUFFERED_PER_PARTITION = 2


@attrs.define
class Plan:
    """`nodes`: who has partitions. `wanted`: what to ask whom. `waiting`: nodes left alone, because of whom.

    `asked`: nodes that have to say where a partition begins first. `is_outdated`: metadata lacks somebody.
    """

    nodes: dict[int, None] = attrs.field(factory=dict)
    wanted: dict[int, list[PartitionFetch]] = attrs.field(factory=dict)
    waiting: dict[int, TopicPartition] = attrs.field(factory=dict)
    asked: dict[int | None, None] = attrs.field(factory=dict)
    is_outdated: bool = False


def make_plan(
    order: Iterable[TopicPartition],
    positions: Positions,
    buffer: FetchBuffer,
    metadata: MetadataCache,
    now: float,
    is_free: Callable[[int], bool],
    is_delayed: Callable[[TopicPartition, int], bool],
) -> Plan:
    """Go through the partitions in the order of service. `is_free`: the node may be asked; `is_delayed`: not yet."""
    plan = Plan()
    for tp in order:
        state = positions.find(tp)
        if state is None or not state.is_fetchable or state.position is None:
            if state is not None and state.asked:
                plan.asked[metadata.leader(tp).node_id] = None
            continue
        if _loses_replica(tp, state, metadata, now):
            plan.is_outdated = True
        node = _target(state, metadata)
        if node is None:
            plan.is_outdated = True
            continue
        plan.nodes[node] = None
        if not is_free(node):
            continue
        if (offset := next_offset(buffer, tp, state.position.offset)) is None:
            if will_drain(buffer, tp):
                plan.waiting[node] = tp
        elif not is_delayed(tp, node):
            leader_epoch = state.position.leader.epoch
            one = PartitionFetch(tp, offset, leader_epoch, metadata.topic_id(tp.topic), state.era)
            plan.wanted.setdefault(node, []).append(one)
    plan.wanted = {
        node: ones
        for node, ones in plan.wanted.items()
        if node not in plan.waiting and node not in plan.asked
    }
    return plan


def next_offset(buffer: FetchBuffer, tp: TopicPartition, position: int) -> int | None:
    """Where the next fetch of a partition begins. None: something has to be drained, or told to the user, first."""
    queue = buffer.queue(tp)
    if not queue:
        return position
    if len(queue) >= MAX_BUFFERED_PER_PARTITION or queue[-1].error_code:
        return None
    return queue[-1].end_offset


def will_drain(buffer: FetchBuffer, tp: TopicPartition) -> bool:
    """Whether polls alone make room in a partition's queue; a failing one needs the user."""
    queue = buffer.queue(tp)
    return bool(queue) and not queue[0].failing and not queue[0].error_code


def _target(state: PartitionState, metadata: MetadataCache) -> int | None:
    """The preferred replica, else the leader. Spec: S2-12, B.10.2, B.10.15."""
    if state.preferred_read_replica is not None:
        return state.preferred_read_replica
    leader = state.position.leader.node_id if state.position else None
    return leader if leader in metadata.brokers else None


def _loses_replica(tp: TopicPartition, state: PartitionState, metadata: MetadataCache, now: float) -> bool:
    """Forget a preferred replica that expired or is offline; whether it is offline. Spec: B.10.2, B.10.15."""
    preferred = state.preferred_read_replica
    if preferred is None or (now < state.preferred_until and _is_online(tp, preferred, metadata)):
        return False
    state.preferred_read_replica = None
    return now < state.preferred_until


def _is_online(tp: TopicPartition, node_id: int, metadata: MetadataCache) -> bool:
    topic = metadata.topics.get(tp.topic)
    partition = topic.partitions.get(tp.partition) if topic else None
    return (
        partition is not None
        and node_id in metadata.brokers
        and node_id in partition.replicas
        and node_id not in partition.offline_replicas
    )
