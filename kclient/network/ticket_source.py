"""The Kerberos ticket of a client: that of a keytab is kept and renewed before it expires, a cache is read each time.

    asked for it       no ticket, or expired     due for renewal               fresh
    KDC answers        the new one               the new one                   the kept one, no request
    KDC refuses        the error                 the kept one, and a WARNING   –
    KDC is silent      until the deadline        the kept one after 5 s        –

A ticket from a keytab is due when `sasl.kerberos.ticket.renew.window.factor` of its lifetime are over, and up to
`sasl.kerberos.ticket.renew.jitter` more; after a failure, when `sasl.kerberos.min.time.before.relogin` have passed.
A timer requests it then, as Java's thread does: a KDC that is down when a connection needs a ticket must not matter.
A ticket cache belongs to somebody else, who renews it: it is read again for each authentication.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from kclient.config import Config
from kclient.config.kerberos import kerberos_login
from kclient.errors import ConfigError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.security.kerberos import KerberosError, KerberosLogin, Ticket, check_keytab, gssapi_package

log: Final = get_logger("kclient.auth")

T = TypeVar("T")

LEAST_SECONDS: Final = 1.0  # a ticket that ends sooner is as good as expired
PATIENCE_SECONDS: Final = 5.0  # for the KDC while the kept ticket is valid


@attrs.frozen(kw_only=True)
class TicketTiming:
    """When a ticket of a keytab is renewed: Kafka's keys, times in seconds."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_time: float = 60.0

    def renew_at(self, now: float, expires_at: float, draw: float) -> float:
        """Return when to renew a ticket received at `now`; `draw` is between 0 and 1.

        Not within `min_time`, unless the ticket would expire in it.
        """
        wanted = now + (expires_at - now) * (self.window_factor + self.window_jitter * draw)
        earliest = now + self.min_time
        return wanted if earliest >= expires_at else max(wanted, earliest)

    def retry_at(self, now: float, expires_at: float) -> float:
        """Return when to try again to renew a ticket that the KDC did not renew at `now`."""
        return min(now + self.min_time, expires_at)


class TicketSource:
    """The ticket of one client, for all its connections, and the threads that its GSSAPI calls take turns in.

    One thread is for the calls of connections, and one for renewals: while the KDC is silent, connections go on with
    the kept ticket.
    """

    def __init__(self, login: KerberosLogin, timing: TicketTiming, runtime: Runtime) -> None:
        self.service: Final = login.service
        self._login = login
        self._timing = timing
        self._runtime = runtime
        self._ticket: Ticket | None = None  # of a keytab
        self._expires_at = 0.0
        self._renew_at = 0.0
        self._began = 0.0  # of the last renewal, in the loop's time
        self._renewing: asyncio.Task[Ticket] | None = None
        self._timer: asyncio.TimerHandle | None = None  # of the next renewal
        self._turn = asyncio.Lock()
        self._renewal_turn = asyncio.Lock()

    async def ticket(self) -> Ticket:
        """Return a ticket that has not expired. Raise KerberosError if there is none."""
        kept = self._unexpired()
        if kept is not None and self._runtime.wall_clock() < self._renew_at:
            return kept
        renewing = self._begin_renewal()
        if kept is None:
            # A connection that gives up, because its time is over, must not take the request from the others.
            return await asyncio.shield(renewing)
        patience = max(0.0, self._began + PATIENCE_SECONDS - self._runtime.now())
        await asyncio.wait({renewing}, timeout=min(patience, self._left() - LEAST_SECONDS))
        return self._unexpired() or kept

    def close(self) -> None:
        """Renew no more. A thread that waits for the KDC ends when that has answered, or its time is over."""
        if self._timer is not None:
            self._timer.cancel()
        if self._renewing is not None:
            self._renewing.cancel()

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Run a function that calls GSSAPI in a worker thread, one at a time.

        A KDC that does not answer blocks the thread for half a minute, also if no task waits for it any more. More
        threads would be blocked too, and the loop has few, which it needs to resolve names.
        """
        return await self._in_turn(self._turn, function, *arguments)

    async def _in_turn(self, turn: asyncio.Lock, function: Callable[..., T], *arguments: object) -> T:
        await turn.acquire()
        call = asyncio.ensure_future(self._runtime.offload(function, *arguments))
        call.add_done_callback(functools.partial(_called, turn))
        return await asyncio.shield(call)

    def _begin_renewal(self) -> asyncio.Task[Ticket]:
        """Return the renewal that runs, or begin one."""
        if self._renewing is None:
            self._began = self._runtime.now()
            self._renewing = asyncio.create_task(self._renew(), name="kclient ticket")
            self._renewing.add_done_callback(self._renewed)
        return self._renewing

    def _renew_later(self) -> None:
        """Let the timer renew the ticket when that is due. Without one that is valid, connections ask."""
        if self._timer is not None:
            self._timer.cancel()
        if self._unexpired() is None:
            return
        pause = max(0.0, self._renew_at - self._runtime.wall_clock())
        self._timer = asyncio.get_running_loop().call_later(pause, self._begin_renewal)

    def _left(self) -> float:
        return self._expires_at - self._runtime.wall_clock()

    def _unexpired(self) -> Ticket | None:
        return self._ticket if self._left() >= LEAST_SECONDS else None

    async def _renew(self) -> Ticket:
        left = self._left() if self._unexpired() is not None else 0.0
        try:
            ticket = await self._in_turn(self._renewal_turn, self._login.acquire, left)
        except KerberosError as exc:
            self._note_failure(exc)
            raise
        log.debug("a ticket of %s is valid for %.0f s", ticket.principal, ticket.seconds)
        if self._login.keytab is not None:
            now = self._runtime.wall_clock()
            self._ticket, self._expires_at = ticket, now + ticket.seconds
            self._renew_at = self._timing.renew_at(now, self._expires_at, self._runtime.rng.random())
            self._renew_later()
        return ticket

    def _note_failure(self, error: KerberosError) -> None:
        self._renew_at = self._timing.retry_at(self._runtime.wall_clock(), self._expires_at)
        if self._unexpired() is not None:
            log.warning(
                "the Kerberos ticket cannot be renewed: %s. The old one is valid for %.0f s more",
                error,
                self._left(),
            )
            self._renew_later()

    def _renewed(self, task: asyncio.Task[Ticket]) -> None:
        self._renewing = None
        if not task.cancelled():
            task.exception()  # retrieved, even if no task waits any more


def _called(turn: asyncio.Lock, call: asyncio.Future[Any]) -> None:
    turn.release()
    if not call.cancelled():
        call.exception()  # retrieved, even if no task waits any more


def ticket_source_of(config: Config, runtime: Runtime) -> TicketSource:
    """Return the source of tickets. Raise ConfigError without the package `gssapi` or a keytab that can be used."""
    login = kerberos_login(config.sasl_kerberos_service_name, config.sasl_jaas_config)
    gssapi_package()
    _check(login)
    timing = TicketTiming(
        window_factor=config.sasl_kerberos_ticket_renew_window_factor,
        window_jitter=config.sasl_kerberos_ticket_renew_jitter,
        min_time=config.sasl_kerberos_min_time_before_relogin / 1000,
    )
    return TicketSource(login, timing, runtime)


def _check(login: KerberosLogin) -> None:
    """Raise ConfigError for a keytab that can be seen to be wrong before any connection."""
    if login.keytab is None:
        return
    try:
        check_keytab(login.keytab, login.principal)
    except KerberosError as exc:
        raise ConfigError(f"GSSAPI cannot log in: {exc}.", problems=(str(exc),)) from None
