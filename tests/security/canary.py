"""A random secret, and everything that was seen while it was used: nothing of it may show the secret."""

from __future__ import annotations

import base64
import logging
import pickle
import secrets
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import AsyncConsumer, KclientError
from kclient.security import plain_token
from tests.scripted_broker import ScriptedBroker

QUESTIONS = 20


class Canary:
    """A password, perhaps more secrets, and everything that was seen while they were used."""

    def __init__(self) -> None:
        self.password = f"canary{secrets.token_hex(8)}"
        self.more: list[str] = []
        self.seen: list[str] = []

    def see(self, *things: object) -> None:
        for thing in things:
            if isinstance(thing, BaseException):
                self.seen += [str(thing), "".join(traceback.format_exception(thing)), repr(vars(thing))]
                self.seen.append(pickle.dumps(thing).decode("latin-1"))
            self.seen.append(repr(thing))

    def forms(self) -> list[str]:
        token = plain_token("alice", self.password)
        encoded = [base64.b64encode(secret.encode()).decode() for secret in (self.password, *self.more)]
        return [self.password, *self.more, base64.b64encode(token).decode(), *encoded]

    def check(self) -> None:
        everything = "\n".join(self.seen)
        assert [form for form in self.forms() if form in everything] == []
        assert len(everything) > 500  # it was looked for in something


@pytest.fixture
def canary(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[Canary]:
    bird = Canary()
    with caplog.at_level(logging.DEBUG):
        yield bird
    written = capfd.readouterr()
    bird.seen += [written.out, written.err]
    for record in caplog.records:
        bird.seen += [record.getMessage(), repr(vars(record))]
    bird.check()


async def use(canary: Canary, peer: ScriptedBroker, **given: Any) -> KclientError | None:
    """Ask; show what users and their tools see: the error, reprs, metrics, the insides of the objects.

    On a busy machine a password that a thread reads may come later than one question lasts: then we ask again.
    """
    error: KclientError | None = None
    consumer = AsyncConsumer(bootstrap_servers=peer.address, **given)
    for _ in range(QUESTIONS):
        try:
            await consumer.partitions_for("orders", timeout=0.5)
            error = None
        except KclientError as exc:
            canary.see(exc)
            error = exc
        if not peer.script:
            break
    session = consumer._core
    for thing in (consumer, session, session.config, session.cluster, session.cluster._context):
        canary.see(thing, {name: getattr(thing, name, None) for name in getattr(thing, "__dict__", {})})
    canary.see(consumer.metrics())
    await consumer.close(1.0)
    return error
