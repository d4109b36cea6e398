"""Bugs of connections, timers and closing, M-85 to M-105, M-122 and M-123."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from kclient.change_signal import ChangeSignal
from kclient.consumer import close
from kclient.consumer.core import ConsumerCore
from kclient.consumer.poll import Poll
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.tasks import CallTimeouts, Lifecycle
from kclient.errors import ConnectError, KclientError
from kclient.group.classic.heartbeat import HeartbeatTask
from kclient.group.classic.member import ClassicMembership
from kclient.group.coordinator import Coordinator
from kclient.network import api_versions, broker, connection
from kclient.network.backoff import Backoff
from kclient.network.broker import BrokerConnection
from kclient.network.connection import Connection, InFlightRequests
from kclient.network.metadata import MetadataCache
from kclient.network.sasl import SaslReauthentication
from kclient.protocol.errors import UNSUPPORTED_VERSION
from tests.simulation.mutants import plans, scripts
from tests.simulation.mutants.table import Patch, mutant

FOR_EVER = 1e6


@mutant("M-85", "I-22", "I-02", seed=27)
def never_connected_again(patch: Patch) -> None:
    """Do not connect again where a connection ended in the middle of a frame."""

    def on_closed(self: BrokerConnection, closed: Connection, reason: KclientError | None) -> None:
        protocol = closed.protocol
        midway = protocol._frame is not None or protocol._ahead_end > 0
        before(self, closed, reason)
        if reason is not None and midway:
            self.retry_at = FOR_EVER

    before = patch.put(BrokerConnection, "_on_closed", on_closed)


@mutant("M-86", "I-25", "I-22", seed=111)
def calls_left_waiting(patch: Patch) -> None:
    """Leave requests in flight pending when the connection is lost."""

    def fail(self: InFlightRequests, error_for: Any) -> None:
        for entry in self._entries:
            entry.timer.cancel()
        self._entries.clear()

    patch.put(InFlightRequests, "fail", fail)


@mutant("M-87", "I-16", look=scripts.cancelled_question)
def cancelled_forgotten(patch: Patch) -> None:
    """Forget a request whose caller is gone, and take its response for the next one's."""

    def due(self: InFlightRequests, correlation_id: int) -> Any:
        while (first := self.first) is not None and first.response.cancelled():
            self.answered()
        return first

    patch.put(InFlightRequests, "due", due)


@mutant("M-88", "I-16", look=scripts.lost_answer)
def matched_by_order(patch: Patch) -> None:
    """Take whatever response comes for that to the oldest request."""
    patch.put(InFlightRequests, "due", lambda self, correlation_id: self.first)


@mutant("M-89", "I-24", look=plans.looking_at(plans.NO_BROKERS))
def close_retries(patch: Patch) -> None:
    """Look for the coordinator until it is found when closing, for the sake of a clean end."""

    async def end(session: ConsumerCore, deadline: float) -> None:
        while session.group_or_none is not None and session.cluster.metadata.version:
            try:
                await session.group.coordinator.lookup()
                break
            except KclientError:
                await asyncio.sleep(0.1)
        await before(session, deadline)

    before = patch.put(close, "_stop_everything", end)


@mutant("M-90", "I-24", seed=164)
def heartbeats_left(patch: Patch) -> None:
    """Leave the task of the heartbeats running when the membership ends."""

    async def run(self: ClassicMembership) -> None:
        self.left = asyncio.create_task(self._heartbeats.run(), name="kclient heartbeats")  # type: ignore[attr-defined]
        await self._loop.run()

    patch.put(ClassicMembership, "run", run)


@mutant("M-91", "I-26", look=scripts.start_while_refused)
def no_reconnect_backoff(patch: Patch) -> None:
    """Connect again at once, however often that failed."""

    def trouble(self: BrokerConnection, problem: KclientError, what: str) -> None:
        before(self, problem, what)
        self.retry_at = 0.0

    before = patch.put(BrokerConnection, "_handle_failure", trouble)


@mutant("M-92", "I-22", look=scripts.long_outage)
def backoff_without_cap(patch: Patch) -> None:
    """Double the pause between two attempts without end."""

    def following(self: Backoff) -> float:
        self.step += 1
        return self._base * 2.0 ** (self.step - 1)

    patch.put(Backoff, "next", following)


@mutant("M-94", "I-22", "I-02", seed=136)
def start_cut_short(patch: Patch) -> None:
    """Give up connecting when the poll that began it times out, so that poll(0) never gets anywhere."""

    async def start(self: Lifecycle) -> None:
        if self._start is None or (self._start.done() and not self.running):
            self._start = asyncio.create_task(self._begin(), name="kclient start")
        await self._start

    patch.put(Lifecycle, "start", start)


@mutant("M-95", "I-30", look=scripts.cancelled_polls)
def cancel_keeps_held(patch: Patch) -> None:
    """Let a poll that is cancelled count as being inside for ever."""

    @contextmanager
    def alone(self: Poll) -> Iterator[None]:
        try:
            with before(self):
                yield
        except asyncio.CancelledError:
            self._inside = asyncio.current_task()
            raise

    before = patch.put(Poll, "_exclusive", alone)


@mutant("M-96", "I-23", "I-22", "I-27", look=plans.looking_at(plans.NOBODY_THERE))
def connect_without_limit(patch: Patch) -> None:
    """Wait for a connection as long as it takes."""

    async def open_connection(peer: Any, settings: Any, runtime: Any, timeout: float, on_closed: Any) -> Any:
        return await before(peer, settings, runtime, FOR_EVER, on_closed)

    before = patch.put(broker, "open_connection", open_connection)


@mutant("M-97", "I-22", seed=124)
def names_resolved_once(patch: Patch) -> None:
    """Look up the addresses of a name once, and use them for ever."""
    known: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()

    async def resolve(peer: Any, runtime: Any) -> Any:
        found = known.setdefault(runtime.rng, {})
        if (peer.host, peer.port) not in found:
            found[peer.host, peer.port] = await before(peer, runtime)
        return list(found[peer.host, peer.port])

    before = patch.put(broker, "resolve", resolve)


@mutant("M-98", "I-22", "I-27", seed=2)
def idle_close_punished(patch: Patch) -> None:
    """Take the end of an idle connection for a failure, and stay away for minutes."""

    def on_closed(self: BrokerConnection, closed: Connection, reason: KclientError | None) -> None:
        before(self, closed, reason)
        if reason is not None and closed.closed_by_peer and closed.cause is None:
            self.retry_at = self._context.runtime.now() + 300.0

    before = patch.put(BrokerConnection, "_on_closed", on_closed)


@mutant("M-99", "I-23", "I-22", seed=18)
def throttled_as_told(patch: Patch) -> None:
    """Keep silent as long as a response says, whatever it says."""

    def note_throttle(self: Connection, entry: Any, message: Any) -> None:
        before(self, entry, message)
        throttle_ms = getattr(message, "throttle_time_ms", 0)
        if throttle_ms and entry.version >= api_versions.THROTTLES_SINCE.get(entry.api_key, connection.NEVER):
            self._throttled_until = max(self._throttled_until, self._loop.time() + throttle_ms / 1000)

    before = patch.put(Connection, "_note_throttle", note_throttle)


@mutant("M-100", "I-26", seed=27)
def versions_asked_again(patch: Patch) -> None:
    """Ask again with the same version of ApiVersions when it is refused."""

    async def negotiate(ask: Any, *args: Any) -> Any:
        async def stubborn(request: Any, version: int) -> Any:
            response = await ask(request, request.VERSIONS[1])
            while response.error_code == UNSUPPORTED_VERSION:
                response = await ask(request, request.VERSIONS[1])
            return response

        return await before(stubborn, *args)

    before = patch.put(connection, "negotiate", negotiate)


@mutant("M-101", "I-26", look=scripts.leader_of_the_past)
def epochs_go_back(patch: Patch) -> None:
    """Take over metadata of a lower leader epoch than is known."""

    def accept(self: MetadataCache, tp: Any, news: Any, reliable: bool, created_anew: bool) -> Any:
        return before(self, tp, news, reliable, True)

    before = patch.put(MetadataCache, "_accept", accept)


@mutant("M-102", "I-16", seed=164)
def asked_while_renewing(patch: Patch) -> None:
    """Send requests while the session of a connection is renewed."""

    def renewing(self: SaslReauthentication) -> bool:
        before(self)
        return False

    before = patch.put(SaslReauthentication, "renewing", renewing)


@mutant("M-103", "I-35", seed=210)
def answers_kept(patch: Patch) -> None:
    """Never forget a request that was answered."""

    def answered(self: InFlightRequests) -> None:
        entry = self.first
        entry.timer.cancel()  # type: ignore[union-attr]
        self.past = getattr(self, "past", 0) + 1  # type: ignore[attr-defined]

    def first(self: InFlightRequests) -> Any:
        past = getattr(self, "past", 0)
        return self._entries[past] if len(self._entries) > past else None

    patch.put(InFlightRequests, "answered", answered)
    patch.put(InFlightRequests, "first", property(first))
    patch.put(InFlightRequests, "full", property(lambda self: False))


@mutant("M-104", "I-33", look=scripts.many_rebalances)
def listeners_pile_up(patch: Patch) -> None:
    """Listen to the positions again with every rebalance, and never stop."""

    async def install(self: Rebalance, change: Any) -> None:
        self._positions.changed.chain(ChangeSignal())
        await before(self, change)

    before = patch.put(Rebalance, "_install", install)


@mutant("M-105", "I-37", look=scripts.few_warnings)
def warns_every_time(patch: Patch) -> None:
    """Warn of every attempt that fails."""

    def trouble(self: BrokerConnection, problem: KclientError, what: str) -> None:
        self._context.quiet_until.clear()
        before(self, problem, what)

    before = patch.put(BrokerConnection, "_handle_failure", trouble)


@mutant("M-93", "I-25", look=scripts.wakeup_between_polls)
def wakeup_lost(patch: Patch) -> None:
    """Drop a wakeup that comes while no call waits."""

    def wakeup(self: CallTimeouts) -> None:
        before(self)
        self._woken = bool(self._scopes)

    before = patch.put(CallTimeouts, "wakeup", wakeup)


@mutant("M-122", "I-31", seed=83)
def rejoin_by_lost_connection(patch: Patch) -> None:
    """Join again because the connection to the coordinator was lost."""

    async def request(self: Coordinator, response: Any, *forms: Any, **more: Any) -> Any:
        try:
            return await before(self, response, *forms, **more)
        except ConnectError:
            self.cut = True  # type: ignore[attr-defined]
            raise

    async def beat(self: HeartbeatTask, session_ends: float, poll_ends: float) -> None:
        await beaten(self, session_ends, poll_ends)
        if getattr(self._coordinator, "cut", False):
            self._coordinator.cut = False  # type: ignore[attr-defined]
            self._status.request_rejoin("the coordinator's connection was lost")

    before = patch.put(Coordinator, "request", request)
    beaten = patch.put(HeartbeatTask, "_send_heartbeat", beat)


@mutant("M-123", "I-34", seed=2)
def old_connection_kept(patch: Patch) -> None:
    """Leave a connection open that did not answer in time, beside the new one."""

    def late(self: Connection, entry: Any) -> None:
        abort = self.protocol.abort
        self.protocol.abort = lambda: None  # type: ignore[method-assign]
        try:
            before(self, entry)
        finally:
            self.protocol.abort = abort  # type: ignore[method-assign]

    before = patch.put(Connection, "_late", late)
