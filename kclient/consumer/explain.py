"""explain(): why no records arrive, one sentence for each partition and one for the consumer. Changes nothing.

Each partition is checked from the application back to the broker, and the first check that applies gives the sentence:
may poll() return its records, are records buffered, is its position known, is a Fetch in flight. With `ask`, one Fetch
for each partition that an open transaction holds back finds the producer of that transaction.
"""

from __future__ import annotations

import asyncio
import datetime
import enum
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from kclient.consumer.core import ConsumerCore
from kclient.consumer.group import GroupConsumer
from kclient.consumer.subscription import SubscriptionKind
from kclient.errors import KclientError
from kclient.fetch.diagnostics import FetchStatus, OpenTransaction, find_open_transaction
from kclient.fetch.session import PartitionFetch
from kclient.group.classic.state import ClassicMemberState
from kclient.group.consumer_protocol.state import ConsumerMemberState
from kclient.log import get_logger
from kclient.positions.state import AWAIT_RESET, AWAIT_VALIDATION, INITIALIZING, FetchState, PartitionState
from kclient.protocol.errors import error
from kclient.text import LONGEST_TEXT, printable
from kclient.types import OffsetAndMetadata, TopicPartition

log: Final = get_logger("kclient.consumer")

OpenTransactions = Mapping[TopicPartition, OpenTransaction | str]

MEMBER_STATES: Final[Mapping[enum.Enum, str]] = {
    ClassicMemberState.UNJOINED: "not joined yet",
    ClassicMemberState.PREPARING_REBALANCE: "joining (JoinGroup waits for all members)",
    ClassicMemberState.COMPLETING_REBALANCE: "waiting for its assignment (SyncGroup)",
    **{state: state.value for state in ConsumerMemberState},
    ConsumerMemberState.JOINING: "joining (ConsumerGroupHeartbeat)",
}

LOOKUPS: Final[Mapping[FetchState, str]] = {
    INITIALIZING: "the committed offset (OffsetFetch)",
    AWAIT_RESET: "the offset to begin at (ListOffsets)",
    AWAIT_VALIDATION: "the check of its position against the leader's log (OffsetForLeaderEpoch)",
}

BEGAN_AT_END: Final = (
    ". It began there, so the records before it are not read; where nothing is committed, "
    "auto_offset_reset='earliest' begins with them"
)
NOTHING_ASSIGNED: Final = (
    "; no partition is assigned to it, as happens where a group has more members than partitions"
)


async def explain(core: ConsumerCore, *, ask: bool, timeout: float) -> Explanation:
    """Return one sentence for each assigned partition. A broker's failure is not raised."""
    open_transactions = await _find_open_transactions(core, timeout) if ask and core.lifecycle.running else {}
    consumed = core.assigned.consumed()
    sentences = {
        tp: (
            _not_returned(core, tp, state, consumed.get(tp)) or _sentence(core, tp, state, open_transactions)
        )
        + _in_handlers(core, tp)
        for tp, state in core.positions.items()
    }
    return Explanation(_describe_consumer(core) + _in_handlers(core), sentences)


# --- the consumer as a whole -------------------------------------------------------------------------


def _describe_consumer(core: ConsumerCore) -> str:
    if core.subscription.kind is SubscriptionKind.NONE:
        return "not assigned: nothing is subscribed to; call subscribe() or assign()"
    if not core.lifecycle.running:
        return "not connected: no broker has been reached yet; a poll() tries, and says why it fails"
    if core.rebalance_steps:
        return "a rebalance waits for the next poll() to go on"
    if core.subscription.automatic:
        topics = ", ".join(core.subscription.topics) or _describe_pattern(core)
        sentence = describe_membership(core.group, topics, core.runtime.now()) + _without_partitions(core)
    else:
        sentence = f"{len(core.positions)} partitions are assigned by hand"
    return sentence + core.missing_topics.describe()


def _without_partitions(core: ConsumerCore) -> str:
    """Return what a member of a stable group may lack, if its topics have partitions."""
    membership, topics = core.group.membership.current, core.cluster.metadata.topics
    if membership is None or not membership.stable or core.positions:
        return ""
    exist = any(name in topics and topics[name].partitions for name in core.subscription.topics)
    return NOTHING_ASSIGNED if exist else ""


def _describe_pattern(core: ConsumerCore) -> str:
    pattern = core.subscription.broker_pattern
    if pattern is not None:
        return f"the topics that the brokers find for {pattern.pattern!r}"
    return "the pattern, which no topic matches yet"


# --- one partition -----------------------------------------------------------------------------------


def _sentence(
    core: ConsumerCore, tp: TopicPartition, state: PartitionState, open_transactions: OpenTransactions
) -> str:
    return (
        _pending_error(core, tp)
        or _without_position(core, tp, state)
        or _buffered(core, tp, state)
        or _not_fetched_yet(core, tp, state, open_transactions)
    )


def _not_returned(
    core: ConsumerCore, tp: TopicPartition, state: PartitionState, consumed: OffsetAndMetadata | None
) -> str | None:
    if state.paused:
        waiting = _bytes_of(core, tp)
        by_handlers = core.handlers is not None and core.handlers.pauses(tp)
        why = "paused by the handlers, which have enough in flight" if by_handlers else ""
        return (why or "paused: resume() lets it go on") + (
            f"; {waiting} bytes are buffered" if waiting else ""
        )
    if state.is_revoking:
        return "given back: a rebalance takes it away at the next poll()"
    if state.pending_callback:
        return "assigned just now: the listener's on_partitions_assigned has not returned"
    if state.position is not None and consumed is not None and consumed.offset < state.position.offset:
        return f"ready: offset {consumed.offset} is next in the loop over this consumer"
    return None


def _in_handlers(core: ConsumerCore, tp: TopicPartition | None = None) -> str:
    """Return what a run of handlers says of the partition, or of itself, as the end of a sentence."""
    said = "" if core.handlers is None else core.handlers.describe(tp)
    return f"; handlers: {said}" if said else ""


def _pending_error(core: ConsumerCore, tp: TopicPartition) -> str | None:
    problem = core.position_updater.error_about(tp)
    return None if problem is None else f"the next poll() raises {type(problem).__name__}: {problem.text}"


def _without_position(core: ConsumerCore, tp: TopicPartition, state: PartitionState) -> str | None:
    if state.out_of_range and state.position is not None:
        return f"offset {state.position.offset} is not in the log: asking what the log holds"
    if (question := LOOKUPS.get(state.fetch_state)) is None:
        return None
    if state.reset_strategy is not None:
        question += f", {state.reset_strategy.name}"
    return f"waiting for {question}: {_lookup_state(core, tp, state)}"


def _lookup_state(core: ConsumerCore, tp: TopicPartition, state: PartitionState) -> str:
    now = core.runtime.now()
    if not core.lifecycle.running:
        return "no broker has been reached yet"
    if state.fetch_state is INITIALIZING:
        if state.lookup_deferred:
            return "the next poll() has it asked for"
        if core.group_or_none is not None and core.group.coordinator.node_id is None:
            return "the group's coordinator is not known yet"
        in_flight, retry_at = (
            core.position_updater.committed_in_flight,
            core.position_updater.committed_retry_at,
        )
    else:
        if core.cluster.metadata.leader(tp).node_id is None:
            return _leader_unknown(core, tp)
        in_flight, retry_at = state.request_in_flight, state.retry_at or 0.0
    if in_flight:
        return "the response is on its way"
    return f"backing off, asked again in {retry_at - now:.1f} s" if retry_at > now else "about to be asked"


def _leader_unknown(core: ConsumerCore, tp: TopicPartition) -> str:
    topic = core.cluster.metadata.topics.get(tp.topic)
    if topic is None:
        if tp.topic in core.cluster.metadata.nonexistent:
            return f"the topic does not exist: {tp.topic!r}"
        return "the metadata of the topic has not come yet"
    if topic.error_code:
        return f"metadata says {error(topic.error_code).name} ({topic.error_code})"
    if topic.partitions and tp.partition not in topic.partitions:
        return "the topic has no such partition"
    return "no leader is known; metadata is asked until there is one"


def _buffered(core: ConsumerCore, tp: TopicPartition, state: PartitionState) -> str | None:
    queue = core.buffer.queue(tp)
    if not queue:
        return None
    head = queue[0]
    if head.error_code:
        name = error(head.error_code).name
        return (
            f"the next poll() acts on {name} ({head.error_code}) of the fetch at offset {head.fetch_offset}"
        )
    if head.is_blocked:
        return f"stuck at offset {head.next_offset} until you seek: {head.blocking_error}"
    if state.position is not None and head.next_offset != state.position.offset:
        return f"what is buffered is out of date and will be fetched again from {state.position.offset}"
    return f"ready: {_bytes_of(core, tp)} bytes from offset {head.next_offset} on wait for the next poll()"


def _bytes_of(core: ConsumerCore, tp: TopicPartition) -> int:
    return sum(len(fetch.data) for fetch in core.buffer.queue(tp))


# --- nothing is buffered -----------------------------------------------------------------------------


def _not_fetched_yet(
    core: ConsumerCore, tp: TopicPartition, state: PartitionState, open_transactions: OpenTransactions
) -> str:
    status, now = core.fetcher.status(tp), core.runtime.now()
    if status.node_id is None:
        return f"waiting for a leader: {_leader_unknown(core, tp)}"
    node = f"node {status.node_id}" + (" (the preferred replica)" if status.is_preferred else "")
    doing = _being_fetched(core, status, state, node, now)
    if (end := _at_the_end(core, tp, state, open_transactions)) is not None:
        return f"{end}; {doing}"
    return doing


def _at_the_end(
    core: ConsumerCore, tp: TopicPartition, state: PartitionState, open_transactions: OpenTransactions
) -> str | None:
    if state.position is None:
        return None
    position, high_watermark = state.position.offset, state.high_watermark
    if _is_held_back(core, state):
        whose = open_transactions.get(tp, "explain(ask=True) asks whose")
        if isinstance(whose, OpenTransaction):
            since = datetime.datetime.fromtimestamp(whose.since_ms / 1000, datetime.UTC)
            whose = f"producer id {whose.producer_id}, since {since:%H:%M:%S} UTC on {since:%Y-%m-%d}"
        return (
            f"waiting for open transaction: {whose}. read_committed ends at offset {position}, "
            f"{(high_watermark or 0) - position} offsets before the high watermark"
        )
    if high_watermark is not None and position >= high_watermark:
        skipped = state.began_at_end == position and position > (state.log_start_offset or 0)
        return f"at the end: position {position} is the high watermark of the last response" + (
            BEGAN_AT_END if skipped else ""
        )
    return None


def _is_held_back(core: ConsumerCore, state: PartitionState) -> bool:
    """Return whether the position is the last stable offset, and the log continues after it."""
    return (
        core.config.isolation_level == "read_committed"
        and state.position is not None
        and state.last_stable_offset == state.position.offset
        and state.high_watermark is not None
        and state.high_watermark > state.last_stable_offset
    )


def _being_fetched(
    core: ConsumerCore, status: FetchStatus, state: PartitionState, node: str, now: float
) -> str:
    if status.sent_at is not None:
        return f"a Fetch is in flight to {node} for {now - status.sent_at:.1f} s"
    if status.retry_at is not None:
        why = status.last_error
        if isinstance(why, int):
            why = f"it answered {error(why).name} ({why})" if why else "its response led nowhere"
        return f"backing off, {node} is asked again in {status.retry_at - now:.1f} s: {why}"
    if status.buffer_full:
        return (
            f"buffer full: {core.buffer.bytes_used} of {core.config.buffer_memory_bytes} bytes "
            "(buffer_memory_bytes) are in use; poll() makes room"
        )
    if status.backpressured_by is not None:
        return f"{node} is asked when poll() has taken what is buffered of {status.backpressured_by}"
    offset = state.position.offset if state.position is not None else "?"
    return f"about to be fetched from {node} at offset {offset}"


# --- open transactions --------------------------------------------------------------------------------


async def _find_open_transactions(
    core: ConsumerCore, timeout: float
) -> dict[TopicPartition, OpenTransaction | str]:
    """Return the transaction that holds back each partition, as far as the leaders answer in time."""
    found: dict[TopicPartition, OpenTransaction | str] = {}
    try:
        async with asyncio.timeout(timeout):
            for tp, state in tuple(core.positions.items()):
                if _is_held_back(core, state) and not core.buffer.queue(tp):
                    found[tp] = "producer unknown, the leader did not answer in time"
                    found[tp] = await _open_transaction_of(core, tp, state)
    except TimeoutError:
        log.debug("explain() could not ask all leaders in %.1f s", timeout)
    return found


async def _open_transaction_of(
    core: ConsumerCore, tp: TopicPartition, state: PartitionState
) -> OpenTransaction | str:
    metadata, position = core.cluster.metadata, state.position
    leader = metadata.leader(tp).node_id
    if leader is None or position is None:
        return "producer unknown, there is no leader to ask"
    wanted = PartitionFetch(
        tp, position.offset, position.leader.epoch, metadata.topic_id(tp.topic), state.position_version
    )
    try:
        return await find_open_transaction(core.cluster, leader, wanted) or "it ended a moment ago"
    except KclientError as exc:
        return f"producer unknown: {exc.text}"


@attrs.frozen(repr=False, eq=False)
class Explanation(Mapping[TopicPartition, str]):
    """Partition → why no records arrive, or what the next poll will return. `str()` is a table.

    `consumer` says where the consumer as a whole stands: without an assignment it is the whole answer.
    """

    consumer: str
    partitions: Mapping[TopicPartition, str]

    def __getitem__(self, partition: TopicPartition) -> str:
        return self.partitions[partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __str__(self) -> str:
        names = {tp: printable(str(tp)) for tp in self.partitions}
        width = max(map(len, names.values()), default=0)
        lines = [f"{names[tp]:<{width}}  {sentence}" for tp, sentence in self.partitions.items()]
        return "\n".join(printable(line, LONGEST_TEXT) for line in (self.consumer, *lines))

    __repr__ = __str__


def describe_membership(group: GroupConsumer, topics: str, now: float) -> str:
    """Return one sentence about the membership. `now` is the loop's time."""
    membership = group.membership.current
    if membership is None:
        return f"not assigned: not in group {group.membership.group_id} yet, subscribed to {topics}"
    if membership.stable:
        generation = membership.generation.generation_id
        return f"member of group {group.membership.group_id}, generation {generation}, subscribed to {topics}"
    where = MEMBER_STATES[membership.state]
    since = f" for {now - membership.since:.1f} s" if membership.since else ""
    kept = len(group.rebalance.owned())
    has = f"{kept} partitions are kept meanwhile" if kept else "not assigned"
    sentence = f"{has}: group {group.membership.group_id} {where}{since}, subscribed to {topics}"
    if group.coordinator.node_id is None:
        sentence += "; its coordinator is being looked up"
    if membership.ended:
        sentence += f"; the membership before ended: {membership.ended}"
    return sentence
