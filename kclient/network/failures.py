"""From an error code of the wire to the error that the user catches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kclient.errors import BrokerError, GroupAuthorizationError, KclientError, TopicAuthorizationError
from kclient.protocol.errors import GROUP_AUTHORIZATION_FAILED, TOPIC_AUTHORIZATION_FAILED, error
from kclient.text import printable

LONGEST_EXPLANATION: Final = 1_000
MOST_NAMES: Final = 20

ADVICE = {
    -1: "The broker's own log tells more; if the code is new, a newer kclient may know it.",
    17: "A topic's name has 1 to 249 letters, digits, '.', '_' or '-', and is not '.' or '..'. Correct the name, "
    "or give a pattern as subscribe(pattern=…).",
    24: "Set group_id to a name that is not empty.",
    26: "Choose session_timeout_ms between the broker's group.min.session.timeout.ms and group.max.session.timeout.ms.",
    81: "The group has as many members as the broker's group.max.size allows; raise that or start fewer members.",
    82: "Another consumer runs with the same group_instance_id; give every member one of its own.",
    111: "Another consumer with the same group_instance_id is a member still; give every member one of its own, "
    "or wait until that one has left or its session is over.",
    112: "Set group_remote_assignor to one that the broker's group.consumer.assignors names, or leave it out.",
    128: "A SubscriptionPattern is written in the syntax of RE2/J, without lookaround and backreferences. Correct it.",
    23: "All members of a group must share one assignor; compare partition_assignment_strategy of all members.",
}
RETRY_ADVICE = "This passes by itself in a healthy cluster; if it stays, look at the broker's log."
GENERAL_ADVICE = "Look at the broker's log of this moment; the same request will be refused again."


def broker_error(
    code: int,
    doing: str,
    *,
    topic: str | None = None,
    topics: Iterable[str] | None = None,
    group: str | None = None,
    message: str | None = None,
    principal: str | None = None,
    retriable: bool | None = None,
) -> KclientError:
    """The typed error for a wire code that came while `doing` something ("committing offsets of group g").

    Codes 29 and 30 give the authorization errors, every other one a BrokerError with `code`, `name`, `retriable`.
    `message` is the broker's own explanation. `retriable` is what Kafka says of the code unless it is given: False
    where the request's own table knows of no second try.
    """
    known = error(code)
    said = f': "{printable(message, LONGEST_EXPLANATION)}"' if message else ""
    text = f"{doing} was refused with {known.name} ({code}){said}."
    names = tuple(sorted(topics)) if topics is not None else (() if topic is None else (topic,))
    if code == TOPIC_AUTHORIZATION_FAILED:
        needs = (
            " and ".join(f"READ on Topic:{printable(name)}" for name in names[:MOST_NAMES])
            or "READ on the topic"
        )
        return TopicAuthorizationError(
            f"{text} The principal of this connection lacks a permission. Grant it {needs}.",
            topics=names,
            needs=needs,
            principal=principal,
        )
    if code == GROUP_AUTHORIZATION_FAILED:
        needs = f"READ on Group:{group}" if group else "READ on the group"
        return GroupAuthorizationError(
            f"{text} The principal of this connection lacks a permission. Grant it {needs}.",
            group=group or "",
            needs=needs,
            principal=principal,
        )
    retriable = known.retriable if retriable is None else retriable
    advice = ADVICE.get(code, RETRY_ADVICE if retriable else GENERAL_ADVICE)
    return BrokerError(f"{text} {advice}", code=code, name=known.name, retriable=retriable)
