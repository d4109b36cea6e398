"""Tokens of OAUTHBEARER: a valid one never leads to an outage, an expired one is not sent and never leads to a hang."""

from __future__ import annotations

import asyncio
import logging
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from kclient.errors import AuthenticationError
from kclient.network.broker import REFUSED_SECONDS
from kclient.protocol.message import Message
from kclient.security.oauthbearer import claims_of, read_bearer_message
from kclient.simulation.process import current_name
from kclient.simulation.world import EPOCH
from tests.simulation.application import Member
from tests.simulation.invariants.conduct import WINDOW_SECONDS, Windows
from tests.simulation.invariants.windows import lasts, others_than, stopped
from tests.simulation.issuer import BEARER, TOKEN_BACKOFF_MAX_MS, Grant
from tests.simulation.watch import Invariant

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

OF_ISSUER: Final = ("fail_tokens", "hang_tokens", "slow_tokens")
OF_TOKENS: Final = (*OF_ISSUER, "revoke_tokens")
SLACK: Final = 1.0
LEAST_SECONDS: Final = 2.0  # a token that ends sooner counts as expired
PATIENCE_SECONDS: Final = 5.0  # that a connection waits for a renewal while the old token is valid
REQUESTS_IN_WINDOW: Final = 40  # pauses grow from 0.1 s to 1 s; and some for tokens that brokers refused


def token_of(request: Any) -> str:
    """The token of a SaslAuthenticate request; empty for the last step after a refusal."""
    return read_bearer_message(request.auth_bytes).token if len(request.auth_bytes) > 1 else ""


class OfTokens(Invariant):
    """What the invariants of tokens have in common."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.applies = stage.scenario.sasl == BEARER
        self.request_seconds = stage.scenario.request_timeout_ms / 1000

    def is_itself(self, member: Member, since: float) -> bool:
        """Whether the application's host ran, and its wall clock was right, at all times since then."""
        since = max(0.0, since)
        wrong = any(
            fault.kind == "skew_clock" and fault.target == member.name and fault.start <= self.stage.now
            for fault in self.stage.plan.faults
        )
        return not wrong and not stopped(self.stage, member.name, since)

    def issuer_was_well(self, since: float, until: float) -> bool:
        """Whether requests for a token were answered at once in that time; one that hangs is given up by and by."""
        tail = self.request_seconds + TOKEN_BACKOFF_MAX_MS / 1000 + SLACK
        return not any(
            fault.kind in OF_ISSUER
            and fault.start <= until
            and fault.start + lasts(fault) + fault.amount + tail >= since
            for fault in self.stage.plan.faults
        )

    def only_tokens_fail(self, member: Member, since: float) -> bool:
        """Whether nothing else went wrong since then."""
        others = others_than(self.stage, OF_TOKENS)
        return self.is_itself(member, since) and not any(
            fault.start + lasts(fault) + self.request_seconds >= since and fault.start <= self.stage.now
            for fault in others
        )


class ValidToken(OfTokens):
    """A valid token never leads to an outage: it is sent while a renewal fails, and it is renewed before it expires."""

    id = "I-44"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.seen: set[Grant] = set()

    def token_awaited(self, member: Member, began: float, error: BaseException | None) -> None:
        newest, now = self.stage.issuer.newest(member), self.stage.now
        if newest is None or newest.received_at > began or not self.is_itself(member, began):
            return
        if newest.expires_at - now < LEAST_SECONDS + SLACK:
            return
        left = f"and has one that is valid for {newest.expires_at - now:.1f} s"
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self.broken(f"{member} got no token, {left}: {error}")
        elif now - began > PATIENCE_SECONDS + SLACK:
            self.broken(f"{member} waited {now - began:.1f} s for a token, {left}")

    def poll_ended(self, member: Member, count: int) -> None:
        newest = self.stage.issuer.newest(member) if self.applies else None
        if newest is None or newest in self.seen or member.stopping:
            return
        if self.stage.now < newest.due_at + SLACK:
            return
        self.seen.add(newest)
        if self.issuer_was_well(newest.due_at, newest.due_at + SLACK) and self.is_itself(
            member, newest.due_at
        ):
            self.broken(f"{member} has not renewed its token, which was due at {newest.due_at:.1f} s")

    def logged(self, member: Member, record: logging.LogRecord) -> None:
        if not self.applies or not isinstance(record.args, tuple) or record.args[:1] != ("disconnected",):
            return
        newest, since = self.stage.issuer.newest(member), self.stage.now - WINDOW_SECONDS
        if newest is None or newest.expires_at - self.stage.now < LEAST_SECONDS:
            return
        if self.only_tokens_fail(member, since) and self._always_had_one(member, since):
            self.broken(f"{member} lost a connection, and had a valid token: {record.getMessage()}")

    def _always_had_one(self, member: Member, since: float) -> bool:
        """Whether each token came before the one before it expired, and none was revoked."""
        issuer = self.stage.issuer
        return issuer.validator.valid_since < since and not any(
            before.expires_at >= since and before.expires_at - after.received_at < LEAST_SECONDS
            for before, after in pairwise(issuer.grants[str(member)])
        )


class ExpiredToken(OfTokens):
    """An expired token is not sent, and without a token the application gets an error and no silence."""

    id = "I-45"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.told_at: dict[str, float] = {}  # by incarnation
        self.most_silent = 3 * self.request_seconds + REFUSED_SECONDS + SLACK
        self.refused: set[str] = set()  # tokens that a client knows to be refused

    def began(self, member: Member) -> None:
        self.told_at[str(member)] = self.stage.now

    def asking(self, request: Message) -> None:
        if request.NAME != "SaslAuthenticateRequest" or not self.applies:
            return
        member, token = self.stage.members[current_name()], token_of(request)
        if token in self.refused:
            self.broken(f"{member} sends a token again that was refused")
        if token and self.is_itself(member, self.stage.now):
            ago = EPOCH + self.stage.now - claims_of(token)["exp"]
            if ago >= 0:
                self.broken(f"{member} sends a token that expired {ago:.1f} s ago")

    def exchanged(self, request: Message, response: Any) -> None:
        if request.NAME == "SaslAuthenticateRequest" and self.applies and response.auth_bytes:
            self.refused.add(token_of(request))

    def token_awaited(self, member: Member, began: float, error: BaseException | None) -> None:
        seconds = self.stage.now - began
        if seconds > self.request_seconds + SLACK and self.is_itself(member, began):
            self.broken(f"{member} waited {seconds:.1f} s for a token, of {self.request_seconds:g}")

    def raised(self, member: Member, call: str, error: BaseException) -> None:
        if isinstance(error, AuthenticationError):
            self.told_at[str(member)] = self.stage.now

    def poll_ended(self, member: Member, count: int) -> None:
        if not self.applies or count:
            return
        grants = self.stage.issuer.grants[str(member)]
        since = max(self.told_at[str(member)], grants[-1].expires_at if grants else 0.0)
        silent = self.stage.now - since
        if silent > self.most_silent and self.only_tokens_fail(member, since):
            self.broken(f"{member} has had no token for {silent:.1f} s, and its polls do not say so")
            self.told_at[str(member)] = self.stage.now


class PacedTokenRequests(Invariant):
    """An application's function is called once for all its connections, and after a failure not before a pause."""

    id = "I-26"

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.windows = Windows()
        self.running: set[str] = set()

    def token_requested(self, member: Member) -> None:
        name = str(member)
        if name in self.running:
            self.broken(f"{member} asks for a token while it waits for one")
        self.running.add(name)
        count = self.windows.add(name, self.stage.now)
        if count == REQUESTS_IN_WINDOW + 1:
            self.broken(f"{member} asked {count} times for a token in {WINDOW_SECONDS:g} s")

    def token_request_ended(self, member: Member) -> None:
        self.running.discard(str(member))


ALL = [ValidToken, ExpiredToken, PacedTokenRequests]
