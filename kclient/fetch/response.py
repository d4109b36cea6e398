"""An answer to Fetch, sorted: data and errors of users' interest into the buffer, the rest acted on at once.

    no error         numbers into the partition's state, data into the buffer, a preferred replica noted;
                     a diverging epoch is judged as the answer to a validation is
    6 9 56 74 78 3 100 103   metadata is updated (6 and 74 may name the new leader), asked again after a backoff
    75, −1           asked again after a backoff
    1 from a follower        the leader is asked
    1, 29, others    into the buffer behind the data before them: the poll that comes to them acts

Whatever belongs to a partition that is not what it was when it was asked for is dropped.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

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

logger = get_logger("kclient.fetch")


class Action(enum.Enum):
    """What a partition's error code asks for."""

    UPDATE_METADATA = "ask again with fresh metadata"
    RETRY = "ask again"
    WARN_AND_RETRY = "warn and ask again"
    RESET = "reset policy, or tell the user"
    TELL = "tell the user"


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
"""Every other code is told to the user."""

NAMES_NEW_LEADER = frozenset({NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH})
"""Codes whose answer may name the present leader (KIP-951)."""


def action_for(code: int) -> Action:
    """What to do about an error code of one partition."""
    return ACTIONS.get(code, Action.TELL)


# No fault of our view of the cluster: metadata need not be asked for.
SESSION_LOST = (FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH)


class FetchResponseHandler:
    """Takes answers apart. `turns` is the order of service, in order: who got something goes to its end (KIP-74).

    `delays` says which partitions got an error a moment ago.
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
        self.turns: dict[TopicPartition, int] = {}
        self.delays = PartitionBackoffs(config, runtime)
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._runtime = runtime
        self._throttled = ThrottledLogger(logger)
        self._metrics = metrics or FetchMetrics(Registry())
        self._next_turn = itertools.count(1)
        self._assignment_id = -1

    # --- between answers -------------------------------------------------------------------------

    def follow_positions(self) -> None:
        """Forget partitions that went, and data of partitions that are not what they were; have the plan look at all
        that changed.
        """
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
            logger.debug("Dropping what was fetched of %d partitions that were moved or revoked", len(stale))
            buffer.drop(stale)
        for tp in dirty:
            buffer.mark_dirty(tp)

    def _follow_assignment(self) -> None:
        """Who stays keeps its turn."""
        for tp in [tp for tp in self.turns if tp not in self._positions]:
            del self.turns[tp]
        for tp in self._positions.assigned():
            if tp not in self.turns:
                self.turns[tp] = next(self._next_turn)
        self.delays.retain(self._positions)

    def clear_preferred(self, wanted: Iterable[TopicPartition]) -> None:
        """Ask the leaders again."""
        for tp in wanted:
            state = self._positions.find(tp)
            if state is not None and state.preferred_read_replica is not None:
                state.preferred_read_replica = None
                self._buffer.mark_dirty(tp)

    # --- an answer -------------------------------------------------------------------------------

    def take(self, node_id: int, session: FetchSession, answer: FetchResponse) -> bool:
        """Use an answer; False where it is of no use as a whole and the node should be left alone for a while."""
        if self._runtime.buggify("an answer to Fetch is lost, and the session with it"):
            return False
        rows = list(session.rows(answer))
        if not session.accepts(answer, rows):
            return self._refused(node_id, answer)
        sizes = self._metrics.answer()
        frame = ResponseMemory(
            sum(len(partition.records) for _, partition in rows if partition.records), sizes
        )
        if frame.size_bytes > self._config.buffer_memory_bytes:
            logger.warning(
                "Node %d sent %d bytes, more than buffer_memory_bytes (%d)",
                node_id,
                frame.size_bytes,
                self._config.buffer_memory_bytes,
            )
        completed = [
            fetch
            for asked, partition in rows
            if asked is not None and (fetch := self._take_one(node_id, asked, partition, frame)) is not None
        ]
        self._follow_hints(rows, answer)
        self._buffer.add(completed)
        if not completed and any(partition.records or partition.error_code for _, partition in rows):
            sizes.done()  # all of it was dropped, or failed: one sample all the same
        return True

    def _refused(self, node_id: int, answer: FetchResponse) -> bool:
        """What to do about an answer that the session does not accept."""
        code = answer.error_code
        if not code and not answer.responses and answer.throttle_time_ms > 0:
            return True  # over its quota: nothing was read, and the connection keeps silent as long as it was told
        if code:
            logger.info("Fetch from node %d was refused: %s", node_id, error(code).name)
        else:
            logger.warning("Node %d answered a Fetch with other partitions than were asked for", node_id)
        if code not in SESSION_LOST:
            self._cluster.request_update("a Fetch answer was of no use", reset_backoff=False)
        return False

    def _take_one(
        self, node_id: int, asked: PartitionFetch, partition: PartitionData, frame: ResponseMemory
    ) -> CompletedFetch | None:
        """What of one partition goes into the buffer."""
        state = self._positions.find(asked.tp)
        if state is not None and not partition.error_code and state.topic_id in (None, asked.topic_id):
            _note(state, partition)  # though the position may have moved: a session tells it only once
        if state is None or state.position_version != asked.position_version or state.position is None:
            logger.debug("Dropping a fetch of %s at %d: moved or revoked meanwhile", asked.tp, asked.offset)
            return None
        if partition.error_code or partition.records:
            del self.turns[asked.tp]
            self.turns[asked.tp] = next(self._next_turn)
            self._buffer.mark_dirty(asked.tp)
        expected = next_offset(self._buffer, asked.tp, state.position.offset)
        if expected != asked.offset:
            logger.debug("Dropping a fetch of %s at %d: %s is next", asked.tp, asked.offset, expected)
            return None
        if partition.error_code:
            return self._take_error(node_id, asked, partition.error_code, state, frame)
        if partition.preferred_read_replica >= 0:
            self._buffer.mark_dirty(asked.tp)
            self._prefer(asked.tp, node_id, state, partition)
        else:
            self.delays.succeeded(asked.tp, node_id)
        if (end := partition.diverging_epoch) is not None and asked.offset_epoch is not None:
            self.delays.failed(asked.tp, node_id)
            self._positions.mark_diverging(asked.tp, end.epoch, end.end_offset)
            return None
        if not partition.records:
            return None
        data = memoryview(partition.records)
        transactions = partition.aborted_transactions
        logger.log(TRACE, "Fetch of %s at %d brought %d bytes", asked.tp, asked.offset, len(data))
        return CompletedFetch(
            asked.tp, asked.position_version, asked.offset, frame, data, end_of(data), transactions
        )

    def _prefer(
        self, tp: TopicPartition, node_id: int, state: PartitionState, partition: PartitionData
    ) -> None:
        """Ask this replica from now on; one that metadata does not know comes later.

        Leaders name others, with nothing else in the answer: nodes that send us round in circles get a backoff.
        """
        replica, leader = partition.preferred_read_replica, _leader_of(state, node_id)
        if not partition.records and (replica == node_id or node_id != leader):
            state.preferred_read_replica = None
            self.delays.failed(tp, leader)
        elif is_online(tp, replica, self._cluster.metadata):
            state.preferred_read_replica = replica
            state.preferred_until = self._runtime.now() + self._config.metadata_max_age_ms / 1000
            self.delays.succeeded(tp, node_id)
        else:
            self.delays.failed(tp, node_id)
            self._cluster.request_update("a preferred replica is not known", reset_backoff=False)

    def _take_error(
        self, node_id: int, asked: PartitionFetch, code: int, state: PartitionState, frame: ResponseMemory
    ) -> CompletedFetch | None:
        action = action_for(code)
        state.preferred_read_replica = None
        self.delays.failed(asked.tp, node_id, code)
        if action is Action.RESET and state.position is not None and state.position.leader.node_id != node_id:
            return None
        name = error(code).name
        if code == TOPIC_AUTHORIZATION_FAILED or action is Action.WARN_AND_RETRY:
            now = self._runtime.now()
            self._throttled.warning(
                (asked.tp, code), now, "Fetch of %s at %d: %s", asked.tp, asked.offset, name
            )
        if action in (Action.RESET, Action.TELL):
            return CompletedFetch(asked.tp, asked.position_version, asked.offset, frame, error_code=code)
        if action is not Action.WARN_AND_RETRY:
            logger.debug("Fetch of %s at %d: %s", asked.tp, asked.offset, name)
        if action is Action.UPDATE_METADATA:
            self._cluster.request_update(f"a Fetch was answered {name}", reset_backoff=False)
        return None

    def _follow_hints(self, rows: Iterable[Row], answer: FetchResponse) -> None:
        """Errors 6 and 74 may name the present leader, so that nobody has to be asked. See KIP-951."""
        leaders = {
            asked.tp: (hint.leader_id, hint.leader_epoch)
            for asked, partition in rows
            if asked is not None
            and partition.error_code in NAMES_NEW_LEADER
            and (hint := partition.current_leader) is not None
            and hint.leader_id >= 0
            and hint.leader_epoch >= 0
        }
        if leaders:
            brokers = [
                Broker(node.node_id, node.host, node.port, node.rack) for node in answer.node_endpoints
            ]
            self._cluster.metadata.update_leadership(leaders, brokers)


def _note(state: PartitionState, partition: PartitionData) -> None:
    """The numbers of the log."""
    if partition.high_watermark >= 0:
        state.high_watermark = partition.high_watermark
    if partition.last_stable_offset >= 0:
        state.last_stable_offset = partition.last_stable_offset
    if partition.log_start_offset >= 0:
        state.log_start_offset = partition.log_start_offset


def _leader_of(state: PartitionState, otherwise: int) -> int:
    """The node that the position takes for the leader."""
    leader = state.position.leader.node_id if state.position is not None else None
    return otherwise if leader is None else leader
