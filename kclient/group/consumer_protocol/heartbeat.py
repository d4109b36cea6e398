"""ConsumerGroupHeartbeat: building it, sending it when it is due, and applying the response.

When `ConsumerHeartbeatTask` sends one:

    immediately       while joining, to acknowledge an assignment, and after a change of the subscription
    on interval       else, by the interval of the last response, counted from when the heartbeat was sent
    after a backoff   after a failure; the next heartbeat is a full one

One heartbeat is in flight at a time. The poll timer runs too: an application that does not poll in time loses its
membership. A response that arrives after the membership has ended is ignored.

What `HeartbeatRequests` puts into it:

    always                  group, member id, epoch, instance id
    when joining            rack, and all fields below
    when it has changed     rebalance timeout, topics, pattern, assignor, owned partitions

After a failure it is unknown whether the coordinator has received the last heartbeat, so the next one has all fields.
An unset field is null, not empty; an empty pattern removes one that was sent before.

What an error code means:

    code                                  action
    0                                     ACCEPT             take over epoch and assignment
    15, 16                                FIND_COORDINATOR   look the coordinator up, and send again
    14 COORDINATOR_LOAD_IN_PROGRESS       RETRY              after a backoff
    29 TOPIC_AUTHORIZATION_FAILED         RAISE_ON_POLL      the next poll raises it; heartbeats continue
    25 UNKNOWN_MEMBER_ID, 110             REJOIN             all partitions are lost; join with epoch 0
    anything else                         FATAL              every poll raises it; the membership does not recover
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kclient.config import Config
from kclient.errors import KclientError, VersionError
from kclient.generated.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.group.consumer_protocol.assignment import AssignmentTracker, LocalAssignment
from kclient.group.consumer_protocol.state import (
    JOIN_EPOCH,
    ConsumerMemberState,
    ConsumerMemberStatus,
    ConsumerSubscription,
    HeartbeatSchedule,
)
from kclient.group.coordinator import Coordinator, VersionedRequest
from kclient.group.membership import PollTimer
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger: Final = get_logger("kclient.group")


class HeartbeatAction(enum.Enum):
    """What the client does after a response."""

    ACCEPT = "accept"
    FIND_COORDINATOR = "find coordinator"
    RETRY = "retry"
    RAISE_ON_POLL = "raise on poll"
    REJOIN = "rejoin"
    FATAL = "fatal"


ACTIONS: Final[Mapping[int, HeartbeatAction]] = {
    codes.NONE: HeartbeatAction.ACCEPT,
    codes.COORDINATOR_NOT_AVAILABLE: HeartbeatAction.FIND_COORDINATOR,
    codes.NOT_COORDINATOR: HeartbeatAction.FIND_COORDINATOR,
    codes.COORDINATOR_LOAD_IN_PROGRESS: HeartbeatAction.RETRY,
    codes.TOPIC_AUTHORIZATION_FAILED: HeartbeatAction.RAISE_ON_POLL,
    codes.UNKNOWN_MEMBER_ID: HeartbeatAction.REJOIN,
    codes.FENCED_MEMBER_EPOCH: HeartbeatAction.REJOIN,
}


def action_for(code: int) -> HeartbeatAction:
    """Return the action for an error code."""
    return ACTIONS.get(code, HeartbeatAction.FATAL)


def heartbeat_error(code: int, group_id: str, message: str | None) -> KclientError:
    """Return the error for the user.

    UNSUPPORTED_VERSION: the broker knows the request, but the feature group.version is 0.
    """
    doing = f"Membership in group {group_id}"
    if code == codes.UNSUPPORTED_VERSION:
        return VersionError(
            f"{doing} was refused with UNSUPPORTED_VERSION (35). {needs_new_brokers(regex=False)}",
            api="ConsumerGroupHeartbeat",
        )
    return broker_error(code, doing, group=group_id, message=message)


def unsupported_heartbeat(error: VersionError, *, regex: bool) -> VersionError:
    """Return the error for brokers without the request, or without the version that a pattern needs."""
    return VersionError(
        f"{error.text} {needs_new_brokers(regex=regex)}",
        api="ConsumerGroupHeartbeat",
        host=error.host,
        port=error.port,
        node_id=error.node_id,
    )


def needs_new_brokers(*, regex: bool) -> str:
    """Return the next step for the user of brokers that are too old."""
    if regex:
        return "A SubscriptionPattern needs Apache Kafka 4.0 or newer: give a re.Pattern, or upgrade the brokers."
    return (
        "group_protocol='consumer' needs Apache Kafka 4.0 or newer with the feature group.version at 1: "
        "set group_protocol to 'classic' or 'auto', or upgrade the brokers."
    )


REGEX_SINCE: Final = 1  # Kafka 4.0


class HeartbeatRequests:
    """Builds the heartbeats of one member, each with the fields that changed since the last one."""

    def __init__(self, config: Config, group_id: str) -> None:
        self._always: dict[str, Any] = {"group_id": group_id, "instance_id": config.group_instance_id}
        self._rack_id = config.client_rack or None
        self._rebalance_timeout_ms = config.max_poll_interval_ms
        self._assignor = config.group_remote_assignor
        self._last_sent: dict[str, Any] = {}
        self._regex_sent = False  # the coordinator may have a pattern of this member

    def join(self, member_id: str, epoch: int, subscription: ConsumerSubscription) -> VersionedRequest:
        """Build the first heartbeat: all fields, without owned partitions."""
        self.forget()
        fields = {"rack_id": self._rack_id, **self._changed_fields(subscription, LocalAssignment())}
        return self._versioned(member_id, epoch, fields)

    def stay(
        self, member_id: str, epoch: int, subscription: ConsumerSubscription, owned: LocalAssignment
    ) -> VersionedRequest:
        """Build a later heartbeat: the changed fields."""
        return self._versioned(member_id, epoch, self._changed_fields(subscription, owned))

    def includes_owned(self, owned: LocalAssignment) -> bool:
        """Whether the next `stay` includes the owned partitions."""
        return self._last_sent.get("topic_partitions") != owned

    def leave(self, member_id: str, epoch: int) -> VersionedRequest:
        """Build the last heartbeat, with epoch −1, or −2 for a static member that will return."""
        return self._versioned(member_id, epoch, {})

    def forget(self) -> None:
        """Send all fields with the next heartbeat, after a failed one."""
        self._last_sent = {}

    def _changed_fields(self, subscription: ConsumerSubscription, owned: LocalAssignment) -> dict[str, Any]:
        """Return the fields that differ from the last heartbeat, and record them as sent."""
        regex = subscription.regex
        if regex is None and self._regex_sent:
            regex = ""
        now = {
            "rebalance_timeout_ms": self._rebalance_timeout_ms,
            "subscribed_topic_names": subscription.topics,
            "subscribed_topic_regex": regex,
            "server_assignor": self._assignor,
            "topic_partitions": owned,
        }
        changed = {
            name: value
            for name, value in now.items()
            if name not in self._last_sent or self._last_sent[name] != value
        }
        self._last_sent = now
        self._regex_sent = self._regex_sent or regex is not None
        return changed

    def _versioned(self, member_id: str, epoch: int, fields: dict[str, Any]) -> VersionedRequest:
        owned, topics = fields.get("topic_partitions"), fields.get("subscribed_topic_names")
        if isinstance(owned, LocalAssignment):
            fields["topic_partitions"] = owned.to_request()
        if topics is not None:
            fields["subscribed_topic_names"] = list(topics)
        request = ConsumerGroupHeartbeatRequest(
            member_id=member_id, member_epoch=epoch, **self._always, **fields
        )
        return VersionedRequest(request, lowest=0 if request.subscribed_topic_regex is None else REGEX_SINCE)


HEARTBEAT_API: Final = "ConsumerGroupHeartbeat"


class ConsumerHeartbeatTask:
    """Sends the heartbeats of one member.

    `poll_expired` is awaited when the poll timer expires; `report_error` takes an error that the next poll raises.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        status: ConsumerMemberStatus,
        assignments: AssignmentTracker,
        requests: HeartbeatRequests,
        config: Config,
        runtime: Runtime,
        poll_expired: Callable[[], Awaitable[None]],
        poll_timer: PollTimer,
        report_error: Callable[[KclientError], None],
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._assignments = assignments
        self._requests = requests
        self._runtime = runtime
        self._poll_expired = poll_expired
        self._report_error = report_error
        self._metrics = metrics
        self._request_timeout = config.request_timeout_ms / 1000
        self._shortest_interval = config.retry_backoff_ms / 1000
        self._backoff = Backoff.for_retries(config, runtime)
        self._interval = 0.0  # set by the first response
        self._due = 0.0
        self._not_before = 0.0  # end of the backoff after a failure
        self._failures = 0  # since the last good response
        self._poll_timer = poll_timer
        self.sent_join: bool = False  # the coordinator may know this member
        self.owned_unacknowledged: bool = False
        """A heartbeat with the owned partitions is unanswered.

        The coordinator may have received it and given all other partitions away, so this member takes over no more
        until a response brings the current target.
        """

    def begin(self) -> None:
        """Prepare for a new membership."""
        self._poll_timer.restart()
        self.sent_join = self.owned_unacknowledged = False

    def poll_started(self) -> None:
        """Restart the poll timer."""
        self._poll_timer.restart()

    async def run(self) -> None:
        """Send heartbeats while there is a membership, until cancelled."""
        while True:
            seen = self._status.changed.count
            if self._status.schedule is HeartbeatSchedule.NEVER:
                await self._status.changed.wait(seen)
                continue
            try:
                await self._run_once(seen)
            except KclientError as exc:
                self._report_error(exc)
                self._retry(exc.text)

    async def _run_once(self, seen: int) -> None:
        """End the membership if the poll timer has expired; else send a heartbeat if one is due; else wait."""
        now = self._runtime.now()
        leaving = self._status.state is ConsumerMemberState.PREPARE_LEAVING
        poll_ends = None if leaving else self._poll_timer.ends
        if not leaving:
            self._poll_timer.warn_if_due()
        # A heartbeat that is needed at once still waits for the backoff after a failure.
        due = self._not_before if self._status.schedule is HeartbeatSchedule.AT_ONCE else self._due
        if poll_ends is not None and now >= poll_ends:
            await self._poll_expired()
        elif now < due:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due if leaving else min(due, self._poll_timer.next_at)):
                    await self._status.changed.wait(seen)
        else:
            try:
                async with asyncio.timeout_at(poll_ends):
                    await self._coordinator.ensure()
                    await self._send_heartbeat()
            except KclientError:
                raise
            except TimeoutError:
                self._requests.forget()  # the heartbeat may be lost; the next iteration ends the membership

    # --- one heartbeat

    async def _send_heartbeat(self) -> None:
        if self._status.schedule is HeartbeatSchedule.NEVER:
            return  # the member has left during the coordinator lookup
        request = self._build_request()
        began = self._metrics.heartbeat_sent()
        try:
            response = await self._coordinator.request(
                ConsumerGroupHeartbeatResponse, request, timeout=self._request_timeout
            )
        except KclientError as exc:
            if isinstance(exc, VersionError) and exc.api == HEARTBEAT_API:
                self._end_for_good(unsupported_heartbeat(exc, regex=request.lowest > 0))
                return
            if not exc.retriable:
                raise
            self._retry(exc.text)
        else:
            self._metrics.heartbeat_response(began)
            self._handle_response(response)

    def _build_request(self) -> VersionedRequest:
        """Build the heartbeat that is due; it acknowledges a reconciled assignment."""
        status, owned = self._status, self._assignments.owned
        self._due = self._runtime.now() + self._interval
        # Before the request is sent: what changes while it is in flight needs another heartbeat.
        status.send_now = False
        subscription = status.subscription or ConsumerSubscription()
        if not status.member:  # also a leaving member whose join has no response yet
            self.sent_join = True
            return self._requests.join(status.member_id, JOIN_EPOCH, subscription)
        if status.state is ConsumerMemberState.ACKNOWLEDGING:
            status.transition_to(
                ConsumerMemberState.STABLE if self._assignments.settled else ConsumerMemberState.RECONCILING
            )
        self.owned_unacknowledged = self.owned_unacknowledged or self._requests.includes_owned(owned)
        return self._requests.stay(status.member_id, status.epoch, subscription, owned)

    def _handle_response(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Apply a response."""
        if self._status.schedule is HeartbeatSchedule.NEVER:
            return
        code = response.error_code
        reason = f"it answered a heartbeat with {codes.error(code).name} ({code})"
        match action_for(code):
            case HeartbeatAction.ACCEPT:
                self._accept(response)
            case HeartbeatAction.FIND_COORDINATOR:
                self._coordinator.mark_unknown(reason)
                self._retry(reason, at_once=True)
            case HeartbeatAction.RETRY:
                self._retry(reason)
            case HeartbeatAction.RAISE_ON_POLL:
                self._report_error(heartbeat_error(code, self._coordinator.group_id, response.error_message))
                self._retry(reason)
            case HeartbeatAction.REJOIN:
                self._retry(reason, at_once=True)
                self._status.end(ConsumerMemberState.FENCED, f"heartbeat answered {codes.error(code).name}")
            case HeartbeatAction.FATAL:
                self._end_for_good(heartbeat_error(code, self._coordinator.group_id, response.error_message))

    def _accept(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Take over epoch and assignment of a response."""
        if response.member_epoch < JOIN_EPOCH:
            # KAFKA-19335: a leave epoch in the response belongs to an earlier membership under this member id.
            self._retry("the response has the epoch of a member that leaves")
            return
        status = self._status
        self._backoff.reset()
        self._failures = 0
        # The interval of this response counts from the time at which the heartbeat was sent.
        sent = self._due - self._interval
        self._interval = max(response.heartbeat_interval_ms / 1000, self._shortest_interval)
        self._due = sent + self._interval
        status.epoch = response.member_epoch
        status.epochs_received += 1
        self.owned_unacknowledged = False
        if status.in_group:
            changed = self._assignments.update_target(response.assignment)
            if not self._assignments.settled and (changed or status.state is ConsumerMemberState.JOINING):
                status.transition_to(ConsumerMemberState.RECONCILING)
            elif self._assignments.settled and status.state in (
                ConsumerMemberState.JOINING,
                ConsumerMemberState.RECONCILING,
            ):
                status.transition_to(ConsumerMemberState.STABLE)
        status.changed.notify()

    def _retry(self, why: str, *, at_once: bool = False) -> None:
        """Send a full heartbeat after a backoff: the coordinator may not have received the last one.

        `at_once`: without a backoff, but only for the first failure in a row.
        """
        logger.debug("group %s: heartbeat failed: %s", self._coordinator.group_id, why)
        self._requests.forget()
        self._failures += 1
        pause = 0.0 if at_once and self._failures == 1 else self._backoff.next()
        self._due = self._not_before = self._runtime.now() + pause

    def _end_for_good(self, error: KclientError) -> None:
        self._status.fatal = error
        self._status.end(ConsumerMemberState.FATAL, error.text)
