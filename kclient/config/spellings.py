"""How other clients for Python spell what kclient calls by Kafka's own name, or do not need to say at all."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OTHER_SPELLINGS: dict[str, str] = {
    # librdkafka
    "metadata_broker_list": "bootstrap_servers",
    "auto_commit_enable": "enable_auto_commit",
    "fetch_wait_max_ms": "fetch_max_wait_ms",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "message_max_bytes": "max_frame_bytes",
    "receive_message_max_bytes": "max_frame_bytes",
    "queued_max_messages_kbytes": "buffer_memory_bytes",
    "socket_timeout_ms": "request_timeout_ms",
    "socket_send_buffer_bytes": "send_buffer_bytes",
    "socket_receive_buffer_bytes": "receive_buffer_bytes",
    "topic_metadata_refresh_interval_ms": "metadata_max_age_ms",
    "topic_metadata_propagation_max_ms": "missing_topic_timeout_ms",
    "sasl_mechanisms": "sasl_mechanism",
    "ssl_ca_location": "ssl_truststore_location",
    "ssl_ca_pem": "ssl_truststore_certificates",
    "ssl_certificate_location": "ssl_keystore_location",
    "ssl_certificate_pem": "ssl_keystore_certificate_chain",
    "ssl_key_location": "ssl_keystore_location",
    "enable_ssl_certificate_verification": "tls_insecure_skip_verify",
    "ssl_key_pem": "ssl_keystore_key",
    "oauth_cb": "sasl_oauth_token_provider",
    "sasl_oauthbearer_client_id": "sasl_oauthbearer_client_credentials_client_id",
    "sasl_oauthbearer_client_secret": "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_metadata_authentication_type": "sasl_oauth_token_provider",
    # kafka-python and aiokafka
    "rebalance_timeout_ms": "max_poll_interval_ms",
    "ssl_cafile": "ssl_truststore_location",
    "ssl_certfile": "ssl_keystore_location",
    "ssl_keyfile": "ssl_keystore_location",
    "ssl_password": "ssl_key_password",
    "ssl_check_hostname": "ssl_endpoint_identification_algorithm",
    "ssl_ciphers": "ssl_cipher_suites",
    "sasl_plain_username": "sasl_username",
    "sasl_plain_password": "sasl_password",
    "sasl_kerberos_name": "sasl_kerberos_service_name",
}
"""Another client's spelling → the key of Kafka, or of kclient (OWN_KEYS), that does the same."""

OWN_KEYS: frozenset[str] = frozenset(
    {
        "buffer_memory_bytes",
        "max_frame_bytes",
        "sasl_oauth_token_provider",
        "sasl_password",
        "sasl_username",
        "tls_insecure_skip_verify",
        "missing_topic_timeout_ms",
    }
)
"""Those of them that are kclient's own."""

_KEYSTORE = "one PEM file holds the certificate and its key, with ssl_keystore_type=PEM"
_TRUSTSTORE = "with ssl_truststore_type=PEM for a PEM file"

DIFFERENCES: dict[str, str] = {
    "queued_max_messages_kbytes": "in bytes: multiply by 1,024",
    "enable_ssl_certificate_verification": "true where yours is false",
    "ssl_check_hostname": "https, or empty where yours is false",
    "oauth_cb": "a function without parameters that returns an OAuthToken, or the text of a JSON Web Token",
    "sasl_oauthbearer_metadata_authentication_type": "azure, aws_msk_iam or gcp",
    "ssl_ca_location": _TRUSTSTORE,
    "ssl_cafile": _TRUSTSTORE,
    "ssl_certificate_location": _KEYSTORE,
    "ssl_certfile": _KEYSTORE,
    "ssl_key_location": _KEYSTORE,
    "ssl_keyfile": _KEYSTORE,
    "rebalance_timeout_ms": "which bounds the time between two polls as well",
}
"""Another client's spelling → how the value of kclient's key differs, mainly its unit."""

KAFKAS_SPELLINGS: dict[str, str] = {"interceptor_classes": "interceptors"}
"""Kafka's own key → kclient's key, which takes objects instead of class names. Both are accepted."""

_KEYTAB = (
    'write sasl_jaas_config="com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true '
    "keyTab='/etc/app.keytab' principal='app@EXAMPLE.COM';\", as Java's clients do"
)

NOT_NEEDED: dict[str, str] = {
    "sasl_kerberos_keytab": _KEYTAB,
    "sasl_kerberos_principal": _KEYTAB,
    "sasl_kerberos_domain_name": "a broker's principal has the host that the broker advertises, as krb5.conf makes it "
    "canonical (dns_canonicalize_hostname, rdns)",
    "enable_auto_offset_store": "kclient commits a record only after the next one was asked for",
    "queued_min_messages": "buffer_memory_bytes bounds what is fetched ahead, in bytes and not in messages",
    "enable_partition_eof": "compare consumer.position(tp) with consumer.end_offsets([tp])",
    "default_topic_config": "write its keys beside the others",
    "statistics_interval_ms": "read consumer.metrics() whenever you like",
    "sasl_oauthbearer_method": "the other keys choose where tokens come from",
    "sasl_oauthbearer_extensions": 'write extension_NAME="value" into sasl_jaas_config',
    "enable_sasl_oauthbearer_unsecure_jwt": 'write unsecuredLoginStringClaim_sub="name" into sasl_jaas_config',
    "api_version": "versions are negotiated with each broker",
    "api_version_request": "versions are negotiated with each broker",
    "api_version_auto_timeout_ms": "versions are negotiated with each broker",
    "broker_version_fallback": "versions are negotiated with each broker",
    "consumer_timeout_ms": "give poll() a timeout; iteration goes on until close()",
    "max_in_flight_requests_per_connection": "kclient keeps its own bound",
    "group_protocol_type": "it is always consumer",
    "loop": "an AsyncConsumer belongs to the loop that runs it",
    "error_cb": "poll() and the other calls raise their errors; what is only worth knowing goes to the logger kclient",
    "stats_cb": "read consumer.metrics() whenever you like, or give metric_reporters an object that is called",
    "throttle_cb": "read fetch-throttle-time-avg and -max in consumer.metrics()",
    "log_cb": "add a handler to the logger kclient",
    "logger": "add a handler to the logger kclient",
    "on_commit": "give commit_async() a callback",
    "rebalance_cb": "give subscribe() a listener",
    "socket_keepalive_enable": "heartbeats and request_timeout_ms notice a peer that has gone",
    "socket_nagle_disable": "TCP_NODELAY is always set",
    "offset_store_method": "the brokers keep committed offsets",
    "debug": "set the level of the loggers under kclient",
    "log_level": "set the level of the loggers under kclient",
    "broker_address_family": "every address that the name has is tried",
    "bootstrap_timeout_ms": "a port that is closed is an error at once; bootstrap_resolve_timeout_ms waits for names",
    "default_offset_commit_callback": "give commit_async() a callback, or add an interceptor to interceptors",
    "enable_incremental_fetch_sessions": "fetch sessions are always incremental",
    "kafka_client": "there is one implementation",
    "metric_group_prefix": "metrics have the groups of Java's consumer",
    "metrics_enabled": "metrics are always there; read consumer.metrics()",
    "selector": "connections belong to asyncio's event loop",
    "socket_options": "send_buffer_bytes and receive_buffer_bytes set the buffers, and TCP_NODELAY is always set",
    "ssl_crlfile": "give a ready ssl.SSLContext as ssl_context, with the revocation list loaded",
}
"""A key of another client → what does its work here."""

PRODUCERS: frozenset[str] = frozenset(
    {
        "acks",
        "batch_num_messages",
        "batch_size",
        "buffer_memory",
        "compression_type",
        "delivery_timeout_ms",
        "enable_idempotence",
        "key_serializer",
        "linger_ms",
        "max_block_ms",
        "max_request_size",
        "partitioner",
        "partitioner_class",
        "queue_buffering_max_messages",
        "retries",
        "transaction_timeout_ms",
        "transactional_id",
        "value_serializer",
    }
)
"""Keys of producers, which turn up where one file of settings serves both."""


def answer(name: str, written: str, known: Iterable[str]) -> str:
    """Return a sentence about an unknown key: kclient's spelling, what to do instead, or the nearest name."""
    if name in OTHER_SPELLINGS:
        ours = OTHER_SPELLINGS[name]
        whose = "kclient's own" if ours in OWN_KEYS else "Kafka's own"
        difference = f", {DIFFERENCES[name]}" if name in DIFFERENCES else ""
        return f"{written} is another client's spelling; {whose} is {ours}{difference}"
    if name in NOT_NEEDED:
        return f"{written} does not exist here: {NOT_NEEDED[name]}"
    if name in PRODUCERS:
        return f"{written} is a producer's key, and kclient only consumes; leave it out"
    near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.5)
    return f"{written} is unknown; did you mean {near[0]}?" if near else f"{written} is unknown"
