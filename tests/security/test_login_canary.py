"""Client secrets, private keys, tokens and keytabs take every path through the client, and appear in no output."""

from __future__ import annotations

import asyncio
import base64
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient import KclientError, env, file, load
from kclient.errors import AuthenticationError
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.protocol.errors import SASL_AUTHENTICATION_FAILED
from kclient.security.kerberos import KerberosError, check_keytab
from kclient.security.oauthbearer import read_bearer_message
from tests.scripted_broker import On, ScriptedBroker
from tests.security.authorization_server import AuthorizationServer, HttpRequest, RefusedError, refusal
from tests.security.canary import Canary, use
from tests.security.signed_tokens import rsa_key
from tests.security.test_sasl import AUTHENTICATE, handshake

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MECHANISM = "OAUTHBEARER"
SOURCES = ["text", "env", "file", "a function", "jaas", "key", "assertion", "token file", "token"]


@pytest.fixture
def server(canary: Canary) -> Iterator[AuthorizationServer]:
    """Each token that it signs is a secret: the claims and the signature."""
    with AuthorizationServer(clients={"reader": canary.password}, assertion_keys=[rsa_key()]) as running:
        yield running
        for token in running.signed:
            canary.more += token.split(".")[1:]


def keys(
    source: str, canary: Canary, server: AuthorizationServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The keys of a client whose tokens come from this source."""
    given: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": MECHANISM,
        "allow_plaintext_credentials": True,
        "sasl_login_retry_backoff_ms": 1,
        "sasl_login_retry_backoff_max_ms": 10,
        "sasl_oauthbearer_token_endpoint_url": server.token_url,
    }
    if source == "token":
        return {**given, "sasl_oauthbearer_token_endpoint_url": None} | {
            "sasl_oauth_token_provider": lambda: server.sign({"sub": "reader"})
        }
    if source == "token file":
        path = written(folder / "token", server.sign({"sub": "reader"}))
        monkeypatch.setenv("ORG_APACHE_KAFKA_SASL_OAUTHBEARER_ALLOWED_FILES", str(folder))
        return {**given, "sasl_oauthbearer_token_endpoint_url": f"file://{path}"}
    if source == "jaas":
        entry = f'{MODULE} required clientId="reader" clientSecret="{canary.password}";'
        return {**given, "sasl_jaas_config": entry}
    if source == "assertion":
        claims = {"sub": "reader", "iss": "reader", "aud": server.token_url}
        path = written(folder / "assertion", server.sign(claims, key=rsa_key()))
        return {**given, "sasl_oauthbearer_assertion_file": str(path)}
    if source == "key":
        pem = rsa_key().private_pem(canary.password)
        canary.more += pem.splitlines()[1:4]
        return {
            **given,
            "sasl_oauthbearer_assertion_private_key_file": str(written(folder / "key.pem", pem)),
            "sasl_oauthbearer_assertion_private_key_passphrase": canary.password,
            "sasl_oauthbearer_assertion_claim_iss": "reader",
            "sasl_oauthbearer_assertion_claim_sub": "reader",
            "sasl_oauthbearer_assertion_claim_aud": server.token_url,
        }
    monkeypatch.setenv("CANARY", canary.password)
    secret = {
        "text": canary.password,
        "env": env("CANARY"),
        "file": file(written(folder / "secret", canary.password)),
        "a function": lambda: canary.password,
    }[source]
    return {
        **given,
        "sasl_oauthbearer_client_credentials_client_id": "reader",
        "sasl_oauthbearer_client_credentials_client_secret": secret,
    }


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def repeating(answer: str) -> On:
    """A broker that repeats the token in its answer: plain, encoded, as a scope, or in an error."""

    def respond(request: Any) -> SaslAuthenticateResponse:
        token = read_bearer_message(request.auth_bytes).token
        said = {
            "challenge": json.dumps({"status": token}),
            "encoded": json.dumps({"status": base64.b64encode(token.encode()).decode()}),
            "scope": json.dumps({"status": "invalid_token", "scope": f"not {token}"}),
        }
        if answer == "error":
            text = f"{token} is not a token"
            return SaslAuthenticateResponse(error_code=SASL_AUTHENTICATION_FAILED, error_message=text)
        return SaslAuthenticateResponse(auth_bytes=said[answer].encode())

    return On(AUTHENTICATE, respond)


def repeat(canary: Canary, request: HttpRequest) -> dict[str, Any]:
    """Refuse a client, and repeat what it proved itself with: the secret, or an assertion."""
    basic = request.headers.get("authorization", "").partition(" ")[2]
    proof = request.form.get("client_assertion") or base64.b64decode(basic).decode()
    canary.more.append(proof)
    raise RefusedError(refusal(401, "invalid_client", f"{proof} is wrong"))


@pytest.mark.spec("I-39")
@pytest.mark.parametrize("source", SOURCES)
def test_what_a_client_logs_in_with_is_nowhere_to_be_seen(
    canary: Canary, server: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    given = keys(source, canary, server, tmp_path, monkeypatch)
    config = load({"bootstrap_servers": "127.0.0.1:1", **given})
    canary.see(config, config.explain())
    accepted = SaslAuthenticateResponse(session_lifetime_ms=60_000)

    async def main() -> None:
        scripts = [[repeating("error")], [On(AUTHENTICATE, accepted)] * 2]
        for answers in scripts:
            steps = [step for answer in answers for step in (handshake(MECHANISM), answer)]
            async with ScriptedBroker(*steps, topics={"orders": 1}) as peer:
                error = await use(canary, peer, **given)
                assert isinstance(error, AuthenticationError) == (len(answers) == 1), error
                canary.see(*peer.of(AUTHENTICATE))
        if source in ("token", "token file"):
            return
        server._grant = functools.partial(repeat, canary)  # type: ignore[method-assign]
        async with ScriptedBroker(handshake(MECHANISM), topics={"orders": 1}) as peer:
            assert "HTTP 401" in str(await use(canary, peer, **given))

    asyncio.run(main(), debug=True)
    assert server.signed


@pytest.mark.spec("I-39")
@pytest.mark.parametrize("answer", ["challenge", "encoded", "scope"])
def test_a_broker_that_repeats_the_token_does_not_put_it_into_the_error(
    canary: Canary, server: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    given = keys("text", canary, server, tmp_path, monkeypatch)

    async def main() -> None:
        steps = [handshake(MECHANISM), repeating(answer), On(AUTHENTICATE, SaslAuthenticateResponse())]
        async with ScriptedBroker(*steps, topics={"orders": 1}) as peer:
            error = await use(canary, peer, **given)
        assert "refused the token of OAUTHBEARER" in str(error)

    asyncio.run(main(), debug=True)


@pytest.mark.spec("I-39")
@pytest.mark.parametrize(
    "wrong", ["the passphrase", "no passphrase", "the key", "the token", "the assertion"]
)
def test_what_cannot_be_used_is_not_shown(
    canary: Canary, server: AuthorizationServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    source = {"the token": "token file", "the assertion": "assertion"}.get(wrong, "key")
    given = keys(source, canary, server, tmp_path, monkeypatch)
    name = {"the token": "token", "the assertion": "assertion", "the key": "key.pem"}.get(wrong)
    if name is not None:
        (tmp_path / name).write_text(f"not what was wanted: {canary.password}")
    elif wrong == "the passphrase":
        given["sasl_oauthbearer_assertion_private_key_passphrase"] = canary.password[::-1]
    else:
        given["sasl_oauthbearer_assertion_private_key_passphrase"] = None

    async def main() -> None:
        async with ScriptedBroker(handshake(MECHANISM), topics={"orders": 1}) as peer:
            error = await use(canary, peer, **given)
        assert isinstance(error, KclientError)
        assert str(tmp_path) in str(error)

    asyncio.run(main(), debug=True)


@pytest.mark.spec("I-39")
def test_no_error_about_a_keytab_shows_its_keys(canary: Canary, tmp_path: Path) -> None:
    name = b"\0\5alice"
    principal = b"\0\1" + b"\0\4TEST" + name + b"\0\0\0\1"
    entry = principal + bytes(4) + b"\1" + b"\0\x12" + b"\0\x16" + canary.password.encode()
    for content in (b"\5\2" + len(entry).to_bytes(4, "big") + entry, canary.password.encode()):
        (tmp_path / "client.keytab").write_bytes(content)
        with pytest.raises(KerberosError) as caught:
            check_keytab(str(tmp_path / "client.keytab"), "bob@TEST")
        canary.see(caught.value)
    canary.seen.append("." * 500)
