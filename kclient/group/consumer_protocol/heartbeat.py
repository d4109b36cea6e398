"""Sending heartbeats when they are due, and taking their answers in.

    at once        while joining, to acknowledge, and to tell of another subscription
    on interval    else, as long as the last answer said, counted from when a heartbeat was sent
    after a pause  after a failure, longer each time; the next heartbeat says everything again

One heartbeat is in flight at a time. The poll timer runs beside: an application that does not poll in time loses its
membership. An answer that comes when this is no member any more changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from kclient.config import Config
from kclient.errors import KclientError, VersionError
from kclient.generated.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kclient.group.consumer_protocol.answers import Action, action_of, refusal, too_old
from kclient.group.consumer_protocol.assignment import Assignments
from kclient.group.consumer_protocol.request import HeartbeatRequests
from kclient.group.consumer_protocol.standing import JOIN_EPOCH, Standing, Subscribed
from kclient.group.consumer_protocol.states import MemberState, Rhythm
from kclient.group.coordinator import Coordinator
from kclient.group.form import Form
from kclient.group.poll_timer import PollTimer
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.backoff import Backoff
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger = get_logger("kclient.group")

API: Final = "ConsumerGroupHeartbeat"


class Heartbeats:
    """The heartbeats of one member. `poll_expired` is awaited when the poll timer runs out, `poll_slow` is called
    some time before; `tell` takes an error that
    the next poll is to raise.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        standing: Standing,
        assignments: Assignments,
        requests: HeartbeatRequests,
        config: Config,
        runtime: Runtime,
        poll_expired: Callable[[], Awaitable[None]],
        poll_slow: Callable[[float], None],
        tell: Callable[[KclientError], None],
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._standing = standing
        self._assignments = assignments
        self._requests = requests
        self._runtime = runtime
        self._poll_expired = poll_expired
        self._tell = tell
        self._metrics = metrics
        self._request_timeout = config.request_timeout_ms / 1000
        self._shortest_interval = config.retry_backoff_ms / 1000
        self._backoff = Backoff.for_retries(config, runtime)
        self._interval = 0.0  # until the first answer says
        self._due = 0.0
        self._not_before = 0.0  # the pause after a failure
        self._failures = 0  # since an answer was good
        self._polls = PollTimer(config, runtime, poll_slow)
        self.sent_join = False  # the coordinator may know of us
        self.owned_unanswered = False
        """The coordinator may act on partitions that a heartbeat without an answer has called ours.

        It takes all others for free. So no more are taken over until an answer says what is ours now.
        """

    def begin(self) -> None:
        """A new membership begins."""
        self._polls.restart()
        self.sent_join = self.owned_unanswered = False

    def poll_started(self) -> None:
        """Restart the poll timer."""
        self._polls.restart()

    def since_poll(self) -> float:
        """Seconds since the last poll."""
        return self._polls.since_poll()

    async def run(self) -> None:
        """Heartbeats while there is a membership; end it by cancelling."""
        while True:
            seen = self._standing.changed.count
            if self._standing.rhythm is Rhythm.NEVER:
                await self._standing.changed.wait(seen)
                continue
            try:
                await self._round(seen)
            except KclientError as exc:
                self._tell(exc)
                self._failed(exc.text)

    async def _round(self, seen: int) -> None:
        """The first of these that holds: the poll timer is over, no coordinator, a heartbeat is due; else wait."""
        now = self._runtime.now()
        leaving = self._standing.state is MemberState.PREPARE_LEAVING
        poll_ends = None if leaving else self._polls.ends
        if not leaving:
            self._polls.warn_if_due()
        due = self._not_before if self._standing.rhythm is Rhythm.AT_ONCE else self._due
        if poll_ends is not None and now >= poll_ends:
            await self._poll_expired()
        elif now < due:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due if leaving else min(due, self._polls.next_at)):
                    await self._standing.changed.wait(seen)
        else:
            try:
                async with asyncio.timeout_at(poll_ends):
                    await self._coordinator.ensure()
                    await self._beat()
            except KclientError:
                raise
            except TimeoutError:
                self._requests.forget()  # nobody waits for the answer; the next round sees that time is over

    # --- one heartbeat

    async def _beat(self) -> None:
        if self._standing.rhythm is Rhythm.NEVER:
            return  # left, while the coordinator was looked up
        form = self._next()
        began = self._metrics.heartbeat_sent()
        try:
            response = await self._coordinator.request(
                ConsumerGroupHeartbeatResponse, form, timeout=self._request_timeout
            )
        except KclientError as exc:
            if isinstance(exc, VersionError) and exc.api == API:
                self._end_for_good(too_old(exc, regex=form.lowest > 0))
                return
            if not exc.retriable:
                raise
            self._failed(exc.text)
        else:
            self._metrics.heartbeat_answered(began)
            self._judge(response)

    def _next(self) -> Form:
        """The heartbeat that is due. With it goes the acknowledgment."""
        standing, owned = self._standing, self._assignments.owned
        self._due = self._runtime.now() + self._interval
        standing.hurry = False
        wanted = standing.wanted or Subscribed()
        if not standing.member:  # also where it is about to leave and its join has no answer yet
            self.sent_join = True
            return self._requests.join(standing.member_id, JOIN_EPOCH, wanted)
        if standing.state is MemberState.ACKNOWLEDGING:
            standing.enter(MemberState.STABLE if self._assignments.settled else MemberState.RECONCILING)
        self.owned_unanswered = self.owned_unanswered or self._requests.says_owned(owned)
        return self._requests.stay(standing.member_id, standing.epoch, wanted, owned)

    def _judge(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """What the answer changes."""
        if self._standing.rhythm is Rhythm.NEVER:
            return
        code = response.error_code
        told = f"it answered a heartbeat with {codes.error(code).name} ({code})"
        match action_of(code):
            case Action.ACCEPT:
                self._accept(response)
            case Action.ELSEWHERE:
                self._coordinator.mark_unknown(told)
                self._failed(told, at_once=True)
            case Action.AGAIN:
                self._failed(told)
            case Action.TELL:
                self._tell(refusal(code, self._coordinator.group_id, response.error_message))
                self._failed(told)
            case Action.REJOIN:
                self._failed(told, at_once=True)
                self._standing.end(MemberState.FENCED, f"heartbeat answered {codes.error(code).name}")
            case Action.FATAL:
                self._end_for_good(refusal(code, self._coordinator.group_id, response.error_message))

    def _accept(self, response: ConsumerGroupHeartbeatResponse) -> None:
        """Epoch and assignment of an answer."""
        if response.member_epoch < JOIN_EPOCH:
            self._failed("the answer is to somebody who leaves")  # KAFKA-19335
            return
        standing = self._standing
        self._backoff.reset()
        self._failures = 0
        told = response.heartbeat_interval_ms / 1000
        sent = self._due - self._interval
        self._interval = max(told, self._shortest_interval)
        self._due = sent + self._interval
        standing.epoch = response.member_epoch
        standing.heard += 1
        self.owned_unanswered = False
        if standing.in_group:
            changed = self._assignments.take(response.assignment)
            if not self._assignments.settled and (changed or standing.state is MemberState.JOINING):
                standing.enter(MemberState.RECONCILING)
            elif self._assignments.settled and standing.state in (
                MemberState.JOINING,
                MemberState.RECONCILING,
            ):
                standing.enter(MemberState.STABLE)
        standing.changed.notify()

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
        self._standing.fatal = error
        self._standing.end(MemberState.FATAL, error.text)
