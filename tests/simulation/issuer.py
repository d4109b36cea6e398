"""The issuer of a run's tokens for OAUTHBEARER: what applications' functions ask, and whose tokens the brokers accept.

    mood       a request that begins now
    WELL       returns a token after `delay` seconds
    FAILS      raises OSError after them, as a function of the user's may
    BUSY       raises TokenUnavailableError after them, as for HTTP 503
    HANGS      never ends; the issuer does not think of it again

Its clock is right. `revoke()` has the brokers refuse all tokens issued before, as when the keys are replaced.
"""

from __future__ import annotations

import asyncio
import enum
from collections import defaultdict
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Final

import attrs

from kclient.embedded.oauth import AcceptedToken, OAuthValidator, TokenRefusedError
from kclient.security.oauthbearer import OAuthToken, TokenUnavailableError, claims_of, unsecured_token
from kclient.simulation.world import EPOCH
from tests.simulation.grouping import number_of

if TYPE_CHECKING:
    from tests.simulation.application import Member
    from tests.simulation.stage import Stage

BEARER: Final = "OAUTHBEARER"
TOKEN_BACKOFF_MAX_MS: Final = 1_000  # sasl_login_retry_backoff_max_ms of every application
PRINCIPAL: Final = "reader"
USUAL_DELAY: Final = 0.05
FOREVER: Final = 1e6


class Mood(enum.Enum):
    WELL = "well"
    FAILS = "fails"
    BUSY = "busy"
    HANGS = "hangs"


@attrs.frozen
class Grant:
    """A token that an application's function returned. Times in virtual seconds."""

    token: str = attrs.field(repr=False)
    issued_at: float
    received_at: float
    expires_at: float

    @property
    def due_at(self) -> float:
        """When it must be renewed, at the latest: at 85 % of what was left of it."""
        return self.received_at + 0.85 * (self.expires_at - self.received_at)


class RevokingValidator(OAuthValidator):
    """The brokers' rules for tokens."""

    valid_since: float = -1.0  # virtual seconds

    def validate(self, token: str, now: float) -> AcceptedToken:
        """Accept no token that was revoked."""
        accepted = super().validate(token, now)
        if claims_of(token)["iat"] - EPOCH < self.valid_since:
            raise TokenRefusedError("it was revoked")
        return accepted


class Issuer:
    """See the module."""

    def __init__(self, stage: Stage) -> None:
        self.mood = Mood.WELL
        self.delay = USUAL_DELAY
        self.grants: defaultdict[str, list[Grant]] = defaultdict(list)  # by incarnation
        self.validator = RevokingValidator()
        self._stage = stage
        self._rng = Random(f"{stage.world.seed}:issuer")

    def recover(self) -> None:
        """Answer at once again, whatever the fault was."""
        self.mood, self.delay = Mood.WELL, USUAL_DELAY

    def revoke(self) -> None:
        """Have the brokers refuse every token that was issued before now."""
        self.validator.valid_since = self._stage.now

    def newest(self, member: Member) -> Grant | None:
        """The token that the application got last, unless the brokers refuse it."""
        grants = self.grants[str(member)]
        return grants[-1] if grants and grants[-1].issued_at >= self.validator.valid_since else None

    def function_of(self, member: Member) -> Callable[[], Awaitable[OAuthToken]]:
        """A provider for one application: of every second a coroutine function, of the others a plain one."""

        async def ask() -> OAuthToken:
            self._stage.watch.token_requested(member)
            try:
                return await self._grant(member)
            finally:
                if not self._stage.world.loop.ended:
                    self._stage.watch.token_request_ended(member)

        def ask_plainly() -> Awaitable[OAuthToken]:
            return ask()

        return ask if number_of(member.name) % 2 else ask_plainly

    async def _grant(self, member: Member) -> OAuthToken:
        mood = self.mood
        await asyncio.sleep(FOREVER if mood is Mood.HANGS else self.delay)
        if mood is Mood.FAILS:
            raise OSError("the endpoint is out of order")
        if mood is Mood.BUSY:
            raise TokenUnavailableError("the endpoint answered HTTP 503")
        now = self._stage.now
        expires_at = now + self._stage.scenario.token_seconds
        token = unsecured_token(
            {
                "sub": PRINCIPAL,
                "iat": EPOCH + now,
                "exp": EPOCH + expires_at,
                "jti": self._rng.randbytes(9).hex(),
            }
        )
        self.grants[str(member)].append(Grant(token, now, now, expires_at))
        self._stage.secrets.append(token.split(".")[1])
        return OAuthToken.from_jwt(token)
