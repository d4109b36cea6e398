"""The TLS and SASL keys: their values, their combinations, and that nothing insecure is a default."""

from __future__ import annotations

import os
import ssl
import warnings
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer, env, file, load
from kclient.config.kerberos import kerberos_login
from kclient.errors import ConfigError
from kclient.security import Secret
from tests.security.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = {"sasl_username": "alice", "sasl_password": "secret"}
SASL_SSL = {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", **LOGIN}
OAUTH = {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": str}
GSSAPI = {"security_protocol": "SASL_SSL", "sasl_kerberos_service_name": "kafka"}
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"
KEYTAB = 'useKeyTab=true keyTab="/etc/app.keytab" principal="app@EXAMPLE.COM"'


def config(**keys: Any) -> Any:
    return load({"bootstrap_servers": "localhost:9092", **keys})


def problem(**keys: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        config(**keys)
    assert "secret" not in str(caught.value)
    (found,) = caught.value.problems
    return found


def context(**attributes: Any) -> ssl.SSLContext:
    made = ssl.create_default_context()
    for name, value in attributes.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            setattr(made, name, value)
    return made


@pytest.mark.spec("B.1.2", "B.1.3")
def test_words_are_read_in_any_case_and_kafkas_defaults_hold() -> None:
    found = config(security_protocol="sasl_ssl", sasl_mechanism="scram-sha-256", **LOGIN)
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-256")
    assert (found.ssl_enabled_protocols, found.ssl_endpoint_identification_algorithm) == (
        ("TLSv1.2", "TLSv1.3"),
        "https",
    )
    assert config().security_protocol == "PLAINTEXT"


@pytest.mark.spec("B.1.2", "B.1.3")
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ssl_truststore_location": "/ca.pem"}, "ssl_truststore_location would do nothing"),
        ({"sasl_password": "secret"}, "sasl_password would do nothing"),
        ({"tls_insecure_skip_verify": True}, "tls_insecure_skip_verify would do nothing"),
        ({"security_protocol": "SSL", **LOGIN}, "sasl_username, sasl_password would do nothing"),
        ({"security_protocol": "SSLv3"}, "must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL"),
        (
            {"security_protocol": "SSL", "ssl_enabled_protocols": "TLSv1.1,TLSv1.2"},
            "TLSv1.1, which is not safe",
        ),
        ({"security_protocol": "SSL", "ssl_protocol": "TLSv1"}, "is not safe"),
        (
            {"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "none"},
            "must be https, or empty",
        ),
        ({"security_protocol": "SSL", "ssl_keystore_type": "BKS"}, "must be JKS, PKCS12 or PEM"),
        ({"security_protocol": "SSL", "ssl_keystore_key": "secret"}, "belong together"),
        ({"security_protocol": "SSL", "ssl_key_password": "secret"}, "neither ssl_keystore_location nor"),
        ({"security_protocol": "SSL", "ssl_truststore_password": "secret"}, "which is not set"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "PKCS12"}, "which is not set"),
        (
            {"security_protocol": "SSL", "ssl_truststore_location": "/a", "ssl_truststore_certificates": "b"},
            "exclude each other",
        ),
        (
            {
                "security_protocol": "SSL",
                "ssl_keystore_location": "/a",
                "ssl_keystore_type": "PEM",
                "ssl_keystore_password": "secret",
            },
            "is not for PEM",
        ),
        (
            {"security_protocol": "SSL", "ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": "TLSv1.3"},
            "no version",
        ),
        (
            {"security_protocol": "SSL", "ssl_engine_factory_class": "x"},
            "give a ready ssl.SSLContext as ssl_context",
        ),
        ({"security_protocol": "SSL", "ssl_context": "x"}, "must be an ssl.SSLContext"),
        ({"security_protocol": "SASL_SSL"}, "GSSAPI (Kerberos), Kafka's default sasl_mechanism, needs"),
        (
            {"security_protocol": "SASL_SSL", **LOGIN},
            "sasl_username, sasl_password would do nothing: sasl_mechanism is GSSAPI (Kerberos), Kafka's default",
        ),
        ({**OAUTH, **LOGIN}, "sasl_username and sasl_password would do nothing: OAUTHBEARER has tokens"),
        (
            {**OAUTH, "sasl_oauth_token_provider": None},
            "OAUTHBEARER needs a source of tokens: sasl_oauthbearer_token_endpoint_url with",
        ),
        ({**OAUTH, "sasl_oauth_token_provider": "x"}, "must be aws_msk_iam, azure, gcp, a function"),
        (
            {**OAUTH, "security_protocol": "SASL_PLAINTEXT"},
            "OAUTHBEARER over SASL_PLAINTEXT sends the token for everyone to read",
        ),
        ({**OAUTH, "sasl_login_refresh_window_factor": "0.4"}, "must be a number from 0.5 to 1"),
        ({**OAUTH, "sasl_login_refresh_window_jitter": "much"}, "must be a number"),
        ({**OAUTH, "sasl_login_refresh_buffer_seconds": 3601}, "must be at most 3600"),
        (
            {**SASL_SSL, "sasl_login_refresh_buffer_seconds": 10},
            "sasl_login_refresh_buffer_seconds would do nothing: SCRAM-SHA-512 has no tokens",
        ),
        (
            {**SASL_SSL, "sasl_oauth_token_provider": str},
            "sasl_oauth_token_provider would do nothing: SCRAM-SHA-512 has no tokens",
        ),
        ({**SASL_SSL, "sasl_mechanism": "MD5"}, "must be PLAIN, SCRAM-SHA-256"),
        ({**SASL_SSL, "sasl_password": None}, "needs sasl_username and sasl_password"),
        ({**SASL_SSL, "sasl_username": "a\0b"}, "NUL"),
        ({**SASL_SSL, "sasl_password": "secret\0"}, "NUL"),
        ({**SASL_SSL, "sasl_password": " "}, "must not be empty"),
        ({**SASL_SSL, "sasl_password": b"secret"}, "must be text"),
        ({**SASL_SSL, "scram_max_iterations": 4095}, "at least 4096"),
        (
            {**SASL_SSL, "sasl_jaas_config": f'{SCRAM} required username="a" password="secret";'},
            "leave sasl_username",
        ),
        ({**SASL_SSL, "sasl_login_class": "x"}, "it names a Java class"),
        (
            {**SASL_SSL, "sasl_oauthbearer_token_endpoint_url": "https://a.test/token"},
            "sasl_oauthbearer_token_endpoint_url would do nothing: SCRAM-SHA-512 has no tokens",
        ),
        ({**SASL_SSL, "sasl_oauthbearer_jwks_endpoint_url": "x"}, "brokers check tokens with it"),
        (
            {**SASL_SSL, "sasl_kerberos_service_name": "kafka"},
            "sasl_kerberos_service_name would do nothing: SCRAM-SHA-512 has no tickets",
        ),
        ({**GSSAPI, "sasl_login_refresh_buffer_seconds": 10}, "would do nothing: sasl_mechanism is GSSAPI"),
        ({**GSSAPI, "sasl_oauth_token_provider": str}, "would do nothing: sasl_mechanism is GSSAPI"),
        ({**GSSAPI, "sasl_kerberos_kinit_cmd": "/opt/kinit"}, "kclient runs no kinit"),
        ({**GSSAPI, "sasl_kerberos_ticket_renew_window_factor": "0.4"}, "must be a number from 0.5 to 1"),
        (
            {**GSSAPI, "sasl_kerberos_ticket_renew_jitter": 0.1},
            "would do nothing: kclient renews the tickets of",
        ),
        ({**GSSAPI, "sasl_kerberos_keytab": "/a"}, "Krb5LoginModule required useKeyTab=true keyTab='"),
        ({**GSSAPI, "sasl_kerberos_principal": "a"}, "Krb5LoginModule required useKeyTab=true keyTab='"),
        ({**GSSAPI, "sasl_kerberos_domain_name": "a"}, "has the host that the broker advertises"),
    ],
)
def test_what_cannot_be_is_reported(keys: dict[str, Any], message: str) -> None:
    assert message in problem(**keys)


@pytest.mark.spec("B.1.3")
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (f"{KRB5} required useTicketCache=true;", f"it names {KRB5}"),
        (f'{PLAIN} required username="a" password="secret";', f"must name {SCRAM} for SCRAM-SHA-512"),
        (f'{SCRAM} required username="a" password="secret" serviceName="k";', "has an option serviceName"),
        (f'{SCRAM} required username="a";', "must hold a username and a password"),
        (
            f'{SCRAM} required username="a" password="secret" tokenauth="x";',
            "tokenauth must be true or false",
        ),
        (
            f'{SCRAM} required username="a" password="secret" passwordsecret="x";',
            "has an option (not shown), which",
        ),
        ('secret required username="a" password="secret";', "it names another class"),
        ("secret", "must be one JAAS entry"),
    ],
)
def test_a_jaas_entry_must_suit_the_mechanism(entry: str, message: str) -> None:
    keys = {**SASL_SSL, "sasl_username": None, "sasl_password": None, "sasl_jaas_config": entry}
    assert message in problem(**keys)
    assert "passwordsecret" not in problem(**keys)
    assert "it names secret" not in problem(**keys)


@pytest.mark.spec("B.1.3")
@pytest.mark.parametrize(
    "options",
    [
        KEYTAB,
        f"{KEYTAB} storeKey=true doNotPrompt=true refreshKrb5Config=true isInitiator=true debug=false",
        f'{KEYTAB} serviceName="kafka" useTicketCache=false renewTGT=false',
        f"{KEYTAB} useTicketCache=true",
        "useTicketCache=true renewTicket=true",
        'useTicketCache=TRUE ticketCache="/tmp/krb5cc_1000" principal="app"',
    ],
)
def test_the_lines_that_users_of_java_write_for_kerberos_are_read(options: str) -> None:
    found = config(**GSSAPI, sasl_jaas_config=f"{KRB5} required {options};")
    login = kerberos_login(found.sasl_kerberos_service_name, found.sasl_jaas_config)
    from_keytab = "keyTab" in options
    assert login.service == "kafka"
    assert login.keytab == ("/etc/app.keytab" if from_keytab else None)
    assert login.principal == (
        "app@EXAMPLE.COM" if from_keytab else "app" if "principal" in options else None
    )
    assert login.cache == ("/tmp/krb5cc_1000" if "ticketCache=" in options else None)


def test_the_service_name_may_stand_in_the_jaas_entry_alone() -> None:
    entry = f'{KRB5} required {KEYTAB} serviceName="broker";'
    found = config(security_protocol="SASL_SSL", sasl_jaas_config=entry)
    assert kerberos_login(found.sasl_kerberos_service_name, found.sasl_jaas_config).service == "broker"


@pytest.mark.spec("B.1.3")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("useKeyTab=false", "must say useKeyTab=true or useTicketCache=true, for example com.sun."),
        ("useKeyTab=true", "must name keyTab and principal with useKeyTab=true"),
        ('useKeyTab=true keyTab="/a"', "must name keyTab and principal with useKeyTab=true"),
        ('useTicketCache=true keyTab="/a"', "has keyTab, which does nothing without useKeyTab=true"),
        (f'{KEYTAB} ticketCache="/a"', "has ticketCache, which does nothing without useTicketCache=true"),
        ("useTicketCache=true renewTGT=true", "has renewTGT=true, which is refused: kclient does not renew"),
        (f"{KEYTAB} isInitiator=false", "has isInitiator=false, which is refused: a client always is"),
        (f"{KEYTAB} tryFirstPass=true", "has tryFirstPass=true, which is refused"),
        (f"{KEYTAB} storeKey=yes", "must say true or false for storeKey"),
        (
            f'{KEYTAB} serviceName="other"',
            "sasl_kerberos_service_name and serviceName in sasl_jaas_config differ",
        ),
        (f'{KEYTAB} serviceName=""', "has an empty serviceName"),
        (f"{KEYTAB} secret=true", "has an option (not shown), which Krb5LoginModule does not know"),
    ],
)
def test_a_jaas_entry_of_kerberos_that_cannot_be_is_reported(options: str, message: str) -> None:
    entry = f"{KRB5} required {options};"
    with pytest.raises(ConfigError) as caught:
        config(**GSSAPI, sasl_jaas_config=entry)
    assert any(message in found for found in caught.value.problems)
    assert "secret" not in str(caught.value)


def test_credentials_that_are_no_text_are_reported_before_they_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KC_PASSWORD", os.fsdecode("secret é".encode("latin-1")))
    no_text = "must be text in UTF-8, and a part of it is none"
    assert problem(**{**SASL_SSL, "sasl_password": env("KC_PASSWORD")}) == f"sasl_password {no_text}"
    assert problem(**{**SASL_SSL, "sasl_username": "\udc80"}).endswith(no_text)


def test_a_provider_that_fails_is_reported_with_its_key() -> None:
    def vault() -> str:
        raise ConnectionRefusedError(111, "the secret of the vault")

    assert problem(**{**SASL_SSL, "sasl_password": vault}) == (
        "sasl_password (arguments) is provided by a function, which failed with ConnectionRefusedError; "
        "call it by hand to see why"
    )


@pytest.mark.spec("B.1.3")
def test_credentials_do_not_go_over_a_plain_connection_unless_allowed() -> None:
    plain = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", **LOGIN}
    assert "sends the password for everyone to read" in problem(**plain)
    config(**plain, allow_plaintext_credentials=True)
    config(**{**plain, "sasl_mechanism": "SCRAM-SHA-256"})  # the password does not travel


@pytest.mark.spec("B.1.2", "U-17")
def test_a_ready_context_must_verify_or_its_use_must_say_that_it_does_not() -> None:
    tls = {"security_protocol": "SSL"}
    config(**tls, ssl_context=context())
    lax = context(check_hostname=False)
    assert "does not check host names" in problem(**tls, ssl_context=lax)
    config(**tls, ssl_context=lax, ssl_endpoint_identification_algorithm="")
    blind = context(check_hostname=False, verify_mode=ssl.CERT_NONE)
    assert "does not verify certificates" in problem(**tls, ssl_context=blind)
    config(**tls, ssl_context=blind, tls_insecure_skip_verify=True)
    assert "keep one of the two" in problem(**tls, ssl_context=context(), tls_insecure_skip_verify=True)
    old = context(minimum_version=ssl.TLSVersion.TLSv1)
    assert "before TLS 1.2" in problem(**tls, ssl_context=old)
    both = problem(**tls, ssl_context=context(), ssl_truststore_location="/ca.pem")
    assert both == "ssl_context says everything about TLS; leave out ssl_truststore_location"


@pytest.mark.spec("B.1.2", "U-17")
def test_a_store_that_cannot_be_used_is_reported_by_the_constructor(tmp_path: Path) -> None:
    keys = {"bootstrap_servers": "localhost:9092", "security_protocol": "SSL"}
    with pytest.raises(ConfigError, match="deststoretype PKCS12"):
        Consumer(**keys, ssl_truststore_location=str(tmp_path / "trust.jks"))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        Consumer(**keys, ssl_truststore_location=str(tmp_path / "ca.pem"))
    with pytest.raises(ConfigError, match="cannot be read: embedded null byte"):
        Consumer(**keys, ssl_truststore_location="ca\x00.pem")
    with pytest.raises(ConfigError, match=r"the properties file .* cannot be read: embedded null byte"):
        Consumer(properties="client\x00.properties")
    Consumer(**keys, ssl_truststore_location=str(Authority().write_pem(tmp_path / "ca.pem"))).close()


@pytest.mark.spec("B.1")
def test_any_value_may_come_from_a_provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KC_SERVERS", "a:1,b:2")
    monkeypatch.setenv("KC_POLL", "77")
    (tmp_path / "user").write_text("alice\n")
    found = load(
        {
            "bootstrap_servers": env("KC_SERVERS"),
            "max_poll_records": env("KC_POLL"),
            "security_protocol": lambda: "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": file(tmp_path / "user"),
            "sasl_password": lambda: "secret",
        }
    )
    assert (found.bootstrap_servers, found.max_poll_records) == (("a:1", "b:2"), 77)
    assert (found.sasl_username, found.sasl_password) == ("alice", Secret("secret"))
    assert (
        "client_id=env('KC_NONE') (arguments) comes from the environment variable KC_NONE, which is not set"
        in (problem(client_id=env("KC_NONE")))
    )


@pytest.mark.spec("B.1")
def test_explain_says_where_each_value_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password=secret\n"
    )
    lines = load({"bootstrap_servers": "a:1"}, {"max.poll.records": "7"}, path).explain().splitlines()
    rows = {line.split()[0]: line.split() for line in lines}
    assert rows["max_poll_records"] == ["max_poll_records", "7", "config", "500"]
    assert rows["bootstrap_servers"] == ["bootstrap_servers", "('a:1',)", "arguments"]
    assert rows["sasl_password"] == ["sasl_password", "***", "client.properties,", "line", "4", "None"]
    assert rows["check_crcs"] == ["check_crcs", "True", "default", "True"]
