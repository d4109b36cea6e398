"""The connection to one broker for one purpose: opened on demand, and no faster than the reconnect backoff allows.

    state          a request                                      then
    -------------  ---------------------------------------------  --------------------------------------------
    connected      uses the connection                            lost: back off, request a metadata update
    backing off    waits for the next attempt, which is shared    the attempt begins at `retry_at`
    connecting     waits for the attempt                          ready, or every waiting request gets its error
    refused        fails at once with the cached TLS or           after REFUSED_SECONDS or the backoff:
                   authentication error                           backing off

One attempt resolves the host name again and tries every address. Nothing is retried here: the caller decides.
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

logger: Final = get_logger("kclient.connection")

STEADY_WARNING_SECONDS: Final = 30.0
REFUSED_SECONDS: Final = 5.0  # after an error that only a change of certificates or passwords can cure


@attrs.frozen
class CachedFailure:
    """A rejected certificate or login. Requests before `until` fail with the same error, without a new attempt."""

    error: ConnectError
    until: float


@attrs.define(eq=False)
class ConnectionContext:
    """The objects that all broker connections of one cluster share."""

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
    """A broker's address, its connection if there is one, and when the next attempt may begin."""

    def __init__(self, peer: Peer, purpose: str, context: ConnectionContext) -> None:
        self.peer = peer
        self.purpose = purpose
        self.connection: Connection | None = None
        self.last_attempt: float = 0.0
        self.retry_at: float = 0.0  # in the loop's time; no attempt before
        self.closed: bool = False
        self.failed_attempts: int = 0  # since a connection was last ready
        self._context = context
        traffic = context.metrics.node(peer.node_id, "" if peer.node_id is None else purpose)
        self._settings = attrs.evolve(context.settings, traffic=traffic)
        rng = context.runtime.rng
        self._reconnect = Backoff(*context.reconnect_backoff_ms, rng)
        self._setup = Backoff(*context.setup_timeout_ms, rng)
        self._last_ip = ""
        self._got_response = False  # a request has been answered
        self._closed_before_first_response = (
            False  # the last connection was closed instead of the first response
        )
        self._attempt: asyncio.Task[KclientError | None] | None = None

    @property
    def load(self) -> int | None:
        """The number of requests in flight; None if no request can be sent now."""
        if self.connection is None or self.connection.throttled:
            return None
        return self.connection.in_flight

    def is_at(self, broker: Broker) -> bool:
        """Return whether the broker is still advertised with this address."""
        return (broker.host, broker.port) == (self.peer.host, self.peer.port)

    @property
    def connecting(self) -> bool:
        """Whether an attempt is running or waits for the backoff."""
        return self._attempt is not None

    @property
    def backing_off(self) -> bool:
        """Whether the next attempt must still wait for the backoff."""
        return self.connection is None and self._context.runtime.now() < self.retry_at

    def may_connect(self, now: float) -> bool:
        """Return whether an attempt could start now."""
        return self.connection is None and self._attempt is None and now >= self.retry_at

    async def ready(self) -> Connection:
        """Return the connection and open it if there is none. Raise ConnectError if that fails.

        There is no time limit: call it with a timeout.
        """
        while self.connection is None:
            if self.closed:
                raise errors.lost(self.peer, "connecting", "closed by kclient")
            refusal = self._context.cached_failures.get(self.peer.address)
            if refusal is not None and self._context.runtime.now() < refusal.until:
                # A copy for each caller: one object raised in several tasks would collect all their tracebacks.
                raise copy.copy(refusal.error) from refusal.error
            attempt = self._attempt_under_way()
            # wait() and not await: a caller that times out must not cancel the attempt that others wait for.
            await asyncio.wait({attempt})
            if not attempt.cancelled() and (error := attempt.result()) is not None:
                raise copy.copy(error) from error
        return self.connection

    def start_connecting(self) -> None:
        """Start an attempt in the background, unless there is a connection or a cached failure."""
        refusal = self._context.cached_failures.get(self.peer.address)
        refused = refusal is not None and self._context.runtime.now() < refusal.until
        if self.connection is None and not self.closed and not refused:
            self._attempt_under_way()

    def close(self) -> None:
        """Close the connection and cancel an attempt; later requests fail."""
        self.closed = True
        self.disconnect()

    def disconnect(self) -> None:
        """Close the connection and cancel an attempt; the next request connects again."""
        # Not the current task: an attempt whose failure makes the cluster rebootstrap ends with its own error.
        if self._attempt is not None and self._attempt is not asyncio.current_task():
            self._attempt.cancel()
        if self.connection is not None:
            self.connection.close()

    async def close_and_wait(self) -> None:
        """Close, and wait until the attempt and the transport have ended."""
        connection, attempt = self.connection, self._attempt
        self.close()
        if attempt is not None:
            await asyncio.wait({attempt})
        if connection is not None:
            await connection.wait_closed()

    # --- an attempt

    def _attempt_under_way(self) -> asyncio.Task[KclientError | None]:
        """Return the running attempt, which all waiting requests share, or start one."""
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect(), name=f"connect to {self.peer}")
            self._attempt.add_done_callback(self._attempt_over)
        return self._attempt

    async def _connect(self) -> KclientError | None:
        """Wait for the backoff and connect. Return None when ready, else the error."""
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
        warned = self._context.quiet_until.pop(self.peer.node_id, None) is not None
        # INFO only after a warning: otherwise a healthy start would log one line per broker.
        level = logging.INFO if warned or self.peer.node_id is None else logging.DEBUG
        logger.log(level, "%s: connected", self.peer, extra=self._extra())
        return None

    def _attempt_over(self, attempt: asyncio.Task[KclientError | None]) -> None:
        if self._attempt is attempt:
            self._attempt = None

    async def _try_addresses(self) -> Connection:
        addresses = await resolve(self.peer, self._context.runtime)
        # The address of the last connection comes last: it may be the one that failed. The order is stable otherwise.
        addresses.sort(key=lambda address: address.ip == self._last_ip)
        error: ConnectError | None = None
        for address in addresses:
            try:
                return await self._try(address)
            except (TlsError, AuthenticationError):
                raise  # another address of the same broker would refuse us too
            except ConnectError as exc:
                error = exc
        raise error or errors.name_not_resolved(self.peer, 0.0, OSError("no address"))

    async def _try(self, address: Address) -> Connection:
        peer = attrs.evolve(self.peer, ip=address.ip)
        context = self._context
        try:
            connection = await open_connection(
                peer, self._settings, context.runtime, self._setup.next(), self._on_closed
            )
        except ConnectError as exc:
            # Only an attempt that TCP did not connect lengthens the setup timeout (KIP-601).
            if exc.stage != "tcp":
                self._setup.reset()
            if await self._is_tls(peer, exc):
                raise errors.speaks_tls(peer, context.runtime.now() - self.last_attempt) from exc
            if await self._is_plain(peer, exc):
                seconds = context.runtime.now() - self.last_attempt
                raise does_not_speak_tls(peer, seconds) from exc
            raise
        self._setup.reset()
        self._last_ip = address.ip
        if self._closed_before_first_response:
            self._closed_before_first_response = False
            await require_no_sasl(connection, context.runtime.now() + PROBE_SECONDS)
            if (
                connection.closed
            ):  # during the probe: _on_closed ignored it, for self.connection is not set yet
                raise errors.lost(peer, "becoming ready", "closed by the peer")
        return connection

    async def _is_tls(self, peer: Peer, error: ConnectError) -> bool:
        """Return whether a bootstrap server that closed without response speaks TLS. Probe only if it never worked."""
        if peer.node_id is not None or self._worked or self._context.settings.tls is not None:
            return False
        silent = isinstance(error, PortClosedError) and error.stage == "versions"
        return silent and await answers_tls(peer, self._context.runtime)

    async def _is_plain(self, peer: Peer, error: ConnectError) -> bool:
        """Return whether a server that closed during the handshake speaks plain text. Probe only if it never worked."""
        if self._worked or error.stage != "tls" or not isinstance(error, PortClosedError):
            return False
        return await answers_plain(peer, self._context.settings, self._context.runtime)

    @property
    def _worked(self) -> bool:
        return self.peer.address in self._context.worked

    def _failed(self, error: ConnectError) -> ConnectError:
        self.failed_attempts += 1
        never_reached = isinstance(error, NameResolutionError | PortClosedError) and not self._worked
        if never_reached and self.peer.node_id is not None and self._context.via:
            error = errors.advertised_wrongly(self.peer, self._context.via, error)
        self._handle_failure(error, "not connected")
        return error

    # --- failures

    def _on_closed(self, connection: Connection, reason: KclientError | None) -> None:
        if connection is not self.connection:
            return  # it never became ready: the attempt reports the error
        self.connection = None
        # A listener that requires SASL closes a connection without it at the first request. So the next attempt
        # sends SaslHandshake, whose response shows whether SASL is required (`require_no_sasl`).
        without_sasl = self.peer.node_id is None and self._context.settings.authenticate is None
        self._got_response = self._got_response or connection.responses > 0
        self._closed_before_first_response = (
            without_sasl and connection.closed_by_peer and not self._got_response
        )
        if reason is not None:
            self._handle_failure(reason, "disconnected")

    def _handle_failure(self, error: KclientError, what: str) -> None:
        """Back off, log at most one warning per broker and backoff step, and report the failure to the cluster."""
        now = self._context.runtime.now()
        steady = self._reconnect.steady
        delay = self._reconnect.next()
        # Another attempt would be refused as well: all connections to this address share one pause.
        if isinstance(error, TlsError | AuthenticationError):
            delay = max(delay, REFUSED_SECONDS)
            self._context.cached_failures[self.peer.address] = CachedFailure(error, now + delay)
        self.retry_at = now + delay
        quiet = now < self._context.quiet_until.get(self.peer.node_id, 0.0)
        if not quiet:
            self._context.quiet_until[self.peer.node_id] = now + (STEADY_WARNING_SECONDS if steady else delay)
        # Before the first metadata, start() raises this error, so a warning would repeat it.
        level = logging.WARNING if self.peer.node_id is not None or self._context.via else logging.INFO
        logger.log(
            logging.DEBUG if quiet else level,
            "%s: %s (next attempt in %.2f s)",
            what,
            error.text,
            delay,
            extra=self._extra(error=error.kc_code, delay=delay),
        )
        self._context.on_failure(self, error)

    def _extra(self, **more: object) -> dict[str, object]:
        peer = self.peer
        return {
            "node_id": peer.node_id,
            "host": peer.host,
            "port": peer.port,
            "purpose": self.purpose,
            **more,
        }
