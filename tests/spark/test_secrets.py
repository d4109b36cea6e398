"""Secrets: the spellings of the JVM, references that the connecting process follows, and that nothing shows one."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import re
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kclient.config.model import SECRET_KEYS
from kclient.errors import ConfigError, KclientError
from kclient.spark.batch import plan_batch
from kclient.spark.executor import clients, read_range
from kclient.spark.kafka_keys import secret_of
from kclient.spark.options import SourceOptions, exposed, warn_of_secrets
from kclient.spark.ranges import OffsetRange

CANARY = "tell-nobody-4711"
BASE = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
SASL = {**BASE, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "SCRAM-SHA-512"}
MODULES = "org.apache.kafka.common.security"
SCRAM = f'{MODULES}.scram.ScramLoginModule required username="alice" password="{CANARY}";'
PLAIN = f'{MODULES}.plain.PlainLoginModule required username="alice" password="{CANARY}";'
OAUTH = f'{MODULES}.oauthbearer.OAuthBearerLoginModule required clientId="me" clientSecret="{CANARY}";'
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----\n"


def problems(options: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        SourceOptions.parse(options)
    assert CANARY not in str(caught.value)
    return caught.value.problems


# --- the spellings of the JVM


@pytest.mark.spec("SP-43")
@pytest.mark.parametrize("prefix", ["", "kafkashaded."])
@pytest.mark.parametrize(
    ("mechanism", "entry"), [("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM), ("PLAIN", PLAIN)]
)
def test_module_strings_of_the_jvm_are_read(prefix: str, mechanism: str, entry: str) -> None:
    given = {**SASL, "kafka.sasl.mechanism": mechanism, "kafka.sasl.jaas.config": prefix + entry}
    config = SourceOptions.parse(given).config("executor")
    assert (config.sasl_mechanism, config.sasl_jaas_config.reveal()) == (mechanism, prefix + entry)


@pytest.mark.spec("SP-43")
@pytest.mark.parametrize("prefix", ["", "kafkashaded."])
def test_oauthbearer_is_read_with_the_endpoint_that_it_needs(prefix: str) -> None:
    given = {**SASL, "kafka.sasl.mechanism": "OAUTHBEARER", "kafka.sasl.jaas.config": prefix + OAUTH}
    (missing,) = problems(given)
    assert "OAUTHBEARER needs a source of tokens: sasl_oauthbearer_token_endpoint_url" in missing
    url = {"kafka.sasl.oauthbearer.token.endpoint.url": "https://login.test/token"}
    config = SourceOptions.parse(given | url).config("executor")
    assert config.sasl_jaas_config.reveal() == prefix + OAUTH


@pytest.mark.spec("SP-43")
def test_a_client_secret_and_a_jaas_entry_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIENT_SECRET", CANARY)
    monkeypatch.setenv("JAAS", OAUTH)
    given = {
        **SASL,
        "kafka.sasl.mechanism": "OAUTHBEARER",
        "kafka.sasl.oauthbearer.token.endpoint.url": "https://login.test/token",
    }
    client = "kafka.sasl.oauthbearer.client.credentials.client"
    by_key = SourceOptions.parse(given | {f"{client}.id": "me", f"{client}.secret.env": "CLIENT_SECRET"})
    by_jaas = SourceOptions.parse(given | {"kafka.sasl.jaas.config.env": "JAAS"})
    for options in (by_key, by_jaas):
        assert CANARY.encode() not in pickle.dumps(options)
    secret = by_key.config("executor").sasl_oauthbearer_client_credentials_client_secret
    assert secret.reveal() == CANARY
    assert by_jaas.config("executor").sasl_jaas_config.reveal() == OAUTH


@pytest.mark.spec("SP-43")
def test_a_module_that_does_not_fit_the_mechanism_is_named() -> None:
    (problem,) = problems({**SASL, "kafka.sasl.jaas.config": PLAIN})
    assert "must name" in problem
    assert "PlainLoginModule" in problem


@pytest.mark.spec("SP-43")
def test_pem_in_the_options() -> None:
    given = {
        **BASE,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": CERTIFICATE,
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.key": KEY,
        "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
        "kafka.ssl.endpoint.identification.algorithm": "https",
    }
    config = SourceOptions.parse(given).config("executor")
    assert config.ssl_truststore_certificates.reveal() == CERTIFICATE
    assert config.ssl_keystore_key.reveal() == KEY


@pytest.mark.spec("SP-43")
def test_librdkafkas_ca_location_is_the_trust_store() -> None:
    tls = {**BASE, "kafka.security.protocol": "SSL", "kafka.ssl.ca.location": "/etc/ca.pem"}
    assert SourceOptions.parse(tls).config("x").ssl_truststore_location == "/etc/ca.pem"
    (problem,) = problems({**tls, "kafka.ssl.truststore.location": "/etc/other.pem"})
    assert "keep one of them" in problem


@pytest.mark.spec("SP-43")
@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_a_java_key_store_is_answered_with_the_line_that_converts_it(store: str, tmp_path: Path) -> None:
    path = tmp_path / "a store.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    given = {
        **BASE,
        "kafka.security.protocol": "SSL",
        f"kafka.ssl.{store}.location": str(path),
        f"kafka.ssl.{store}.password": CANARY,
    }
    with pytest.raises(ConfigError) as caught:
        asyncio.run(plan_batch(SourceOptions.parse(given)))
    p12 = str(path).replace(".jks", ".p12")
    assert (
        f"keytool -importkeystore -srckeystore '{path}' -srcstoretype JKS -destkeystore '{p12}' "
        "-deststoretype PKCS12"
    ) in str(caught.value)
    assert CANARY not in str(caught.value)


# --- references


@pytest.mark.spec("SP-44")
@pytest.mark.parametrize(
    ("key", "text", "beside"),
    [
        ("sasl.password", CANARY, {**SASL, "kafka.sasl.username": "alice"}),
        ("sasl.jaas.config", SCRAM, SASL),
        ("sasl.jaas.config", PLAIN, {**SASL, "kafka.sasl.mechanism": "PLAIN"}),
        ("ssl.truststore.certificates", CERTIFICATE, {**BASE, "kafka.security.protocol": "SSL"}),
        (
            "ssl.keystore.key",
            KEY,
            {
                **BASE,
                "kafka.security.protocol": "SSL",
                "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
            },
        ),
        (
            "ssl.key.password",
            CANARY,
            {**BASE, "kafka.security.protocol": "SSL", "kafka.ssl.keystore.location": "/key.pem"},
        ),
    ],
)
def test_every_secret_may_stand_elsewhere(
    key: str, text: str, beside: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text(text + "\n")
    references = {f"kafka.{key}.env": "KC_SECRET", f"kafka.{key}.file": str(tmp_path / "secret")}
    for name, place in references.items():
        monkeypatch.delenv("KC_SECRET", raising=False)
        options = SourceOptions.parse({**beside, name.upper(): place})  # the environment is not asked yet
        assert CANARY.encode() not in pickle.dumps(options)
        travelled = pickle.loads(pickle.dumps(options))
        monkeypatch.setenv("KC_SECRET", text)
        config = travelled.config("executor")
        assert getattr(config, key.replace(".", "_")).reveal().strip() == text.strip()
        assert CANARY not in repr(config) + repr(travelled)


@pytest.mark.spec("SP-13", "SP-44")
def test_a_reference_is_followed_again_for_every_connection(tmp_path: Path) -> None:
    place = tmp_path / "password"
    place.write_text("first")
    given = {**SASL, "kafka.sasl.username": "alice", "kafka.sasl.password.file": str(place)}
    config = SourceOptions.parse(given).config("executor")
    assert config.sasl_password.reveal() == "first"
    place.write_text("second")
    assert config.sasl_password.reveal() == "second"


@pytest.mark.spec("SP-44")
def test_a_reference_to_nothing_is_reported_by_the_process_that_follows_it(tmp_path: Path) -> None:
    given = {**SASL, "kafka.sasl.username": "alice", "kafka.sasl.password.env": "KC_NOT_SET"}
    with pytest.raises(ConfigError, match="environment variable KC_NOT_SET, which is not set") as refused:
        SourceOptions.parse(given).config("executor")
    [problem] = refused.value.problems
    assert problem.startswith("kafka.sasl.password.env comes from ")
    assert f"in process {os.getpid()} on " in str(refused.value)
    assert "before the session is made" in str(refused.value)
    given = {
        **SASL,
        "kafka.sasl.username": "alice",
        "kafka.sasl.password.file": str(tmp_path / "none"),
    }
    with pytest.raises(ConfigError, match="none, which cannot be read"):
        SourceOptions.parse(given).config("executor")


@pytest.mark.spec("SP-44")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kafka.sasl.password": CANARY, "kafka.sasl.password.env": "A"}, "keep one of them"),
        ({"kafka.sasl.password.env": "A", "kafka.sasl.password.file": "/a"}, "keep one of them"),
        ({"kafka.sasl.password.env": " "}, "must name an environment variable"),
        ({"kafka.sasl.password.file": ""}, "must name a file"),
        ({"kafka.sasl.password": CANARY, "kafka.client.id.env": "A"}, "client_id_env (config) is unknown"),
    ],
)
def test_references_that_cannot_be_meant(given: dict[str, str], message: str) -> None:
    (problem,) = problems({**SASL, "kafka.sasl.username": "alice", **given})
    assert message in problem


@pytest.mark.spec("SP-44")
def test_the_registrys_secret_may_stand_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {**BASE, "valueFormat": "avro", "schema.registry.url": "https://registry"}
    monkeypatch.setenv("KC_SECRET", CANARY)
    (tmp_path / "secret").write_text(CANARY)
    for name, text in [("", CANARY), (".env", "KC_SECRET"), (".file", str(tmp_path / "secret"))]:
        options = SourceOptions.parse({**given, f"schema.registry.auth{name}": text})
        there = pickle.loads(pickle.dumps(options))
        assert secret_of(there.registry_auth, there.registry_auth_reference).reveal() == CANARY
        assert CANARY not in repr(options)
    assert SourceOptions.parse(given).registry_auth is None


@pytest.mark.spec("SP-44", "SP-45")
@pytest.mark.parametrize(
    "more", [f"user:{CANARY}@r", f"user:a/{CANARY}@r", f"r/?token={CANARY}", f"r/#{CANARY}"]
)
def test_the_registrys_address_says_where_and_nothing_else(more: str) -> None:
    found = problems({**BASE, "valueFormat": "avro", "schema.registry.url": f"https://{more}"})
    assert (
        "schema.registry.url=*** must not hold a user, password or query; give credentials as schema.registry.auth"
    ) in found


# --- nothing shows a secret


LITERALS: dict[str, dict[str, str]] = {
    "jaas": {**SASL, "kafka.sasl.jaas.config": SCRAM},
    "password": {**SASL, "kafka.sasl.username": "alice", "kafka.sasl.password": CANARY},
    "a misspelt password": {**SASL, "kafka.sasl.pasword": CANARY},
    "a reference to nothing": {
        **SASL,
        "kafka.sasl.username": "alice",
        "kafka.sasl.password.env": "KC_NOT_SET",
        "kafka.ssl.keystore.key": KEY,
        "kafka.ssl.keystore.certificate.chain": CERTIFICATE,
    },
    "a bad option": {**SASL, "kafka.sasl.jaas.config": SCRAM, "minPartitions": "0"},
    "a bad entry": {**SASL, "kafka.sasl.jaas.config": SCRAM.replace(";", "")},
    "the registry": {**BASE, "schema.registry.auth": CANARY, "schema.registry.url": "x" * 100},
    "the registry's address": {**BASE, "schema.registry.url": f"https://user:{CANARY}@registry"},
    "an address that is none": {**BASE, "schema.registry.url": f"https://user:{CANARY}@[registry"},
    "an address with a path in its password": {**BASE, "schema.registry.url": f"https://user:a/{CANARY}@r"},
    "an address with a query": {**BASE, "schema.registry.url": f"https://registry/?token={CANARY}"},
    "an unknown option": {**BASE, "pasword": CANARY, "schema.registry.auht": CANARY},
    "a table": {"provider": "kclient", "option.kafka.sasl.jaas.config": SCRAM},
}


def plan(options: SourceOptions) -> Any:
    return asyncio.run(plan_batch(options))


def read(options: SourceOptions) -> Any:
    return list(read_range(OffsetRange("t", 0, 0, 5), options, ["value"]))


@pytest.mark.spec("SP-45", "I-39", "ST-17")
@pytest.mark.parametrize("act", [plan, read])
@pytest.mark.parametrize("what", LITERALS)
def test_no_error_shows_a_secret_not_even_with_its_local_variables(
    what: str, act: Callable[[SourceOptions], Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing listens at the address, so whatever passes the check of the options fails where it connects."""
    with caplog.at_level(logging.DEBUG), pytest.raises(KclientError) as caught:
        act(SourceOptions.parse({**LITERALS[what], "fetchOffset.numRetries": "0"}))
    found = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [line for line in found.format() if __file__ not in line]
    assert "options = " in "".join(ours)
    assert CANARY not in "".join(ours)
    assert CANARY not in repr(caught.value) + caplog.text
    assert CANARY.encode() not in pickle.dumps(caught.value)
    assert CANARY not in repr(list(clients._clients))


@pytest.mark.spec("SP-60")
def test_a_connection_is_known_by_a_fingerprint_of_its_options() -> None:
    one, same = (SourceOptions.parse({**SASL, "kafka.sasl.jaas.config": SCRAM}) for _ in range(2))
    other = SourceOptions.parse({**SASL, "kafka.sasl.jaas.config": SCRAM.replace("alice", "bob")})
    assert one.kafka.fingerprint() == same.kafka.fingerprint() != other.kafka.fingerprint()
    code = "import sys, pickle; print(pickle.load(sys.stdin.buffer).kafka.fingerprint(), end='')"
    elsewhere = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(one), capture_output=True, check=True
    )
    assert elsewhere.stdout.decode() == one.kafka.fingerprint()


@pytest.mark.spec("SP-45")
def test_one_warning_for_what_spark_would_not_hide(caplog: pytest.LogCaptureFixture) -> None:
    options = SourceOptions.parse(LITERALS["jaas"])
    with caplog.at_level(logging.WARNING, "kclient.spark"):
        warn_of_secrets(options)
    (message,) = caplog.messages
    assert message.startswith("kafka.sasl.jaas.config: ")
    assert "kafka.sasl.jaas.config.file=/path" in message
    assert CANARY not in message


@pytest.mark.spec("SP-45")
def test_what_spark_hides_and_references_need_no_warning() -> None:
    assert exposed(SourceOptions.parse(LITERALS["password"])) == []
    assert exposed(SourceOptions.parse({**SASL, "kafka.sasl.jaas.config.env": "A"})) == []
    registry = {**BASE, "valueFormat": "avro", "schema.registry.url": "https://registry"}
    assert exposed(SourceOptions.parse({**registry, "schema.registry.auth.file": "/f"})) == []
    assert exposed(SourceOptions.parse({**registry, "schema.registry.auth": "u:p"})) == [
        "schema.registry.auth"
    ]


def test_the_page_of_options_names_every_secret_that_may_be_a_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "spark-options.md").read_text("utf-8")
    listed = page.partition("The same endings go with every secret:")[2].partition(". The driver")[0]
    named = {name.replace(".", "_") for name in re.findall(r"`kafka\.([a-z.]+)`", listed)}
    assert named == SECRET_KEYS
