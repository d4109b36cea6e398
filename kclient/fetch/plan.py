"""Who is asked for what next: one Fetch per node that has none in flight, with every partition that has room for more.

Per partition at most one entry is being drained and one waits; the next fetch begins at the end of what is buffered. A
node is left alone while one of its partitions is full and being drained, or while it is asked where one begins: a
request without that partition could be held back by the broker for the whole of fetch.max.wait while data for it are
there.

A plan stands until something changes. What the buffer or the positions call dirty is looked at again, and nothing
else, so that a Fetch, a seek or a pause over thousands of idle partitions costs what the busy ones cost. All is planned
anew where metadata or time may have changed any of them.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

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


@attrs.define(eq=False)
class _Delay:
    backoff: Backoff
    node_id: int = -1
    until: float = 0.0
    code: int = 0


class PartitionBackoffs:
    """Partition → until when it is not asked for, and where; growing with every error in a row."""

    def __init__(self, config: Config, runtime: Runtime) -> None:
        self._config = config
        self._runtime = runtime
        self._delays: dict[TopicPartition, _Delay] = {}

    def failed(self, tp: TopicPartition, node_id: int, code: int = 0) -> None:
        """The node answered with an error for the partition."""
        delay = self._delays.get(tp)
        if delay is None:
            config = self._config
            backoff = Backoff.for_retries(config, self._runtime)
            delay = self._delays[tp] = _Delay(backoff)
        delay.node_id, delay.code = node_id, code
        delay.until = self._runtime.now() + delay.backoff.next()

    def succeeded(self, tp: TopicPartition, node_id: int) -> None:
        """The node answered without one."""
        if (delay := self._delays.get(tp)) is not None and delay.node_id == node_id:
            del self._delays[tp]

    def last(self, tp: TopicPartition, node_id: int) -> tuple[float, int]:
        """Until when the partition is left alone at this node, and the error's code; zeros if there was none."""
        delay = self._delays.get(tp)
        return (delay.until, delay.code) if delay is not None and delay.node_id == node_id else (0.0, 0)

    def ends(self, now: float) -> list[float]:
        """The moments at which delays end."""
        return [delay.until for delay in self._delays.values() if delay.until > now]

    def retain(self, partitions: Container[TopicPartition]) -> None:
        """Forget all other partitions."""
        self._delays = {tp: delay for tp, delay in self._delays.items() if tp in partitions}


MAX_BUFFERED_PER_PARTITION = 2


@attrs.define
class FetchPlan:
    """`nodes`: who has which partitions. `wanted`: what to ask whom. `full`: what has to be drained first. `asked`: who
    has to say first where which partitions begin. `leaderless`: which partitions have no leader that metadata knows.
    `lost_replica`: a preferred replica is offline.

    `news`: what came to `wanted`, went or changed since it was looked at. `stands_until` (seconds of the loop): before
    that, only what is dirty can change the plan.
    """

    nodes: dict[int, dict[TopicPartition, None]] = attrs.field(factory=dict)
    wanted: dict[int, dict[TopicPartition, PartitionFetch]] = attrs.field(factory=dict)
    news: dict[int, dict[TopicPartition, None]] = attrs.field(factory=dict)
    full: dict[int, dict[TopicPartition, None]] = attrs.field(factory=dict)
    asked: dict[int, dict[TopicPartition, None]] = attrs.field(factory=dict)
    leaderless: dict[TopicPartition, None] = attrs.field(factory=dict)
    lost_replica: bool = False
    stands_until: float = math.inf
    _node_of: dict[TopicPartition, int] = attrs.field(factory=dict)

    @property
    def is_outdated(self) -> bool:
        """Whether newer metadata may have somebody to ask."""
        return self.lost_replica or bool(self.leaderless)

    def ready(self) -> list[int]:
        """The nodes that may be asked for what is wanted of them, if they are free."""
        return [
            node
            for node, wanted in self.wanted.items()
            if wanted and node not in self.full and node not in self.asked
        ]

    def drains_first(self, node: int) -> TopicPartition | None:
        """A partition because of which a node is left alone."""
        return next(iter(self.full.get(node, ())), None)

    def want(self, node: int, one: PartitionFetch) -> None:
        """Behind `put` into `nodes`, by which `forget` finds it again."""
        self.wanted.setdefault(node, {})[one.tp] = one
        self.news.setdefault(node, {})[one.tp] = None

    def put(self, tp: TopicPartition, node: int, group: dict[int, dict[TopicPartition, None]]) -> None:
        """Into one of `nodes`, `full`, `asked`."""
        self._node_of[tp] = node
        group.setdefault(node, {})[tp] = None

    def forget(self, tp: TopicPartition) -> None:
        """It will be looked at again."""
        self.leaderless.pop(tp, None)
        if (node := self._node_of.pop(tp, None)) is None:
            return
        if self.wanted.get(node, {}).pop(tp, None) is not None:
            self.news.setdefault(node, {})[tp] = None
        for group in (self.nodes, self.full, self.asked):
            if (members := group.get(node)) is not None:
                members.pop(tp, None)
                if not members:
                    del group[node]


@attrs.frozen
class PlanInputs:
    """What plans are made from. `turns`: the order of service of the assigned partitions."""

    positions: Positions
    buffer: FetchBuffer
    metadata: MetadataCache
    turns: Mapping[TopicPartition, int]
    delays: PartitionBackoffs


def make_plan(sources: PlanInputs, now: float) -> FetchPlan:
    """Go through all partitions in the order of service."""
    plan = FetchPlan()
    for tp in sources.turns:
        _place(plan, tp, sources, now)
    return plan


def update_plan(plan: FetchPlan, dirty: Iterable[TopicPartition], sources: PlanInputs, now: float) -> None:
    """Look again at the dirty partitions. Then the plan says what a new one would say, for as long as it stands."""
    for tp in dirty:
        plan.forget(tp)
        _place(plan, tp, sources, now)


def _place(plan: FetchPlan, tp: TopicPartition, sources: PlanInputs, now: float) -> None:
    buffer, metadata = sources.buffer, sources.metadata
    state = sources.positions.find(tp)
    if state is None:
        return
    if not state.is_fetchable or state.position is None:
        if state.request_in_flight and (leader := metadata.leader(tp).node_id) is not None:
            plan.put(tp, leader, plan.asked)
        return
    if _loses_replica(tp, state, metadata, now):
        plan.lost_replica, plan.stands_until = True, -math.inf
    if state.preferred_read_replica is not None:
        plan.stands_until = min(plan.stands_until, state.preferred_until)
    node = whom_to_ask(state, metadata)
    if node is None:
        plan.leaderless[tp] = (
            None  # newer metadata, or a new position, has it looked at again; nothing else can help
        )
        return
    plan.put(tp, node, plan.nodes)
    topic_id = metadata.topic_id(tp.topic) or state.topic_id  # by name, what replaces a topic would be read
    if state.topic_id not in (None, topic_id):
        return  # of a topic that is gone: the upkeep of positions judges that
    if (offset := next_offset(buffer, tp, state.position.offset)) is None:
        if will_drain(buffer, tp):
            plan.put(tp, node, plan.full)
    elif (until := sources.delays.last(tp, node)[0]) > now:
        plan.stands_until = min(plan.stands_until, until)
    else:
        leader_epoch = state.position.leader.epoch
        offset_epoch = _offset_epoch(buffer, tp, state.position, node)
        turn = sources.turns[tp]
        plan.want(
            node,
            PartitionFetch(tp, offset, leader_epoch, topic_id, state.position_version, offset_epoch, turn),
        )


def next_offset(buffer: FetchBuffer, tp: TopicPartition, position: int) -> int | None:
    """Where the next fetch of a partition begins. None: something has to be drained, or told to the user, first."""
    queue = buffer.queue(tp)
    if not queue:
        return position
    if len(queue) >= MAX_BUFFERED_PER_PARTITION or queue[-1].error_code:
        return None
    return queue[-1].end_offset


def _offset_epoch(buffer: FetchBuffer, tp: TopicPartition, position: FetchPosition, node: int) -> int | None:
    """The epoch before the position. A follower may not have heard of it, and of a read-ahead it is not known here."""
    return None if node != position.leader.node_id or buffer.queue(tp) else position.offset_epoch


def will_drain(buffer: FetchBuffer, tp: TopicPartition) -> bool:
    """Whether polls alone make room in a partition's queue; a failing one needs the user."""
    queue = buffer.queue(tp)
    return bool(queue) and not queue[0].failing and not queue[0].error_code


def whom_to_ask(state: PartitionState, metadata: MetadataCache) -> int | None:
    """The preferred replica, else the leader."""
    if state.preferred_read_replica is not None:
        return state.preferred_read_replica
    leader = state.position.leader.node_id if state.position else None
    return leader if leader in metadata.brokers else None


def _loses_replica(tp: TopicPartition, state: PartitionState, metadata: MetadataCache, now: float) -> bool:
    """Forget a preferred replica that expired or is offline; whether it is offline."""
    preferred = state.preferred_read_replica
    if preferred is None or (now < state.preferred_until and is_online(tp, preferred, metadata)):
        return False
    state.preferred_read_replica = None
    return now < state.preferred_until


def is_online(tp: TopicPartition, node_id: int, metadata: MetadataCache) -> bool:
    """Whether a broker is a replica of the partition, as far as metadata knows."""
    topic = metadata.topics.get(tp.topic)
    partition = topic.partitions.get(tp.partition) if topic else None
    return (
        partition is not None
        and node_id in metadata.brokers
        and node_id in partition.replicas
        and node_id not in partition.offline_replicas
    )
