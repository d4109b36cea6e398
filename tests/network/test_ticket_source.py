"""The ticket of a client with a KDC that is slow, silent or down, and without GSSAPI."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from itertools import pairwise

import attrs
import pytest

from kclient.config import load
from kclient.errors import AuthenticationError, ConfigError
from kclient.network import ticket_source
from kclient.network.sasl import Authenticator, Credentials
from kclient.network.ticket_source import TicketSource, TicketTiming, ticket_source_of
from kclient.runtime import Runtime
from kclient.security import Secret
from kclient.security.kerberos import KerberosError, Ticket
from kclient.simulation.world import World
from kclient.simulation.world import run as simulate
from tests.network.support import connect
from tests.realtime import within
from tests.scripted_broker import ScriptedBroker
from tests.security.test_sasl import handshake

HOUR = 3_600.0
GSSAPI = {
    "bootstrap_servers": "localhost:9092",
    "security_protocol": "SASL_SSL",
    "sasl_kerberos_service_name": "kafka",
}


@attrs.define
class Login:
    """A login with a keytab whose KDC says what the test wants; `runtime` has its clock."""

    now: float = HOUR
    silent: threading.Event | None = None
    error: str = ""
    lifetime: float = HOUR
    keytab: str = "app.keytab"
    service: str = "kafka"
    asked: list[float] = attrs.field(factory=list)
    inside: int = 0
    most: int = 0

    def acquire(self, left: float) -> Ticket:
        self.asked.append(left)
        self.inside += 1
        self.most = max(self.most, self.inside)
        if self.silent is not None:
            self.silent.wait(10.0)
        self.inside -= 1
        if self.error:
            raise KerberosError(self.error)
        return Ticket(object(), "alice@REALM", self.lifetime)

    def source(self) -> TicketSource:
        runtime = Runtime(wall_clock=lambda: self.now)
        return TicketSource(self, TicketTiming(), runtime)  # type: ignore[arg-type]


def who(login: Login, timeout: float) -> Authenticator:
    credentials = Credentials("GSSAPI", "", Secret(""), tickets=login.source())
    return Authenticator(credentials, Runtime(), timeout)


@pytest.mark.parametrize(
    ("life", "draw", "renewed"),
    [(HOUR, 0.0, 2_880.0), (HOUR, 1.0, 3_060.0), (70.0, 0.0, 60.0), (50.0, 0.0, 40.0)],
)
def test_a_ticket_is_due_when_kafkas_keys_say(life: float, draw: float, renewed: float) -> None:
    assert TicketTiming().renew_at(100.0, 100.0 + life, draw) == pytest.approx(100.0 + renewed)


def test_after_a_failure_the_kdc_is_left_alone_for_a_while() -> None:
    assert TicketTiming().retry_at(100.0, 1_000.0) == 160.0
    assert TicketTiming().retry_at(100.0, 130.0) == 130.0


@pytest.mark.spec("B.4.12")
def test_a_ticket_is_kept_until_it_is_due_and_connections_share_the_request() -> None:
    async def main() -> None:
        login = Login()
        tickets = login.source()
        found = await asyncio.gather(*(tickets.ticket() for _ in range(5)))
        login.now += 0.79 * HOUR
        assert {id(each) for each in [*found, await tickets.ticket()]} == {id(found[0])}
        login.now += 0.07 * HOUR
        assert await tickets.ticket() is not found[0]
        assert login.asked == [0.0, pytest.approx(0.14 * HOUR)]

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_while_the_old_ticket_is_valid_a_refusal_is_a_warning_and_the_kdc_is_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        login = Login()
        tickets = login.source()
        ticket = await tickets.ticket()
        login.error = "the KDC refuses"
        login.now += 0.9 * HOUR
        assert [await tickets.ticket() for _ in range(3)] == [ticket] * 3
        assert len(login.asked) == 2
        login.now += 61.0
        assert await tickets.ticket() is ticket
        assert len(login.asked) == 3
        login.now += HOUR
        for _ in range(2):
            with pytest.raises(KerberosError, match="the KDC refuses"):
                await tickets.ticket()
        assert login.asked[3:] == [0.0, 0.0]

    with caplog.at_level(logging.WARNING, "kclient"):
        asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == [
        "the Kerberos ticket cannot be renewed: the KDC refuses. The old one is valid for 360 s more",
        "the Kerberos ticket cannot be renewed: the KDC refuses. The old one is valid for 299 s more",
    ]


@pytest.mark.spec("B.4.12", "H-22")
def test_a_kdc_that_is_silent_is_named_when_the_time_of_the_connection_is_over() -> None:
    """At the deadline of the authentication, and at the earlier one of the set-up."""
    go_on = threading.Event()

    async def main() -> None:
        for timeout, setup in ((0.3, 5.0), (5.0, 0.3)):
            async with ScriptedBroker(handshake("GSSAPI")) as peer:
                authenticator = who(Login(silent=go_on), timeout)
                with (
                    within(2.0),
                    pytest.raises(AuthenticationError, match="no Kerberos ticket for GSSAPI in time"),
                ):
                    await connect(peer, timeout=setup, authenticate=authenticator)
        go_on.set()

    asyncio.run(main())


@pytest.mark.spec("B.4.12", "H-22")
def test_only_one_thread_waits_for_a_silent_kdc() -> None:
    login = Login(silent=threading.Event())

    async def main() -> None:
        tickets = login.source()
        waiting = [asyncio.create_task(tickets.run(login.acquire, 0.0)) for _ in range(5)]
        await asyncio.sleep(0.1)
        for task in waiting[:3]:
            task.cancel()
        await asyncio.sleep(0.1)
        assert login.silent is not None
        login.silent.set()
        await asyncio.wait(waiting)
        assert [task.cancelled() for task in waiting] == [True] * 3 + [False] * 2

    asyncio.run(main())
    assert login.most == 1
    assert len(login.asked) == 3


@pytest.mark.spec("B.4.12", "H-22")
def test_a_silent_kdc_does_not_hold_up_a_client_with_a_valid_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_source, "PATIENCE_SECONDS", 0.1)

    async def main() -> None:
        login = Login()
        tickets = login.source()
        ticket = await tickets.ticket()
        login.now += 0.9 * HOUR
        login.silent = threading.Event()
        with within(1.0):
            assert await tickets.ticket() is ticket
            # What follows needs no KDC for a broker whose ticket the client has, and must not wait for the renewal.
            assert await tickets.run(lambda: login.inside) == 1
        login.silent.set()

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_a_ticket_is_renewed_when_it_is_due_though_no_connection_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """On a virtual clock: tickets of an hour, and a KDC that refuses the first two renewals."""
    times: list[float] = []

    async def main(world: World) -> Ticket:
        class VirtualLogin(Login):
            def acquire(self, left: float) -> Ticket:
                times.append(world.loop.time())
                self.error = "the KDC refuses" if len(times) in (2, 3) else ""
                return super().acquire(left)

        tickets = TicketSource(VirtualLogin(), TicketTiming(), world.runtime("client"))  # type: ignore[arg-type]
        first = await tickets.ticket()
        await asyncio.sleep(0.95 * HOUR)
        assert len(times) == 4
        renewed = await tickets.ticket()
        assert renewed is not first
        tickets.close()
        await asyncio.sleep(3 * HOUR)
        return renewed

    simulate(7, main, limit=5 * HOUR)
    assert 0.8 * HOUR <= times[1] <= 0.86 * HOUR
    assert [round(after - before) for before, after in pairwise(times[1:])] == [60, 60]
    assert len(caplog.records) == 2


@pytest.mark.spec("B.4.12")
def test_a_ticket_that_has_expired_is_requested_by_connections_alone() -> None:
    times: list[float] = []

    async def main(world: World) -> None:
        class VirtualLogin(Login):
            def acquire(self, left: float) -> Ticket:
                times.append(world.loop.time())
                self.error = "the KDC refuses" if len(times) > 1 else ""
                return super().acquire(left)

        tickets = TicketSource(VirtualLogin(), TicketTiming(), world.runtime("client"))  # type: ignore[arg-type]
        await tickets.ticket()
        await asyncio.sleep(10 * HOUR)
        assert times[-1] <= HOUR + 1.0
        seen = len(times)
        with pytest.raises(KerberosError):
            await tickets.ticket()
        await asyncio.sleep(HOUR)
        assert len(times) == seen + 1

    simulate(7, main, limit=12 * HOUR)


# --- before any connection


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install 'kclient-kafka\[kerberos\]'"):
        ticket_source_of(load(GSSAPI), Runtime())


def test_a_keytab_that_cannot_be_read_is_reported_by_the_constructor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticket_source, "gssapi_package", object)
    module = "com.sun.security.auth.module.Krb5LoginModule"
    entry = f'{module} required useKeyTab=true keyTab="/nowhere/app.keytab" principal="app";'
    with pytest.raises(
        ConfigError, match=r"the keytab /nowhere/app\.keytab cannot be read on this machine: No such"
    ):
        ticket_source_of(load({**GSSAPI, "sasl_jaas_config": entry}), Runtime())
