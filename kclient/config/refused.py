"""The keys that kclient knows and refuses, each with the values that ask for nothing and are therefore fine.

A key given with such a value – Kafka's own default, mostly – is accepted, so that the configuration of a Java client
that sets `security.protocol=PLAINTEXT` works as it is. Any other value is a problem with the reason given here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TLS = "kclient does not speak TLS yet; use the broker's PLAINTEXT listener and leave the ssl_ keys out"
SASL = "kclient does not speak SASL yet; use the broker's PLAINTEXT listener and leave the sasl_ keys out"
JVM = "it is about the Java virtual machine; leave it out"
SHARE = "it is for share consumers, and kclient has none; leave it out"
METRICS = "kclient has no metric reporters; leave it out and read consumer.metrics()"
PUSH = "kclient does not push client metrics to the broker; leave it out or set it to false"
CONSUMER_PROTOCOL = "kclient speaks the classic group protocol only, so far; leave it out or write classic"
INTERCEPTORS = "kclient has no interceptors; do the work where the records are used and leave it out"
PROVIDERS = "kclient has no configuration providers; put the value itself there"
STABLE_OFFSETS = "kclient cannot demand OffsetFetch 7 or newer yet; leave it out or set it to false"


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
    "group_protocol": Refusal(CONSUMER_PROTOCOL, ("classic",)),
    "group_remote_assignor": Refusal(CONSUMER_PROTOCOL),
    "share_acknowledgement_mode": Refusal(SHARE, ("implicit",)),
    "share_acquire_mode": Refusal(SHARE, ("batch_optimized",)),
    "internal_throw_on_fetch_stable_offset_unsupported": Refusal(STABLE_OFFSETS, ("false",)),
    # around the client
    "interceptor_classes": Refusal(INTERCEPTORS),
    "config_providers": Refusal(PROVIDERS),
    "enable_metrics_push": Refusal(PUSH, ("false",)),
    "metric_reporters": Refusal(METRICS, ("", "org.apache.kafka.common.metrics.jmxreporter")),
    "metrics_sample_window_ms": Refusal(METRICS, ("30000",)),
    "metrics_num_samples": Refusal(METRICS, ("2",)),
    "metrics_recording_level": Refusal(METRICS, ("info",)),
    "security_providers": Refusal(JVM),
    "default_list_key_serde_inner": Refusal(JVM),
    "default_list_key_serde_type": Refusal(JVM),
    "default_list_value_serde_inner": Refusal(JVM),
    "default_list_value_serde_type": Refusal(JVM),
    # TLS
    "security_protocol": Refusal(
        "kclient speaks neither TLS nor SASL yet; use the broker's PLAINTEXT listener and write PLAINTEXT",
        ("plaintext",),
    ),
    "ssl_protocol": Refusal(TLS, ("tlsv1.3",)),
    "ssl_enabled_protocols": Refusal(TLS, ("tlsv1.2,tlsv1.3",)),
    "ssl_cipher_suites": Refusal(TLS),
    "ssl_provider": Refusal(JVM),
    "ssl_endpoint_identification_algorithm": Refusal(TLS, ("https",)),
    "ssl_keystore_type": Refusal(TLS, ("jks",)),
    "ssl_keystore_location": Refusal(TLS),
    "ssl_keystore_password": Refusal(TLS),
    "ssl_keystore_key": Refusal(TLS),
    "ssl_keystore_certificate_chain": Refusal(TLS),
    "ssl_key_password": Refusal(TLS),
    "ssl_truststore_type": Refusal(TLS, ("jks",)),
    "ssl_truststore_location": Refusal(TLS),
    "ssl_truststore_password": Refusal(TLS),
    "ssl_truststore_certificates": Refusal(TLS),
    "ssl_keymanager_algorithm": Refusal(JVM, ("", "sunx509")),
    "ssl_trustmanager_algorithm": Refusal(JVM, ("", "pkix")),
    "ssl_secure_random_implementation": Refusal(JVM),
    "ssl_engine_factory_class": Refusal(TLS),
    # SASL
    "sasl_mechanism": Refusal(SASL, ("gssapi",)),
    "sasl_jaas_config": Refusal(SASL),
    "sasl_client_callback_handler_class": Refusal(SASL),
    "sasl_login_class": Refusal(SASL),
    "sasl_login_callback_handler_class": Refusal(SASL),
    "sasl_kerberos_service_name": Refusal(SASL),
    "sasl_kerberos_kinit_cmd": Refusal(SASL, ("/usr/bin/kinit",)),
    "sasl_kerberos_ticket_renew_window_factor": Refusal(SASL, ("0.8", "0.80")),
    "sasl_kerberos_ticket_renew_jitter": Refusal(SASL, ("0.05",)),
    "sasl_kerberos_min_time_before_relogin": Refusal(SASL, ("60000",)),
    "sasl_login_refresh_window_factor": Refusal(SASL, ("0.8", "0.80")),
    "sasl_login_refresh_window_jitter": Refusal(SASL, ("0.05",)),
    "sasl_login_refresh_min_period_seconds": Refusal(SASL, ("60",)),
    "sasl_login_refresh_buffer_seconds": Refusal(SASL, ("300",)),
    "sasl_login_connect_timeout_ms": Refusal(SASL),
    "sasl_login_read_timeout_ms": Refusal(SASL),
    "sasl_login_retry_backoff_ms": Refusal(SASL, ("100",)),
    "sasl_login_retry_backoff_max_ms": Refusal(SASL, ("10000",)),
    "sasl_oauthbearer_token_endpoint_url": Refusal(SASL),
    "sasl_oauthbearer_scope_claim_name": Refusal(SASL, ("scope",)),
    "sasl_oauthbearer_sub_claim_name": Refusal(SASL, ("sub",)),
    "sasl_oauthbearer_header_urlencode": Refusal(SASL, ("false",)),
    "sasl_oauthbearer_jwt_retriever_class": Refusal(
        SASL, ("", "org.apache.kafka.common.security.oauthbearer.defaultjwtretriever")
    ),
    "sasl_oauthbearer_jwt_validator_class": Refusal(
        SASL, ("", "org.apache.kafka.common.security.oauthbearer.defaultjwtvalidator")
    ),
    "sasl_oauthbearer_scope": Refusal(SASL),
    "sasl_oauthbearer_client_credentials_client_id": Refusal(SASL),
    "sasl_oauthbearer_client_credentials_client_secret": Refusal(SASL),
    "sasl_oauthbearer_assertion_algorithm": Refusal(SASL, ("rs256",)),
    "sasl_oauthbearer_assertion_claim_aud": Refusal(SASL),
    "sasl_oauthbearer_assertion_claim_iss": Refusal(SASL),
    "sasl_oauthbearer_assertion_claim_sub": Refusal(SASL),
    "sasl_oauthbearer_assertion_claim_exp_seconds": Refusal(SASL, ("300",)),
    "sasl_oauthbearer_assertion_claim_nbf_seconds": Refusal(SASL, ("60",)),
    "sasl_oauthbearer_assertion_claim_jti_include": Refusal(SASL, ("false",)),
    "sasl_oauthbearer_assertion_file": Refusal(SASL),
    "sasl_oauthbearer_assertion_private_key_file": Refusal(SASL),
    "sasl_oauthbearer_assertion_private_key_passphrase": Refusal(SASL),
    "sasl_oauthbearer_assertion_template_file": Refusal(SASL),
    "sasl_oauthbearer_jwks_endpoint_url": Refusal(SASL),
    "sasl_oauthbearer_jwks_endpoint_refresh_ms": Refusal(SASL, ("3600000",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_ms": Refusal(SASL, ("100",)),
    "sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms": Refusal(SASL, ("10000",)),
    "sasl_oauthbearer_clock_skew_seconds": Refusal(SASL, ("30",)),
    "sasl_oauthbearer_expected_audience": Refusal(SASL),
    "sasl_oauthbearer_expected_issuer": Refusal(SASL),
}

LABELS = "metrics_context_"
"""Keys that begin so are free labels for metric reporters; refused as those are."""


def refusal(name: str) -> Refusal | None:
    """Why kclient refuses this key, None where it does not know the key."""
    return Refusal(METRICS, ()) if name.startswith(LABELS) else REFUSED.get(name)
