"""Bugs of the tokens of OAUTHBEARER and of the sessions that end with them, M-150 to M-160."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

from kclient.network.backoff import Backoff
from kclient.network.sasl import SaslReauthentication
from kclient.network.token_source import RefreshTiming, TokenSource
from kclient.security.oauthbearer import OAuthToken
from tests.simulation.mutants import plans
from tests.simulation.mutants.table import Patch, mutant

FAILING = plans.looking_at(plans.FAILING_TOKENS)
HANGING = plans.looking_at(plans.HANGING_TOKENS)
NONE = plans.looking_at(plans.NO_TOKENS)
EXPIRED = plans.looking_at(plans.EXPIRED_TOKENS)
REFUSED = plans.looking_at(plans.REFUSED_TOKENS)
CALM = plans.looking_at(plans.CALM_TOKENS)


@mutant("M-150", "I-44", look=FAILING)
def not_ahead(patch: Patch) -> None:
    """Renew a token when it has expired."""
    patch.put(RefreshTiming, "refresh_at", lambda self, token, now, draw: token.expires_at)


@mutant("M-151", "I-44", look=FAILING)
def no_timer(patch: Patch) -> None:
    """Renew a token only where a connection asks for it, which may be just before its end."""
    patch.put(TokenSource, "_renew_at", lambda self, when: None)


@mutant("M-152", "I-44", look=FAILING)
def failure_drops_token(patch: Patch) -> None:
    """Forget the valid token when its renewal fails."""

    def note_failure(self: TokenSource, error: Any) -> None:
        self._token = None
        before(self, error)

    before = patch.put(TokenSource, "_note_failure", note_failure)


@mutant("M-153", "I-44", look=HANGING)
def hang_delays_all(patch: Patch) -> None:
    """Wait for a renewal, however long it takes, although the old token is valid."""

    async def token(self: TokenSource, deadline: float = math.inf) -> OAuthToken:
        if self._refreshing is not None:
            return await asyncio.shield(self._refreshing)
        return await before(self, deadline)  # type: ignore[no-any-return]

    before = patch.put(TokenSource, "token", token)


@mutant("M-154", "I-44", look=CALM)
def no_renewal_of_sessions(patch: Patch) -> None:
    """Let the session of a live connection end with the token that it began with."""
    patch.put(SaslReauthentication, "renewing", lambda self: False)


@mutant("M-155", "I-45", look=EXPIRED)
def expired_token_sent(patch: Patch) -> None:
    """Send the kept token, expired or not."""
    patch.put(TokenSource, "_left", lambda self: -math.inf if self._token is None else 60.0)


@mutant("M-156", "I-45", "I-22", look=NONE)
def hangs_with_provider(patch: Patch) -> None:
    """Wait for a function that never returns, instead of calling it again."""

    async def call(self: TokenSource) -> Any:
        self._timeout = math.inf
        return await before(self)

    before = patch.put(TokenSource, "_call", call)


@mutant("M-157", "I-26", look=FAILING)
def no_pause(patch: Patch) -> None:
    """Ask again at once after a failure."""

    def request(self: TokenSource) -> Any:
        self._retry_at, self._backoff = 0.0, Backoff(1, 1, self._runtime.rng)
        return before(self)

    before = patch.put(TokenSource, "_begin_request", request)


@mutant("M-158", "I-26", look=HANGING)
def one_each(patch: Patch) -> None:
    """Call the function for each connection that asks."""

    def under_way(self: TokenSource) -> Any:
        self._refreshing = None
        return before(self)

    before = patch.put(TokenSource, "_request_under_way", under_way)


@mutant("M-159", "I-45", look=REFUSED)
def refused_token_kept(patch: Patch) -> None:
    """Send a token again that brokers have refused, until it expires."""
    patch.put(TokenSource, "discard", lambda self, token: None)


@mutant("M-160", "I-39", look=CALM)
def token_logged(patch: Patch) -> None:
    """Log the token that is renewed."""

    async def request(self: TokenSource) -> Any:
        found = await before(self)
        logging.getLogger("kclient.auth").warning("the new token is %s", found.value)
        return found

    before = patch.put(TokenSource, "_request", request)
