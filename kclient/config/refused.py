"""The keys that kclient knows and refuses, each with the values that ask for nothing and are therefore fine.

A key given with such a value – Kafka's own default, mostly – is accepted, so that the configuration of a Java client
that sets `metrics.recording.level=INFO` works as it is. Any other value is a problem with the reason given here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kclient.config.cloud import IAM_CLIENT_HANDLERS

CONTEXT = "give a ready ssl.SSLContext as ssl_context instead"
CALLBACKS = (
    "it names a Java class; give sasl_username and sasl_password, where a function may provide either, or "
    "sasl_oauth_token_provider"
)
KINIT = (
    "kclient runs no kinit: it renews the tickets of a keytab, and reads a ticket cache again for each authentication; "
    "leave it out"
)
OAUTH = "brokers check tokens with it, and a client does not; leave it out"
JVM = "it is about the Java virtual machine; leave it out"
SHARE = "it is for share consumers, and kclient has none; leave it out"
LEVEL = "kclient measures everything that INFO does, always; leave it out"
CONTEXT_LABELS = "a metric reporter of kclient's is an object: give the labels to it, and leave them out here"
PUSH = "kclient does not push client metrics to the broker; leave it out or set it to false"
PROVIDERS = "kclient has no configuration providers; put the value itself there"


_OAUTH_PACKAGE = "org.apache.kafka.common.security.oauthbearer"


class RefusedKey(NamedTuple):
    """Why a key is refused, and the values that are fine, in lower case."""

    reason: str
    harmless: tuple[str, ...] = ("",)

    def allows(self, raw: Any) -> bool:
        """Return whether this value has no effect."""
        if raw is None:
            return True
        if isinstance(raw, list | tuple):
            raw = ",".join(str(item) for item in raw)
        return str(raw).strip().lower() in self.harmless


REFUSED: dict[str, RefusedKey] = {
    # the group
    "share_acknowledgement_mode": RefusedKey(SHARE, ("implicit",)),
    "share_acquire_mode": RefusedKey(SHARE, ("batch_optimized",)),
    # around the client
    "config_providers": RefusedKey(PROVIDERS),
    "enable_metrics_push": RefusedKey(PUSH, ("false",)),
    "metrics_recording_level": RefusedKey(LEVEL, ("info",)),
    "security_providers": RefusedKey(JVM),
    "default_list_key_serde_inner": RefusedKey(JVM),
    "default_list_key_serde_type": RefusedKey(JVM),
    "default_list_value_serde_inner": RefusedKey(JVM),
    "default_list_value_serde_type": RefusedKey(JVM),
    # TLS
    "ssl_provider": RefusedKey(JVM),
    "ssl_keymanager_algorithm": RefusedKey(JVM, ("", "sunx509")),
    "ssl_trustmanager_algorithm": RefusedKey(JVM, ("", "pkix")),
    "ssl_secure_random_implementation": RefusedKey(JVM),
    "ssl_engine_factory_class": RefusedKey(CONTEXT),
    # SASL
    "sasl_client_callback_handler_class": RefusedKey(
        CALLBACKS, ("", *(name.lower() for name in IAM_CLIENT_HANDLERS))
    ),
    "sasl_login_class": RefusedKey(CALLBACKS),
    "sasl_kerberos_kinit_cmd": RefusedKey(KINIT, ("", "/usr/bin/kinit")),
    "sasl_oauthbearer_jwt_validator_class": RefusedKey(
        OAUTH, ("", f"{_OAUTH_PACKAGE}.defaultjwtvalidator", f"{_OAUTH_PACKAGE}.clientjwtvalidator")
    ),
    "sasl_oauthbearer_jwks_endpoint_url": RefusedKey(OAUTH),
    "sasl_oauthbearer_jwks_endpoint_refresh_ms": RefusedKey(OAUTH, ("3600000",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_ms": RefusedKey(OAUTH, ("100",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms": RefusedKey(OAUTH, ("10000",)),
    "sasl_oauthbearer_clock_skew_seconds": RefusedKey(OAUTH, ("30",)),
    "sasl_oauthbearer_allow_unverified_audience": RefusedKey(OAUTH, ("false",)),
    "sasl_oauthbearer_allow_unverified_issuer": RefusedKey(OAUTH, ("false",)),
    "sasl_oauthbearer_expected_audience": RefusedKey(OAUTH),
    "sasl_oauthbearer_expected_issuer": RefusedKey(OAUTH),
}

LABELS = "metrics_context_"
"""Keys that begin so are free labels for metric reporters; refused as those are."""


def refusal(name: str) -> RefusedKey | None:
    """Return why kclient refuses this key, None if the key is unknown."""
    return RefusedKey(CONTEXT_LABELS, ()) if name.startswith(LABELS) else REFUSED.get(name)
