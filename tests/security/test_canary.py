"""A random password takes every path through the client, and must not appear in any output."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

from kclient import Config, load
from kclient.config.model import SECRET_KEYS
from kclient.errors import ConfigError
from kclient.generated.sasl_authenticate_request import SaslAuthenticateRequest
from kclient.generated.sasl_authenticate_response import SaslAuthenticateResponse
from kclient.protocol import encode
from kclient.protocol.errors import SASL_AUTHENTICATION_FAILED
from kclient.security import env, file, plain_token
from tests.scripted_broker import On, ScriptedBroker
from tests.security.canary import Canary, use
from tests.security.test_sasl import ALL, AUTHENTICATE, handshake, scram_steps

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def keys(mechanism: str, password: Any) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_username": "alice",
        "sasl_password": password,
        "allow_plaintext_credentials": True,
    }


@pytest.mark.spec("I-39")
@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize("form", ["text", "env", "file", "function", "jaas"])
def test_a_password_is_nowhere_to_be_seen(
    canary: Canary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mechanism: str, form: str
) -> None:
    monkeypatch.setenv("CANARY", canary.password)
    (tmp_path / "secret").write_text(canary.password)
    module = PLAIN_MODULE if mechanism == "PLAIN" else PLAIN_MODULE.replace("plain.Plain", "scram.Scram")
    jaas = f'{module} required username="alice" password="{canary.password}";'
    password = {
        "text": canary.password,
        "env": env("CANARY"),
        "file": file(tmp_path / "secret"),
        "function": lambda: canary.password,
        "jaas": None,
    }[form]
    given = keys(mechanism, password)
    if form == "jaas":
        given |= {"sasl_username": None, "sasl_jaas_config": jaas}

    async def main() -> None:
        said = f"{canary.password} is not the password"
        no = SaslAuthenticateResponse(error_code=SASL_AUTHENTICATION_FAILED, error_message=said)
        echo = SaslAuthenticateResponse(auth_bytes=canary.password.encode())
        faults: list[dict[str, Any]] = [{"close": True}, {"raw": b"\0\0\0\x03abc"}]
        ends = [
            On(AUTHENTICATE, no),
            On(AUTHENTICATE, echo),
            *(On(AUTHENTICATE, **fault) for fault in faults),
        ]
        for steps in [accepted() + accepted(), *([handshake(mechanism), end] for end in ends)]:
            async with ScriptedBroker(*steps, topics={"orders": 1}) as peer:
                error = await use(canary, peer, **given)
                assert (error is None) == (len(steps) > 2)
                canary.see(*peer.of(AUTHENTICATE))

    def accepted() -> list[On]:
        if mechanism == "PLAIN":
            return [handshake("PLAIN"), On(AUTHENTICATE, SaslAuthenticateResponse())]
        return scram_steps(mechanism, password=canary.password)

    asyncio.run(main(), debug=True)


@pytest.mark.spec("I-39")
@pytest.mark.parametrize("key", sorted(SECRET_KEYS))
def test_no_key_of_a_secret_shows_its_value_when_it_is_wrong(canary: Canary, key: str) -> None:
    for value in (canary.password, [canary.password], canary.password.encode(), {"x": canary.password}):
        with pytest.raises(ConfigError) as caught:
            load({"bootstrap_servers": "a:1", key: value})
        canary.see(caught.value, *caught.value.problems)
    canary.seen.append("." * 500)


@pytest.mark.spec("I-39")
def test_a_configuration_shows_no_secret(canary: Canary, tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        f"""
        bootstrap.servers=a:1
        security.protocol=SASL_SSL
        sasl.mechanism=PLAIN
        sasl.jaas.config={PLAIN_MODULE} required username="alice" password="{canary.password}";
        ssl.keystore.location=/client.p12
        ssl.keystore.password={canary.password}
        ssl.key.password={canary.password}
        ssl.truststore.location=/trust.p12
        ssl.truststore.password={canary.password}
        """
    )
    config = load({}, properties=path)
    assert isinstance(config, Config)
    canary.see(config, config.explain())
    with pytest.raises(TypeError) as caught:
        pickle.dumps(config)
    canary.see(caught.value)


@pytest.mark.spec("I-39")
def test_the_repr_of_a_message_hides_its_tokens(canary: Canary) -> None:
    request = SaslAuthenticateRequest(auth_bytes=plain_token("alice", canary.password))
    response = SaslAuthenticateResponse(auth_bytes=canary.password.encode())
    assert repr(request) == "SaslAuthenticateRequest(unknown_tags=(), auth_bytes=***)"
    assert canary.password.encode() in encode(request, 2)  # hidden, not lost
    canary.see(request, response)
    canary.seen.append("." * 500)
