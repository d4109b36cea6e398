"""Heartbeats of a classic member, sent whatever the application does meanwhile.

Three timers decide:

    heartbeat   heartbeat_interval_ms, restarted when a heartbeat is sent; after a failure, the retry backoff
    session     session_timeout_ms, restarted when a heartbeat is answered or the coordinator was found
    poll        max_poll_interval_ms, restarted by every poll; a warning at 80 % of it

A successful JoinGroup switches heartbeats on and restarts all three. Each iteration does the first of these that
applies: not a member – wait; coordinator unknown – look it up; session timed out – mark the coordinator unknown; poll
timer expired – leave the group; heartbeat due – send it; else wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from kclient.config import Config
from kclient.errors import KclientError
from kclient.generated.heartbeat_request import HeartbeatRequest
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.group.classic.state import ClassicMemberState, MemberStatus
from kclient.group.coordinator import COORDINATOR_MOVED, Coordinator, VersionedRequest
from kclient.group.membership import Generation, PollTimer, lowest_version
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime

logger: Final = get_logger("kclient.group")


class HeartbeatTask:
    """The heartbeats of one member.

    `poll_expired` is awaited when the poll timer expires and must end the membership. `fail` takes an error that
    another heartbeat cannot solve; heartbeats then stay off until the next poll or join.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        status: MemberStatus,
        config: Config,
        runtime: Runtime,
        poll_expired: Callable[[], Awaitable[None]],
        poll_timer: PollTimer,
        fail: Callable[[KclientError], None],
        metrics: CoordinatorMetrics,
    ) -> None:
        self._coordinator = coordinator
        self._status = status
        self._runtime = runtime
        self._poll_expired = poll_expired
        self._fail = fail
        self._metrics = metrics
        self._instance_id = config.group_instance_id
        self._interval = config.heartbeat_interval_ms / 1000
        self._session_timeout = config.session_timeout_ms / 1000
        self._request_timeout = config.request_timeout_ms / 1000
        self._backoff = Backoff.for_retries(config, runtime)
        self._enabled = False
        self._due = 0.0
        self._answered_at = 0.0
        self._poll_timer = poll_timer

    def enable(self) -> None:
        """Start all three timers, after a successful JoinGroup."""
        now = self._runtime.now()
        self._enabled = True
        self._due = now + self._interval
        self._answered_at = now
        self._poll_timer.restart()
        self._backoff.reset()

    def poll_started(self) -> None:
        """Restart the poll timer; switch heartbeats on again if an error has switched them off."""
        self._poll_timer.restart()
        if self._status.heartbeating and not self._enabled:
            self.enable()
            self._status.changed.notify()

    async def run(self) -> None:
        """Send heartbeats while there is a membership, until cancelled."""
        while True:
            seen = self._status.changed.count
            if not (self._enabled and self._status.heartbeating):
                self._enabled = False
                await self._status.changed.wait(seen)
                continue
            try:
                await self._run_once(seen)
            except KclientError as exc:
                # Silent until the next poll has raised the error: each further heartbeat would repeat it.
                self._enabled = False
                self._fail(exc)

    async def _run_once(self, seen: int) -> None:
        now = self._runtime.now()
        # A coordinator that has just loaded the group starts the session of each member again.
        session_ends = max(self._answered_at, self._coordinator.found_at) + self._session_timeout
        poll_ends = self._poll_timer.ends
        self._poll_timer.warn_if_due()
        if self._coordinator.node_id is None:
            await self._coordinator.ensure()
        elif now >= session_ends:
            self._coordinator.mark_unknown("the session timed out without a response to a heartbeat")
        elif now >= poll_ends:
            await self._poll_expired()
        elif now >= self._due:
            await self._send_heartbeat(session_ends, poll_ends)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(self._due, session_ends, self._poll_timer.next_at)):
                    await self._status.changed.wait(seen)

    async def _send_heartbeat(self, session_ends: float, poll_ends: float) -> None:
        """Send one heartbeat. If the session times out before the response, its connection counts as lost."""
        now = self._runtime.now()
        sent = self._status.generation
        self._due = now + self._interval
        request = HeartbeatRequest(
            group_id=self._coordinator.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=self._instance_id,
        )
        began = self._metrics.heartbeat_sent()
        try:
            # If the poll timer expires meanwhile, the member leaves without waiting for this response.
            async with asyncio.timeout_at(poll_ends):
                response = await self._coordinator.request(
                    HeartbeatResponse,
                    VersionedRequest(request, lowest_version("Heartbeat", self._instance_id)),
                    timeout=min(self._request_timeout, session_ends - now),
                )
        except KclientError as exc:
            if not exc.retriable:
                raise
            self._retry(exc.text)
        except TimeoutError:
            return  # the next iteration finds the timer that expired
        else:
            self._metrics.heartbeat_response(began)
            self._handle_code(response.error_code, sent)

    def _handle_code(self, code: int, sent: Generation) -> None:
        """Apply the error code of a response."""
        name = codes.error(code).name
        if code == codes.NONE:
            self._answered()
        elif code == codes.REBALANCE_IN_PROGRESS:
            self._answered()
            # In any other state a join is running already, and would be repeated.
            if self._status.state is ClassicMemberState.STABLE:
                self._status.request_rejoin("group is already rebalancing")
        elif code in (codes.ILLEGAL_GENERATION, codes.UNKNOWN_MEMBER_ID, codes.FENCED_INSTANCE_ID):
            self._end_membership(code, sent)
        else:
            if code in COORDINATOR_MOVED:
                self._coordinator.mark_unknown(f"it answered a heartbeat with {name} ({code})")
            self._retry(f"{name} ({code})")

    def _end_membership(self, code: int, sent: Generation) -> None:
        """End the membership, unless the response belongs to an older generation: a join has replaced it meanwhile."""
        if self._status.generation != sent:
            self._answered()
            return
        doing = f"A heartbeat of group {self._coordinator.group_id}"
        logger.info("%s was answered with %s (%d)", doing, codes.error(code).name, code)
        self._status.reset(
            f"heartbeat answered {codes.error(code).name}", keep_member_id=code == codes.ILLEGAL_GENERATION
        )
        if code == codes.FENCED_INSTANCE_ID:
            raise broker_error(code, doing)

    def _answered(self) -> None:
        self._answered_at = self._runtime.now()
        self._backoff.reset()

    def _retry(self, why: str) -> None:
        logger.debug("group %s: heartbeat failed: %s", self._coordinator.group_id, why)
        self._due = self._runtime.now() + self._backoff.next()
