"""Which vendor's tokens the settings mean: Java's classes and options for them, and the texts of a settings file.

    sasl.oauth.token.provider=aws_msk_iam, azure, gcp                  the vendor's library
    sasl.oauth.token.provider=package.module:function                  a function of the user
    IAMLoginModule with IAMClientCallbackHandler                       aws_msk_iam (aws-msk-iam-auth)
    IAMOAuthBearerLoginCallbackHandler                                 aws_msk_iam
    GcpLoginCallbackHandler                                            gcp (managed-kafka-auth-login-handler)

AWS_MSK_IAM is a mechanism of its own in Java. Brokers of MSK offer OAUTHBEARER on the same port for the same
credentials, and that is what kclient uses.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from kclient.config.values import filled_text
from kclient.security.cloud_tokens import BY_NAME, AwsKeys, AzureTokens, CloudTokens, MskIamTokens
from kclient.security.jaas import shown_option

AWS_MSK_IAM: Final = "AWS_MSK_IAM"
IAM: Final = "software.amazon.msk.auth.iam"
IAM_LOGIN_MODULE: Final = f"{IAM}.IAMLoginModule"
PREFIXES: Final = ("shadedmskiam.", "kafkashaded.")
"""What platforms of Spark put in front of Java's class names."""
IAM_CLIENT_HANDLERS: Final = tuple(f"{prefix}{IAM}.IAMClientCallbackHandler" for prefix in ("", *PREFIXES))
"""The client callback handler of IAMLoginModule, which says nothing more."""

VENDOR_OF_HANDLER: Final = {
    f"{IAM}.IAMOAuthBearerLoginCallbackHandler": "aws_msk_iam",
    "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler": "gcp",
}
"""Java's login callback handler → the name of the provider."""

AWS_OPTIONS: Final = {
    "awsProfileName": "profile",
    "awsRoleArn": "role_arn",
    "awsRoleSessionName": "role_session_name",
    "awsRoleExternalId": "external_id",
    "awsStsRegion": "sts_region",
}
AWS_KEY_OPTIONS: Final = ("awsRoleAccessKeyId", "awsRoleSecretAccessKey", "awsRoleSessionToken")
AWS_IDLE_OPTIONS: Final = ("awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs")
"""Java's own logging and retries: a failed request is repeated here as `sasl.login.retry.backoff.ms` says."""

INSTEAD: Final = (
    "sasl_mechanism=AWS_MSK_IAM is the mechanism of Java's aws-msk-iam-auth; write sasl_mechanism=OAUTHBEARER and "
    "sasl_oauth_token_provider=aws_msk_iam, which MSK takes on the same port with the same rights"
)


def without_prefix(name: str) -> str:
    """Return the name of a Java class without the prefix of a shaded jar."""
    for prefix in PREFIXES:
        name = name.removeprefix(prefix)
    return name


# --- the rules of values


def token_provider(raw: Any) -> Any:
    """Check a provider of tokens: a function without parameters, the name of a vendor's, or module:function."""
    if callable(raw):
        return raw
    if not isinstance(raw, str):
        # kafka-python and aiokafka take an object.
        hint = "; give its method token" if callable(getattr(raw, "token", None)) else ""
        raise ValueError(
            f"must be a function that returns an OAuthToken, or the text of a JSON Web Token{hint}"
        )
    name = filled_text(raw)
    if name.lower() in BY_NAME:
        return BY_NAME[name.lower()]()
    if ":" not in name:
        raise ValueError(
            "must be aws_msk_iam, azure, gcp, a function, or the name of one as package.module:function"
        )
    return _imported(name)


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as exc:  # ValueError: an empty name
        raise ValueError(f"names {name}, which cannot be imported ({exc})") from None
    if not callable(found):
        raise ValueError(f"names {name}, which is a {type(found).__name__} and no function")
    return found


# --- which provider


def name_of(provider: object) -> str | None:
    """Return the name of a vendor's provider, None for a function of the user."""
    return next((name for name in BY_NAME if name == getattr(provider, "NAME", None)), None)


def vendor_of(values: Mapping[str, Any]) -> str | None:
    """Return the name of the vendor's provider that the settings choose, None for another source of tokens."""
    if values["sasl_oauth_token_provider"] is not None:
        return name_of(values["sasl_oauth_token_provider"])
    if values["sasl_mechanism"] == AWS_MSK_IAM:
        return MskIamTokens.NAME
    return VENDOR_OF_HANDLER.get(values["sasl_login_callback_handler_class"] or "")


def tokens_of(vendor: str, values: Mapping[str, Any], options: Mapping[str, str]) -> CloudTokens:
    """Return the provider for the cluster and the JAAS options. Raise ValueError with the end of a sentence."""
    provider = values["sasl_oauth_token_provider"] or BY_NAME[vendor]()
    if isinstance(provider, MskIamTokens):
        provider = _with_aws_options(provider, options)
    elif isinstance(provider, AzureTokens):
        provider = attrs.evolve(provider, extensions={**_extensions(options), **provider.extensions})
    hosts = [server.rpartition(":")[0] for server in values["bootstrap_servers"]]
    found: CloudTokens = provider.for_cluster(hosts, values["sasl_oauthbearer_scope"])
    return found


def _with_aws_options(provider: MskIamTokens, options: Mapping[str, str]) -> MskIamTokens:
    changes: dict[str, Any] = {
        field: options[name] for name, field in AWS_OPTIONS.items() if options.get(name)
    }
    access_key, secret_key, session_token = (options.get(name) for name in AWS_KEY_OPTIONS)
    if access_key and secret_key:
        changes["keys"] = AwsKeys(access_key=access_key, secret_key=secret_key, session_token=session_token)
    return attrs.evolve(provider, **changes)


EXTENSION: Final = "extension_"


def _extensions(options: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(EXTENSION): text for name, text in options.items() if name.startswith(EXTENSION)
    }


# --- the rules between keys


def disagreements(vendor: str, values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[str]:
    """Return the contradictions, one sentence each."""
    for name in options:
        if not _knows(vendor, name):
            yield f"sasl_jaas_config has an option {shown_option(name)}, which {vendor} does not know"
    if options.get("awsProfileName") and options.get("awsRoleArn"):
        yield "sasl_jaas_config has awsProfileName and awsRoleArn, of which Java uses the profile alone; keep one"
    if bool(options.get(AWS_KEY_OPTIONS[0])) != bool(options.get(AWS_KEY_OPTIONS[1])):
        yield f"sasl_jaas_config must hold both {AWS_KEY_OPTIONS[0]} and {AWS_KEY_OPTIONS[1]}, or neither"
    try:
        tokens_of(vendor, values, options)
    except ValueError as exc:
        yield f"sasl_oauth_token_provider={vendor} {exc}"


def _knows(vendor: str, option: str) -> bool:
    if vendor == MskIamTokens.NAME:
        return option in (*AWS_OPTIONS, *AWS_KEY_OPTIONS, *AWS_IDLE_OPTIONS)
    return vendor == AzureTokens.NAME and option.startswith(EXTENSION)


def settle(values: dict[str, Any], options: Mapping[str, str]) -> None:
    """Replace the settings of a vendor by its provider for this cluster, over OAUTHBEARER."""
    if (vendor := vendor_of(values)) is not None:
        values["sasl_oauth_token_provider"] = tokens_of(vendor, values, options)
        values["sasl_mechanism"] = "OAUTHBEARER"
