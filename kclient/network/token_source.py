"""The token of a client: requested from its provider, kept, and renewed before it expires.

    asked for it            no token, or expired     due for renewal               fresh
    provider answers        the new one              the new one                   the kept one, no request
    provider fails          the error                the kept one, and a WARNING   –
    endpoint is down        again, then the error    the kept one, and a WARNING   –
    within the backoff      the last error           the kept one                  –
    provider hangs          until the deadline       the kept one after 5 s        –

A token is due at 80 to 85 % of its lifetime, as Kafka's `sasl.login.refresh.*` keys say. A timer requests the new one
then, and again after each failure while the old one is valid: a broker ends the session of a token with the token
(KIP-368), and an endpoint that is down at that moment must not matter. Once the token has expired, only connections
that authenticate ask. However many ask at the same time, the provider is called once; after a failure, not before
`sasl.login.retry.backoff.ms` have passed, and then twice as long, up to the maximum. Without a valid token, an endpoint
that is down is asked again with these pauses for as long as the maximum says, as Java does, and each failure is logged.

A coroutine that has not returned within `request.timeout.ms` is cancelled, and called again like one that has failed. A
thread cannot be cancelled: the next request waits for the same one.

A token that was issued in the future shows that the clock of this machine is behind: its times are taken relative to
the time of issue. Lifetimes are also measured by the loop's clock, which does not jump.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs

from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.security.oauthbearer import OAuthToken, TokenError, TokenUnavailableError

log: Final = get_logger("kclient.auth")

# A token that expires sooner is as good as expired: no broker grants such a session.
LEAST_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 5.0  # for a provider while the kept token is valid
FUNCTION: Final = "sasl_oauth_token_provider"
COMPARE: Final = (
    "Compare its claims with the broker's sasl.oauthbearer.expected.audience and sasl.oauthbearer.expected.issuer, and "
    "look into the broker's log."
)

TokenProvider: TypeAlias = Callable[[], OAuthToken | str | Awaitable[OAuthToken | str]]
"""Returns a token, or the text of a JSON Web Token. A plain function runs in a thread, a coroutine on the loop."""


@attrs.frozen(kw_only=True)
class RefreshTiming:
    """When a token is renewed: Kafka's keys, in seconds."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period: float = 60.0
    buffer: float = 300.0

    def refresh_at(self, token: OAuthToken, now: float, draw: float) -> float:
        """Return when to renew a token received at `now`; `draw` is between 0 and 1.

        Of its lifetime the window's share, but not in the first `min_period` nor in the last `buffer` seconds. Both
        count only for a token that has room for them.

            8:00 to 9:00     between 8:48 and 8:51
            8:00 to 8:20     at 8:15, for 8:16 is within the last 5 minutes
            8:00 to 8:05     between 8:04:00 and 8:04:15: 60 s and 300 s have no room
        """
        share = self.window_factor + self.window_jitter * draw
        if now + self.min_period + self.buffer > token.expires_at:
            return now + (token.expires_at - now) * share
        began = now if token.issued_at is None else token.issued_at
        wanted = began + (token.expires_at - began) * share
        return max(now + self.min_period, min(wanted, token.expires_at - self.buffer))


class TokenSource:
    """The token of one client, for all its connections.

    `timeout` is in seconds, for one call of the provider. In errors, `name` says where its tokens come from, and
    `advice` what to do if a broker refuses one.
    """

    def __init__(
        self,
        provider: TokenProvider,
        timing: RefreshTiming,
        backoff: Backoff,
        runtime: Runtime,
        timeout: float,
        name: str = FUNCTION,
        advice: str = COMPARE,
    ) -> None:
        self.name = name
        self.advice = advice
        self._provider = provider
        self._timing = timing
        self._backoff = backoff
        self._runtime = runtime
        self._timeout = timeout
        self._token: OAuthToken | None = None
        # All in the loop's time.
        self._expires_at = 0.0
        self._refresh_at = 0.0
        self._retry_at = 0.0
        self._began = 0.0  # of the last request
        self._failure: TokenError | None = None  # of the last request
        self._refreshing: asyncio.Task[OAuthToken] | None = None
        self._timer: asyncio.TimerHandle | None = None  # of the next request without a connection that asks
        self._closed = False
        # A plain function that has not returned yet.
        self._thread: asyncio.Task[tuple[Any, BaseException | None]] | None = None

    async def token(self, deadline: float = math.inf) -> OAuthToken:
        """Return a token that has not expired. Raise TokenError if there is none and the provider fails.

        At the `deadline`, in the loop's time, the caller gives up: it gets the kept token well before.
        """
        now = self._runtime.now()
        is_kept = self._left() >= LEAST_SECONDS
        if is_kept and self._token is not None and now < max(self._refresh_at, self._retry_at):
            return self._token
        refreshing = self._request_under_way()
        if is_kept:
            patience = min(self._began + PATIENCE_SECONDS - now, (deadline - now) / 2)
            await asyncio.wait({refreshing}, timeout=min(patience, self._left() - LEAST_SECONDS))
            # It may have expired, or a broker may have refused it, in the meantime.
            if self._token is not None and self._left() >= LEAST_SECONDS:
                return self._token
        # A connection that gives up, because its time is over, must not take the request from the others.
        return await asyncio.shield(refreshing)

    def discard(self, token: OAuthToken) -> None:
        """Forget a token that a broker has refused: the next authentication asks the provider."""
        if self._token is token:
            self._token = None

    async def close(self, timeout: float) -> None:
        """Cancel a request, and wait for its end. A plain function goes on in its thread, and its token is dropped."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.cancel()
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.wait({self._refreshing}, timeout=timeout)

    def _left(self) -> float:
        """Return the seconds until the token expires, by both clocks; less than 0 without a token."""
        if self._token is None:
            return -math.inf
        # The wall clock goes on while a machine sleeps.
        by_wall_clock = self._token.expires_at - self._runtime.wall_clock()
        return min(by_wall_clock, self._expires_at - self._runtime.now())

    def _request_under_way(self) -> asyncio.Task[OAuthToken]:
        """Return the request that runs, or begin one. Raise the last TokenError within the backoff."""
        if self._refreshing is None:
            if self._failure is not None and self._runtime.now() < self._retry_at:
                raise copy.copy(self._failure) from self._failure.__cause__
            self._refreshing = self._begin_request()
        return self._refreshing

    def _begin_request(self) -> asyncio.Task[OAuthToken]:
        self._began = self._runtime.now()
        request = asyncio.create_task(self._refresh(), name="kclient token")
        request.add_done_callback(self._refreshed)
        return request

    def _renew_at(self, when: float) -> None:
        """Let the timer request a token at `when`, in the loop's time."""
        if self._timer is not None:
            self._timer.cancel()
        if self._closed:  # the provider has caught its cancellation, and returned a token
            return
        pause = max(0.0, when - self._runtime.now())
        self._timer = asyncio.get_running_loop().call_later(pause, self._renew)

    def _renew(self) -> None:
        """Request a token because the kept one is due. Without one, because a broker refused it, connections ask."""
        if self._refreshing is None and self._token is not None:
            self._refreshing = self._begin_request()

    async def _refresh(self) -> OAuthToken:
        try:
            token = await self._request_patiently()
        except TokenError as exc:
            self._note_failure(exc)
            raise
        now = self._received_at(token)
        self._token, self._failure = token, None
        self._backoff.reset()
        refresh_at = self._timing.refresh_at(token, now, self._runtime.rng.random())
        self._expires_at = self._runtime.now() + token.expires_at - now
        self._refresh_at = self._runtime.now() + refresh_at - now
        self._renew_at(self._refresh_at)
        who, scope = token.principal or "?", token.scope or "no scope that it names"
        log.debug("a token of %s for %s is valid for %.0f s", who, scope, token.expires_at - now)
        return token

    def _received_at(self, token: OAuthToken) -> float:
        """Return the time now, in seconds since 1970: not before a token that has come was issued."""
        wall = self._runtime.wall_clock()
        return wall if token.issued_at is None else max(wall, token.issued_at)

    async def _request_patiently(self) -> OAuthToken:
        """Request a token. Without a valid one, ask an endpoint that is down again for as long as the backoff may."""
        until = self._runtime.now() + self._backoff.longest
        while True:
            try:
                return await self._request()
            except TokenUnavailableError as exc:
                pause = self._backoff.next()
                if self._left() >= LEAST_SECONDS or self._runtime.now() + pause >= until:
                    raise
                log.warning("no token yet: %s; the next request follows in %.1f s", exc, pause)
                await asyncio.sleep(pause)

    def _note_failure(self, error: TokenError) -> None:
        self._failure = error
        self._retry_at = self._runtime.now() + self._backoff.next()
        if (left := self._left()) >= LEAST_SECONDS:
            log.warning("the token cannot be renewed: %s; the old one is valid for %.0f s more", error, left)
            self._renew_at(self._retry_at)

    async def _request(self) -> OAuthToken:
        """Call the provider. Its own errors must not pass for errors of the network."""
        try:
            found = await self._call()
            token = OAuthToken.from_jwt(found) if isinstance(found, str) else found
        except TokenError:
            raise
        except ValueError as exc:
            raise TokenError(f"{self.name} returned a token that cannot be used: {exc}") from None
        except (Exception, asyncio.CancelledError, SystemExit) as exc:
            task = asyncio.current_task()
            if isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the loop ends; a provider that was cancelled must not cancel the task that asks
            raise TokenError(
                f"{self.name} failed with {type(exc).__name__}; call it by hand to see why"
            ) from exc
        if not isinstance(token, OAuthToken):
            raise TokenError(
                f"{self.name} must return an OAuthToken or the text of a JSON Web Token, not {type(token).__name__}"
            )
        left = token.expires_at - self._received_at(token)
        if left < LEAST_SECONDS:
            raise TokenError(
                f"{self.name} returned a token that has expired, or the clock of this machine is wrong: it ended "
                f"{max(-left, 0.0):.0f} s ago"
            )
        return token

    async def _call(self) -> Any:
        """Return what the provider returns. Raise TokenError after the timeout, and what the provider raises."""
        try:
            async with asyncio.timeout(self._timeout) as limit:
                if inspect.iscoroutinefunction(self._provider):
                    return await self._provider()
                found = await self._result_of_thread()
                return await found if inspect.isawaitable(found) else found
        except TimeoutError as exc:
            if not limit.expired():
                raise  # the provider's own
            raise TokenError(f"{self.name} has not returned within {self._timeout:g} s") from exc

    async def _result_of_thread(self) -> Any:
        if self._thread is None:
            self._thread = asyncio.ensure_future(self._runtime.offload(_outcome, self._provider))
        thread = self._thread
        # wait() and not await: a request that is over must not take the thread from the next one.
        await asyncio.wait({thread})
        self._thread = None
        found, error = thread.result()
        if error is not None:
            raise error
        return found

    def _refreshed(self, task: asyncio.Task[OAuthToken]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # retrieved, even if no task waits any more


def _outcome(provider: TokenProvider) -> tuple[Any, BaseException | None]:
    """Return what a plain function returns or raises. SystemExit, raised in a task, would end the loop."""
    try:
        return provider(), None
    except BaseException as exc:  # noqa: BLE001 – the task that asks raises it
        return None, exc
