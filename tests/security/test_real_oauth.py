"""Signed tokens with a real Kafka 4.3.1 that checks them by a JWKS: which it accepts, and what it says of the others.

Kafka answers every token that it refuses with {"status":"invalid_token"}; its log has the reason.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
import urllib.request
from base64 import b64encode
from typing import Any

import pytest

from kclient import Consumer, OAuthToken
from kclient.errors import AuthenticationError, ConnectError, PortClosedError
from tests.realtime import within
from tests.security.authorization_server import AuthorizationServer
from tests.security.conftest import RECORDS, TOPIC
from tests.security.oauth_kafka import CLIENT, SECRET, OAuthKafka
from tests.security.signed_tokens import rsa_key
from tests.security.token_cases import ACCEPTED, REFUSED, Case, later, signed_by, with_claims

pytestmark = pytest.mark.kafka

ALL = list(range(RECORDS))


def consumer(oauth: OAuthKafka, token: Any, **keys: Any) -> Consumer:
    """A consumer with this token, whatever its claims are, or with those of a function."""
    provider = token if callable(token) else lambda: OAuthToken(value=token, expires_at=time.time() + 60)
    group = {"group.id": f"oauth-{secrets.token_hex(4)}", "auto.offset.reset": "earliest"}
    return Consumer(TOPIC, config={**oauth.connection, **group}, sasl_oauth_token_provider=provider, **keys)


def numbers(reader: Consumer) -> list[int]:
    """Read through the group, over both connections that it takes."""
    found: list[int] = []
    deadline = time.monotonic() + 20
    with reader:
        while len(found) < RECORDS and time.monotonic() < deadline:
            found += [int(record.value) for record in reader.poll(timeout=0.5)]
        reader.commit()
    return sorted(found)


def failure(reader: Consumer) -> ConnectError:
    """What the first poll raises, soon."""
    with within(2.5), reader, pytest.raises(ConnectError) as caught:
        reader.poll(timeout=5.0)
    return caught.value


def log_of(oauth: OAuthKafka) -> str:
    return oauth.kafka.log_tail(1, size=1 << 30)


def token_of(server: AuthorizationServer) -> OAuthToken:
    """A user's own function for the grant client_credentials."""
    login = b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
    request = urllib.request.Request(
        server.token_url, b"grant_type=client_credentials", {"Authorization": f"Basic {login}"}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        found = json.load(response)
    return OAuthToken.from_jwt(found["access_token"])


@pytest.mark.spec("B.1.3", "B.4.12")
@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.name)
def test_a_token_that_kafka_accepts(oauth_kafka: OAuthKafka, case: Case) -> None:
    assert numbers(consumer(oauth_kafka, case.sign(oauth_kafka.server))) == ALL


@pytest.mark.spec("B.4.12")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_a_token_that_kafka_refuses(oauth_kafka: OAuthKafka, case: Case) -> None:
    before = len(log_of(oauth_kafka))
    token = case.sign(oauth_kafka.server)
    error = failure(consumer(oauth_kafka, token))
    assert type(error) is AuthenticationError
    assert (error.mechanism, error.stage) == ("OAUTHBEARER", "sasl")
    assert 'SASL_AUTHENTICATION_FAILED (58): "{"status":"invalid_token"}"' in error.text
    assert token not in error.text
    assert case.kafka in log_of(oauth_kafka)[before:], log_of(oauth_kafka)[before:]


@pytest.mark.spec("B.4.12")
def test_without_an_expected_audience_a_token_must_have_none(oauth_kafka: OAuthKafka) -> None:
    server, address = oauth_kafka.server, {"bootstrap_servers": oauth_kafka.at("OPEN")}
    assert numbers(consumer(oauth_kafka, with_claims(aud=None, iss=None)(server), **address)) == ALL
    refused = failure(consumer(oauth_kafka, with_claims()(server), **address))
    assert "invalid_token" in refused.text


@pytest.mark.spec("B.4.12")
def test_a_token_that_expired_within_the_skew(oauth_kafka: OAuthKafka) -> None:
    """Kafka accepts it for no time at all, and closes the connection with the next request."""
    token = later(-0.5, iat=-60, nbf=-60)(oauth_kafka.server)
    with consumer(oauth_kafka, token) as reader, pytest.raises(PortClosedError):
        reader.poll(timeout=5.0)


@pytest.mark.spec("B.4.12")
def test_a_key_that_the_server_has_added(oauth_kafka: OAuthKafka) -> None:
    """The first token with an unknown key id is refused; Kafka then reads the JWKS again."""
    server, key = oauth_kafka.server, rsa_key(f"added-{secrets.token_hex(4)}")
    server.keys.append(key)
    token = signed_by(key)(server)
    assert "invalid_token" in failure(consumer(oauth_kafka, token)).text
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            assert numbers(consumer(oauth_kafka, token)) == ALL
            return
        except AuthenticationError:
            time.sleep(0.2)
    pytest.fail("Kafka did not read the JWKS again")


@pytest.mark.spec("B.4.12")
def test_tokens_of_four_seconds_without_a_failed_poll(
    oauth_kafka: OAuthKafka, caplog: pytest.LogCaptureFixture
) -> None:
    read_for(oauth_kafka, caplog, seconds=14, lifetime=4)


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.spec("B.4.12")
def test_tokens_of_a_minute_for_four_minutes_without_a_failed_poll(
    oauth_kafka: OAuthKafka, caplog: pytest.LogCaptureFixture
) -> None:
    read_for(oauth_kafka, caplog, seconds=240, lifetime=60)


def read_for(oauth: OAuthKafka, caplog: pytest.LogCaptureFixture, *, seconds: float, lifetime: float) -> None:
    """Poll and commit over several lifetimes: each record once, no warning, and sessions that are renewed."""
    server = oauth.server
    server.lifetime, before = lifetime, len(server.token_requests())
    found: list[int] = []
    try:
        with (
            caplog.at_level(logging.INFO, "kclient"),
            consumer(oauth, lambda: token_of(server)) as reader,
        ):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                found += [int(record.value) for record in reader.poll(timeout=0.1)]
                reader.commit()
    finally:
        server.lifetime = 60.0
    requests = len(server.token_requests()) - before
    messages = [record.getMessage() for record in caplog.records if record.name != "kclient.embedded"]
    assert sorted(found) == ALL
    # One token for all connections: the next one after 80 % of its lifetime, which `iat` begins up to a second early.
    assert seconds / lifetime <= requests <= seconds / (0.8 * lifetime - 1) + 1
    assert [each for each in messages if "disconnected" in each or "not connected" in each] == []
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
