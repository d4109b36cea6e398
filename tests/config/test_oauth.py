"""The settings of OAUTHBEARER: which source of tokens they choose, and what does not fit together."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.config import Config, load
from kclient.config.oauth import JaasOptions, TokenOrigin, origin_of
from kclient.errors import ConfigError

PACKAGE = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{PACKAGE}.OAuthBearerLoginModule"
URL = {"sasl_oauthbearer_token_endpoint_url": "https://login.test/token"}
FILE = {"sasl_oauthbearer_token_endpoint_url": "file:///var/run/token"}
CLIENT = {
    "sasl_oauthbearer_client_credentials_client_id": "reader",
    "sasl_oauthbearer_client_credentials_client_secret": "hunter2",
}
KEY = {"sasl_oauthbearer_assertion_private_key_file": "/key.pem"}
BEARER = {"sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}.JwtBearerJwtRetriever"}


def jaas(options: str = "", module: str = MODULE) -> dict[str, str]:
    return {"sasl_jaas_config": f"{module} required {options};"}


def config(**keys: Any) -> Config:
    fixed = {"bootstrap_servers": "b:9093", "security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}
    return load(fixed | keys)


def origin(found: Config) -> TokenOrigin | None:
    return origin_of(
        provider=found.sasl_oauth_token_provider,
        url=found.sasl_oauthbearer_token_endpoint_url,
        retriever=found.sasl_oauthbearer_jwt_retriever_class,
        handler=found.sasl_login_callback_handler_class,
        jaas=JaasOptions.of(found.sasl_jaas_config),
    )


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"sasl_oauth_token_provider": str}, TokenOrigin.FUNCTION),
        ({"sasl_oauth_token_provider": str, **jaas()}, TokenOrigin.FUNCTION),
        (URL | CLIENT, TokenOrigin.CLIENT_CREDENTIALS),
        (
            URL | jaas('clientId="a" clientSecret="b"', f"kafkashaded.{MODULE}"),
            TokenOrigin.CLIENT_CREDENTIALS,
        ),
        (URL | KEY, TokenOrigin.CLIENT_CREDENTIALS),
        (
            URL | CLIENT | {"sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}.DefaultJwtRetriever"},
            TokenOrigin.CLIENT_CREDENTIALS,
        ),
        (URL | KEY | BEARER, TokenOrigin.JWT_BEARER),
        (FILE, TokenOrigin.FILE),
        (FILE | {"sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}.FileJwtRetriever"}, TokenOrigin.FILE),
        (jaas('unsecuredLoginStringClaim_sub="alice"'), TokenOrigin.UNSECURED),
    ],
)
def test_settings_choose_a_source(keys: dict[str, Any], expected: TokenOrigin) -> None:
    assert origin(config(**keys)) is expected


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({}, "OAUTHBEARER needs a source of tokens: "),
        (jaas(), "OAUTHBEARER needs a source of tokens: "),
        (jaas("", "a.b.PlainLoginModule"), f"must name {MODULE} for OAUTHBEARER; it names a.b.PlainLoginModule"),
        (URL, "needs sasl_oauthbearer_client_credentials_client_id and sasl_oauthbearer_client_creden"),
        (URL | jaas('clientId="a"'), "needs sasl_oauthbearer_client_credentials_client_secret, or an assertion"),
        (URL | BEARER, "an assertion needs sasl_oauthbearer_assertion_file, or sasl_oauthbearer_assertion_priv"),
        (BEARER | KEY, "an assertion needs sasl_oauthbearer_token_endpoint_url: the address of an endpoint"),
        (FILE | BEARER | KEY, "an assertion needs sasl_oauthbearer_token_endpoint_url: the address"),
        (
            URL | {"sasl_oauthbearer_jwt_retriever_class": f"{PACKAGE}.FileJwtRetriever"},
            "a token file needs sasl_oauthbearer_token_endpoint_url: file:///path",
        ),
        (URL | CLIENT | KEY, "client_secret would do nothing: sasl_oauthbearer_assertion_private_key_file takes"),
        (
            URL | KEY | {"sasl_oauthbearer_assertion_file": "/a"},
            "is a ready assertion, beside which sasl_oauthbearer_assertion_private_key_file would do nothing",
        ),
        (
            URL | {"sasl_oauthbearer_assertion_claim_iss": "me"},
            "sasl_oauthbearer_assertion_claim_iss needs sasl_oauthbearer_assertion_private_key_file",
        ),
        (FILE | CLIENT, "would do nothing: the tokens are those of a token file"),
        (FILE | {"sasl_login_read_timeout_ms": 5}, "sasl_login_read_timeout_ms would do nothing"),
        ({"sasl_oauth_token_provider": str, **URL}, "would do nothing: the tokens are those of a function"),
        ({"sasl_oauth_token_provider": str, **jaas('clientId="a"')}, "an option clientId, which OAUTHBEARER with"),
        (URL | CLIENT | jaas('hunter2="x"'), "an option (not shown), which OAUTHBEARER with client credentials"),
        (jaas('unsecuredLoginStringClaim_sub="a" clientId="b"'), "an option clientId, which OAUTHBEARER with unsec"),
        (jaas('unsecuredLoginStringClaim_name="a"'), "must hold unsecuredLoginStringClaim_sub: the user's name"),
        (
            jaas('unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="long"'),
            "unsecuredLoginLifetimeSeconds must be a whole number",
        ),
        (jaas('unsecuredLoginStringClaim_sub="a" unsecuredLoginNumberClaim_n="hunter2"'), "must be a number"),
        ({"sasl_oauthbearer_token_endpoint_url": "login.test/token"}, "must be the URL of a token endpoint"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://me:hunter2@login.test/"}, "must not hold a user or a pass"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://login.test/#a"}, "must not hold a fragment"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://login.test:0x1/"}, "could not be cast"),
        (CLIENT | {"sasl_oauthbearer_token_endpoint_url": "http://login.test/"}, "is not https"),
        (URL | KEY | {"sasl_oauthbearer_assertion_algorithm": "HS256"}, "must be RS256 or ES256"),
        (URL | CLIENT | {"sasl_login_callback_handler_class": "my.Handler"}, "is a Java class that kclient does not"),
        (URL | CLIENT | {"sasl_oauthbearer_jwt_retriever_class": "my.Retriever"}, "is a Java class that kclient does"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_told(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config(**keys)
    shown = str(caught.value)
    assert text in shown
    assert "hunter2" not in shown


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]"])
def test_loopback_needs_no_tls(host: str) -> None:
    assert config(**CLIENT, sasl_oauthbearer_token_endpoint_url=f"http://{host}:8080/token")


def test_a_key_goes_before_its_jaas_option_as_in_java() -> None:
    found = config(**URL, **CLIENT, **jaas('clientId="other" clientSecret="secret"'))
    assert found.sasl_oauthbearer_client_credentials_client_id == "reader"
    assert "secret" not in repr(JaasOptions.of(found.sasl_jaas_config))
