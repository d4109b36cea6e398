"""One broker for one purpose: at most one connection, opened when it is needed and no faster than the backoff allows.

A request to a node that is backing off waits until the next attempt, which all who wait share. One attempt resolves
the name anew and tries every address of it. If it fails, everybody who waited gets its error; nobody retries here.
A certificate or a password that was refused is no matter of patience: until the next attempt, which comes late, all
who ask get that error at once.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable
from typing import Final

import attrs

from kclient.errors import (
    AuthenticationError,
    ConnectError,
    KclientError,
    NameResolutionError,
    PortClosedError,
    TlsError,
)
from kclient.log import get_logger
from kclient.metrics.network import NetworkMetrics
from kclient.metrics.registry import Registry
from kclient.network import errors
from kclient.network.backoff import Backoff
from kclient.network.connect import (
    PROBE_SECONDS,
    answers_plain,
    answers_tls,
    open_connection,
    require_no_sasl,
    resolve,
)
from kclient.network.connection import Connection, ConnectionSettings
from kclient.network.peer import Peer
from kclient.network.tls import does_not_speak_tls
from kclient.runtime import Address, Runtime
from kclient.types import Broker

logger = get_logger("kclient.connection")

STEADY_WARNING_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 5.0  # after what nothing but a change of files or passwords can cure


@attrs.frozen
class CachedFailure:
    """Of a certificate or of credentials: who asks before `until` gets the same answer without another attempt."""

    problem: ConnectError
    until: float


@attrs.define(eq=False)
class ConnectionContext:
    """What the nodes of one cluster share."""

    settings: ConnectionSettings
    runtime: Runtime
    reconnect_backoff_ms: tuple[int, int]
    setup_timeout_ms: tuple[int, int]
    on_failure: Callable[[BrokerConnection, KclientError], None]  # a connection was lost or an attempt failed
    via: str = ""  # the bootstrap address that led to the cluster
    worked: set[str] = attrs.field(factory=set)  # addresses that a connection was ready at
    quiet_until: dict[int | None, float] = attrs.field(factory=dict)  # per broker: no WARNING before
    cached_failures: dict[str, CachedFailure] = attrs.field(factory=dict)  # per address, whichever node asks
    metrics: NetworkMetrics = attrs.field(factory=lambda: NetworkMetrics(Registry()))


class BrokerConnection:
    """Where a broker is and how to reach it."""

    def __init__(self, peer: Peer, purpose: str, context: ConnectionContext) -> None:
        self.peer = peer
        self.purpose = purpose
        self.connection: Connection | None = None
        self.last_attempt = 0.0
        self.retry_at = 0.0  # in the loop's time; no attempt before
        self.closed = False
        self.failed_attempts = 0  # since a connection was last ready
        self._context = context
        traffic = context.metrics.node(peer.node_id, "" if peer.node_id is None else purpose)
        self._settings = attrs.evolve(context.settings, traffic=traffic)
        rng = context.runtime.rng
        self._reconnect = Backoff(*context.reconnect_backoff_ms, rng)
        self._setup = Backoff(*context.setup_timeout_ms, rng)
        self._last_ip = ""
        self._got_response = False  # a request has been answered
        self._closed_before_first_response = (
            False  # the last connection was closed instead of the first answer
        )
        self._attempt: asyncio.Task[KclientError | None] | None = None

    @property
    def load(self) -> int | None:
        """Requests in flight if a request could go out now, else None."""
        if self.connection is None or self.connection.throttled:
            return None
        return self.connection.in_flight

    def is_at(self, broker: Broker) -> bool:
        """Whether the broker is still advertised with this address."""
        return (broker.host, broker.port) == (self.peer.host, self.peer.port)

    @property
    def connecting(self) -> bool:
        """Whether an attempt is under way, or waits for its time."""
        return self._attempt is not None

    @property
    def backing_off(self) -> bool:
        """Whether the next attempt's time has not come yet."""
        return self.connection is None and self._context.runtime.now() < self.retry_at

    def may_connect(self, now: float) -> bool:
        """Whether an attempt could start now."""
        return self.connection is None and self._attempt is None and now >= self.retry_at

    async def ready(self) -> Connection:
        """The connection, opened if there is none. Raises ConnectError if that fails; bound it with a timeout."""
        while self.connection is None:
            if self.closed:
                raise errors.lost(self.peer, "connecting", "closed by kclient")
            refusal = self._context.cached_failures.get(self.peer.address)
            if refusal is not None and self._context.runtime.now() < refusal.until:
                raise copy.copy(refusal.problem) from refusal.problem
            attempt = self._attempt_under_way()
            await asyncio.wait({attempt})
            if not attempt.cancelled() and (problem := attempt.result()) is not None:
                raise copy.copy(problem) from problem
        return self.connection

    def start_connecting(self) -> None:
        """Begin an attempt whose outcome the next request meets; none during a refusal or beside a connection."""
        refusal = self._context.cached_failures.get(self.peer.address)
        refused = refusal is not None and self._context.runtime.now() < refusal.until
        if self.connection is None and not self.closed and not refused:
            self._attempt_under_way()

    def close(self) -> None:
        """Close the connection, end an attempt; later requests fail."""
        self.closed = True
        self.disconnect()

    def disconnect(self) -> None:
        """Close what is open, on purpose; the next request connects again."""
        # An attempt that reports its failure may lead here (a misrouted one does): it ends with its own error.
        if self._attempt is not None and self._attempt is not asyncio.current_task():
            self._attempt.cancel()
        if self.connection is not None:
            self.connection.close()

    async def close_and_wait(self) -> None:
        """Close, and return when attempt and transport are gone."""
        connection, attempt = self.connection, self._attempt
        self.close()
        if attempt is not None:
            await asyncio.wait({attempt})
        if connection is not None:
            await connection.wait_closed()

    # --- an attempt

    def _attempt_under_way(self) -> asyncio.Task[KclientError | None]:
        """The one attempt that all who wait share."""
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect(), name=f"connect to {self.peer}")
            self._attempt.add_done_callback(self._attempt_over)
        return self._attempt

    async def _connect(self) -> KclientError | None:
        """One attempt, after the backoff: None when ready, else the error."""
        runtime = self._context.runtime
        try:
            await asyncio.sleep(max(0.0, self.retry_at - runtime.now()))
            self.last_attempt = runtime.now()
            self.connection = await self._try_addresses()
        except ConnectError as exc:
            return self._failed(exc)
        self._reconnect.reset()
        self.failed_attempts = 0
        self._context.worked.add(self.peer.address)
        self._context.cached_failures.pop(self.peer.address, None)
        told = self._context.quiet_until.pop(self.peer.node_id, None) is not None or self.peer.node_id is None
        # Else a healthy start would log a line per broker.
        level = logging.INFO if told else logging.DEBUG
        logger.log(level, "%s: connected", self.peer, extra=self._extra())
        return None

    def _attempt_over(self, attempt: asyncio.Task[KclientError | None]) -> None:
        if self._attempt is attempt:
            self._attempt = None

    async def _try_addresses(self) -> Connection:
        addresses = await resolve(self.peer, self._context.runtime)
        # A lost one comes last; stable otherwise.
        addresses.sort(key=lambda address: address.ip == self._last_ip)
        problem: ConnectError | None = None
        for address in addresses:
            try:
                return await self._try(address)
            except (TlsError, AuthenticationError):
                raise  # another way to the same broker would not help
            except ConnectError as exc:
                problem = exc
        raise problem or errors.name_not_resolved(self.peer, 0.0, OSError("no address"))

    async def _try(self, address: Address) -> Connection:
        peer = attrs.evolve(self.peer, ip=address.ip)
        around = self._context
        try:
            connection = await open_connection(
                peer, self._settings, around.runtime, self._setup.next(), self._on_closed
            )
        except ConnectError as exc:
            if exc.stage != "tcp":
                self._setup.reset()
            if await self._is_tls(peer, exc):
                raise errors.speaks_tls(peer, around.runtime.now() - self.last_attempt) from exc
            if await self._is_plain(peer, exc):
                seconds = around.runtime.now() - self.last_attempt
                raise does_not_speak_tls(peer, seconds) from exc
            raise
        self._setup.reset()
        self._last_ip = address.ip
        if self._closed_before_first_response:
            self._closed_before_first_response = False
            await require_no_sasl(connection, around.runtime.now() + PROBE_SECONDS)
            if connection.closed:  # while we asked; nobody would be told, for it is not the node's yet
                raise errors.lost(peer, "becoming ready", "closed by the peer")
        return connection

    async def _is_tls(self, peer: Peer, problem: ConnectError) -> bool:
        """A bootstrap server that closes without a word may be a TLS listener: look, as long as it never worked."""
        if peer.node_id is not None or self._worked or self._context.settings.tls is not None:
            return False
        silent = isinstance(problem, PortClosedError) and problem.stage == "versions"
        return silent and await answers_tls(peer, self._context.runtime)

    async def _is_plain(self, peer: Peer, problem: ConnectError) -> bool:
        """A server that closes during the handshake may be a plain-text listener: look, as long as it never worked."""
        if self._worked or problem.stage != "tls" or not isinstance(problem, PortClosedError):
            return False
        return await answers_plain(peer, self._context.settings, self._context.runtime)

    @property
    def _worked(self) -> bool:
        return self.peer.address in self._context.worked

    def _failed(self, problem: ConnectError) -> ConnectError:
        self.failed_attempts += 1
        unheard = isinstance(problem, NameResolutionError | PortClosedError) and not self._worked
        if unheard and self.peer.node_id is not None and self._context.via:
            problem = errors.advertised_wrongly(self.peer, self._context.via, problem)
        self._handle_failure(problem, "not connected")
        return problem

    # --- trouble

    def _on_closed(self, connection: Connection, reason: KclientError | None) -> None:
        if connection is not self.connection:
            return  # it never became ready: the attempt tells
        self.connection = None
        # So ends a connection without SASL to a listener that wants it: ask, before the next one is used.
        without_sasl = self.peer.node_id is None and self._context.settings.authenticate is None
        self._got_response = self._got_response or connection.answers > 0
        self._closed_before_first_response = (
            without_sasl and connection.closed_by_peer and not self._got_response
        )
        if reason is not None:
            self._handle_failure(reason, "disconnected")

    def _handle_failure(self, problem: KclientError, what: str) -> None:
        """Back off, warn at most once per broker and step, and let the cluster know."""
        now = self._context.runtime.now()
        steady = self._reconnect.steady
        delay = self._reconnect.next()
        if isinstance(problem, TlsError | AuthenticationError):
            delay = max(delay, REFUSED_SECONDS)
            self._context.cached_failures[self.peer.address] = CachedFailure(problem, now + delay)
        self.retry_at = now + delay
        quiet = now < self._context.quiet_until.get(self.peer.node_id, 0.0)
        if not quiet:
            self._context.quiet_until[self.peer.node_id] = now + (STEADY_WARNING_SECONDS if steady else delay)
        # Before the cluster was found start() raises this, and the user sees it there.
        level = logging.WARNING if self.peer.node_id is not None or self._context.via else logging.INFO
        logger.log(
            logging.DEBUG if quiet else level,
            "%s: %s (next attempt in %.2f s)",
            what,
            problem.text,
            delay,
            extra=self._extra(error=problem.kc_code, delay=delay),
        )
        self._context.on_failure(self, problem)

    def _extra(self, **more: object) -> dict[str, object]:
        peer = self.peer
        return {
            "node_id": peer.node_id,
            "host": peer.host,
            "port": peer.port,
            "purpose": self.purpose,
            **more,
        }
