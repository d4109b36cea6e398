"""Sending heartbeats when they are due, and taking their answers in.

    at once        while joining, to acknowledge, and to tell of another subscription
    on interval    else, as long as the last answer said, counted from when a heartbeat was sent
    after a pause  after a failure, longer each time; the next heartbeat says everything again

One heartbeat is in flight at a time. The poll timer runs beside: an application that does not poll in time loses its
membership. An answer that comes when this is no member any more changes nothing.

The next heartbeat: who we are always, the rest only when joining or changed since the last one. Pure.

    always                  group, member id, epoch, instance id
    when joining            rack, and all that follows
    when it has changed     rebalance timeout, topics, pattern, assignor, owned partitions

After a failure of any kind nobody knows what the coordinator has heard, so the next heartbeat says everything again.
What is unset is null, never empty; an empty pattern takes back one that was told.

What the coordinator's answer to a heartbeat means, code by code. Pure.

code                                        action
0                                           ACCEPT     epoch and assignment are ours
15, 16                                      FIND_COORDINATOR  find the coordinator, and ask that one
14 COORDINATOR_LOAD_IN_PROGRESS             RETRY      after a pause
29 TOPIC_AUTHORIZATION_FAILED               RAISE_ON_POLL       the next poll raises it; heartbeats go on
25 UNKNOWN_MEMBER_ID, 110                   REJOIN     everything is lost; join with epoch 0
anything else                               FATAL      the polls raise it; there is no way back
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

logger = get_logger("kclient.group")


class HeartbeatAction(enum.Enum):
    """What follows from an answer."""

    ACCEPT = "accept"
    FIND_COORDINATOR = "elsewhere"
    RETRY = "again"
    RAISE_ON_POLL = "tell"
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
    """What an error code asks for."""
    return ACTIONS.get(code, HeartbeatAction.FATAL)


def heartbeat_error(code: int, group_id: str, message: str | None) -> KclientError:
    """The error for the user. UNSUPPORTED_VERSION: the brokers know the request, and serve it to nobody."""
    doing = f"Membership in group {group_id}"
    if code == codes.UNSUPPORTED_VERSION:
        return VersionError(
            f"{doing} was refused with UNSUPPORTED_VERSION (35). {needs_new_brokers(regex=False)}",
            api="ConsumerGroupHeartbeat",
        )
    return broker_error(code, doing, group=group_id, message=message)


def unsupported_heartbeat(error: VersionError, *, regex: bool) -> VersionError:
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


REGEX_SINCE: Final = 1


class HeartbeatRequests:
    """The heartbeats of one member, each built on what those before have said."""

    def __init__(self, config: Config, group_id: str) -> None:
        self._always: dict[str, Any] = {"group_id": group_id, "instance_id": config.group_instance_id}
        self._rack_id = config.client_rack or None
        self._rebalance_timeout_ms = config.max_poll_interval_ms
        self._assignor = config.group_remote_assignor
        self._last_sent: dict[str, Any] = {}
        self._regex_sent = False  # the coordinator may know a pattern of ours

    def join(self, member_id: str, epoch: int, subscription: ConsumerSubscription) -> VersionedRequest:
        """The first heartbeat: everything, and nothing is owned."""
        self.forget()
        fields = {"rack_id": self._rack_id, **self._changed_fields(subscription, LocalAssignment())}
        return self._versioned(member_id, epoch, fields)

    def stay(
        self, member_id: str, epoch: int, subscription: ConsumerSubscription, owned: LocalAssignment
    ) -> VersionedRequest:
        """Any later one: what has changed."""
        return self._versioned(member_id, epoch, self._changed_fields(subscription, owned))

    def includes_owned(self, owned: LocalAssignment) -> bool:
        """Whether `stay` would say what is owned."""
        return self._last_sent.get("topic_partitions") != owned

    def leave(self, member_id: str, epoch: int) -> VersionedRequest:
        """The last one, with epoch −1, or −2 for a while."""
        return self._versioned(member_id, epoch, {})

    def forget(self) -> None:
        """A heartbeat failed: the next one says everything."""
        self._last_sent = {}

    def _changed_fields(self, subscription: ConsumerSubscription, owned: LocalAssignment) -> dict[str, Any]:
        """The fields that differ from what was said last, noted as said."""
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
        news = {
            name: value
            for name, value in now.items()
            if name not in self._last_sent or self._last_sent[name] != value
        }
        self._last_sent = now
        self._regex_sent = self._regex_sent or regex is not None
        return news

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
        self._interval = 0.0  # until the first answer says
        self._due = 0.0
        self._not_before = 0.0  # end of the backoff after a failure
        self._failures = 0  # since the last good answer
        self._poll_timer = poll_timer
        self.sent_join = False  # the coordinator may know this member
        self.owned_unanswered = False
        """The coordinator may act on partitions that a heartbeat without an answer has called ours.

        It takes all others for free. So no more are taken over until an answer says what is ours now.
        """

    def begin(self) -> None:
        """Prepare for a new membership."""
        self._poll_timer.restart()
        self.sent_join = self.owned_unanswered = False

    def poll_started(self) -> None:
        """Restart the poll timer."""
        self._poll_timer.restart()

    async def run(self) -> None:
        """Heartbeats while there is a membership; end it by cancelling."""
        while True:
            seen = self._status.changed.count
            if self._status.schedule is HeartbeatSchedule.NEVER:
                await self._status.changed.wait(seen)
                continue
            try:
                await self._run_once(seen)
            except KclientError as exc:
                self._report_error(exc)
                self._failed(exc.text)

    async def _run_once(self, seen: int) -> None:
        """The first of these that holds: the poll timer is over, no coordinator, a heartbeat is due; else wait."""
        now = self._runtime.now()
        leaving = self._status.state is ConsumerMemberState.PREPARE_LEAVING
        poll_ends = None if leaving else self._poll_timer.ends
        if not leaving:
            self._poll_timer.warn_if_due()
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
                self._requests.forget()  # nobody waits for the answer; the next round sees that time is over

    # --- one heartbeat

    async def _send_heartbeat(self) -> None:
        if self._status.schedule is HeartbeatSchedule.NEVER:
            return  # left, while the coordinator was looked up
        form = self._build_request()
        began = self._metrics.heartbeat_sent()
        try:
            response = await self._coordinator.request(
                ConsumerGroupHeartbeatResponse, form, timeout=self._request_timeout
            )
        except KclientError as exc:
            if isinstance(exc, VersionError) and exc.api == HEARTBEAT_API:
                self._end_for_good(unsupported_heartbeat(exc, regex=form.lowest > 0))
                return
            if not exc.retriable:
                raise
            self._failed(exc.text)
        else:
            self._metrics.heartbeat_answered(began)
            self._handle_response(response)

    def _build_request(self) -> VersionedRequest:
        """The heartbeat that is due. With it goes the acknowledgment."""
        status, owned = self._status, self._assignments.owned
        self._due = self._runtime.now() + self._interval
        status.send_now = False
        subscription = status.subscription or ConsumerSubscription()
        if not status.member:  # also where it is about to leave and its join has no answer yet
            self.sent_join = True
            return self._requests.join(status.member_id, JOIN_EPOCH, subscription)
        if status.state is ConsumerMemberState.ACKNOWLEDGING:
            status.enter(
                ConsumerMemberState.STABLE if self._assignments.settled else ConsumerMemberState.RECONCILING
            )
        self.owned_unanswered = self.owned_unanswered or self._requests.includes_owned(owned)
        return self._requests.stay(status.member_id, status.epoch, subscription, owned)

    def _handle_response(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """What the answer changes."""
        if self._status.schedule is HeartbeatSchedule.NEVER:
            return
        code = response.error_code
        told = f"it answered a heartbeat with {codes.error(code).name} ({code})"
        match action_for(code):
            case HeartbeatAction.ACCEPT:
                self._accept(response)
            case HeartbeatAction.FIND_COORDINATOR:
                self._coordinator.mark_unknown(told)
                self._failed(told, at_once=True)
            case HeartbeatAction.RETRY:
                self._failed(told)
            case HeartbeatAction.RAISE_ON_POLL:
                self._report_error(heartbeat_error(code, self._coordinator.group_id, response.error_message))
                self._failed(told)
            case HeartbeatAction.REJOIN:
                self._failed(told, at_once=True)
                self._status.end(ConsumerMemberState.FENCED, f"heartbeat answered {codes.error(code).name}")
            case HeartbeatAction.FATAL:
                self._end_for_good(heartbeat_error(code, self._coordinator.group_id, response.error_message))

    def _accept(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Epoch and assignment of an answer."""
        if response.member_epoch < JOIN_EPOCH:
            self._failed("the answer is to somebody who leaves")  # KAFKA-19335
            return
        status = self._status
        self._backoff.reset()
        self._failures = 0
        told = response.heartbeat_interval_ms / 1000
        sent = self._due - self._interval
        self._interval = max(told, self._shortest_interval)
        self._due = sent + self._interval
        status.epoch = response.member_epoch
        status.heard += 1
        self.owned_unanswered = False
        if status.in_group:
            changed = self._assignments.update_target(response.assignment)
            if not self._assignments.settled and (changed or status.state is ConsumerMemberState.JOINING):
                status.enter(ConsumerMemberState.RECONCILING)
            elif self._assignments.settled and status.state in (
                ConsumerMemberState.JOINING,
                ConsumerMemberState.RECONCILING,
            ):
                status.enter(ConsumerMemberState.STABLE)
        status.changed.notify()

    def _failed(self, why: str, *, at_once: bool = False) -> None:
        """Nobody knows what the coordinator has heard: say everything again, after a pause.

        `at_once`: without one, but only the first time in a row.
        """
        logger.debug("group %s: heartbeat failed: %s", self._coordinator.group_id, why)
        self._requests.forget()
        self._failures += 1
        pause = 0.0 if at_once and self._failures == 1 else self._backoff.next()
        self._due = self._not_before = self._runtime.now() + pause

    def _end_for_good(self, error: KclientError) -> None:
        self._status.fatal = error
        self._status.end(ConsumerMemberState.FATAL, error.text)
