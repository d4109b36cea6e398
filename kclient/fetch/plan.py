"""Which partitions the next Fetch to each node contains.

A partition has at most MAX_BUFFERED_PER_PARTITION responses in the buffer: polls take records from the first while the
second waits. The next fetch begins where the buffered data end. For each assigned partition, of one node:

    state of the partition                                  effect on its node
    fetchable, fewer than two responses are buffered        in the next request
    … but in backoff after an error from this node          left out of the request
    fetchable, two are buffered, polls will take them       no request to the node at all (`backpressured`)
    … but they wait for the user (an error, a bad batch)    left out of the request
    its position is being looked up at the node             no request to the node at all (`awaiting_position`)
    paused, being revoked, position unknown                 left out of the request

A node gets no request for a moment rather than one without that partition, because the broker may hold a request for
fetch_max_wait_ms if the other partitions have no data, and the connection has room for one Fetch only:

    node 1 leads a-0 (two responses buffered) and a-1 (no new records)
    request for a-1 only    poll() returns the records of a-0, but the next fetch of a-0 waits up to 500 ms for a-1
    no request yet          poll() returns the records of a-0, then one request asks for a-0 and a-1

A plan is updated, not made again: only the partitions that buffer or positions marked dirty are planned again, so that
a Fetch, a seek or a pause costs the same with 10 idle partitions and with 10,000. A new plan is made when metadata
changed or `valid_until` has passed, because both can change any partition.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from kclient.config import Config
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.session import PartitionFetch
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.metadata import MetadataCache
    from kclient.positions.state import FetchPosition, PartitionState
    from kclient.positions.table import Positions

MAX_BUFFERED_PER_PARTITION: Final = 2


# --- backoff of single partitions --------------------------------------------------------------------


@attrs.define(eq=False)
class _PartitionBackoff:
    backoff: Backoff
    node_id: int = -1
    until: float = 0.0
    code: int = 0


class PartitionBackoffs:
    """Partitions that got an error: no request to the same node contains them until their backoff has passed.

    Other nodes are not affected: after an error of a follower the leader is asked at once.
    """

    def __init__(self, config: Config, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._backoffs: dict[TopicPartition, _PartitionBackoff] = {}

    def failed(self, tp: TopicPartition, node_id: int, code: int = 0) -> None:
        """Start a backoff, longer than the last if the partition failed before, after an error of this node."""
        entry = self._backoffs.get(tp)
        if entry is None:
            backoff = Backoff.for_retries(self._config, self._runtime)
            entry = self._backoffs[tp] = _PartitionBackoff(backoff)
        entry.node_id, entry.code = node_id, code
        entry.until = self._runtime.now() + entry.backoff.next()

    def succeeded(self, tp: TopicPartition, node_id: int) -> None:
        """End the backoff of a partition after a response of this node without an error."""
        if (entry := self._backoffs.get(tp)) is not None and entry.node_id == node_id:
            del self._backoffs[tp]

    def last(self, tp: TopicPartition, node_id: int) -> tuple[float, int]:
        """Return when the last backoff at this node ends or ended, and its error code; zeros if there was none."""
        entry = self._backoffs.get(tp)
        return (entry.until, entry.code) if entry is not None and entry.node_id == node_id else (0.0, 0)

    def ends(self, now: float) -> list[float]:
        """Return the times at which running backoffs end."""
        return [entry.until for entry in self._backoffs.values() if entry.until > now]

    def retain(self, partitions: Container[TopicPartition]) -> None:
        """Forget all other partitions."""
        self._backoffs = {tp: entry for tp, entry in self._backoffs.items() if tp in partitions}


# --- the plan ----------------------------------------------------------------------------------------


@attrs.define(eq=False)
class NodePlan:
    """Partitions of one node. A dict with None as values is an ordered set.

    `partitions`: all that are fetched from the node. `requests`: those of the next request; the fetcher replaces this
    dict by a copy before an update while a request that is being built still reads it. `changes`: those that were
    added to `requests`, altered or removed since the fetcher looked last, for the fetch session. `backpressured` and
    `awaiting_position`: while one of these has a member, the node gets no request.
    """

    partitions: dict[TopicPartition, None] = attrs.field(factory=dict)
    requests: dict[TopicPartition, PartitionFetch] = attrs.field(factory=dict)
    changes: dict[TopicPartition, None] = attrs.field(factory=dict)
    backpressured: dict[TopicPartition, None] = attrs.field(factory=dict)
    awaiting_position: dict[TopicPartition, None] = attrs.field(factory=dict)

    @property
    def is_ready(self) -> bool:
        """Whether the node may get a request."""
        return bool(self.requests) and not self.backpressured and not self.awaiting_position

    def add_request(self, request: PartitionFetch) -> None:
        """Have the next request contain the partition."""
        self.requests[request.tp] = request
        self.changes[request.tp] = None

    def remove(self, tp: TopicPartition) -> None:
        """Remove the partition."""
        if self.requests.pop(tp, None) is not None:
            self.changes[tp] = None
        self.partitions.pop(tp, None)
        self.backpressured.pop(tp, None)
        self.awaiting_position.pop(tp, None)


@attrs.define(eq=False)
class FetchPlan:
    """What every node is asked for next.

    `nodes`: node id → its partitions; a node without any may be left over. `leaderless`: partitions without a leader
    that metadata know. `replica_offline`: a preferred read replica went offline. `valid_until` (seconds of the loop):
    before that, only a dirty partition can change the plan; infinity while no backoff and no replica limits it.
    """

    nodes: dict[int, NodePlan] = attrs.field(factory=dict)
    leaderless: dict[TopicPartition, None] = attrs.field(factory=dict)
    replica_offline: bool = False
    valid_until: float = math.inf
    _node_of: dict[TopicPartition, int] = attrs.field(factory=dict)

    @property
    def needs_metadata(self) -> bool:
        """Whether newer metadata may name a node for a partition that has none now."""
        return self.replica_offline or bool(self.leaderless)

    def ready_nodes(self) -> list[int]:
        """Return the nodes that may get a request if none is in flight to them."""
        return [node_id for node_id, node in self.nodes.items() if node.is_ready]

    def active_nodes(self) -> list[int]:
        """Return the nodes that partitions are fetched from."""
        return [node_id for node_id, node in self.nodes.items() if node.partitions]

    def backpressured_by(self, node_id: int) -> TopicPartition | None:
        """Return a partition whose buffered records must be polled before the node gets a request."""
        node = self.nodes.get(node_id)
        return None if node is None else next(iter(node.backpressured), None)

    def node_of(self, tp: TopicPartition, node_id: int) -> NodePlan:
        """Return the plan of the node that a partition is about to join; `remove` finds it there again."""
        self._node_of[tp] = node_id
        node = self.nodes.get(node_id)
        if node is None:
            node = self.nodes[node_id] = NodePlan()
        return node

    def expire(self, at: float) -> None:
        """Have a new plan made at this time, if not before."""
        self.valid_until = min(self.valid_until, at)

    def remove(self, tp: TopicPartition) -> None:
        """Remove the partition, which is planned again then."""
        self.leaderless.pop(tp, None)
        if (node_id := self._node_of.pop(tp, None)) is not None:
            self.nodes[node_id].remove(tp)


@attrs.frozen
class PlanInputs:
    """What plans are made from. `fetch_order`: assigned partition → its place in the order of service."""

    positions: Positions
    buffer: FetchBuffer
    metadata: MetadataCache
    fetch_order: Mapping[TopicPartition, int]
    backoffs: PartitionBackoffs


def build_plan(inputs: PlanInputs, now: float) -> FetchPlan:
    """Plan all assigned partitions, in the order of service."""
    plan = FetchPlan()
    for tp in inputs.fetch_order:
        _plan_partition(plan, tp, inputs, now)
    return plan


def update_plan(plan: FetchPlan, dirty: Iterable[TopicPartition], inputs: PlanInputs, now: float) -> None:
    """Plan the dirty partitions again. While the plan is valid, it is equal to a new one after this."""
    for tp in dirty:
        plan.remove(tp)
        _plan_partition(plan, tp, inputs, now)


def _plan_partition(plan: FetchPlan, tp: TopicPartition, inputs: PlanInputs, now: float) -> None:
    buffer, metadata = inputs.buffer, inputs.metadata
    state = inputs.positions.find(tp)
    if state is None:
        return
    if not state.is_fetchable or state.position is None:
        if state.request_in_flight and (leader := metadata.leader(tp).node_id) is not None:
            plan.node_of(tp, leader).awaiting_position[tp] = None
        return
    if _drop_read_replica(tp, state, metadata, now):
        plan.replica_offline = True
        plan.expire(
            now
        )  # the next look makes a plan without the flag: metadata are requested once, not each time
    if state.preferred_read_replica is not None:
        plan.expire(state.preferred_until)
    node_id = select_read_replica(state, metadata)
    if node_id is None:
        # Dirty again after newer metadata or with a new position; nothing else can give it a node.
        plan.leaderless[tp] = None
        return
    node = plan.node_of(tp, node_id)
    node.partitions[tp] = None
    # A recreated topic has a new id. By name its records would be read as if they were those of the deleted topic; the
    # update of positions handles the change.
    topic_id = metadata.topic_id(tp.topic) or state.topic_id
    if state.topic_id not in (None, topic_id):
        return
    if (offset := next_offset(buffer, tp, state.position.offset)) is None:
        if will_drain(buffer, tp):
            node.backpressured[tp] = None
    elif (until := inputs.backoffs.last(tp, node_id)[0]) > now:
        plan.expire(until)
    else:
        leader_epoch = state.position.leader.epoch
        offset_epoch = _offset_epoch(buffer, tp, state.position, node_id)
        order = inputs.fetch_order[tp]
        node.add_request(
            PartitionFetch(tp, offset, leader_epoch, topic_id, state.position_version, offset_epoch, order)
        )


def next_offset(buffer: FetchBuffer, tp: TopicPartition, position: int) -> int | None:
    """Return the offset of the next fetch, None if buffered records or an error must be returned by a poll first.

    Buffered up to 7, position 3: the next fetch begins at 7. The second response buffered, or an error: None. None
    also if the end of the buffered data is known only after decoding (`CompletedFetch.end_offset`).
    """
    queue = buffer.queue(tp)
    if not queue:
        return position
    if len(queue) >= MAX_BUFFERED_PER_PARTITION or queue[-1].error_code:
        return None
    return queue[-1].end_offset


def _offset_epoch(
    buffer: FetchBuffer, tp: TopicPartition, position: FetchPosition, node_id: int
) -> int | None:
    """Return the epoch of the record before the offset, None where it must not or cannot be sent.

    A follower may not know the epoch yet. After buffered data, the epoch before the next offset is not decoded yet.
    """
    return None if node_id != position.leader.node_id or buffer.queue(tp) else position.offset_epoch


def will_drain(buffer: FetchBuffer, tp: TopicPartition) -> bool:
    """Return whether polls alone empty the queue; a bad batch or an error needs an action of the user."""
    queue = buffer.queue(tp)
    return bool(queue) and not queue[0].is_blocked and not queue[0].error_code


def select_read_replica(state: PartitionState, metadata: MetadataCache) -> int | None:
    """Return the preferred read replica (KIP-392), else the leader, else None."""
    if state.preferred_read_replica is not None:
        return state.preferred_read_replica
    leader = state.position.leader.node_id if state.position else None
    return leader if leader in metadata.brokers else None


def _drop_read_replica(
    tp: TopicPartition, state: PartitionState, metadata: MetadataCache, now: float
) -> bool:
    """Clear a preferred read replica that expired or is offline. Return whether it is offline."""
    replica = state.preferred_read_replica
    if replica is None or (now < state.preferred_until and is_online(tp, replica, metadata)):
        return False
    state.preferred_read_replica = None
    return now < state.preferred_until


def is_online(tp: TopicPartition, node_id: int, metadata: MetadataCache) -> bool:
    """Return whether the broker is an online replica of the partition according to metadata."""
    topic = metadata.topics.get(tp.topic)
    partition = topic.partitions.get(tp.partition) if topic else None
    return (
        partition is not None
        and node_id in metadata.brokers
        and node_id in partition.replicas
        and node_id not in partition.offline_replicas
    )
