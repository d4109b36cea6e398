"""The authorization server of the tests answers as RFC 6749, 7517 and 7523 say, and as a test wants it."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest

from kclient.security.oauthbearer import claims_of
from tests.security.authorization_server import (
    ASSERTION_TYPE,
    CLOSED,
    ENDLESS,
    GARBAGE,
    JWT_BEARER,
    AuthorizationServer,
    opaque,
    redirect,
    refusal,
    trickling,
    unavailable,
)
from tests.security.certificates import Authority
from tests.security.signed_tokens import ec_key, rsa_key

SECRET = "s3cr+t&=:%"


@pytest.fixture
def server() -> Iterator[AuthorizationServer]:
    with AuthorizationServer(clients={"ours": SECRET}, assertion_keys=[ec_key("client")]) as running:
        yield running


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


def post(
    server: AuthorizationServer, headers: dict[str, str] | None = None, **form: str
) -> tuple[int, dict[str, Any]]:
    data = urlencode({"grant_type": "client_credentials", **form}).encode()
    request = urllib.request.Request(server.token_url, data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as exc:
        with exc:
            return exc.code, json.load(exc)


@pytest.mark.parametrize("secret", [SECRET, quote_plus(SECRET)], ids=["raw", "URL-encoded"])
def test_client_credentials(server: AuthorizationServer, secret: str) -> None:
    status, found = post(server, basic("ours", secret), scope="read write")
    claims = server.keys[0].verified(found["access_token"])
    assert (status, found["token_type"], found["expires_in"]) == (200, "Bearer", 60)
    assert (claims["sub"], claims["scope"], claims["aud"]) == ("ours", "read write", "kafka")
    assert claims["exp"] - claims["iat"] == 60
    assert SECRET not in repr(server.requests)


def test_a_wrong_secret_is_refused_as_the_rfc_says(server: AuthorizationServer) -> None:
    status, found = post(server, basic("ours", "wrong"))
    assert (status, found["error"]) == (401, "invalid_client")
    assert post(server, grant_type="password") == (
        400,
        {"error": "unsupported_grant_type", "error_description": "no grant password"},
    )


@pytest.mark.parametrize(
    ("claims", "status"),
    [({}, 200), ({"aud": "other"}, 400), ({"exp": 1}, 400), ({"sub": ""}, 400)],
    ids=["good", "audience", "expired", "subject"],
)
def test_an_assertion(server: AuthorizationServer, claims: dict[str, Any], status: int) -> None:
    good = {"sub": "me", "iss": "me", "aud": server.token_url, "exp": time.time() + 60}
    assertion = ec_key("client").sign({**good, **claims})
    assert post(server, grant_type=JWT_BEARER, assertion=assertion)[0] == status
    strange = rsa_key("stranger").sign(good)
    assert post(server, grant_type=JWT_BEARER, assertion=strange)[1]["error"] == "invalid_grant"
    answer = post(server, None, client_assertion_type=ASSERTION_TYPE, client_assertion=assertion)
    assert answer[0] == (200 if status == 200 else 401)
    assert assertion not in repr(server.requests)


def test_claims_lifetime_and_clock_are_settable(server: AuthorizationServer) -> None:
    server.lifetime, server.skew, server.claims = 5, 1_000, {"nbf": None, "groups": ["a"]}
    claims = claims_of(post(server, basic("ours", SECRET))[1]["access_token"])
    assert claims["exp"] - claims["iat"] == 5
    assert claims["iat"] > time.time() + 900
    assert (claims["groups"], "nbf" in claims) == (["a"], False)


def test_faults(server: AuthorizationServer) -> None:
    server.answer_with(refusal(401, "invalid_client", "locked"), times=2)
    server.answer_with(opaque(), times=1)
    login = basic("ours", SECRET)
    refused = (401, {"error": "invalid_client", "error_description": "locked"})
    assert [post(server, login) for _ in range(2)] == [refused, refused]
    assert post(server, login)[1]["access_token"] == "opaque-token"
    assert post(server, login)[0] == 200
    for fault, error in (
        (GARBAGE, ValueError),
        (CLOSED, OSError),
        (unavailable(429), ValueError),
        (redirect("http://127.0.0.1:1/"), OSError),
    ):
        server.answer_with(fault, times=1)
        with pytest.raises(error):
            post(server, login)
    assert len(server.token_requests()) == 8


def test_answers_without_an_end_and_slow_ones_end_with_the_server() -> None:
    with AuthorizationServer() as server:
        server.answer_with(ENDLESS, times=1)
        with urllib.request.urlopen(server.token_url, b"", timeout=5) as response:
            assert len(response.read(1_000_000)) == 1_000_000
        server.answer_with(trickling(b"x" * 1_000), times=1)
        began = time.monotonic()
        with urllib.request.urlopen(server.token_url, b"", timeout=5) as response:
            assert response.read(2) == b"xx"
    assert time.monotonic() - began < 2


def test_the_jwks_over_tls(tmp_path: Path) -> None:
    authority = Authority()
    tls = authority.issue("127.0.0.1").server_context(tmp_path)
    trust = ssl.create_default_context(cadata=authority.pem)
    with AuthorizationServer(tls=tls) as server:
        with urllib.request.urlopen(server.jwks_url, timeout=5, context=trust) as response:
            keys = json.load(response)["keys"]
        assert [(key["kid"], key["kty"], key["alg"]) for key in keys] == [
            ("rsa-1", "RSA", "RS256"),
            ("ec-1", "EC", "ES256"),
        ]
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(server.jwks_url, timeout=5)
