"""Which group protocol a consumer speaks: as configured, or, with `auto`, what the cluster allows.

classic     JoinGroup, SyncGroup: the group's leader shares out
consumer    ConsumerGroupHeartbeat (KIP-848): the coordinator shares out
auto        consumer where brokers list that request and the feature group.version is at 1 or higher; else classic
"""

from __future__ import annotations

from typing import Final

from kclient.errors import UsageError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.log import get_logger
from kclient.network.api_versions import GROUP_VERSION, Features

log = get_logger("kclient.group")

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
AUTO: Final = "auto"


def chosen_protocol(configured: str, features: Features, group_id: str) -> str:
    """classic or consumer; with `auto`, the log says which and why."""
    if configured != AUTO:
        return configured
    listed = ConsumerGroupHeartbeatRequest.API_KEY in features.apis
    level = features.levels.get(GROUP_VERSION, 0)
    chosen = CONSUMER if listed and level >= 1 else CLASSIC
    why = f"group.version is at {level}" if listed else "the brokers do not know ConsumerGroupHeartbeat"
    log_protocol(group_id, chosen, why)
    return chosen


def log_protocol(group_id: str, chosen: str | None, why: str) -> None:
    """Say once which protocol it is."""
    log.info("group %s: the %s group protocol is spoken: %s", group_id, chosen, why)


def no_broker_patterns() -> UsageError:
    """The error for a pattern that nobody would resolve."""
    return UsageError(
        "A SubscriptionPattern is resolved by the brokers, and those of a classic group do not do that. "
        "Set group_protocol to 'consumer', or give a re.Pattern, which this client resolves."
    )
