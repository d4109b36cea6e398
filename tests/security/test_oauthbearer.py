"""OAUTHBEARER byte by byte: the messages of RFC 7628, and JSON Web Tokens."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient import OAuthToken
from kclient.security.oauthbearer import (
    bearer_message,
    claims_of,
    describe_refusal,
    describe_token,
    is_unsecured,
    read_bearer_message,
    unsecured_token,
)

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="  # that of RFC 7628, 4.1
SIGNED = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSIsImV4cCI6MTIwfQ.c2lnbmF0dXJl"
NAMES = st.from_regex(r"[A-Za-z]{1,9}", fullmatch=True).filter(lambda name: name.lower() != "auth")
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1)


@pytest.mark.spec("B.4.12")
def test_the_message_is_that_of_the_rfc() -> None:
    assert bearer_message(TOKEN, {}) == b"n,,\x01auth=Bearer " + TOKEN.encode() + b"\x01\x01"
    extended = bearer_message("t", {"logicalCluster": "lkc-1", "identityPoolId": "p"})
    assert extended == b"n,,\x01auth=Bearer t\x01logicalCluster=lkc-1\x01identityPoolId=p\x01\x01"


def test_a_message_with_another_user_host_and_port_is_read() -> None:
    """The example of RFC 7628, 4.1."""
    message = b"n,a=user@example.com,\x01host=server.example.com\x01port=143\x01auth=Bearer " + TOKEN.encode()
    found = read_bearer_message(message + b"\x01\x01")
    assert (found.token, found.extensions) == (TOKEN, {"host": "server.example.com", "port": "143"})
    assert TOKEN not in repr(found)


@given(st.dictionaries(NAMES, VALUES))
def test_what_the_client_writes_the_broker_reads(extensions: dict[str, str]) -> None:
    found = read_bearer_message(bearer_message(TOKEN, extensions))
    assert (found.token, found.extensions) == (TOKEN, extensions)


@given(st.binary(max_size=80))
def test_other_bytes_are_refused(message: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 – of any text
        read_bearer_message(b"n,,\x01" + message)


@pytest.mark.parametrize(
    ("challenge", "text"),
    [
        (b'{"status":"invalid_token"}', "status invalid_token"),
        (b'{"status":"insufficient_scope","scope":"kafka"}', "status insufficient_scope, scope kafka"),
        (b'{"status":"\\u001b[31mred"}', "status \\x1b[31mred"),
        (b"", "without a reason that can be read"),
        (b"[" * 100_000, "without a reason that can be read"),
        (b'{"status":5}', "without a reason that can be read"),
    ],
)
def test_a_refusal_is_described_whatever_it_is(challenge: bytes, text: str) -> None:
    assert describe_refusal(challenge) == text


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        (
            {"aud": ["a", "b"], "iss": "i", "scope": "read", "exp": 160},
            "audience a b, issuer i, scope read, end in 60 s",
        ),
        ({"aud": "\x1b[31m", "exp": 40, "nbf": 30}, "audience \\x1b[31m, end 60 s ago"),
        ({"exp": 5_000, "nbf": 1_200}, "end in 4,900 s, beginning in 1,100 s"),
        ({"aud": {"a": 1}, "iss": 7, "exp": "soon", "sub": "alice"}, ""),
        ({"exp": 10**400}, ""),
    ],
)
def test_of_a_token_is_said_what_a_broker_compares(claims: dict[str, object], text: str) -> None:
    said = describe_token(unsecured_token(claims), now=100.0)
    assert said == (f"By this machine's clock, the token has {text}. " if text else "")


def test_nothing_is_said_of_a_token_that_is_no_jwt() -> None:
    assert describe_token("opaque", now=100.0) == ""


def test_claims_are_read_without_checking_the_signature() -> None:
    assert claims_of(SIGNED) == {"sub": "alice", "exp": 120}
    token = OAuthToken.from_jwt(SIGNED)
    assert (token.expires_at, token.issued_at, token.principal) == (120.0, None, "alice")
    assert "eyJ" not in repr(token)


@pytest.mark.parametrize("token", ["", "abc", "a.b", "a.b.c", "e30.W10.", "e30.e30.x.y", "é.é.é"])
def test_a_token_that_is_not_a_jwt_has_no_claims(token: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        claims_of(token)


def test_an_unsecured_token_has_no_signature() -> None:
    token = unsecured_token({"sub": "alice", "exp": 1})
    assert is_unsecured(token)
    assert not is_unsecured(token + "c2ln")
    assert not is_unsecured(SIGNED)


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "a b"},
        {"value": "secret\x01auth=x"},
        {"value": ""},
        {"expires_at": math.inf},
        {"expires_at": math.nan},
        {"extensions": {"auth": "x"}},
        {"extensions": {"a_b": "x"}},
        {"extensions": {"a": "\x01"}},
        {"extensions": {"a": ""}},
    ],
)
def test_a_token_that_cannot_be_sent_is_refused_without_showing_it(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"token|extension|expires_at") as caught:
        OAuthToken(**{"value": "t", "expires_at": 1.0, **wrong})  # type: ignore[arg-type]
    assert "secret" not in str(caught.value)


def test_a_jwt_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="no claim exp"):
        OAuthToken.from_jwt(unsecured_token({"sub": "alice"}))
