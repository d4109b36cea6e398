"""Fetch responses: data and errors that concern the user go into the buffer, all else is handled at once.

    per partition                action
    no error                     high watermark and log start into the partition's state, data into the buffer,
                                 a preferred read replica is noted (KIP-392); a diverging epoch means that the log was
                                 truncated, handled like the same response to OffsetForLeaderEpoch (KIP-595)
    6 9 56 74 78 3 100 103       request metadata (6 and 74 may name the new leader, KIP-951), back off, retry
    75, −1                       back off, retry; −1 is logged
    1 from a follower            retry at the leader: a follower may lag or have deleted other segments
    1, 29, all others            into the buffer after the data before them; the poll that reaches them resets or raises

A row is dropped if the position has another version than when it was requested (seek, reset, revocation), or if it does
not continue the buffered data:

    requested at 5, seek to 9 meanwhile      the version differs: dropped
    requested at 5, data up to 7 buffered    7 is next: dropped (a node change let two requests overlap)
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kclient.config import Config
from kclient.fetch.buffer import CompletedFetch, FetchBuffer, ResponseMemory, end_of
from kclient.fetch.plan import PartitionBackoffs, is_online, next_offset
from kclient.fetch.session import FetchSession, PartitionFetch
from kclient.generated.fetch_response import FetchResponse, PartitionData
from kclient.log import TRACE, ThrottledLogger, get_logger
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.registry import Registry
from kclient.protocol.errors import (
    FENCED_LEADER_EPOCH,
    FETCH_SESSION_ID_NOT_FOUND,
    INCONSISTENT_TOPIC_ID,
    INVALID_FETCH_SESSION_EPOCH,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    REPLICA_NOT_AVAILABLE,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
    error,
)
from kclient.runtime import Runtime
from kclient.types import Broker, TopicPartition

if TYPE_CHECKING:
    from kclient.fetch.session import Row
    from kclient.network.cluster import Cluster
    from kclient.positions.state import PartitionState
    from kclient.positions.table import Positions

logger: Final = get_logger("kclient.fetch")


class Action(enum.Enum):
    """How the client reacts to the error code of a partition."""

    UPDATE_METADATA = "request metadata and retry"
    RETRY = "retry"
    WARN_AND_RETRY = "log a warning and retry"
    RESET = "reset the position by auto_offset_reset, or raise"
    RAISE = "raise from the next poll"


ACTIONS: dict[int, Action] = {
    NOT_LEADER_OR_FOLLOWER: Action.UPDATE_METADATA,
    REPLICA_NOT_AVAILABLE: Action.UPDATE_METADATA,
    KAFKA_STORAGE_ERROR: Action.UPDATE_METADATA,
    FENCED_LEADER_EPOCH: Action.UPDATE_METADATA,
    OFFSET_NOT_AVAILABLE: Action.UPDATE_METADATA,
    UNKNOWN_TOPIC_OR_PARTITION: Action.UPDATE_METADATA,
    UNKNOWN_TOPIC_ID: Action.UPDATE_METADATA,
    INCONSISTENT_TOPIC_ID: Action.UPDATE_METADATA,
    UNKNOWN_LEADER_EPOCH: Action.RETRY,
    UNKNOWN_SERVER_ERROR: Action.WARN_AND_RETRY,
    OFFSET_OUT_OF_RANGE: Action.RESET,
}
"""Every other code is raised."""

NAMES_NEW_LEADER = frozenset({NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH})
"""Codes with which a response may name the current leader (KIP-951)."""


def action_for(code: int) -> Action:
    """Return the action for the error code of a partition."""
    return ACTIONS.get(code, Action.RAISE)


# The broker lost the session; our metadata are not wrong.
SESSION_LOST = (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH)


class FetchResponseHandler:
    """Handle the responses of all nodes.

    `fetch_order` maps assigned partitions to their place in the order of service, first one first. A partition that got
    data or an error moves to the end, so that a small max_bytes serves all partitions in turn (KIP-74).

        a-0: 1, a-1: 2, a-2: 3     data of a-0     a-1: 2, a-2: 3, a-0: 4

    `backoffs` contains the partitions that got an error recently.
    """

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        buffer: FetchBuffer,
        config: Config,
        runtime: Runtime,
        metrics: FetchMetrics | None = None,
    ) -> None:
        self.fetch_order: dict[TopicPartition, int] = {}
        self.backoffs: Final = PartitionBackoffs(config, runtime)
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._runtime = runtime
        self._throttled = ThrottledLogger(logger)
        self._metrics = metrics or FetchMetrics(Registry())
        self._next_place = itertools.count(1)
        self._assignment_id = -1

    # --- between responses -----------------------------------------------------------------------

    def follow_positions(self) -> None:
        """Drop data of partitions whose position changed or that were revoked, and mark all that changed dirty."""
        positions, buffer = self._positions, self._buffer
        if self._assignment_id != positions.assignment_id:
            self._assignment_id = positions.assignment_id
            self._follow_assignment()
        dirty = positions.take_dirty()
        stale = [
            tp
            for tp in dirty
            if (queue := buffer.queue(tp)) and positions.find(tp, queue[-1].position_version) is None
        ]
        if stale:
            logger.debug("Dropping the fetched data of %d partitions that were moved or revoked", len(stale))
            buffer.drop(stale)
        for tp in dirty:
            buffer.mark_dirty(tp)

    def _follow_assignment(self) -> None:
        """Partitions that stay assigned keep their place, new ones go to the end."""
        for tp in [tp for tp in self.fetch_order if tp not in self._positions]:
            del self.fetch_order[tp]
        for tp in self._positions.assigned():
            if tp not in self.fetch_order:
                self.fetch_order[tp] = next(self._next_place)
        self.backoffs.retain(self._positions)

    def clear_read_replicas(self, partitions: Iterable[TopicPartition]) -> None:
        """Have the next requests go to the leaders."""
        for tp in partitions:
            state = self._positions.find(tp)
            if state is not None and state.preferred_read_replica is not None:
                state.preferred_read_replica = None
                self._buffer.mark_dirty(tp)

    # --- a response ------------------------------------------------------------------------------

    def handle(self, node_id: int, session: FetchSession, response: FetchResponse) -> bool:
        """Handle a response. Return False if it is of no use as a whole, so that the node needs a backoff."""
        if self._runtime.buggify("a response to Fetch is lost, and the session with it"):
            return False
        rows = list(session.rows(response))
        if not session.handle_response(response, rows):
            return self._handle_unusable(node_id, response)
        sizes = self._metrics.response()
        memory = ResponseMemory(
            sum(len(partition.records) for _, partition in rows if partition.records), sizes
        )
        if memory.size_bytes > self._config.buffer_memory_bytes:
            logger.warning(
                "Node %d sent %d bytes, more than buffer_memory_bytes (%d)",
                node_id,
                memory.size_bytes,
                self._config.buffer_memory_bytes,
            )
        completed = [
            fetch
            for requested, partition in rows
            if requested is not None
            and (fetch := self._handle_partition(node_id, requested, partition, memory)) is not None
        ]
        self._update_leaders(rows, response)
        self._buffer.add(completed)
        if not completed and any(partition.records or partition.error_code for _, partition in rows):
            sizes.done()  # nothing is buffered whose end would record the sizes
        return True

    def _handle_unusable(self, node_id: int, response: FetchResponse) -> bool:
        """Handle a response that the session did not accept. Return False unless the node only throttled us."""
        code = response.error_code
        if not code and not response.responses and response.throttle_time_ms > 0:
            return True  # over the quota, nothing was read: the connection waits throttle_time_ms, no backoff is needed
        if code:
            logger.info("Fetch from node %d was rejected: %s", node_id, error(code).name)
        else:
            logger.warning("Node %d answered a Fetch with other partitions than were asked for", node_id)
        if code not in SESSION_LOST:
            self._cluster.request_update("a Fetch response was of no use", reset_backoff=False)
        return False

    def _handle_partition(
        self, node_id: int, requested: PartitionFetch, partition: PartitionData, memory: ResponseMemory
    ) -> CompletedFetch | None:
        """Return what of one partition goes into the buffer."""
        state = self._positions.find(requested.tp)
        if state is not None and not partition.error_code and state.topic_id in (None, requested.topic_id):
            # Also after a seek: a session sends these numbers only when they change.
            _store_log_offsets(state, partition)
        if state is None or state.position_version != requested.position_version or state.position is None:
            logger.debug(
                "Dropping a fetch of %s at %d: moved or revoked meanwhile", requested.tp, requested.offset
            )
            return None
        if partition.error_code or partition.records:
            del self.fetch_order[
                requested.tp
            ]  # delete first: a dict keeps the old place of a key that is set again
            self.fetch_order[requested.tp] = next(self._next_place)
            self._buffer.mark_dirty(requested.tp)
        expected = next_offset(self._buffer, requested.tp, state.position.offset)
        if expected != requested.offset:
            logger.debug("Dropping a fetch of %s at %d: %s is next", requested.tp, requested.offset, expected)
            return None
        if partition.error_code:
            return self._handle_error(node_id, requested, partition.error_code, state, memory)
        if partition.preferred_read_replica >= 0:
            self._buffer.mark_dirty(requested.tp)
            self._set_read_replica(requested.tp, node_id, state, partition)
        else:
            self.backoffs.succeeded(requested.tp, node_id)
        if (end := partition.diverging_epoch) is not None and requested.offset_epoch is not None:
            self.backoffs.failed(requested.tp, node_id)
            self._positions.mark_diverging(requested.tp, end.epoch, end.end_offset)
            return None
        if not partition.records:
            return None
        data = memoryview(partition.records)
        transactions = partition.aborted_transactions
        logger.log(TRACE, "Fetch of %s at %d brought %d bytes", requested.tp, requested.offset, len(data))
        return CompletedFetch(
            requested.tp,
            requested.position_version,
            requested.offset,
            memory,
            data,
            end_of(data),
            transactions,
        )

    def _set_read_replica(
        self, tp: TopicPartition, node_id: int, state: PartitionState, partition: PartitionData
    ) -> None:
        """Fetch from the replica that the broker prefers (KIP-392), if metadata know it; else request metadata.

        Only a leader names another replica, and without records. A node that names itself, or a follower that names
        another one, would send us in circles without a backoff.
        """
        replica, leader = partition.preferred_read_replica, _leader_of(state, node_id)
        if not partition.records and (replica == node_id or node_id != leader):
            state.preferred_read_replica = None
            self.backoffs.failed(tp, leader)
        elif is_online(tp, replica, self._cluster.metadata):
            state.preferred_read_replica = replica
            state.preferred_until = self._runtime.now() + self._config.metadata_max_age_ms / 1000
            self.backoffs.succeeded(tp, node_id)
        else:
            self.backoffs.failed(tp, node_id)
            self._cluster.request_update("a preferred replica is not known", reset_backoff=False)

    def _handle_error(
        self,
        node_id: int,
        requested: PartitionFetch,
        code: int,
        state: PartitionState,
        memory: ResponseMemory,
    ) -> CompletedFetch | None:
        action = action_for(code)
        # Whatever the error: a follower may be the cause, and the leader knows best.
        state.preferred_read_replica = None
        self.backoffs.failed(requested.tp, node_id, code)
        if action is Action.RESET and state.position is not None and state.position.leader.node_id != node_id:
            return None
        name = error(code).name
        if code == TOPIC_AUTHORIZATION_FAILED or action is Action.WARN_AND_RETRY:
            now = self._runtime.now()
            self._throttled.warning(
                (requested.tp, code), now, "Fetch of %s at %d: %s", requested.tp, requested.offset, name
            )
        if action in (Action.RESET, Action.RAISE):
            return CompletedFetch(
                requested.tp, requested.position_version, requested.offset, memory, error_code=code
            )
        if action is not Action.WARN_AND_RETRY:
            logger.debug("Fetch of %s at %d: %s", requested.tp, requested.offset, name)
        if action is Action.UPDATE_METADATA:
            self._cluster.request_update(f"a Fetch was answered {name}", reset_backoff=False)
        return None

    def _update_leaders(self, rows: Iterable[Row], response: FetchResponse) -> None:
        """Take the current leaders from errors 6 and 74, which saves a Metadata request (KIP-951)."""
        leaders = {
            requested.tp: (hint.leader_id, hint.leader_epoch)
            for requested, partition in rows
            if requested is not None
            and partition.error_code in NAMES_NEW_LEADER
            and (hint := partition.current_leader) is not None
            and hint.leader_id >= 0
            and hint.leader_epoch >= 0
        }
        if leaders:
            brokers = [
                Broker(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints
            ]
            self._cluster.metadata.update_leadership(leaders, brokers)


def _store_log_offsets(state: PartitionState, partition: PartitionData) -> None:
    if partition.high_watermark >= 0:
        state.high_watermark = partition.high_watermark
    if partition.last_stable_offset >= 0:
        state.last_stable_offset = partition.last_stable_offset
    if partition.log_start_offset >= 0:
        state.log_start_offset = partition.log_start_offset


def _leader_of(state: PartitionState, otherwise: int) -> int:
    """Return the leader that the position knows."""
    leader = state.position.leader.node_id if state.position is not None else None
    return otherwise if leader is None else leader
