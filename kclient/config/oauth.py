"""OAUTHBEARER: which source of tokens the settings choose, and whether they agree.

    sasl_oauth_token_provider                              FUNCTION             tokens of a function
    the same with a vendor's name, or its Java classes     AWS, AZURE, GCP      of the vendor's library (cloud.py)
    token endpoint URL, http or https                      CLIENT_CREDENTIALS   of an OAuth 2.0 server
    the same, JwtBearerJwtRetriever                        JWT_BEARER           the same, for an assertion
    token endpoint URL, file                               FILE                 of a file that something else renews
    JAAS options unsecuredLogin…                           UNSECURED            without a signature, for tests

Java chooses by class names: those of Kafka, and of Strimzi's OAuth library, choose the same source here. Java's JAAS
options (`JaasOptions`) stand for keys; a key goes before its option, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import attrs

from kclient.config import cloud
from kclient.config.values import filled_text
from kclient.security.jaas import parse_jaas, shown_module, shown_option
from kclient.security.secret import HiddenText, Secret


class TokenOrigin(StrEnum):
    """Where tokens come from."""

    FUNCTION = "a function"
    CLIENT_CREDENTIALS = "client credentials"
    JWT_BEARER = "an assertion"
    FILE = "a token file"
    UNSECURED = "unsecuredLogin options"
    AWS = "aws_msk_iam"
    AZURE = "azure"
    GCP = "gcp"


PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
LOGIN_MODULE: Final = f"{PACKAGE}.OAuthBearerLoginModule"
STRIMZI: Final = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"

HANDLERS: Final[Mapping[str, TokenOrigin | None]] = {
    f"{PACKAGE}.OAuthBearerLoginCallbackHandler": None,
    f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler": None,  # until Kafka 3.9
    f"{PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler": TokenOrigin.UNSECURED,
    STRIMZI: None,
    **{name: TokenOrigin(vendor) for name, vendor in cloud.VENDOR_OF_HANDLER.items()},
}
"""Java's login callback handlers. None: the other keys choose."""

RETRIEVERS: Final[Mapping[str, TokenOrigin | None]] = {
    f"{PACKAGE}.DefaultJwtRetriever": None,
    f"{PACKAGE}.ClientCredentialsJwtRetriever": TokenOrigin.CLIENT_CREDENTIALS,
    f"{PACKAGE}.JwtBearerJwtRetriever": TokenOrigin.JWT_BEARER,
    f"{PACKAGE}.FileJwtRetriever": TokenOrigin.FILE,
}

PROVIDER: Final = "sasl_oauth_token_provider"
URL: Final = "sasl_oauthbearer_token_endpoint_url"
CLIENT_ID: Final = "sasl_oauthbearer_client_credentials_client_id"
CLIENT_SECRET: Final = "sasl_oauthbearer_client_credentials_client_secret"  # noqa: S105 (a key's name)
SCOPE: Final = "sasl_oauthbearer_scope"
SUB_CLAIM: Final = "sasl_oauthbearer_sub_claim_name"
ASSERTION_FILE: Final = "sasl_oauthbearer_assertion_file"
PRIVATE_KEY: Final = "sasl_oauthbearer_assertion_private_key_file"
ASSERTION: Final = "sasl_oauthbearer_assertion_"

# What several sources take: the class names, when tokens are renewed, and how claims are named.
COMMON: Final = ("sasl_mechanism", "sasl_jaas_config", "sasl_login_", "allow_plaintext_credentials")
CLAIMS: Final = (SUB_CLAIM, "sasl_oauthbearer_scope_claim_name", "sasl_oauthbearer_jwt_retriever_class")
TIMEOUTS: Final = ("sasl_login_connect_timeout_ms", "sasl_login_read_timeout_ms")
TAKEN: Final[Mapping[TokenOrigin, tuple[str, ...]]] = {
    TokenOrigin.FUNCTION: (PROVIDER,),
    TokenOrigin.CLIENT_CREDENTIALS: (
        *CLAIMS,
        URL,
        CLIENT_ID,
        CLIENT_SECRET,
        SCOPE,
        ASSERTION,
        "sasl_oauthbearer_header_urlencode",
    ),
    TokenOrigin.JWT_BEARER: (*CLAIMS, URL, SCOPE, ASSERTION),
    TokenOrigin.FILE: (*CLAIMS, URL),
    TokenOrigin.UNSECURED: (),
    TokenOrigin.AWS: (PROVIDER,),
    TokenOrigin.AZURE: (PROVIDER, SCOPE),
    TokenOrigin.GCP: (PROVIDER,),
}
"""The beginnings of the keys that each source uses; another one would do nothing."""

ASKED: Final = (TokenOrigin.CLIENT_CREDENTIALS, TokenOrigin.JWT_BEARER)
"""The sources that are asked over a network."""

EXTENSION: Final = "extension_"
SSL: Final = "ssl."
STRIMZI_SSL: Final = "oauth.ssl."
UNSECURED: Final = "unsecuredLogin"
UNSECURED_OPTIONS: Final = ("PrincipalClaimName", "LifetimeSeconds", "ScopeClaimName")
UNSECURED_PREFIXES: Final = ("StringClaim_", "NumberClaim_", "ListClaim_", "Extension_")
DEFAULT_LIFETIME_SECONDS: Final = "3600"

# The field of JaasOptions that each option fills.
OPTIONS: Final = {"clientId": "client_id", "clientSecret": "client_secret", "scope": "scope"}
STRIMZI_OPTIONS: Final = {
    "oauth.token.endpoint.uri": "url",
    "oauth.client.id": "client_id",
    "oauth.client.secret": "client_secret",
    "oauth.scope": "scope",
    "oauth.username.claim": "principal_claim",
    "oauth.audience": "audience",
}


@attrs.frozen(kw_only=True)
class JaasOptions:
    """What the JAAS entry of OAUTHBEARER says, which is where Java had all settings until Kafka 4.0."""

    module: str = LOGIN_MODULE
    url: str | None = None
    client_id: str | None = None
    client_secret: str | None = attrs.field(default=None, repr=False)
    scope: str | None = None
    audience: str | None = None
    principal_claim: str | None = None
    options: Mapping[str, str] = attrs.field(factory=dict, repr=False)

    @classmethod
    def of(cls, jaas: Secret | None) -> JaasOptions:
        """Read the entry. Raise ValueError."""
        if jaas is None:
            return cls()
        entry = parse_jaas(jaas.reveal())
        fields = {
            field: HiddenText(entry.options[option].strip())
            for option, field in (OPTIONS | STRIMZI_OPTIONS).items()
            if entry.options.get(option, "").strip()
        }
        return cls(module=cloud.without_prefix(entry.module), options=entry.options, **fields)

    @property
    def extensions(self) -> dict[str, str]:
        """The SASL extensions (KIP-342) that are sent with a token."""
        return _after(EXTENSION, self.options) | _after(f"{UNSECURED}Extension_", self.options)

    @property
    def tls(self) -> dict[str, str]:
        """The keys of TLS, for the token endpoint alone."""
        found = _after(SSL, self.options) or _after(STRIMZI_SSL, self.options)
        return {f"ssl_{name.replace('.', '_')}": value for name, value in found.items()}


def _after(prefix: str, options: Mapping[str, str]) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def origin_of(
    *, provider: object, url: str | None, retriever: str, handler: str | None, jaas: JaasOptions
) -> TokenOrigin | None:
    """Return where tokens come from, None if no setting says so."""
    if provider is not None:
        return TokenOrigin.FUNCTION
    chosen = RETRIEVERS[retriever] or HANDLERS.get(handler or "")
    if chosen is not None:
        return chosen
    url = url or jaas.url
    if url is not None:
        return TokenOrigin.FILE if urlsplit(url).scheme == "file" else TokenOrigin.CLIENT_CREDENTIALS
    return TokenOrigin.UNSECURED if any(name.startswith(UNSECURED) for name in jaas.options) else None


# --- the rules between keys ------------------------------------------------------------------------------------------


def disagreements(values: Mapping[str, Any], changed: list[str]) -> Iterator[str]:
    """Return the contradictions, one sentence each; `changed` are the keys of SASL that are not at their default."""
    if values["sasl_username"] is not None or values["sasl_password"] is not None:
        yield "sasl_username and sasl_password would do nothing: OAUTHBEARER has tokens; leave them out"
    jaas = JaasOptions.of(values["sasl_jaas_config"])
    if problem := _wrong_module(values, jaas):
        yield problem
        return
    if (vendor := cloud.vendor_of(values)) is not None:
        yield from _idle(TokenOrigin(vendor), changed)
        yield from cloud.disagreements(vendor, values, jaas.options)
        return
    handler = values["sasl_login_callback_handler_class"]
    origin = origin_of(
        provider=values[PROVIDER],
        url=values[URL],
        retriever=values["sasl_oauthbearer_jwt_retriever_class"],
        handler=handler,
        jaas=jaas,
    )
    if origin is None:
        yield (
            f"OAUTHBEARER needs a source of tokens: {URL} with {CLIENT_ID}, or {PROVIDER}, a function that "
            "returns a token"
        )
        return
    yield from _idle(origin, changed)
    yield from _unknown_options(origin, jaas, handler)
    if origin is TokenOrigin.UNSECURED:
        yield from _of_unsecured(jaas.options)
    elif origin is not TokenOrigin.FUNCTION:
        yield from _of_url(values, origin, values[URL] or jaas.url)
    if origin in ASKED:
        yield from _of_assertions(values, origin, jaas)


def _wrong_module(values: Mapping[str, Any], jaas: JaasOptions) -> str:
    """Return what is wrong about mechanism and login module, empty if nothing is."""
    mechanism, module = values["sasl_mechanism"], LOGIN_MODULE
    if mechanism == cloud.AWS_MSK_IAM:
        if values["sasl_jaas_config"] is None:
            return cloud.INSTEAD
        module = cloud.IAM_LOGIN_MODULE
    if jaas.module == module:
        return ""
    return f"sasl_jaas_config must name {module} for {mechanism}; it names {shown_module(jaas.module)}"


def _idle(origin: TokenOrigin, changed: list[str]) -> Iterator[str]:
    taken = (*COMMON, *TAKEN[origin])
    idle = [
        name
        for name in changed
        if name not in ("sasl_username", "sasl_password")
        and (not name.startswith(taken) or (name in TIMEOUTS and origin not in ASKED))
    ]
    if idle:
        yield f"{', '.join(idle)} would do nothing: the tokens are those of {origin}; leave it out"


def _unknown_options(origin: TokenOrigin, jaas: JaasOptions, handler: str | None) -> Iterator[str]:
    for name in jaas.options:
        if handler == STRIMZI:
            known = name in STRIMZI_OPTIONS or name.startswith((STRIMZI_SSL, EXTENSION))
        elif origin is TokenOrigin.UNSECURED:
            known = _is_unsecured_option(name)
        elif origin in ASKED:
            known = name in OPTIONS or name.startswith((EXTENSION, SSL))
        else:
            known = name.startswith(EXTENSION) and origin is TokenOrigin.FILE
        if not known:
            yield (
                f"sasl_jaas_config has an option {shown_option(name)}, which OAUTHBEARER with {origin} does not know"
            )


def _is_unsecured_option(name: str) -> bool:
    rest = name.removeprefix(UNSECURED)
    return rest != name and (rest in UNSECURED_OPTIONS or rest.startswith(UNSECURED_PREFIXES))


def _of_url(values: Mapping[str, Any], origin: TokenOrigin, url: str | None) -> Iterator[str]:
    is_file = url is not None and urlsplit(url).scheme == "file"
    if url is None or is_file != (origin is TokenOrigin.FILE):
        wanted = "file:///path" if origin is TokenOrigin.FILE else "the address of an endpoint, https://…"
        yield f"{origin} needs {URL}: {wanted}"
    elif not is_file and not values["allow_plaintext_credentials"] and _is_in_clear(url):
        yield (
            f"{URL} is not https: client and token would be sent for everyone to read; use https, or say "
            "allow_plaintext_credentials=True"
        )


def _of_assertions(values: Mapping[str, Any], origin: TokenOrigin, jaas: JaasOptions) -> Iterator[str]:
    given = [name for name, value in values.items() if name.startswith(ASSERTION) and _is_set(name, value)]
    found = {
        CLIENT_ID: values[CLIENT_ID] or jaas.client_id,
        CLIENT_SECRET: values[CLIENT_SECRET] or jaas.client_secret,
    }
    if values[ASSERTION_FILE] is not None and len(given) > 1:
        others = [name for name in given if name != ASSERTION_FILE]
        yield f"{ASSERTION_FILE} is a ready assertion, beside which {', '.join(others)} would do nothing"
    elif given and values[ASSERTION_FILE] is None and values[PRIVATE_KEY] is None:
        yield f"{', '.join(given)} needs {PRIVATE_KEY}, which signs the assertion"
    if not given and origin is TokenOrigin.JWT_BEARER:
        yield f"{origin} needs {ASSERTION_FILE}, or {PRIVATE_KEY} to sign one"
    elif not given and (absent := [name for name, value in found.items() if value is None]):
        yield f"{URL} needs {' and '.join(absent)}, or an assertion ({PRIVATE_KEY})"
    if given and found[CLIENT_SECRET] is not None:
        yield f"{CLIENT_SECRET} would do nothing: {given[0]} takes its place"


_NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,15})?")
ASSERTION_DEFAULTS: Final[Mapping[str, Any]] = {
    f"{ASSERTION}algorithm": "RS256",
    f"{ASSERTION}claim_exp_seconds": 300,
    f"{ASSERTION}claim_nbf_seconds": 60,
    f"{ASSERTION}claim_jti_include": False,
}


def _is_set(name: str, value: object) -> bool:
    default: object = ASSERTION_DEFAULTS.get(name)
    return bool(value != default)


def _of_unsecured(options: Mapping[str, str]) -> Iterator[str]:
    lifetime = options.get(f"{UNSECURED}LifetimeSeconds", DEFAULT_LIFETIME_SECONDS)
    if not lifetime.strip().isdecimal() or not 1 <= int(lifetime) <= 2**31:
        yield "sasl_jaas_config: unsecuredLoginLifetimeSeconds must be a whole number of at least 1"
    for name, value in options.items():
        if name.startswith(f"{UNSECURED}NumberClaim_") and not _NUMBER.fullmatch(value):
            yield "sasl_jaas_config: an option unsecuredLoginNumberClaim_… must be a number"
    principal = options.get(f"{UNSECURED}PrincipalClaimName", "sub")
    if f"{UNSECURED}StringClaim_{principal}" not in options:
        yield f"sasl_jaas_config must hold unsecuredLoginStringClaim_{printable_claim(principal)}: the user's name"


def printable_claim(name: str) -> str:
    """Return how an error names a claim; text unlike a claim's name may be a misplaced secret."""
    return name if name == "sub" else "… (the claim of unsecuredLoginPrincipalClaimName)"


def _is_in_clear(url: str) -> bool:
    """Return whether others could read what is sent to the URL. Loopback does not leave the machine."""
    parts = urlsplit(url)
    return parts.scheme != "https" and not is_loopback(parts.hostname or "")


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is this machine's own, so that what is sent does not leave it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def settle(values: dict[str, Any]) -> None:
    """Replace the settings of a vendor's Java classes by the provider that they mean."""
    if values["sasl_mechanism"] in ("OAUTHBEARER", cloud.AWS_MSK_IAM):
        cloud.settle(values, JaasOptions.of(values["sasl_jaas_config"]).options)


# --- the rules of values ---------------------------------------------------------------------------------------------


def endpoint_url(raw: Any) -> str:
    """Check the URL of a token endpoint, or of a token file."""
    url = filled_text(raw)
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    if scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return url
    if scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be the URL of a token endpoint (https://…) or of a token file (file:///…)")
    if parts.username is not None or parts.password is not None:
        raise ValueError(f"must not hold a user or a password; give {CLIENT_ID} and {CLIENT_SECRET}")
    if parts.fragment or any(not "\x20" < sign < "\x7f" for sign in url):
        raise ValueError("must not hold a fragment, a blank or a character outside ASCII")
    _ = parts.port  # raises ValueError for a port that is none
    return url


def file_of(url: str) -> str:
    """Return the path of a file URL."""
    return unquote(urlsplit(url).path)


def handler_class(raw: Any) -> str:
    """Check the name of a login callback handler."""
    return _known_class(
        raw, HANDLERS, "asks for tokens; give a function as sasl_oauth_token_provider instead"
    )


def retriever_class(raw: Any) -> str:
    """Check the name of a retriever of tokens."""
    return _known_class(
        raw, RETRIEVERS, "requests tokens; give a function as sasl_oauth_token_provider instead"
    )


def _known_class(raw: Any, known: Mapping[str, Any], what: str) -> str:
    name = cloud.without_prefix(filled_text(raw))
    if name not in known:
        raise ValueError(f"is a Java class that kclient does not have, which {what}")
    return name


def algorithm(raw: Any) -> str:
    """Check how assertions are signed."""
    word = filled_text(raw).upper()
    if word not in ("RS256", "ES256"):
        raise ValueError("must be RS256 or ES256")
    return word
