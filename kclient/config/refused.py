"""The keys that kclient knows and refuses, each with the values that ask for nothing and are therefore fine.

A key given with such a value – Kafka's own default, mostly – is accepted, so that the configuration of a Java client
that sets `metrics.recording.level=INFO` works as it is. Any other value is a problem with the reason given here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CONTEXT = "give a ready ssl.SSLContext as ssl_context instead"
CALLBACKS = "it names a Java class; give sasl_username and sasl_password, where a function may provide either"
KERBEROS = "kclient does not speak GSSAPI (Kerberos) yet; use PLAIN or SCRAM and leave it out"
OAUTH = "kclient does not speak OAUTHBEARER yet; use PLAIN or SCRAM and leave it out"
JVM = "it is about the Java virtual machine; leave it out"
SHARE = "it is for share consumers, and kclient has none; leave it out"
LEVEL = "kclient measures everything that INFO does, always; leave it out"
CONTEXT_LABELS = "a metric reporter of kclient's is an object: give the labels to it, and leave them out here"
PUSH = "kclient does not push client metrics to the broker; leave it out or set it to false"
PROVIDERS = "kclient has no configuration providers; put the value itself there"


class Refusal(NamedTuple):
    """Why a key is refused, and the values that are fine, in lower case."""

    reason: str
    harmless: tuple[str, ...] = ("",)

    def allows(self, raw: Any) -> bool:
        """Whether this value asks for nothing."""
        if raw is None:
            return True
        if isinstance(raw, list | tuple):
            raw = ",".join(str(item) for item in raw)
        return str(raw).strip().lower() in self.harmless


REFUSED: dict[str, Refusal] = {
    # the group
    "share_acknowledgement_mode": Refusal(SHARE, ("implicit",)),
    "share_acquire_mode": Refusal(SHARE, ("batch_optimized",)),
    # around the client
    "config_providers": Refusal(PROVIDERS),
    "enable_metrics_push": Refusal(PUSH, ("false",)),
    "metrics_recording_level": Refusal(LEVEL, ("info",)),
    "security_providers": Refusal(JVM),
    "default_list_key_serde_inner": Refusal(JVM),
    "default_list_key_serde_type": Refusal(JVM),
    "default_list_value_serde_inner": Refusal(JVM),
    "default_list_value_serde_type": Refusal(JVM),
    # TLS
    "ssl_provider": Refusal(JVM),
    "ssl_keymanager_algorithm": Refusal(JVM, ("", "sunx509")),
    "ssl_trustmanager_algorithm": Refusal(JVM, ("", "pkix")),
    "ssl_secure_random_implementation": Refusal(JVM),
    "ssl_engine_factory_class": Refusal(CONTEXT),
    # SASL
    "sasl_client_callback_handler_class": Refusal(CALLBACKS),
    "sasl_login_class": Refusal(CALLBACKS),
    "sasl_login_callback_handler_class": Refusal(CALLBACKS),
    "sasl_kerberos_service_name": Refusal(KERBEROS),
    "sasl_kerberos_kinit_cmd": Refusal(KERBEROS, ("/usr/bin/kinit",)),
    "sasl_kerberos_ticket_renew_window_factor": Refusal(KERBEROS, ("0.8", "0.80")),
    "sasl_kerberos_ticket_renew_jitter": Refusal(KERBEROS, ("0.05",)),
    "sasl_kerberos_min_time_before_relogin": Refusal(KERBEROS, ("60000",)),
    "sasl_login_refresh_window_factor": Refusal(OAUTH, ("0.8", "0.80")),
    "sasl_login_refresh_window_jitter": Refusal(OAUTH, ("0.05",)),
    "sasl_login_refresh_min_period_seconds": Refusal(OAUTH, ("60",)),
    "sasl_login_refresh_buffer_seconds": Refusal(OAUTH, ("300",)),
    "sasl_login_connect_timeout_ms": Refusal(OAUTH),
    "sasl_login_read_timeout_ms": Refusal(OAUTH),
    "sasl_login_retry_backoff_ms": Refusal(OAUTH, ("100",)),
    "sasl_login_retry_backoff_max_ms": Refusal(OAUTH, ("10000",)),
    "sasl_oauthbearer_token_endpoint_url": Refusal(OAUTH),
    "sasl_oauthbearer_scope_claim_name": Refusal(OAUTH, ("scope",)),
    "sasl_oauthbearer_sub_claim_name": Refusal(OAUTH, ("sub",)),
    "sasl_oauthbearer_header_urlencode": Refusal(OAUTH, ("false",)),
    "sasl_oauthbearer_jwt_retriever_class": Refusal(
        OAUTH, ("", "org.apache.kafka.common.security.oauthbearer.defaultjwtretriever")
    ),
    "sasl_oauthbearer_jwt_validator_class": Refusal(
        OAUTH, ("", "org.apache.kafka.common.security.oauthbearer.defaultjwtvalidator")
    ),
    "sasl_oauthbearer_scope": Refusal(OAUTH),
    "sasl_oauthbearer_client_credentials_client_id": Refusal(OAUTH),
    "sasl_oauthbearer_client_credentials_client_secret": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_algorithm": Refusal(OAUTH, ("rs256",)),
    "sasl_oauthbearer_assertion_claim_aud": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_claim_iss": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_claim_sub": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_claim_exp_seconds": Refusal(OAUTH, ("300",)),
    "sasl_oauthbearer_assertion_claim_nbf_seconds": Refusal(OAUTH, ("60",)),
    "sasl_oauthbearer_assertion_claim_jti_include": Refusal(OAUTH, ("false",)),
    "sasl_oauthbearer_assertion_file": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_private_key_file": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_private_key_passphrase": Refusal(OAUTH),
    "sasl_oauthbearer_assertion_template_file": Refusal(OAUTH),
    "sasl_oauthbearer_jwks_endpoint_url": Refusal(OAUTH),
    "sasl_oauthbearer_jwks_endpoint_refresh_ms": Refusal(OAUTH, ("3600000",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_ms": Refusal(OAUTH, ("100",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms": Refusal(OAUTH, ("10000",)),
    "sasl_oauthbearer_clock_skew_seconds": Refusal(OAUTH, ("30",)),
    "sasl_oauthbearer_allow_unverified_audience": Refusal(OAUTH, ("false",)),
    "sasl_oauthbearer_allow_unverified_issuer": Refusal(OAUTH, ("false",)),
    "sasl_oauthbearer_expected_audience": Refusal(OAUTH),
    "sasl_oauthbearer_expected_issuer": Refusal(OAUTH),
}

LABELS = "metrics_context_"
"""Keys that begin so are free labels for metric reporters; refused as those are."""


def refusal(name: str) -> Refusal | None:
    """Why kclient refuses this key, None where it does not know the key."""
    return Refusal(CONTEXT_LABELS, ()) if name.startswith(LABELS) else REFUSED.get(name)
