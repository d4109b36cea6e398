"""What a fetch's error codes mean for the client, and the errors a user gets to see."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from kclient.errors import CorruptBatchError, KclientError
from kclient.fetch.completed import CompletedFetch
from kclient.network.errors import broker_error
from kclient.protocol.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_TOPIC_ID,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_NOT_AVAILABLE,
    OFFSET_OUT_OF_RANGE,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_LEADER_EPOCH,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)


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


def fetch_error(fetch: CompletedFetch, topics: Sequence[str]) -> KclientError:
    """The error of a partition that a poll raises."""
    if fetch.error_code != CORRUPT_MESSAGE:
        doing = f"Fetching {fetch.tp} at offset {fetch.fetch_offset}"
        return broker_error(fetch.error_code, doing, topics=topics)
    return CorruptBatchError(
        f"The broker cannot read {fetch.tp} at offset {fetch.fetch_offset}: CORRUPT_MESSAGE (2). Its log segment is "
        f"damaged. Look at the broker's log, or seek past offset {fetch.fetch_offset}.",
        topic=fetch.tp.topic,
        partition=fetch.tp.partition,
        base_offset=fetch.fetch_offset,
    )
