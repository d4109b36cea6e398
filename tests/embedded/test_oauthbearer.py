"""OAUTHBEARER from the configuration to the records, with the embedded cluster as the judge."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kclient import Consumer, OAuthToken, TopicPartition
from kclient.config import load
from kclient.embedded import EmbeddedCluster, Listener
from kclient.errors import AuthenticationError, AuthorizationError, ConnectError
from tests.security.tokens import jwt

PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    listeners = [Listener("SASL_PLAINTEXT", mechanisms=("OAUTHBEARER", "PLAIN"))]
    with EmbeddedCluster(topics={"orders": 1}, listeners=listeners, users={"bob": "pw"}) as running:
        running.produce("orders", [b"a", b"b", b"c"])
        yield running


def consumer(cluster: EmbeddedCluster, provider: Any, **keys: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=cluster.servers("SASL_PLAINTEXT"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        allow_plaintext_credentials=True,
        sasl_oauth_token_provider=provider,
        auto_offset_reset="earliest",
        **keys,
    )


def refused(cluster: EmbeddedCluster, provider: Any) -> ConnectError:
    with consumer(cluster, provider) as reader, pytest.raises(ConnectError) as caught:
        reader.list_topics(timeout=5.0)
    return caught.value


@pytest.mark.spec("B.1.3", "B.4.12")
def test_a_function_gives_the_token(cluster: EmbeddedCluster) -> None:
    async def provider() -> OAuthToken:
        return OAuthToken.from_jwt(jwt(), {"logicalCluster": "lkc-1"})

    for each in (jwt, provider):
        with consumer(cluster, each) as reader:
            reader.assign([PARTITION])
            assert [record.value for record in reader.poll(5.0)] == [b"a", b"b", b"c"]


@pytest.mark.spec("B.4.12")
def test_the_rights_are_those_of_the_subject(cluster: EmbeddedCluster) -> None:
    cluster.deny("User:alice", "READ", "Topic:orders")
    with consumer(cluster, lambda: jwt(sub="carol")) as reader:
        reader.assign([PARTITION])
        assert len(reader.poll(5.0)) == 3
    with consumer(cluster, jwt) as reader:
        reader.assign([PARTITION])
        with pytest.raises(AuthorizationError):
            reader.poll(5.0)


@pytest.mark.parametrize(
    "token", [jwt(sub=""), jwt() + "c2lnbmF0dXJl", "opaque"], ids=["no subject", "signed", "opaque"]
)
def test_a_refused_token_is_a_typed_error_that_does_not_show_it(cluster: EmbeddedCluster, token: str) -> None:
    error = refused(cluster, lambda: OAuthToken(value=token, expires_at=time.time() + 60))
    assert type(error) is AuthenticationError
    assert "refused the token of OAUTHBEARER" in error.text
    assert "invalid_token" in error.text
    assert token not in str(error)


def test_a_token_that_the_broker_finds_expired(cluster: EmbeddedCluster) -> None:
    error = refused(cluster, lambda: OAuthToken(value=jwt(-1.0), expires_at=time.time() + 60))
    assert "invalid_token" in error.text


def test_a_token_that_is_about_to_expire_is_replaced(cluster: EmbeddedCluster) -> None:
    """A broker renews no session within a second, so one of 0.9 s is of no use."""
    error = refused(cluster, lambda: OAuthToken(value=jwt(0.9), expires_at=time.time() + 60))
    assert "accepted the token of OAUTHBEARER for" in error.text
    assert "the clocks differ" in error.text


def test_a_refused_token_is_not_sent_again_though_the_connection_ends_first(cluster: EmbeddedCluster) -> None:
    """The broker says "invalid_token", and the connection is reset before it could say what follows (RFC 7628)."""
    cluster.cut("SaslAuthenticate", times=None, only_if=lambda request: request.auth_bytes == b"\x01")
    tokens = iter([jwt(sub=""), jwt()])
    with consumer(cluster, lambda: OAuthToken(value=next(tokens), expires_at=time.time() + 60)) as reader:
        with pytest.raises(ConnectError) as caught:
            reader.list_topics(timeout=5.0)
        assert not isinstance(caught.value, AuthenticationError)
        assert "orders" in reader.list_topics(timeout=5.0)


def test_a_provider_that_fails_is_a_typed_error(cluster: EmbeddedCluster) -> None:
    def provider() -> str:
        raise PermissionError("401")

    error = refused(cluster, provider)
    assert type(error) is AuthenticationError
    assert "sasl_oauth_token_provider failed with PermissionError" in error.text


def test_a_provider_that_hangs_ends_with_the_timeout_of_requests(cluster: EmbeddedCluster) -> None:
    began = time.monotonic()
    with (
        consumer(cluster, lambda: time.sleep(1.5) or jwt(), request_timeout_ms=200) as reader,
        pytest.raises(AuthenticationError, match="has not returned in time"),
    ):
        reader.list_topics(timeout=5.0)
    assert time.monotonic() - began < 5


@pytest.mark.spec("B.4.12")
def test_tokens_of_three_seconds_are_renewed_on_the_live_connection(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker ends a session with its token (KIP-368); nothing is lost in three lifetimes."""
    calls = []

    def provider() -> str:
        calls.append(time.monotonic())
        return jwt(3.0)

    with caplog.at_level(logging.DEBUG, "kclient"), consumer(cluster, provider) as reader:
        reader.assign([PARTITION])
        until, found = time.monotonic() + 7.0, 0
        while time.monotonic() < until:
            found += len(reader.poll(0.1))
            cluster.produce("orders", [b"more"])
            time.sleep(0.05)
    messages = [record.getMessage() for record in caplog.records]
    assert found > 3
    assert len(calls) >= 3
    assert [each for each in messages if "ended while" in each or "cannot be renewed" in each] == []
    connected = sum("connected" in each and "disconnected" not in each for each in messages)
    assert sum("authenticated with OAUTHBEARER" in each for each in messages) > connected


def test_no_log_error_or_repr_shows_the_token(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    good, refused_token = jwt(canary="c4n4ry"), jwt(sub="", canary="c4n4ry")
    settings = {
        "bootstrap_servers": cluster.servers("SASL_PLAINTEXT"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "allow_plaintext_credentials": True,
    }
    with caplog.at_level(1, "kclient"), consumer(cluster, lambda: good) as reader:
        reader.assign([PARTITION])
        assert len(reader.poll(5.0)) == 3
        error = refused(cluster, lambda: refused_token)
    token = OAuthToken.from_jwt(good)
    config = load({**settings, "sasl_oauth_token_provider": lambda: token})
    shown = [caplog.text, str(error), repr(error.__dict__), repr(token), repr(config), config.explain()]
    for text in shown:
        assert good not in text
        assert refused_token not in text
