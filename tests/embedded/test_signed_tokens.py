"""The embedded cluster checks signed tokens by a JWKS, and refuses them as Kafka does."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import Consumer, OAuthToken, TopicPartition
from kclient.embedded import EmbeddedCluster, Listener, OAuthValidator
from kclient.embedded.oauth import TokenRefusedError
from kclient.errors import ArgumentError, AuthenticationError, ConfigError, ConnectError, PortClosedError
from kclient.security.oauthbearer import unsecured_token
from tests.security.authorization_server import AuthorizationServer
from tests.security.signed_tokens import rsa_key
from tests.security.token_cases import ACCEPTED, REFUSED, Case, expected_by, later, signed_by, with_claims
from tests.security.tokens import jwt

PARTITION = TopicPartition("orders", 0)
LISTENER = Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER",))


@pytest.fixture(scope="module")
def server() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as running:
        yield running


@pytest.fixture
def rules(server: AuthorizationServer) -> OAuthValidator:
    return expected_by(server)


@pytest.fixture
def cluster(rules: OAuthValidator) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 1}, listeners=[LISTENER], oauth=rules) as running:
        running.produce("orders", [b"a", b"b", b"c"])
        yield running


def consumer(cluster: EmbeddedCluster, token: Any, **keys: Any) -> Consumer:
    provider = token if callable(token) else lambda: OAuthToken(value=token, expires_at=time.time() + 60)
    return Consumer(
        bootstrap_servers=cluster.servers("SASL_PLAINTEXT"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        allow_plaintext_credentials=True,
        sasl_oauth_token_provider=provider,
        auto_offset_reset="earliest",
        **keys,
    )


def values(cluster: EmbeddedCluster, token: Any) -> list[bytes | None]:
    with consumer(cluster, token) as reader:
        reader.assign([PARTITION])
        return [record.value for record in reader.poll(5.0)]


def refused(cluster: EmbeddedCluster, token: str, **keys: Any) -> ConnectError:
    with consumer(cluster, token, **keys) as reader, pytest.raises(ConnectError) as caught:
        reader.list_topics(timeout=5.0)
    return caught.value


@pytest.mark.parametrize("exp", [float("nan"), float("inf"), 10**400])
def test_a_time_that_no_clock_has_is_refused(exp: float) -> None:
    """Python reads such numbers in JSON; a session of that length would end the connection with an error."""
    with pytest.raises(TokenRefusedError, match="exp is no time"):
        OAuthValidator().validate(unsecured_token({"sub": "alice", "exp": exp}), time.time())


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_a_token_that_kafka_accepts(server: AuthorizationServer, case: Case) -> None:
    accepted = expected_by(server).validate(case.sign(server), time.time())
    assert accepted.principal == "alice"
    assert 59 < accepted.expires_at + 1 - time.time() < 62


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_token_that_kafka_refuses(server: AuthorizationServer, case: Case) -> None:
    with pytest.raises(TokenRefusedError) as caught:
        expected_by(server).validate(case.sign(server), time.time())
    assert case.reason is not None
    assert case.reason in str(caught.value)
    assert caught.value.challenge == '{"status":"invalid_token"}'


def test_a_refusal_is_a_typed_error_and_its_reason_is_in_the_brokers_log(
    server: AuthorizationServer, cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    assert values(cluster, with_claims()(server)) == [b"a", b"b", b"c"]
    token = with_claims(aud="other")(server)
    with caplog.at_level(logging.INFO, "kclient.embedded"):
        error = refused(cluster, token)
    assert type(error) is AuthenticationError
    assert 'SASL_AUTHENTICATION_FAILED (58): "{"status":"invalid_token"}"' in error.text
    assert "refused a token of OAUTHBEARER: the audience is other; expected: kafka" in caplog.text
    assert token not in error.text + caplog.text


@pytest.mark.parametrize("sign", [with_claims(scope="read"), with_claims()], ids=["another", "none"])
def test_a_missing_scope_is_named_in_the_challenge(
    server: AuthorizationServer, cluster: EmbeddedCluster, rules: OAuthValidator, sign: Any
) -> None:
    rules.required_scope = "write kafka"
    assert values(cluster, with_claims(scope="write kafka read")(server)) == [b"a", b"b", b"c"]
    error = refused(cluster, sign(server))
    assert '{"status":"insufficient_scope", "scope":"[write, kafka]"}' in error.text


def test_a_required_scope_of_unsecured_tokens() -> None:
    rules = OAuthValidator(required_scope="kafka")
    assert rules.validate(jwt(scope=["kafka", "more"]), time.time()).principal == "alice"
    with pytest.raises(TokenRefusedError, match="the scope has no kafka"):
        rules.validate(jwt(), time.time())


def test_without_an_expected_audience_a_token_must_have_none(server: AuthorizationServer) -> None:
    rules = OAuthValidator(jwks=server.jwks())
    assert rules.validate(with_claims(aud=None, iss=None)(server), time.time()).principal == "alice"
    with pytest.raises(TokenRefusedError, match="the audience is kafka; expected: none"):
        rules.validate(with_claims()(server), time.time())


def test_other_claims_name_principal_and_scope(server: AuthorizationServer) -> None:
    rules = OAuthValidator(
        jwks=server.jwks(),
        expected_audience="kafka",
        sub_claim_name="azp",
        scope_claim_name="scp",
        required_scope="read",
    )
    token = with_claims(azp="robot", scp="read")(server)
    assert rules.validate(token, time.time()).principal == "robot"


def test_keys_are_rotated_while_the_brokers_run(
    server: AuthorizationServer, cluster: EmbeddedCluster, rules: OAuthValidator
) -> None:
    token = signed_by(rsa_key("next"))(server)
    assert "invalid_token" in refused(cluster, token).text
    rules.jwks = {"keys": [rsa_key("next").jwk()]}
    assert values(cluster, token) == [b"a", b"b", b"c"]


@pytest.mark.spec("B.4.12")
def test_a_token_that_expired_within_the_skew_is_accepted_and_the_connection_ends(
    server: AuthorizationServer,
    cluster: EmbeddedCluster,
    rules: OAuthValidator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As Kafka: the session has no time left, 0 tells the client nothing of it, and the next request closes it."""
    rules.clock_skew_seconds = 60
    token = later(-1, iat=-60, nbf=-60)(server)
    with caplog.at_level(logging.INFO, "kclient"), consumer(cluster, token, group_id="g") as reader:
        reader.subscribe(["orders"])
        with pytest.raises(PortClosedError):
            reader.poll(5.0)
    assert "API 18 came after the session's end" in caplog.text


@pytest.mark.spec("B.4.12")
def test_sessions_end_with_their_signed_tokens(
    server: AuthorizationServer, cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    signed = []

    def provider() -> str:
        signed.append(server.sign({"sub": "alice"}, lifetime=3))
        return signed[-1]

    with caplog.at_level(logging.DEBUG, "kclient"), consumer(cluster, provider) as reader:
        reader.assign([PARTITION])
        until = time.monotonic() + 6.0
        while time.monotonic() < until:
            reader.poll(0.1)
    assert len(signed) >= 3
    assert "after the session's end" not in caplog.text


@pytest.mark.parametrize(
    "jwks",
    [
        {},
        {"keys": []},
        {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]},
        {"keys": [{**rsa_key().jwk(), "use": "enc"}]},
        {"keys": [{"kty": "RSA", "kid": "no numbers"}]},
        {"keys": 5},
    ],
)
def test_a_jwks_without_a_usable_key_is_refused(jwks: Any) -> None:
    with pytest.raises(ArgumentError, match="JWKS"):
        OAuthValidator(jwks=jwks)


def test_without_cryptography_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ec", None)
    with pytest.raises(ConfigError, match=r"pip install 'kclient-kafka\[pkcs12\]'"):
        OAuthValidator(jwks={"keys": [rsa_key().jwk()]})
