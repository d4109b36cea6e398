"""Tokens from an OAuth 2 server and from files, by Kafka's own keys, with a server on loopback as the judge."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient import OAuthToken
from kclient.config import load
from kclient.network.token_providers import token_source_of
from kclient.runtime import Runtime
from kclient.security.oauthbearer import TokenError, claims_of
from tests.security.authorization_server import (
    ASSERTION_TYPE,
    CLOSED,
    ENDLESS,
    GARBAGE,
    JWT_BEARER,
    Answer,
    AuthorizationServer,
    json_answer,
    opaque,
    redirect,
    refusal,
    trickling,
    unavailable,
)
from tests.security.certificates import Authority
from tests.security.signed_tokens import SigningKey, ec_key, rsa_key

SECRET = "p+a s/s:w%rd"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
URL = "sasl.oauthbearer.token.endpoint.url"


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with AuthorizationServer(clients={"reader": SECRET}, assertion_keys=[rsa_key(), ec_key()]) as running:
        yield running


def fetch(**keys: Any) -> OAuthToken:
    """The token that a client with these keys gets first."""
    config = load(
        {
            "bootstrap.servers": "broker.test:9093",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.retry.backoff.ms": "1",
            "sasl.login.retry.backoff.max.ms": "20",
            **keys,
        }
    )

    async def scenario() -> OAuthToken:
        return await token_source_of(config, Runtime()).token()

    return asyncio.run(asyncio.wait_for(scenario(), 30))


def of_client(server: AuthorizationServer, **keys: Any) -> OAuthToken:
    found = {
        URL: server.token_url,
        "sasl.oauthbearer.client.credentials.client.id": "reader",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    }
    return fetch(**(found | keys))


def refused(server: AuthorizationServer, **keys: Any) -> str:
    with pytest.raises(TokenError) as caught:
        of_client(server, **keys)
    text = str(caught.value)
    assert SECRET not in text
    return text


def signed(path: Path, key: SigningKey, server: AuthorizationServer, **keys: Any) -> dict[str, Any]:
    """Kafka's keys for an assertion that the client signs with the key."""
    path.write_text(key.private_pem())
    return {
        URL: server.token_url,
        "sasl.oauthbearer.assertion.private.key.file": str(path),
        "sasl.oauthbearer.assertion.algorithm": key.algorithm,
        "sasl.oauthbearer.assertion.claim.iss": "reader",
        "sasl.oauthbearer.assertion.claim.sub": "reader",
        "sasl.oauthbearer.assertion.claim.aud": server.token_url,
        **keys,
    }


# --- grants


def test_client_credentials_by_kafkas_keys(server: AuthorizationServer) -> None:
    found = of_client(server, **{"sasl.oauthbearer.scope": "kafka read"})
    assert (found.principal, found.scope) == ("reader", "kafka read")
    assert 55 < found.expires_at - time.time() <= 60
    (request,) = server.token_requests()
    assert request.form == {"grant_type": "client_credentials", "scope": "kafka read"}
    assert request.headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize("is_encoded", ["true", "false"])
def test_id_and_secret_are_encoded_on_demand(server: AuthorizationServer, is_encoded: str) -> None:
    """RFC 6749, 2.3.1 wants both percent-encoded before they are put together; many servers do not."""
    of_client(server, **{"sasl.oauthbearer.header.urlencode": is_encoded})
    header = server.requests[0].headers["authorization"]
    expected = {
        "true": "cmVhZGVyOnAlMkJhK3MlMkZzJTNBdyUyNXJk",
        "false": "cmVhZGVyOnArYSBzL3M6dyVyZA==",
    }
    assert header == f"Basic {expected[is_encoded]}"


def test_client_credentials_by_a_jaas_entry(server: AuthorizationServer) -> None:
    """The settings of a Java client before Kafka 4.1, with what Confluent Cloud wants."""
    jaas = (
        f'{MODULE} required clientId="reader" clientSecret="{SECRET}" scope="kafka" '
        'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'
    )
    handler = f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler"
    found = fetch(
        **{URL: server.token_url, "sasl.jaas.config": jaas, "sasl.login.callback.handler.class": handler}
    )
    assert found.extensions == {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    assert server.requests[0].form["scope"] == "kafka"


def test_client_credentials_by_the_options_of_strimzis_library(server: AuthorizationServer) -> None:
    jaas = (
        f'{MODULE} required oauth.token.endpoint.uri="{server.token_url}" oauth.client.id="reader" '
        f'oauth.client.secret="{SECRET}" oauth.audience="kafka" oauth.username.claim="client";'
    )
    server.claims["client"] = "billing"
    handler = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
    found = fetch(**{"sasl.jaas.config": jaas, "sasl.login.callback.handler.class": handler})
    assert found.principal == "billing"
    assert server.requests[0].form == {"grant_type": "client_credentials", "audience": "kafka"}


@pytest.mark.parametrize("key", [rsa_key(), ec_key()], ids=lambda key: key.algorithm)
def test_a_signed_assertion_in_place_of_the_secret(
    server: AuthorizationServer, tmp_path: Path, key: SigningKey
) -> None:
    """KIP-1258."""
    keys = signed(tmp_path / "key.pem", key, server)
    found = fetch(**keys, **{"sasl.oauthbearer.client.credentials.client.id": "reader"})
    assert found.principal == "reader"
    form = server.requests[0].form
    assert (form["client_assertion_type"], form["client_id"]) == (ASSERTION_TYPE, "reader")
    assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize("key", [rsa_key(), ec_key()], ids=lambda key: key.algorithm)
def test_an_assertion_is_exchanged_for_a_token(
    server: AuthorizationServer, tmp_path: Path, key: SigningKey
) -> None:
    """KIP-1139, RFC 7523, 2.1."""
    keys = {
        "sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever",
        "sasl.oauthbearer.assertion.claim.jti.include": "true",
        "sasl.oauthbearer.scope": "kafka",
    }
    before = int(time.time())
    assert fetch(**signed(tmp_path / "key.pem", key, server, **keys)).principal == "reader"
    form = server.requests[0].form
    assert (form["grant_type"], form["scope"]) == (JWT_BEARER, "kafka")
    claims = claims_of(form["assertion"])
    assert before <= claims["iat"] <= time.time()
    assert (claims["exp"] - claims["iat"], claims["iat"] - claims["nbf"]) == (300, 60)
    assert len(claims["jti"]) == 36


def test_the_claims_of_a_template_go_before_those_of_keys(
    server: AuthorizationServer, tmp_path: Path
) -> None:
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k7"}, "payload": {"sub": "billing", "exp": 1, "extra": [1]}}')
    keys = signed(tmp_path / "key.pem", rsa_key(), server)
    retriever = {"sasl.oauthbearer.jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"}
    found = fetch(**keys, **retriever, **{"sasl.oauthbearer.assertion.template.file": str(template)})
    claims = claims_of(server.requests[0].form["assertion"])
    assert (found.principal, claims["iss"], claims["extra"]) == ("billing", "reader", [1])
    assert claims["exp"] > time.time()


@pytest.mark.parametrize(("secret", "says"), [("gone", "failed with OSError"), ("\udcffhunter2", "not text")])
def test_a_secret_that_cannot_be_sent_is_no_fault_of_the_token(
    secret: str, says: str, server: AuthorizationServer
) -> None:
    """Its file may go while the client runs; the configuration is checked before."""
    read = []

    def provider() -> str:
        read.append(1)
        if secret == "gone" and len(read) > 1:
            raise OSError
        return secret

    text = refused(server, **{"sasl.oauthbearer.client.credentials.client.secret": provider})
    assert says in text
    assert "token that cannot be used" not in text
    assert "udcff" not in text
    assert "hunter2" not in text


def test_a_passphrase_that_has_gone_is_not_called_wrong(server: AuthorizationServer, tmp_path: Path) -> None:
    keys = signed(tmp_path / "key.pem", rsa_key(), server)
    (tmp_path / "key.pem").write_text(rsa_key().private_pem("pa55"))
    read = []

    def provider() -> str:
        read.append(1)
        if len(read) > 1:
            raise OSError
        return "pa55"

    with pytest.raises(TokenError, match="passphrase is provided by a function, which failed with OSError"):
        fetch(**keys, **{"sasl.oauthbearer.assertion.private.key.passphrase": provider})


def test_a_ready_assertion_and_an_encrypted_key(server: AuthorizationServer, tmp_path: Path) -> None:
    ready, key = tmp_path / "assertion", tmp_path / "key.pem"
    ready.write_text(server.sign({"sub": "reader", "aud": server.token_url}) + "\n")
    assert fetch(**{URL: server.token_url, "sasl.oauthbearer.assertion.file": str(ready)}).principal
    keys = signed(key, rsa_key(), server)
    key.write_text(rsa_key().private_pem("pa55"))
    assert fetch(**keys, **{"sasl.oauthbearer.assertion.private.key.passphrase": "pa55"}).principal
    with pytest.raises(TokenError, match="needs sasl_oauthbearer_assertion_private_key_passphrase"):
        fetch(**keys)
    with pytest.raises(TokenError, match="passphrase is wrong") as caught:
        fetch(**keys, **{"sasl.oauthbearer.assertion.private.key.passphrase": "hunter2"})
    assert "hunter2" not in str(caught.value)
    key.write_text(ec_key().private_pem())
    with pytest.raises(TokenError, match="is not an RSA key"):
        fetch(**keys)
    key.unlink()
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        fetch(**keys)


def test_a_file_that_another_program_renews(server: AuthorizationServer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(server.sign({"sub": "system:serviceaccount:a:b", "scp": ["kafka", "read"]}) + "\n")
    keys = {URL: path.as_uri(), "sasl.oauthbearer.scope.claim.name": "scp"}
    found = fetch(**keys)
    assert (found.principal, found.scope) == ("system:serviceaccount:a:b", "kafka read")
    path.write_text(server.sign({"sub": "system:serviceaccount:a:b"}, lifetime=-60))
    with pytest.raises(TokenError, match=r"has expired, or the clock .* it ended (59|60|61) s ago"):
        fetch(**keys)
    path.write_text("secret")
    with pytest.raises(TokenError, match="does not hold a token") as caught:
        fetch(**keys)
    assert "secret" not in str(caught.value)
    path.unlink()
    with pytest.raises(TokenError, match="cannot be read: No such file"):
        fetch(**keys)


def test_unsecured_tokens_by_a_jaas_entry() -> None:
    """Kafka's default without a callback handler: what its own tests and quick starts have."""
    jaas = (
        f'{MODULE} required unsecuredLoginStringClaim_sub="alice" unsecuredLoginListClaim_scope="|a|b" '
        'unsecuredLoginLifetimeSeconds="120" unsecuredLoginNumberClaim_level="7" unsecuredLoginExtension_trace="1";'
    )
    found = fetch(**{"sasl.jaas.config": jaas})
    assert (found.principal, found.scope, found.extensions) == ("alice", "a b", {"trace": "1"})
    assert 115 < found.expires_at - time.time() <= 120
    assert claims_of(found.value)["level"] == 7


# --- answers


def test_a_token_that_is_not_a_jwt_ends_when_the_answer_says(server: AuthorizationServer) -> None:
    for seconds in (90, "90"):
        server.answer_with(opaque("o.p/q~1", seconds), times=1)
        found = of_client(server)
        assert found.value == "o.p/q~1"
        assert 85 < found.expires_at - time.time() <= 90
    for wrong in (None, "soon", -1, 1e300):
        server.answer_with(opaque("secret-1", wrong), times=1)  # type: ignore[arg-type]
        assert "cannot be used" in refused(server)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            refusal(401, "invalid_client", "no such\x1bclient"),
            r"401 (invalid_client: no such\x1bclient). Client id",
        ),
        (
            refusal(400, "invalid_scope"),
            "400 (invalid_scope). It does not accept the request: look at the scope",
        ),
        (refusal(403, "access_denied"), "403 (access_denied). The client is known, and may not"),
        (Answer(404), "404. Look at sasl_oauthbearer_token_endpoint_url"),
        (Answer(418), "418. Look into its log"),
        (refusal(400, "x" * 5_000), "xxx… (5,000 characters)"),
        (refusal(401, "invalid_client", SECRET), "401 (invalid_client: ***)"),
        (refusal(401, "cCthIHMvczp3JXJk"), "401 ((not shown, for it repeats the secret))"),
        (redirect("http://127.0.0.1:1/"), "302, which sends elsewhere"),
        (GARBAGE, "200 without an access_token"),
        (json_answer([1]), "without an access_token"),
        (json_answer({"access_token": 7}), "without an access_token"),
        (json_answer({"access_token": "se cret"}), "cannot be used"),
        (ENDLESS, "answered more than 1 MiB"),
    ],
)
def test_what_an_endpoint_refuses_is_an_error_that_says_why(
    server: AuthorizationServer, answer: Answer, text: str
) -> None:
    server.answer_with(answer)
    found = refused(server)
    assert found.startswith(f"the token endpoint {server.token_url} ")
    assert text in found
    assert len(server.token_requests()) == 1
    assert len(found) < 1_000


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (unavailable(503), "HTTP 503. It is busy or out of order"),
        (unavailable(429), "HTTP 429. It is busy"),
        (CLOSED, "does not answer: "),
    ],
)
def test_an_endpoint_that_is_down_is_asked_again_and_each_failure_is_logged(
    server: AuthorizationServer, caplog: pytest.LogCaptureFixture, answer: Answer, text: str
) -> None:
    server.answer_with(answer, times=2)
    with caplog.at_level(logging.WARNING, "kclient.auth"):
        found = of_client(server, **{"sasl.login.retry.backoff.max.ms": "20000"})
    assert found.principal == "reader"
    assert len(server.token_requests()) == 3
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 2
    assert all(text in line and "the next request follows" in line for line in lines)
    server.answer_with(answer)
    assert text in refused(server)


def test_an_endpoint_that_is_slow_or_absent_costs_its_time_and_no_more(server: AuthorizationServer) -> None:
    bounds = {"sasl.login.connect.timeout.ms": "200", "sasl.login.read.timeout.ms": "200"}
    server.answer_with(trickling())
    began = time.monotonic()
    assert "took longer than 0.4 s" in refused(server, **bounds)
    assert time.monotonic() - began < 5
    with AuthorizationServer() as other:
        gone = other.token_url
    assert "does not answer: Connection refused" in refused(server, **{URL: gone})
    assert "does not answer: " in refused(server, **{URL: "https://nowhere.invalid/token"})


def test_a_proxy_of_the_environment_is_used_but_not_for_loopback(
    server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is sent to loopback without TLS must not leave the machine by way of a proxy."""
    far = {URL: "http://login.invalid/token", "allow.plaintext.credentials": "true"}
    with AuthorizationServer(clients={"reader": SECRET}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "")
        of_client(server, **far)
        assert (len(proxy.requests), len(server.requests)) == (1, 0)
        of_client(server)
        of_client(server, **{URL: server.token_url.replace("127.0.0.1", "localhost")})
        assert (len(proxy.requests), len(server.requests)) == (1, 2)
        monkeypatch.setenv("no_proxy", "login.invalid")
        assert "does not answer" in refused(server, **far)
        assert len(proxy.requests) == 1


# --- TLS


@pytest.fixture
def authority() -> Authority:
    return Authority("Login Authority")


@pytest.fixture
def over_tls(authority: Authority, tmp_path: Path) -> Iterator[AuthorizationServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("localhost").write_pem(tmp_path / "server.pem"))
    with AuthorizationServer(clients={"reader": SECRET}, tls=context, host="localhost") as running:
        yield running


def test_the_endpoints_certificate_is_verified(
    over_tls: AuthorizationServer, authority: Authority, tmp_path: Path
) -> None:
    text = refused(over_tls)
    assert "is not trusted: " in text
    assert "ssl_truststore_location" in text
    assert over_tls.requests == []
    ca = str(authority.write_pem(tmp_path / "ca.pem"))
    trusting = {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    assert of_client(over_tls, **trusting).principal == "reader"
    # Host names are checked, although those of the brokers are not.
    elsewhere = over_tls.token_url.replace("localhost", "127.0.0.1")
    loose = {"ssl.endpoint.identification.algorithm": "", "tls_insecure_skip_verify": True}
    assert "is not trusted: " in refused(over_tls, **trusting, **loose, **{URL: elsewhere})


def test_authorities_of_a_context_and_of_a_jaas_entry_count(
    over_tls: AuthorizationServer, authority: Authority, tmp_path: Path
) -> None:
    ca = str(authority.write_pem(tmp_path / "ca.pem"))
    context = ssl.create_default_context(cafile=ca)
    assert of_client(over_tls, ssl_context=context).principal == "reader"
    jaas = f'{MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="{ca}";'
    assert of_client(over_tls, **{"sasl.jaas.config": jaas}).principal == "reader"
    other = str(Authority("Another").write_pem(tmp_path / "other.pem"))
    jaas = f'{MODULE} required ssl.truststore.type="PEM" ssl.truststore.location="{other}";'
    trusting = {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    assert "is not trusted" in refused(over_tls, **trusting, **{"sasl.jaas.config": jaas})


def test_nothing_of_the_request_is_in_a_repr(server: AuthorizationServer) -> None:
    config = load(
        {
            "bootstrap.servers": "broker.test:9093",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            URL: server.token_url,
            "sasl.oauthbearer.client.credentials.client.id": "reader",
            "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        }
    )
    source = token_source_of(config, Runtime())
    provider = source._provider
    assert SECRET not in repr(config) + config.explain() + repr(provider)
    assert SECRET not in json.dumps(repr(provider.grant.request()))  # type: ignore[union-attr]
