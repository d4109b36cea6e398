"""The token of a client: requested from its provider, kept, and renewed before it expires.

    asked for it        no token, or expired     due for renewal               fresh
    provider answers    the new one              the new one                   the kept one, no request
    provider fails      the error                the kept one, and a WARNING   –
    provider hangs      until the deadline       the kept one after 5 s        –

A token is due at 80 to 85 % of its lifetime, as Kafka's `sasl.login.refresh.*` keys say. Connections ask for it when
they authenticate, and a broker ends the session of a token with the token (KIP-368), so a renewal comes in time without
a timer. However many connections ask at the same time, the provider is called once; after a failure, not before
`sasl.login.retry.backoff.ms` have passed, and then twice as long, up to the maximum.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import attrs

from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.security.oauthbearer import OAuthToken

log = get_logger("kclient.auth")

# A token that expires sooner is as good as expired: no broker grants such a session.
LEAST_SECONDS: Final = 2.0
PATIENCE_SECONDS: Final = 5.0  # for a provider while the kept token is valid


TokenProvider: TypeAlias = Callable[[], OAuthToken | str | Awaitable[OAuthToken | str]]
"""Returns a token, or the text of a JSON Web Token. A plain function runs in a thread, a coroutine on the loop."""


class TokenError(ValueError):
    """There is no token. The text is the end of a sentence about the provider, and has no part of a token."""


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
    """The token of one client, for all its connections."""

    def __init__(
        self, provider: TokenProvider, timing: RefreshTiming, backoff: Backoff, runtime: Runtime
    ) -> None:
        self._provider = provider
        self._timing = timing
        self._backoff = backoff
        self._runtime = runtime
        self._token: OAuthToken | None = None
        self._refresh_at = 0.0
        self._refreshing: asyncio.Task[OAuthToken] | None = None

    async def token(self) -> OAuthToken:
        """Return a token that has not expired. Raise TokenError if there is none and the provider fails."""
        kept = self._unexpired()
        if kept is not None and self._runtime.wall_clock() < self._refresh_at:
            return kept
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)
        if kept is None:
            # A connection that gives up, because its time is over, must not take the request from the others.
            return await asyncio.shield(self._refreshing)
        left = kept.expires_at - self._runtime.wall_clock() - LEAST_SECONDS
        await asyncio.wait({self._refreshing}, timeout=min(PATIENCE_SECONDS, left))
        return self._unexpired() or kept

    def discard(self, token: OAuthToken) -> None:
        """Forget a token that a broker has refused: the next authentication asks the provider."""
        if self._token is token:
            self._token = None

    def _unexpired(self) -> OAuthToken | None:
        token = self._token
        return (
            None if token is None or token.expires_at - self._runtime.wall_clock() < LEAST_SECONDS else token
        )

    async def _refresh(self) -> OAuthToken:
        try:
            token = await self._request()
        except TokenError as exc:
            self._note_failure(exc)
            raise
        now = self._runtime.wall_clock()
        self._token = token
        self._backoff.reset()
        self._refresh_at = self._timing.refresh_at(token, now, self._runtime.rng.random())
        log.debug("a token of %s is valid for %.0f s", token.principal or "?", token.expires_at - now)
        return token

    def _note_failure(self, error: TokenError) -> None:
        self._refresh_at = self._runtime.wall_clock() + self._backoff.next()
        if (kept := self._unexpired()) is not None:
            left = kept.expires_at - self._runtime.wall_clock()
            log.warning(
                "the token cannot be renewed: sasl_oauth_token_provider %s; the old one is valid for %.0f s more",
                error,
                left,
            )

    async def _request(self) -> OAuthToken:
        """Call the provider. Its own errors must not pass for errors of the network."""
        try:
            found = await self._call()
            token = OAuthToken.from_jwt(found) if isinstance(found, str) else found
        except ValueError as exc:
            raise TokenError(f"returned a token that cannot be used: {exc}") from None
        except (Exception, asyncio.CancelledError, SystemExit) as exc:
            task = asyncio.current_task()
            if isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # the loop ends; a provider that was cancelled must not cancel the task that asks
            raise TokenError(f"failed with {type(exc).__name__}; call it by hand to see why") from exc
        if not isinstance(token, OAuthToken):
            raise TokenError(
                f"must return an OAuthToken or the text of a JSON Web Token, not {type(token).__name__}"
            )
        if token.expires_at - self._runtime.wall_clock() < LEAST_SECONDS:
            raise TokenError("returned a token that has expired, or the clock of this machine is wrong")
        return token

    async def _call(self) -> Any:
        if inspect.iscoroutinefunction(self._provider):
            return await self._provider()
        found = await self._runtime.offload(self._provider)
        return await found if inspect.isawaitable(found) else found

    def _refreshed(self, task: asyncio.Task[OAuthToken]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.exception()  # retrieved, even if no task waits any more
