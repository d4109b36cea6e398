"""An answer to Fetch, sorted: data and errors of users' interest into the buffer, the rest acted on at once.

    no error         numbers into the partition's state, data into the buffer, a preferred replica noted
    6 9 56 74 78 3 100 103   metadata is updated (6 and 74 may name the new leader), asked again after a backoff
    75, −1           asked again after a backoff
    1 from a follower        the leader is asked
    1, 29, others    into the buffer behind the data before them: the poll that comes to them acts

Whatever belongs to a partition that is not what it was when it was asked for is dropped.

Spec: B.10.5, B.10.6, B.10.8, B.10.15, B.15.12, S2-17, S2-25, S2-29…S2-35.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kclient.config import Config
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.completed import CompletedFetch, Frame, end_of
from kclient.fetch.delays import Delays
from kclient.fetch.failures import NAMES_NEW_LEADER, Action, action_for
from kclient.fetch.plan import next_offset
from kclient.fetch.request import PartitionFetch, partitions_of
from kclient.fetch.session import Sessionless
from kclient.generated.fetch_response import FetchResponse, PartitionData
from kclient.network.topology import Broker
from kclient.protocol.errors import error
from kclient.runtime import Runtime
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster
    from kclient.positions.state import PartitionState
    from kclient.positions.table import Positions

logger = logging.getLogger("kclient.fetch")


class Answers:
    """Takes answers apart. `order` is the order of service: who got something goes to its end (KIP-74).

    `delays` says which partitions got an error a moment ago.
    """

    def __init__(
        self, cluster: Cluster, positions: Positions, buffer: FetchBuffer, config: Config, runtime: Runtime
    ) -> None:
        self.order: OrderedDict[TopicPartition, None] = OrderedDict()
        self.delays = Delays(config, runtime)
        self._cluster = cluster
        self._positions = positions
        self._buffer = buffer
        self._config = config
        self._runtime = runtime
        self._assignment_id = -1

    # --- between answers -------------------------------------------------------------------------

    def follow_assignment(self) -> None:
        """Forget partitions that went, and data of partitions that are not what they were. Spec: S2-24, S2-25, D-28."""
        positions, buffer = self._positions, self._buffer
        if self._assignment_id != positions.assignment_id:
            self._assignment_id = positions.assignment_id
            kept = [tp for tp in self.order if tp in positions]
            self.order = OrderedDict.fromkeys([*kept, *positions.assigned()])
            self.delays.retain(positions)
        stale = [tp for tp in buffer.partitions() if positions.find(tp, buffer.queue(tp)[-1].era) is None]
        if stale:
            logger.debug("Dropping what was fetched of %d partitions that were moved or revoked", len(stale))
            buffer.drop(stale)

    def clear_preferred(self, wanted: Iterable[PartitionFetch]) -> None:
        """Ask the leaders again. Spec: S2-18, B.10.15."""
        for one in wanted:
            if (state := self._positions.find(one.tp)) is not None:
                state.preferred_read_replica = None

    # --- an answer -------------------------------------------------------------------------------

    def take(
        self, node_id: int, session: Sessionless, wanted: Sequence[PartitionFetch], answer: FetchResponse
    ) -> bool:
        """Use an answer; False where it is of no use as a whole and the node should be left alone for a while."""
        if answer.error_code:
            logger.info("Fetch from node %d was refused: %s", node_id, error(answer.error_code).name)
            self._cluster.request_update("a Fetch was refused", reset_backoff=False)
            return False
        if not answer.responses and answer.throttle_time_ms > 0:
            return True  # over its quota: nothing was read, and the connection keeps silent as long as it was told
        partitions = list(partitions_of(answer, wanted))
        if not session.accepts(wanted, [tp for tp, _ in partitions]):
            logger.warning("Node %d answered a Fetch with other partitions than were asked for", node_id)
            self._cluster.request_update("a Fetch answer did not fit", reset_backoff=False)
            return False
        asked = {one.tp: one for one in wanted}
        frame = Frame(sum(len(partition.records) for _, partition in partitions if partition.records))
        if frame.size_bytes > self._config.buffer_memory_bytes:
            logger.warning(
                "Node %d sent %d bytes, more than buffer_memory_bytes (%d)",
                node_id,
                frame.size_bytes,
                self._config.buffer_memory_bytes,
            )
        completed = [
            fetch
            for tp, partition in partitions
            if tp is not None and (fetch := self._take_one(node_id, asked[tp], partition, frame)) is not None
        ]
        self._follow_hints(partitions, answer)
        self._buffer.add(completed)
        return True

    def _take_one(
        self, node_id: int, asked: PartitionFetch, partition: PartitionData, frame: Frame
    ) -> CompletedFetch | None:
        """What of one partition goes into the buffer."""
        state = self._positions.find(asked.tp, asked.era)
        if state is None or state.position is None:
            logger.debug("Dropping a fetch of %s at %d: moved or revoked meanwhile", asked.tp, asked.offset)
            return None
        if partition.error_code or partition.records:
            self.order.move_to_end(asked.tp)
        expected = next_offset(self._buffer, asked.tp, state.position.offset)
        if expected != asked.offset:
            logger.debug("Dropping a fetch of %s at %d: %s is next", asked.tp, asked.offset, expected)
            return None
        if partition.error_code:
            return self._take_error(node_id, asked, partition.error_code, state, frame)
        self.delays.succeeded(asked.tp, node_id)
        self._note(state, partition)
        if not partition.records:
            return None
        data = memoryview(partition.records)
        transactions = partition.aborted_transactions
        return CompletedFetch(asked.tp, asked.era, asked.offset, frame, data, end_of(data), transactions)

    def _note(self, state: PartitionState, partition: PartitionData) -> None:
        """Spec: B.10.8, B.10.15, S2-27."""
        if partition.high_watermark >= 0:
            state.high_watermark = partition.high_watermark
        if partition.last_stable_offset >= 0:
            state.last_stable_offset = partition.last_stable_offset
        if partition.log_start_offset >= 0:
            state.log_start_offset = partition.log_start_offset
        if partition.preferred_read_replica >= 0:
            state.preferred_read_replica = partition.preferred_read_replica
            state.preferred_until = self._runtime.now() + self._config.metadata_max_age_ms / 1000

    def _take_error(
        self, node_id: int, asked: PartitionFetch, code: int, state: PartitionState, frame: Frame
    ) -> CompletedFetch | None:
        """Spec: B.15.12."""
        action = action_for(code)
        state.preferred_read_replica = None
        self.delays.failed(asked.tp, node_id)
        if action is Action.RESET and state.position is not None and state.position.leader.node_id != node_id:
            return None
        if action in (Action.RESET, Action.TELL):
            return CompletedFetch(asked.tp, asked.era, asked.offset, frame, error_code=code)
        level = logging.WARNING if action is Action.WARN_AND_RETRY else logging.DEBUG
        logger.log(level, "Fetch of %s at %d: %s", asked.tp, asked.offset, error(code).name)
        if action is Action.UPDATE_METADATA:
            self._cluster.request_update(f"a Fetch was answered {error(code).name}", reset_backoff=False)
        return None

    def _follow_hints(
        self, partitions: Iterable[tuple[TopicPartition | None, PartitionData]], answer: FetchResponse
    ) -> None:
        """Errors 6 and 74 may name the present leader, so that nobody has to be asked. Spec: B.10.6, B.5.8, KIP-951."""
        leaders = {
            tp: (hint.leader_id, hint.leader_epoch)
            for tp, partition in partitions
            if tp is not None
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
