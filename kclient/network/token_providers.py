"""The source of a client's tokens, made of its configuration: a function, a token endpoint, a file, or test tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kclient.config import Config
from kclient.config.cloud import name_of
from kclient.config.loading import load
from kclient.config.oauth import (
    DEFAULT_LIFETIME_SECONDS,
    UNSECURED,
    JaasOptions,
    TokenOrigin,
    file_of,
    origin_of,
)
from kclient.network.backoff import Backoff
from kclient.network.tls import tls_of, trusted_of
from kclient.network.token_endpoint import (
    Assertion,
    ClientAssertion,
    ClientSecret,
    Grant,
    JwtBearer,
    TokenEndpoint,
    TokenFile,
    TokenShape,
)
from kclient.network.token_source import COMPARE, FUNCTION, RefreshTiming, TokenProvider, TokenSource
from kclient.runtime import Runtime
from kclient.security.assertion import AssertionFile, SignedAssertion
from kclient.security.oauthbearer import OAuthToken, unsecured_token
from kclient.security.secret import Secret
from kclient.security.tls import Tls, TlsOptions

DEFAULT_TIMEOUT_MS: Final = 10_000  # Java has none, and waits for as long as the endpoint wants


def token_source_of(config: Config, runtime: Runtime) -> TokenSource:
    """Return the token source of a client. Raise ConfigError for unusable TLS options of the JAAS entry."""
    timing = RefreshTiming(
        window_factor=config.sasl_login_refresh_window_factor,
        window_jitter=config.sasl_login_refresh_window_jitter,
        min_period=config.sasl_login_refresh_min_period_seconds,
        buffer=config.sasl_login_refresh_buffer_seconds,
    )
    backoff = Backoff(config.sasl_login_retry_backoff_ms, config.sasl_login_retry_backoff_max_ms, runtime.rng)
    provider, name = _provider_of(config, runtime)
    timeout, advice = config.request_timeout_ms / 1000, getattr(provider, "ADVICE", COMPARE)
    return TokenSource(provider, timing, backoff, runtime, timeout, name, advice)


def _provider_of(config: Config, runtime: Runtime) -> tuple[TokenProvider, str]:
    """Return the provider, and how errors call it."""
    jaas = JaasOptions.of(config.sasl_jaas_config)
    url = config.sasl_oauthbearer_token_endpoint_url or jaas.url or ""
    if config.sasl_oauth_token_provider is not None:
        vendor = name_of(config.sasl_oauth_token_provider)
        return config.sasl_oauth_token_provider, FUNCTION if vendor is None else f"{FUNCTION}={vendor}"
    origin = origin_of(
        provider=None,
        url=url or None,
        retriever=config.sasl_oauthbearer_jwt_retriever_class,
        handler=config.sasl_login_callback_handler_class,
        jaas=jaas,
    )
    shape = TokenShape(
        extensions=jaas.extensions,
        principal_claim=jaas.principal_claim or config.sasl_oauthbearer_sub_claim_name,
        scope_claim=config.sasl_oauthbearer_scope_claim_name,
    )
    if origin is TokenOrigin.UNSECURED:
        return UnsecuredTokens(jaas.options, shape, runtime.wall_clock), "sasl_jaas_config"
    if origin is TokenOrigin.FILE:
        path = file_of(url)
        return TokenFile(path=path, shape=shape), f"the token file {path}"
    grant = _grant(config, jaas, is_bearer=origin is TokenOrigin.JWT_BEARER, runtime=runtime)
    return _endpoint(config, url, grant, shape, runtime), f"the token endpoint {url}"


def _endpoint(config: Config, url: str, grant: Grant, shape: TokenShape, runtime: Runtime) -> TokenEndpoint:
    jaas = JaasOptions.of(config.sasl_jaas_config)
    connect_ms = config.sasl_login_connect_timeout_ms or DEFAULT_TIMEOUT_MS
    read_ms = config.sasl_login_read_timeout_ms or DEFAULT_TIMEOUT_MS
    parameters = {"scope": config.sasl_oauthbearer_scope or jaas.scope, "audience": jaas.audience}
    return TokenEndpoint(
        url=url,
        grant=grant,
        parameters={name: value for name, value in parameters.items() if value is not None},
        shape=shape,
        tls=_tls_of_endpoint(config, jaas) if url.startswith("https") else None,
        seconds=(connect_ms + read_ms) / 1000,
        connect_seconds=connect_ms / 1000,
        wall_clock=runtime.wall_clock,
    )


def _grant(config: Config, jaas: JaasOptions, *, is_bearer: bool, runtime: Runtime) -> Grant:
    client_id = config.sasl_oauthbearer_client_credentials_client_id or jaas.client_id
    assertion = _assertion(config, runtime)
    if assertion is not None:
        return JwtBearer(assertion) if is_bearer else ClientAssertion(client_id, assertion)
    secret = config.sasl_oauthbearer_client_credentials_client_secret
    # The provider of the JAAS entry is called again for each request, as that of the key is.
    return ClientSecret(
        client_id or "",
        secret or Secret(lambda: JaasOptions.of(config.sasl_jaas_config).client_secret or ""),
        config.sasl_oauthbearer_header_urlencode,
    )


def _assertion(config: Config, runtime: Runtime) -> Assertion | None:
    if config.sasl_oauthbearer_assertion_file is not None:
        return AssertionFile(config.sasl_oauthbearer_assertion_file)
    if config.sasl_oauthbearer_assertion_private_key_file is None:
        return None
    claims = {
        "aud": config.sasl_oauthbearer_assertion_claim_aud,
        "iss": config.sasl_oauthbearer_assertion_claim_iss,
        "sub": config.sasl_oauthbearer_assertion_claim_sub,
    }
    return SignedAssertion(
        algorithm=config.sasl_oauthbearer_assertion_algorithm,
        key_file=config.sasl_oauthbearer_assertion_private_key_file,
        passphrase=config.sasl_oauthbearer_assertion_private_key_passphrase,
        claims={name: value for name, value in claims.items() if value is not None},
        template_file=config.sasl_oauthbearer_assertion_template_file,
        exp_seconds=config.sasl_oauthbearer_assertion_claim_exp_seconds,
        nbf_seconds=config.sasl_oauthbearer_assertion_claim_nbf_seconds,
        jti_include=config.sasl_oauthbearer_assertion_claim_jti_include,
        wall_clock=runtime.wall_clock,
        random_bytes=runtime.random_bytes,
    )


def _tls_of_endpoint(config: Config, jaas: JaasOptions) -> Tls | None:
    """Return how the endpoint's certificate is verified.

    Its authority is one of the operating system, or one that the brokers' may have; host names are always checked.
    Options `ssl.…` of the JAAS entry replace both, as in Java.
    """
    if jaas.tls:
        options = {
            "bootstrap_servers": "endpoint:443",
            "security_protocol": "SSL",
            "ssl_truststore_type": "PEM",
            **jaas.tls,
        }
        return tls_of(load(options))
    return Tls(TlsOptions(trusted=trusted_of(config), trusts_system=True))


@attrs.frozen
class UnsecuredTokens:
    """A provider of tokens without a signature, made of the options unsecuredLogin… of a JAAS entry, for tests."""

    options: Mapping[str, str] = attrs.field(repr=False)
    shape: TokenShape
    wall_clock: Callable[[], float]

    def __call__(self) -> OAuthToken:
        """Return a new token. Raise ValueError for a claim that is not a number."""
        now = self.wall_clock()
        lifetime = int(self._option("LifetimeSeconds", DEFAULT_LIFETIME_SECONDS))
        token = unsecured_token({**self._claims(), "iat": now, "exp": now + lifetime})
        principal, scope = self._option("PrincipalClaimName", "sub"), self._option("ScopeClaimName", "scope")
        return attrs.evolve(self.shape, principal_claim=principal, scope_claim=scope).of(token)

    def _option(self, name: str, default: str) -> str:
        return self.options.get(f"{UNSECURED}{name}", "").strip() or default

    def _claims(self) -> dict[str, Any]:
        claims: dict[str, Any] = {}
        for option, value in self.options.items():
            kind, _, name = option.removeprefix(UNSECURED).partition("_")
            if kind == "StringClaim":
                claims[name] = value
            elif kind == "NumberClaim":
                claims[name] = float(value)
            elif kind == "ListClaim":  # its first character separates the items: "|a|b"
                claims[name] = value[1:].split(value[:1]) if value else []
        return claims
