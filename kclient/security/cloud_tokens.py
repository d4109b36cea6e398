"""Tokens for the managed Kafka of AWS, Azure and Google, each from the vendor's own library.

    aws_msk_iam   aws-msk-iam-sasl-signer-python   a signed URL; made here, without a request, valid for 15 minutes
    azure         azure-identity                   a token of Microsoft Entra ID for the namespace of Event Hubs
    gcp           google-auth                      an access token in Google's envelope: HEADER.CLAIMS.ACCESS_TOKEN

The libraries find the credentials as they do for every other program: environment, files, or the identity of the
machine. They are imported with the first token. The objects here are called in a worker thread, once at a time.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from typing import Any, ClassVar, Final, Protocol

import attrs

from kclient.runtime import Runtime
from kclient.security.oauthbearer import OAuthToken, TokenError, claims_of
from kclient.security.secret import HiddenText
from kclient.text import printable

KEY: Final = "sasl_oauth_token_provider"
PATIENCE_SECONDS: Final = 10  # for one answer of a vendor's endpoint
LONGEST_FAILURE: Final = 1_000  # characters of a vendor's error

_SECRET_NAME = re.compile(r"SECRET|TOKEN|PASSWORD|ACCESS_KEY|IDENTITY_HEADER", re.IGNORECASE)
_LONG_WORD = re.compile(r"[A-Za-z0-9+=_~-]{40,}")
_MSK_REGION = re.compile(
    r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|amazonaws\.eu|api\.aws)$"
)
_EVENT_HUBS = re.compile(r"[^.]+\.servicebus\.[a-z.]+$")


class CloudTokens(Protocol):
    """A provider of tokens that may depend on the cluster."""

    def for_cluster(self, hosts: Iterable[str], scope: str | None) -> CloudTokens:
        """Return the provider for these bootstrap hosts and `sasl.oauthbearer.scope`. Raise ValueError."""

    def __call__(self) -> OAuthToken:
        """Return a token. Raise TokenError."""


def require(module: str, package: str, extra: str) -> None:
    """Raise ValueError if the library is not installed. It is not imported, which takes up to a second."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:  # a parent of the module
        found = None
    if found is None:
        raise ValueError(
            f"needs the package {package}, which is not installed. Type: pip install 'kclient-kafka[{extra}]'"
        )


def failure_of(name: str, exc: Exception) -> TokenError:
    """Return the error with what a vendor's library says: one line, cut, without anything that may be a secret."""
    if isinstance(exc, TokenError):
        return exc
    text = " ".join(str(exc).split())
    for secret in sorted(_secrets_of_environment(), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _LONG_WORD.sub("***", text)
    return TokenError(f"{KEY}={name} failed with {type(exc).__name__}: {printable(text, LONGEST_FAILURE)}")


def _secrets_of_environment() -> set[str]:
    return {
        value
        for name, value in os.environ.items()
        if len(value) >= 8 and _SECRET_NAME.search(name) and not os.path.exists(value)
    }


# --- AWS


def msk_region(hosts: Iterable[str]) -> str | None:
    """Return the region in the name of an MSK broker, or of a serverless cluster."""
    found = (_MSK_REGION.search(host.lower()) for host in hosts)
    return next((match[1] for match in found if match), None)


@attrs.frozen(kw_only=True)
class AwsKeys:
    """An access key of AWS, given in the settings."""

    access_key: str
    secret_key: str = attrs.field(repr=False, converter=HiddenText)
    session_token: str | None = attrs.field(
        default=None, repr=False, converter=attrs.converters.optional(HiddenText)
    )


@attrs.frozen(kw_only=True)
class MskIamTokens:
    """Tokens for Amazon MSK with IAM: a request `kafka-cluster:Connect`, signed with the credentials.

    The credentials are looked up for each token, so those that were rotated in a file are used without a restart.
    """

    NAME: ClassVar[str] = "aws_msk_iam"
    ADVICE: ClassVar[str] = (
        "Allow kafka-cluster:Connect on this cluster in the IAM policy of these credentials, and check the region and "
        "the clock of this machine."
    )

    region: str | None = None
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = "kclient"
    external_id: str | None = None
    sts_region: str | None = None
    keys: AwsKeys | None = None

    def for_cluster(self, hosts: Iterable[str], scope: str | None = None) -> MskIamTokens:
        """Return the provider with the region: its own, that of the brokers' names, or that of the environment."""
        require("aws_msk_iam_sasl_signer", "aws-msk-iam-sasl-signer-python", "aws")
        environment = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        region = self.region or msk_region(hosts) or environment
        if not region:
            raise ValueError(
                "needs the region of the cluster, which the names in bootstrap_servers do not say; set AWS_REGION, or "
                "in Python msk_iam_tokens(region=…)"
            )
        return attrs.evolve(self, region=region)

    def __call__(self) -> OAuthToken:
        try:
            return self._sign()
        except Exception as exc:  # noqa: BLE001 – of any kind, from a library
            raise failure_of(self.NAME, exc) from None

    def _sign(self) -> OAuthToken:
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider as signer  # noqa: N813
        from botocore.credentials import CredentialProvider

        credentials = self._credentials()

        class Given(CredentialProvider):  # type: ignore[misc]
            def load(self) -> Any:
                return credentials

        value, expires_ms = signer.generate_auth_token_from_credentials_provider(self.region, Given())
        return OAuthToken(
            value=value,
            expires_at=expires_ms / 1000,
            issued_at=expires_ms / 1000 - signer.DEFAULT_TOKEN_EXPIRY_SECONDS,
            principal=self.role_arn or credentials.access_key,
        )

    def _credentials(self) -> Any:
        import botocore.session

        session = botocore.session.Session(profile=self.profile)
        if self.keys is not None:
            session.set_credentials(self.keys.access_key, self.keys.secret_key, self.keys.session_token)
        found = session.get_credentials()
        if found is None:
            raise TokenError(
                f"{KEY}={self.NAME} failed: no AWS credentials were found; set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, name a profile, or give the container or machine a role"
            )
        # Frozen: read one by one, the parts of credentials that are renewed meanwhile would not belong together.
        return self._assumed(session) if self.role_arn is not None else found.get_frozen_credentials()

    def _assumed(self, session: Any) -> Any:
        from botocore.config import Config
        from botocore.credentials import ReadOnlyCredentials

        bounds = Config(connect_timeout=PATIENCE_SECONDS, read_timeout=PATIENCE_SECONDS)
        region = self.sts_region or self.region
        sts = session.create_client("sts", region_name=region, config=bounds)
        external = {} if self.external_id is None else {"ExternalId": self.external_id}
        answer = sts.assume_role(RoleArn=self.role_arn, RoleSessionName=self.role_session_name, **external)
        found = answer["Credentials"]
        return ReadOnlyCredentials(found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"])


def msk_iam_tokens(
    *,
    region: str | None = None,
    profile: str | None = None,
    role_arn: str | None = None,
    role_session_name: str = "kclient",
    external_id: str | None = None,
    sts_region: str | None = None,
) -> MskIamTokens:
    """Return a provider of tokens for Amazon MSK with IAM: `sasl_oauth_token_provider=msk_iam_tokens()`.

    `region` is that of the cluster; without it, the one in the names of the bootstrap servers, AWS_REGION or
    AWS_DEFAULT_REGION. `profile` is one of the AWS configuration files. With `role_arn` the credentials assume this
    role, at the STS of `sts_region`, or of the cluster's region. Needs kclient-kafka[aws].
    """
    return MskIamTokens(
        region=region,
        profile=profile,
        role_arn=role_arn,
        role_session_name=role_session_name,
        external_id=external_id,
        sts_region=sts_region,
    )


# --- Azure


def event_hubs_scope(hosts: Iterable[str]) -> str | None:
    """Return the scope of an Event Hubs namespace, whose name is the host's."""
    found = (host.lower() for host in hosts if _EVENT_HUBS.fullmatch(host.lower()))
    return next((f"https://{host}/.default" for host in found), None)


@attrs.define(kw_only=True)
class AzureTokens:
    """Tokens of Microsoft Entra ID. azure-identity keeps one and renews it five minutes before its end."""

    NAME: ClassVar[str] = "azure"
    ADVICE: ClassVar[str] = (
        "Assign the role Azure Event Hubs Data Receiver to this identity, and compare the scope with the namespace."
    )

    scope: str | None = None
    credential: Any = attrs.field(default=None, repr=False)
    extensions: Mapping[str, str] = attrs.field(factory=dict)

    def for_cluster(self, hosts: Iterable[str], scope: str | None = None) -> AzureTokens:
        """Return the provider with the scope: its own, that of the settings, or that of the namespace."""
        if self.credential is None:
            require("azure.identity", "azure-identity", "azure")
        wanted = self.scope or scope or event_hubs_scope(hosts)
        if not wanted:
            raise ValueError(
                "needs a scope, which the names in bootstrap_servers do not say; set sasl_oauthbearer_scope, for Event "
                "Hubs to https://NAMESPACE.servicebus.windows.net/.default"
            )
        return attrs.evolve(self, scope=wanted)

    def __call__(self) -> OAuthToken:
        try:
            found = self._credential().get_token(self.scope)
        except Exception as exc:  # noqa: BLE001 – of any kind, from a library
            raise failure_of(self.NAME, exc) from None
        return OAuthToken(
            value=found.token,
            expires_at=found.expires_on,
            principal=_subject(found.token),
            extensions=self.extensions,
            scope=self.scope or "",
        )

    def _credential(self) -> Any:
        if self.credential is None:
            from azure.identity import DefaultAzureCredential

            self.credential = DefaultAzureCredential(
                connection_timeout=PATIENCE_SECONDS, read_timeout=PATIENCE_SECONDS
            )
        return self.credential


def _subject(token: str) -> str:
    try:
        subject = claims_of(token).get("sub")
    except ValueError:  # an opaque token
        return ""
    return subject if isinstance(subject, str) else ""


def azure_tokens(
    *, scope: str | None = None, credential: Any = None, extensions: Mapping[str, str] | None = None
) -> AzureTokens:
    """Return a provider of tokens for Azure Event Hubs: `sasl_oauth_token_provider=azure_tokens()`.

    `scope` is by default https://NAMESPACE.servicebus.windows.net/.default of the bootstrap server. `credential` is
    one of azure-identity's, by default `DefaultAzureCredential()`. `extensions` are for brokers that trust Microsoft
    Entra ID elsewhere: Confluent Cloud wants logicalCluster and identityPoolId. Needs kclient-kafka[azure].
    """
    return AzureTokens(scope=scope, credential=credential, extensions=extensions or {})


# --- Google

GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
GOOGLE_HEADER: Final = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}


@attrs.define(kw_only=True)
class GcpTokens:
    """Tokens for Google's Managed Service for Apache Kafka."""

    NAME: ClassVar[str] = "gcp"
    ADVICE: ClassVar[str] = "Grant roles/managedkafka.client to this principal in the project of the cluster."

    credentials: Any = attrs.field(default=None, repr=False)
    principal: str | None = None

    def for_cluster(self, hosts: Iterable[str], scope: str | None = None) -> GcpTokens:
        """Return the provider; it is the same for every cluster."""
        require("google.auth", "google-auth", "gcp")
        require("requests", "requests", "gcp")
        return attrs.evolve(self)

    def __call__(self) -> OAuthToken:
        try:
            return self._enveloped()
        except Exception as exc:  # noqa: BLE001 – of any kind, from a library
            raise failure_of(self.NAME, exc) from None

    def _enveloped(self) -> OAuthToken:
        import google.auth
        from google.auth.transport.requests import Request

        if self.credentials is None:
            self.credentials, _ = google.auth.default(scopes=[GOOGLE_SCOPE])
        self.credentials.refresh(Request())
        principal = self.principal or _account_of(self.credentials)
        if not principal:
            raise TokenError(
                f"{KEY}={self.NAME} failed: the credentials name no account; use a service account, or in Python "
                "gcp_tokens(principal=…)"
            )
        # google-auth has naive datetimes in UTC.
        expires_at = self.credentials.expiry.replace(tzinfo=UTC).timestamp()
        return google_token(self.credentials.token, principal, expires_at, Runtime().wall_clock())


def google_token(access_token: str, principal: str, expires_at: float, issued_at: float) -> OAuthToken:
    """Return an access token in the envelope that Google's brokers read: HEADER.CLAIMS.ACCESS_TOKEN in base64url."""
    claims = {
        "exp": int(expires_at),
        "iss": "Google",
        "iat": int(issued_at),
        "scope": "kafka",
        "sub": principal,
    }
    parts = (json.dumps(GOOGLE_HEADER), json.dumps(claims), access_token)
    value = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return OAuthToken(value=value, expires_at=expires_at, principal=principal)


def _account_of(credentials: Any) -> str:
    """Return the e-mail address of the account: of a service account, or of a user who has logged in."""
    for name in ("service_account_email", "account"):
        if isinstance(found := getattr(credentials, name, None), str) and "@" in found:
            return found
    try:
        email = claims_of(getattr(credentials, "id_token", None) or "").get("email")
    except ValueError:
        return ""
    return email if isinstance(email, str) else ""


def gcp_tokens(*, credentials: Any = None, principal: str | None = None) -> GcpTokens:
    """Return a provider of tokens for Google's Managed Kafka: `sasl_oauth_token_provider=gcp_tokens()`.

    `credentials` are google-auth's, by default the Application Default Credentials. `principal` is the e-mail address
    of the account, where the credentials do not say it. Needs kclient-kafka[gcp].
    """
    return GcpTokens(credentials=credentials, principal=principal)


# --- by name

BY_NAME: Final[dict[str, Callable[[], CloudTokens]]] = {
    MskIamTokens.NAME: msk_iam_tokens,
    AzureTokens.NAME: azure_tokens,
    GcpTokens.NAME: gcp_tokens,
}
"""What `sasl.oauth.token.provider` may say in a file of settings."""
