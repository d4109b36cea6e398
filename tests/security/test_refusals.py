"""Each way in which a login is refused, as an application meets it: the type, which side refused, what to look at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient import Consumer, OAuthToken
from kclient.embedded import EmbeddedCluster, Listener, OAuthValidator
from kclient.errors import AuthenticationError, ConfigError
from tests.scripted_broker import ScriptedBroker
from tests.security.authorization_server import AuthorizationServer, refusal
from tests.security.kdc import REALM, SERVICE, Kdc, require
from tests.security.test_sasl import handshake

SECRET = "canary-5e02"
ENDPOINT, BROKER, HERE = (
    "the token endpoint http",
    "refused the token of OAUTHBEARER",
    "no token for OAUTHBEARER",
)
NOT_SENT = "Nothing was sent to the broker"
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
CLIENT = "sasl_oauthbearer_client_credentials_client"


@attrs.frozen
class Refusal:
    """What is wrong, and which texts the error must have: the side that refused, the reason, the next step."""

    name: str
    cause: Callable[[AuthorizationServer], dict[str, Any]]
    texts: tuple[str, ...]


def ended(server: AuthorizationServer) -> dict[str, Any]:
    """A token that the broker knows to have expired, of a function that says otherwise."""
    token = OAuthToken(value=server.sign({"sub": "reader"}, lifetime=-60), expires_at=time.time() + 60)
    return {"sasl_oauthbearer_token_endpoint_url": None, "sasl_oauth_token_provider": lambda: token}


def changed(**attributes: Any) -> Callable[[AuthorizationServer], dict[str, Any]]:
    """The authorization server has other attributes."""

    def cause(server: AuthorizationServer) -> dict[str, Any]:
        for name, value in attributes.items():
            setattr(server, name, value)
        return {}

    return cause


def says_401(server: AuthorizationServer) -> dict[str, Any]:
    server.answer_with(refusal(401, "unauthorized", "who are you?"))
    return {}


OF_TOKENS = [
    Refusal(
        "wrong secret",
        lambda server: {f"{CLIENT}_secret": f"{SECRET}x"},
        (HERE, ENDPOINT, "HTTP 401 (invalid_client", "Client id or secret is wrong", NOT_SENT),
    ),
    Refusal(
        "the endpoint says 401", says_401, (HERE, ENDPOINT, "HTTP 401 (unauthorized: who are you?)", NOT_SENT)
    ),
    Refusal(
        "the endpoint is down",
        lambda server: {"sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token"},
        (HERE, ENDPOINT, "does not answer: Connection refused", NOT_SENT),
    ),
    Refusal(
        "expired for the broker",
        ended,
        (BROKER, "invalid_token", "may have expired", "end 6", "broker's log"),
    ),
    Refusal(
        "expired before it came",
        changed(lifetime=-5.0),
        (HERE, "has expired, or the clock of this machine is wrong: it ended", NOT_SENT),
    ),
    Refusal(
        "wrong audience",
        changed(audience="other"),
        (
            *(BROKER, "invalid_token", "another audience", "sasl.oauthbearer.expected.audience"),
            "the token has audience other, issuer https://issuer.test, end in ",
        ),
    ),
    Refusal(
        "the issuer's clock is ahead",
        changed(skew=3_600.0),
        (BROKER, "invalid_token", "not be valid yet by the broker's clock", "beginning in 3,"),
    ),
    Refusal(
        "the issuer's clock is behind",
        changed(skew=-3_600.0),
        (HERE, "the clock of this machine is wrong", NOT_SENT),
    ),
]


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("refusal", OF_TOKENS, ids=lambda refusal: refusal.name)
def test_a_refused_token_names_the_side_and_what_to_look_at(refusal: Refusal) -> None:
    listener = Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))
    with AuthorizationServer(clients={"reader": SECRET}) as server:
        oauth = OAuthValidator(jwks=server.jwks(), expected_audience="kafka", clock_skew_seconds=0)
        with EmbeddedCluster(topics={"orders": 1}, listeners=[listener], oauth=oauth) as cluster:
            given = {
                "bootstrap_servers": cluster.servers("SASL_PLAINTEXT"),
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "allow_plaintext_credentials": True,
                "sasl_login_retry_backoff_max_ms": 100,
                "sasl_oauthbearer_token_endpoint_url": server.token_url,
                f"{CLIENT}_id": "reader",
                f"{CLIENT}_secret": SECRET,
            }
            settings = given | refusal.cause(server)
            if settings["sasl_oauthbearer_token_endpoint_url"] is None:
                settings |= {f"{CLIENT}_id": None, f"{CLIENT}_secret": None}
            shown = judge(settings, refusal.texts)
            assert [token for token in server.signed if token in shown] == []


def judge(settings: dict[str, Any], texts: tuple[str, ...]) -> str:
    """Use a consumer until it is refused. Return all that the error shows."""
    with (
        Consumer("orders", group_id="readers", **settings) as consumer,
        pytest.raises(AuthenticationError) as caught,
    ):
        consumer.poll(10.0)
    error = caught.value
    assert (error.kc_code, error.stage, error.retriable) == ("KC-201", "sasl", False)
    assert [text for text in texts if text not in error.text] == []
    shown = f"{error} {error!r} {vars(error)}"
    assert SECRET not in shown
    return shown


# --- Kerberos


@pytest.fixture
def kdc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kdc]:
    require()
    with Kdc(tmp_path) as running:
        running.use(monkeypatch)
        yield running


def kerberos(keytab: Path, principal: str) -> dict[str, Any]:
    entry = f'{KRB5} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": SERVICE,
        "sasl_jaas_config": entry,
    }


@pytest.mark.spec("B.4.12")
def test_a_keytab_without_the_principal_is_refused_before_any_connection(kdc: Kdc) -> None:
    kdc.add("alice")
    keytab = kdc.keytab("alice")
    with pytest.raises(ConfigError) as caught:
        Consumer(bootstrap_servers="127.0.0.1:1", **kerberos(keytab, "bob"))
    assert f"the keytab {keytab} has no key of bob@{REALM}; it has keys of alice@{REALM}" in str(caught.value)
    assert "Correct principal in sasl_jaas_config" in str(caught.value)


@pytest.mark.spec("B.4.12")
def test_clocks_that_differ_from_the_kdcs_are_named(kdc: Kdc) -> None:
    kdc.add("punctual", preauth=True)
    keytab = kdc.keytab("punctual")
    kdc.configure(kdc_timesync="0")
    kdc.stop()
    kdc.start("faketime", "+1 hour")
    texts = (
        "no Kerberos ticket for GSSAPI",
        "the clocks differ too much",
        "synchronise this machine",
        NOT_SENT,
    )

    async def main() -> None:
        async with ScriptedBroker(handshake("GSSAPI"), topics={"orders": 1}) as peer:
            settings = {"bootstrap_servers": peer.address, **kerberos(keytab, "punctual")}
            await asyncio.to_thread(judge, settings, texts)

    asyncio.run(main())
