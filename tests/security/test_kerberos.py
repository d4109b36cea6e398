"""Tickets of a real KDC, and the conversation of GSSAPI with a scripted broker that has a real keytab."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient.errors import AuthenticationError
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.network.sasl import Authenticator, Credentials
from kclient.network.ticket_source import TicketSource, TicketTiming
from kclient.protocol.errors import SASL_AUTHENTICATION_FAILED
from kclient.runtime import Runtime
from kclient.security import Secret
from kclient.security.kerberos import KerberosError, KerberosLogin
from tests.network.support import connect
from tests.scripted_broker import On, ScriptedBroker
from tests.security import kdc as kdc_module
from tests.security.kdc import REALM, SERVICE, Kdc
from tests.security.test_sasl import AUTHENTICATE, handshake, token

kdc_module.require()

HOUR = 3_600.0


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    with Kdc(tmp_path_factory.mktemp("realm")) as kdc:
        kdc.add("alice")
        kdc.add("brief", life="4s")
        yield kdc


@pytest.fixture
def kdc(realm: Kdc, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    realm.use(monkeypatch)
    yield realm
    realm.configure()


def keytab_login(kdc: Kdc, principal: str = "alice") -> KerberosLogin:
    return KerberosLogin(SERVICE, principal=f"{principal}@{REALM}", keytab=str(kdc.keytab(principal)))


def source(login: KerberosLogin, **timing: float) -> TicketSource:
    return TicketSource(login, TicketTiming(**timing), Runtime())


def who(login: KerberosLogin, timeout: float = 5.0) -> Authenticator:
    return Authenticator(Credentials("GSSAPI", "", Secret(""), tickets=source(login)), Runtime(), timeout)


class GssapiBroker:
    """Answers tokens as a broker with this keytab does; `layers` are the security layers that it offers."""

    def __init__(self, keytab: Path, layers: int = 1, offer: bytes | None = None) -> None:
        import gssapi

        accepting = gssapi.Credentials(usage="accept", store={"keytab": f"FILE:{keytab}"})
        self.context = gssapi.SecurityContext(creds=accepting, usage="accept")
        self.offer = bytes([layers, 0, 255, 255]) if offer is None else offer
        self.received: list[bytes] = []

    def __call__(self, request: Any) -> SaslAuthenticateResponse:
        import gssapi

        self.received.append(request.auth_bytes)
        if not self.context.complete:
            try:
                return token(self.context.step(request.auth_bytes))
            except gssapi.exceptions.GSSError as exc:
                return token(exc.token) if exc.token else refusal()
        if request.auth_bytes == b"":
            return token(self.context.wrap(self.offer, False).message)
        return token(session_lifetime_ms=60_000)

    @property
    def chosen(self) -> bytes:
        """What the client said last."""
        return bytes(self.context.unwrap(self.received[-1]).message)


def refusal() -> SaslAuthenticateResponse:
    return token(error_code=SASL_AUTHENTICATION_FAILED, error_message="invalid credentials")


def talk(broker: Callable[[Any], Any], login: KerberosLogin, timeout: float = 5.0) -> None:
    """Authenticate on one connection, as the bootstrap server `localhost`."""

    async def main() -> None:
        steps = [handshake("GSSAPI"), *[On(AUTHENTICATE, broker)] * 3]
        async with ScriptedBroker(*steps) as peer:
            (await connect(peer, authenticate=who(login, timeout))).close()

    asyncio.run(main())


def refused(broker: Callable[[Any], Any], login: KerberosLogin) -> str:
    with pytest.raises(AuthenticationError) as caught:
        talk(broker, login)
    assert caught.value.mechanism == "GSSAPI"
    return caught.value.text


def failure(login: KerberosLogin) -> str:
    with pytest.raises(KerberosError) as caught:
        login.acquire()
    return str(caught.value)


# --- the conversation


@pytest.mark.spec("B.4.12")
def test_broker_and_client_prove_themselves_and_choose_no_layer(kdc: Kdc) -> None:
    broker = GssapiBroker(kdc.keytab(kdc.broker), layers=7)
    talk(broker, keytab_login(kdc))
    assert broker.received[1] == b""
    assert broker.chosen == b"\x01\x00\x00\x00" + f"alice@{REALM}".encode()
    assert str(broker.context.initiator_name) == f"alice@{REALM}"


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("layers", [2, 4, 6])
def test_a_broker_without_qop_auth_is_refused(kdc: Kdc, layers: int) -> None:
    broker = GssapiBroker(kdc.keytab(kdc.broker), layers)
    text = refused(broker, keytab_login(kdc))
    assert "offers no QoP auth, only integrity or confidentiality" in text
    assert len(broker.received) == 2


@pytest.mark.spec("H-21")
@pytest.mark.parametrize("offer", [b"", b"\x01", b"\x01\0\0\0\0"])
def test_an_offer_of_another_size_is_refused(kdc: Kdc, offer: bytes) -> None:
    text = refused(GssapiBroker(kdc.keytab(kdc.broker), offer=offer), keytab_login(kdc))
    assert f"has {len(offer)} bytes, not 4" in text


@pytest.mark.spec("H-21")
@pytest.mark.parametrize("answers", [[b""], [b"`"], [b"x" * 900_000]])
def test_a_peer_that_does_not_know_the_brokers_key_gets_no_further(kdc: Kdc, answers: list[bytes]) -> None:
    received = []

    def impostor(request: Any) -> SaslAuthenticateResponse:
        received.append(request.auth_bytes)
        return token(answers[0])

    text = refused(impostor, keytab_login(kdc))
    assert f"has not proved that it is {SERVICE}/" in text
    assert len(received) == 1


@pytest.mark.spec("H-21")
def test_an_offer_that_the_brokers_key_has_not_wrapped_is_refused(kdc: Kdc) -> None:
    broker = GssapiBroker(kdc.keytab(kdc.broker))

    def altered(request: Any) -> SaslAuthenticateResponse:
        response = broker(request)
        if request.auth_bytes == b"":
            response.auth_bytes = response.auth_bytes[:-1] + b"?"
        return response

    assert "has not proved" in refused(altered, keytab_login(kdc))


@pytest.mark.spec("H-21")
def test_a_broker_says_nothing_after_the_last_token(kdc: Kdc) -> None:
    broker = GssapiBroker(kdc.keytab(kdc.broker))

    def talkative(request: Any) -> SaslAuthenticateResponse:
        response = broker(request)
        return response if response.auth_bytes else token(b"more?")

    assert "another token after the last one" in refused(talkative, keytab_login(kdc))


@pytest.mark.spec("B.4.12")
def test_a_broker_that_refuses_the_ticket_is_named(kdc: Kdc) -> None:
    text = refused(lambda request: refusal(), keytab_login(kdc))
    assert "refused the ticket of GSSAPI: SASL_AUTHENTICATION_FAILED (58)" in text
    assert "clock differs" in text


# --- tickets, and why there is none


@pytest.mark.spec("B.4.12")
def test_a_keytab_gives_a_ticket_and_no_file(kdc: Kdc) -> None:
    ticket = keytab_login(kdc).acquire()
    assert ticket.principal == f"alice@{REALM}"
    assert HOUR - 60 < ticket.seconds <= HOUR
    assert not (kdc.folder / "tickets").exists()
    assert "redentials" not in repr(ticket)


def test_a_keytab_is_named_with_and_without_its_type_and_the_realm(kdc: Kdc) -> None:
    path = kdc.keytab("alice")
    for keytab in (str(path), f"FILE:{path}"):
        assert (
            KerberosLogin(SERVICE, principal="alice", keytab=keytab).acquire().principal == f"alice@{REALM}"
        )


@pytest.mark.spec("B.4.12")
def test_a_cache_gives_the_ticket_that_somebody_else_put_there(kdc: Kdc) -> None:
    cache = f"FILE:{kdc.folder / 'of_alice'}"
    kdc.kinit(kdc.keytab("alice"), "alice", cache=cache)
    assert KerberosLogin(SERVICE, cache=cache).acquire().principal == f"alice@{REALM}"
    assert KerberosLogin(SERVICE, cache=cache, principal="alice").acquire().seconds > HOUR - 60
    assert "is another principal's" in failure(KerberosLogin(SERVICE, cache=cache, principal="brief"))


@pytest.mark.spec("B.4.12")
def test_the_environment_gives_a_cache_or_a_keytab(kdc: Kdc, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no ticket on this machine" in failure(KerberosLogin(SERVICE))
    kdc.kinit(kdc.keytab("alice"), "alice")
    assert KerberosLogin(SERVICE).acquire().principal == f"alice@{REALM}"
    kdc.kdestroy()
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(kdc.keytab("brief")))
    assert KerberosLogin(SERVICE).acquire().principal == f"brief@{REALM}"
    kdc.kdestroy()


@pytest.mark.spec("B.4.12", "I-39")
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read on this machine: No such file or directory"),
        (b"", "it is not a keytab"),
        (b"garbage", "it is not a keytab"),
        (b"\x05\x02", "has no key of alice; it has keys of nothing"),
        (b"\x05\x02\x7f\xff\xff\xff", "has no key of alice"),
    ],
)
def test_a_keytab_that_cannot_be_used(kdc: Kdc, tmp_path: Path, content: bytes | None, why: str) -> None:
    path = tmp_path / "bad.keytab"
    if content is not None:
        path.write_bytes(content)
    login = KerberosLogin(SERVICE, principal="alice", keytab=str(path))
    assert why in failure(login)
    assert "Correct" in failure(login)


@pytest.mark.spec("B.4.12")
def test_a_keytab_without_the_principal_says_whose_keys_it_has(kdc: Kdc) -> None:
    login = KerberosLogin(SERVICE, principal=f"bob@{REALM}", keytab=str(kdc.keytab("alice")))
    assert f"has no key of bob@{REALM}; it has keys of alice@{REALM}" in failure(login)


@pytest.mark.spec("B.4.12")
def test_a_keytab_that_is_older_than_the_password(kdc: Kdc) -> None:
    kdc.add("changed")
    login = keytab_login(kdc, "changed")
    kdc.change_keys("changed")
    assert "write a new one (kadmin: ktadd)" in failure(login)


@pytest.mark.spec("B.4.12")
def test_a_client_that_the_kdc_does_not_know_or_has_locked(kdc: Kdc) -> None:
    kdc.add("gone")
    login = keytab_login(kdc, "gone")
    kdc.delete("gone")
    assert failure(login).startswith("the KDC does not know this client (Client 'gone@")


@pytest.mark.spec("B.4.12")
def test_an_expired_ticket_in_a_cache(kdc: Kdc) -> None:
    cache = f"FILE:{kdc.folder / 'brief'}"
    kdc.kinit(kdc.keytab("brief"), "brief", "-l", "1s", cache=cache)
    time.sleep(2.1)
    text = failure(KerberosLogin(SERVICE, cache=cache))
    assert text.startswith(f"the ticket in the cache {cache} has expired. Run kinit")


@pytest.mark.spec("B.4.12")
def test_a_service_that_the_kdc_does_not_know(kdc: Kdc) -> None:
    login = keytab_login(kdc)
    login.service = "kafak"
    text = refused(lambda request: pytest.fail("nothing may be sent"), login)
    assert "the KDC does not know the broker's principal (Server kafak/" in text
    assert "sasl_kerberos_service_name" in text
    assert "Nothing was sent to the broker" in text


@pytest.mark.spec("B.4.12")
def test_a_kdc_that_is_down(kdc: Kdc) -> None:
    kdc.stop()
    try:
        assert "the KDC cannot be reached" in failure(keytab_login(kdc))
    finally:
        kdc.start()


@pytest.mark.spec("B.4.12")
def test_clocks_that_differ(kdc: Kdc) -> None:
    """kdc_timesync lets a client use the KDC's clock; without it the KDC refuses a client whose clock is wrong."""
    kdc.add("punctual", preauth=True)
    kdc.configure(kdc_timesync="0")
    kdc.stop()
    kdc.start("faketime", "+1 hour")
    try:
        assert failure(keytab_login(kdc, "punctual")).startswith(
            "the clocks differ too much (Clock skew too great"
        )
    finally:
        kdc.stop()
        kdc.start()


@pytest.mark.spec("B.4.12")
def test_a_broken_configuration_of_kerberos(
    kdc: Kdc, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    login = keytab_login(kdc)
    login.principal = "alice"
    gc.collect()  # credentials of other tests: GSSAPI reads the configuration also when it frees them
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    assert "krb5.conf names no default realm" in failure(login)
    (tmp_path / "krb5.conf").write_text("[libdefaults\n")
    assert "krb5.conf cannot be read" in failure(login)
    (tmp_path / "krb5.conf").write_text("[libdefaults]\ndns_lookup_kdc = false\n")
    login.principal = f"alice@{REALM}"
    assert "does not say where the KDC of the realm is" in failure(login)


# --- renewal


@pytest.mark.spec("B.4.12")
def test_connections_that_ask_together_share_one_ticket(kdc: Kdc) -> None:
    async def main() -> None:
        tickets = source(keytab_login(kdc))
        found = await asyncio.gather(*(tickets.ticket() for _ in range(5)))
        assert len({id(each) for each in found}) == 1
        assert await tickets.ticket() is found[0]

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_a_ticket_of_seconds_is_renewed_again_and_again_in_one_cache(kdc: Kdc) -> None:
    async def main() -> None:
        login = keytab_login(kdc, "brief")
        tickets, seen, caches = source(login, window_factor=0.6), list[Any](), set[str]()
        until = time.monotonic() + 8.0
        while time.monotonic() < until:
            ticket = await tickets.ticket()
            assert ticket.credentials.lifetime > 0
            seen += [ticket] if ticket not in seen else []
            caches.add(login._own_cache)
            await asyncio.sleep(0.1)
        assert 3 <= len(seen) <= 6
        assert len(caches) == 1

    asyncio.run(main())


@pytest.mark.spec("B.4.12")
def test_while_the_old_ticket_is_valid_a_kdc_that_is_down_is_a_warning(
    kdc: Kdc, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        tickets = source(keytab_login(kdc, "brief"), window_factor=0.5, window_jitter=0.0)
        ticket = await tickets.ticket()
        kdc.stop()
        try:
            await asyncio.sleep(2.2)
            assert await tickets.ticket() is ticket
            assert await tickets.ticket() is ticket
            await asyncio.sleep(2.0)
            with pytest.raises(KerberosError, match="the KDC cannot be reached"):
                await tickets.ticket()
        finally:
            kdc.start()
        assert (await tickets.ticket()).credentials.lifetime > 0

    with caplog.at_level(logging.WARNING, "kclient"):
        asyncio.run(main())
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith(
        "the Kerberos ticket cannot be renewed: the KDC cannot be reached (Cannot contact"
    )
    assert "The old one is valid for" in warning


@pytest.mark.spec("B.4.12")
def test_a_cache_is_read_again_for_each_authentication(kdc: Kdc) -> None:
    cache = f"FILE:{kdc.folder / 'renewed'}"

    async def main() -> None:
        tickets = source(KerberosLogin(SERVICE, cache=cache))
        with pytest.raises(KerberosError, match="there is no ticket"):
            await tickets.ticket()
        for principal in ("brief", "alice"):
            kdc.kinit(kdc.keytab(principal), principal, cache=cache)
            assert (await tickets.ticket()).principal == f"{principal}@{REALM}"

    asyncio.run(main())
