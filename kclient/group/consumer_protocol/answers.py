"""What the coordinator's answer to a heartbeat means, code by code. Pure.

code                                        action
0                                           ACCEPT     epoch and assignment are ours
15, 16                                      ELSEWHERE  find the coordinator, and ask that one
14 COORDINATOR_LOAD_IN_PROGRESS             AGAIN      after a pause
29 TOPIC_AUTHORIZATION_FAILED               TELL       the next poll raises it; heartbeats go on
25 UNKNOWN_MEMBER_ID, 110                   REJOIN     everything is lost; join with epoch 0
anything else                               FATAL      the polls raise it; there is no way back
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from kclient.errors import KclientError, VersionError
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes


class Action(enum.Enum):
    """What follows from an answer."""

    ACCEPT = "accept"
    ELSEWHERE = "elsewhere"
    AGAIN = "again"
    TELL = "tell"
    REJOIN = "rejoin"
    FATAL = "fatal"


ACTIONS: Final[Mapping[int, Action]] = {
    codes.NONE: Action.ACCEPT,
    codes.COORDINATOR_NOT_AVAILABLE: Action.ELSEWHERE,
    codes.NOT_COORDINATOR: Action.ELSEWHERE,
    codes.COORDINATOR_LOAD_IN_PROGRESS: Action.AGAIN,
    codes.TOPIC_AUTHORIZATION_FAILED: Action.TELL,
    codes.UNKNOWN_MEMBER_ID: Action.REJOIN,
    codes.FENCED_MEMBER_EPOCH: Action.REJOIN,
}


def action_of(code: int) -> Action:
    """What an error code asks for."""
    return ACTIONS.get(code, Action.FATAL)


def refusal(code: int, group_id: str, message: str | None) -> KclientError:
    """The error for the user. UNSUPPORTED_VERSION: the brokers know the request, and serve it to nobody."""
    doing = f"Membership in group {group_id}"
    if code == codes.UNSUPPORTED_VERSION:
        return VersionError(
            f"{doing} was refused with UNSUPPORTED_VERSION (35). {needs_new_brokers(regex=False)}",
            api="ConsumerGroupHeartbeat",
        )
    return broker_error(code, doing, group=group_id, message=message)


def too_old(error: VersionError, *, regex: bool) -> VersionError:
    """The brokers do not know the request, or not the version of it that a pattern needs."""
    return VersionError(
        f"{error.text} {needs_new_brokers(regex=regex)}",
        api="ConsumerGroupHeartbeat",
        host=error.host,
        port=error.port,
        node_id=error.node_id,
    )


def needs_new_brokers(*, regex: bool) -> str:
    """What to do about brokers that are too old."""
    if regex:
        return "A SubscriptionPattern needs Apache Kafka 4.0 or newer: give a re.Pattern, or upgrade the brokers."
    return (
        "group_protocol='consumer' needs Apache Kafka 4.0 or newer with the feature group.version at 1: "
        "set group_protocol to 'classic' or 'auto', or upgrade the brokers."
    )
