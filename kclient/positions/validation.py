"""AWAIT_VALIDATION → FETCHING: is the position still in the log of the new leader? (KIP-320)

    OffsetForLeaderEpoch returns, for the position's epoch, an epoch and its end offset:
    unknown (−1)                 the position is lost: reset policy, or LogTruncatedError
    end offset < position        the log was truncated: with a reset policy continue at the end offset, else the error
    otherwise                    the position is valid

A response is used only where the position has not changed since the request was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import attrs

from kclient.errors import KclientError, LogTruncatedError, VersionError
from kclient.generated.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.generated.offset_for_leader_epoch_response import OffsetForLeaderEpochResponse
from kclient.log import get_logger
from kclient.network.errors import broker_error
from kclient.positions.lookup_context import TRUNCATED, LookupContext, OffsetReset, report_resets
from kclient.positions.state import AWAIT_VALIDATION, EpochEnd, FetchPosition, PartitionState
from kclient.protocol.errors import TOPIC_AUTHORIZATION_FAILED
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

logger: Final = get_logger("kclient.positions")

KIND = "OffsetForLeaderEpoch"
FIRST_USABLE_VERSION = 3


def can_validate(context: LookupContext, node_id: int | None) -> bool:
    """Return whether the node supports OffsetForLeaderEpoch 3. A node without a connection counts as new enough."""
    if node_id is None:
        return True
    try:
        context.cluster.usable_version(node_id, OffsetForLeaderEpochRequest, min_version=FIRST_USABLE_VERSION)
    except VersionError:
        return False
    return True


class PositionValidator:
    """Validates positions after a change of leader."""

    def __init__(self, context: LookupContext) -> None:
        self._context = context
        self._backoff = context.backoff()

    def start_due(self, now: float) -> None:
        """Send OffsetForLeaderEpoch for positions whose backoff is over; apply what Fetch responses brought."""
        due = self._context.positions.partitions_needing_validation(now)
        if not due or KIND in self._context.errors:
            return
        self._apply_divergences(due)
        by_node: dict[int | None, dict[TopicPartition, FetchPosition]] = {}
        for tp, state in due.items():
            # The state is checked again: applying a divergence may have changed it.
            if state.position is not None and state.fetch_state is AWAIT_VALIDATION and state.can_send(now):
                by_node.setdefault(state.position.leader.node_id, {})[tp] = state.position
        for node_id, wanted in by_node.items():
            self._start(node_id, wanted, {tp: due[tp].position_version for tp in wanted})

    def _start(
        self,
        node_id: int | None,
        wanted: Mapping[TopicPartition, FetchPosition],
        versions: Mapping[TopicPartition, int],
    ) -> None:
        context = self._context
        if node_id is None:
            context.cluster.request_update(
                "the leader of a position to be checked is not known", reset_backoff=False
            )
        elif not can_validate(context, node_id):
            self._complete(versions)
        else:
            context.sent(versions)
            context.spawn(self._send(node_id, wanted, versions), KIND)

    async def _send(
        self,
        node_id: int,
        wanted: Mapping[TopicPartition, FetchPosition],
        versions: Mapping[TopicPartition, int],
    ) -> None:
        context = self._context
        try:
            response = await context.cluster.request(
                node_id, build_request(wanted), min_version=FIRST_USABLE_VERSION
            )
            self._apply(cast(OffsetForLeaderEpochResponse, response), versions)
        except VersionError as exc:
            # A node that was unknown in `_start` has turned out to be too old: positions count as valid, as in Java.
            if can_validate(context, node_id):
                context.failed(KIND, versions, exc, self._backoff.next())
            else:
                self._complete(versions)
        except KclientError as exc:
            logger.debug("OffsetForLeaderEpoch to node %d failed: %s", node_id, exc)
            context.failed(KIND, versions, exc, self._backoff.next())
        finally:
            context.positions.clear_in_flight(versions)

    def _complete(self, versions: Mapping[TopicPartition, int]) -> None:
        for tp, version in versions.items():
            if self._context.positions.find(tp, version) is not None:
                self._context.positions.complete_validation(tp)

    def _apply(self, response: OffsetForLeaderEpochResponse, versions: Mapping[TopicPartition, int]) -> None:
        ends = parse_response(response)
        self._context.log_refused(KIND, ends.refused)
        positions = self._context.positions
        current = {tp: version for tp, version in versions.items() if positions.find(tp, version) is not None}
        self._retry({tp: version for tp, version in current.items() if tp not in ends.found})
        self.apply_epoch_ends({tp: ends.found[tp] for tp in current if tp in ends.found})

    def _apply_divergences(self, due: Mapping[TopicPartition, PartitionState]) -> None:
        """Apply diverging epochs that Fetch responses brought.

        A position that the leader's log does contain takes over the leader's epoch, or the next Fetch would return the
        same diverging epoch again.
        """
        ends: dict[TopicPartition, EpochEnd] = {}
        for tp, state in due.items():
            if (end := state.divergence) is not None and (position := state.position) is not None:
                state.divergence = None
                if end.covers(position.offset):
                    moved = FetchPosition(position.offset, end.epoch, position.leader)
                    self._context.positions.set_position(tp, moved)
                else:
                    ends[tp] = end
        self.apply_epoch_ends(ends)

    def apply_epoch_ends(self, ends: Mapping[TopicPartition, EpochEnd]) -> None:
        """Complete, move or reset the positions of AWAIT_VALIDATION partitions by the leaders' responses."""
        truncated: dict[TopicPartition, EpochEnd] = {}
        resets: list[OffsetReset] = []
        strategy = self._context.policy.on_offset_out_of_range
        for tp, end in ends.items():
            position = self._context.positions.state(tp).position
            if position is None:
                continue
            # The leader had the epoch at least up to the position: the log was not cut below it.
            if end.covers(position.offset):
                self._context.positions.complete_validation(tp)
            elif strategy is None:
                # Without a reset policy the application decides: the position stays, and the next poll raises.
                truncated[tp] = end
            elif end.is_known:
                cut = FetchPosition(end.end_offset, end.epoch, position.leader)
                self._context.positions.set_position(tp, cut)
                resets.append(OffsetReset(tp, position.offset, cut.offset, TRUNCATED))
            else:
                self._context.positions.request_offset_reset(tp, strategy, lost=True)
        report_resets(resets, self._context.on_offset_reset)
        if truncated:
            self._store_error(truncated)

    def _retry(self, versions: Mapping[TopicPartition, int]) -> None:
        if not versions:
            self._backoff.reset()
            return
        retry_at = self._context.runtime.now() + self._backoff.next()
        self._context.positions.set_next_allowed_retry(versions, retry_at)
        self._context.cluster.request_update("OffsetForLeaderEpoch was refused for some partitions")

    def _store_error(self, truncated: Mapping[TopicPartition, EpochEnd]) -> None:
        """Store one error for all truncations of a response; the positions stay."""
        context = self._context
        states = {tp: context.positions.state(tp) for tp in truncated}
        versions = {tp: state.position_version for tp, state in states.items()}
        offsets = {tp: state.position.offset for tp, state in states.items() if state.position is not None}
        context.positions.set_next_allowed_retry(versions, context.runtime.now() + self._backoff.next())
        context.errors.store(KIND, log_truncated(offsets, truncated), versions)


# --- the messages and the error -----------------------------------------------------------------------------


@attrs.frozen
class EpochEnds:
    """A response by partition: the epoch ends, and the error codes of partitions that the leader refused."""

    found: Mapping[TopicPartition, EpochEnd]
    refused: Mapping[TopicPartition, int]


def build_request(wanted: Mapping[TopicPartition, FetchPosition]) -> OffsetForLeaderEpochRequest:
    """Return the request: it looks up the epoch of the data, and carries the epoch of the leader for fencing."""
    topics: dict[str, OffsetForLeaderTopic] = {}
    for tp, position in wanted.items():
        epoch, leader_epoch = position.offset_epoch, position.leader.epoch
        topics.setdefault(tp.topic, OffsetForLeaderTopic(topic=tp.topic)).partitions.append(
            OffsetForLeaderPartition(
                partition=tp.partition,
                current_leader_epoch=-1 if leader_epoch is None else leader_epoch,
                leader_epoch=-1 if epoch is None else epoch,
            )
        )
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))


def parse_response(response: OffsetForLeaderEpochResponse) -> EpochEnds:
    """Sort the partitions of a response; those not found are retried. Raises TopicAuthorizationError."""
    found: dict[TopicPartition, EpochEnd] = {}
    refused: dict[TopicPartition, int] = {}
    forbidden: dict[str, None] = {}
    for topic in response.topics:
        for partition in topic.partitions:
            tp = TopicPartition(topic.topic, partition.partition)
            if partition.error_code == TOPIC_AUTHORIZATION_FAILED:
                forbidden[topic.topic] = None
            elif partition.error_code:
                refused[tp] = partition.error_code
            else:
                found[tp] = EpochEnd(partition.leader_epoch, partition.end_offset)
    if forbidden:
        raise broker_error(
            TOPIC_AUTHORIZATION_FAILED, "Checking positions (OffsetForLeaderEpoch)", topics=forbidden
        )
    return EpochEnds(found, refused)


def log_truncated(
    positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, EpochEnd]
) -> LogTruncatedError:
    """Return one error for all truncations of a response; `divergent` is None where the leader knows no such epoch."""
    divergent = {
        tp: OffsetAndMetadata(end.end_offset, end.epoch) if end.is_known else None for tp, end in ends.items()
    }
    places = [
        f"{tp} at {positions[tp]}, which agrees up to {end.offset}" if end else f"{tp} at {positions[tp]}"
        for tp, end in divergent.items()
    ]
    one = next(iter(ends)) if len(ends) == 1 else None
    return LogTruncatedError(
        f"The log of {format_partitions(ends)} was cut below what was consumed ({format_names(places)}). An "
        "unclean leader election lost records that were read before. Seek to where to go on (`divergent` "
        "says where the logs part), or set on_offset_out_of_range to 'earliest' or 'latest'.",
        partition=one,
        position=None if one is None else positions[one],
        partitions=tuple(ends),
        positions=dict(positions),
        divergent=divergent,
    )
