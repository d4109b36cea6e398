"""The settings of a consumer as keyword arguments, for editors and type checkers.

Written by `python -m tools.write_settings` from the keys of `model.py`, which also check the values. The types are what
a value may be written as: a number or a boolean also as text, a list also as comma-separated text. In place of a value
a function without parameters may provide it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict

Text: TypeAlias = str | Callable[[], Any]
Number: TypeAlias = int | str | Callable[[], Any]
Boolean: TypeAlias = bool | str | Callable[[], Any]
Texts: TypeAlias = str | Sequence[str] | Callable[[], Any]


class ConsumerSettings(TypedDict, total=False):
    """Kafka's own keys in snake_case, then kclient's own. Times are milliseconds, sizes bytes."""

    bootstrap_servers: Texts
    client_dns_lookup: Text
    bootstrap_resolve_timeout_ms: Number
    client_id: Text
    client_rack: Text
    metadata_max_age_ms: Number
    metadata_recovery_strategy: Text
    metadata_cluster_check_enable: Boolean
    metadata_recovery_rebootstrap_trigger_ms: Number
    allow_auto_create_topics: Boolean
    request_timeout_ms: Number
    default_api_timeout_ms: Number
    retry_backoff_ms: Number
    retry_backoff_max_ms: Number
    reconnect_backoff_ms: Number
    reconnect_backoff_max_ms: Number
    socket_connection_setup_timeout_ms: Number
    socket_connection_setup_timeout_max_ms: Number
    connections_max_idle_ms: Number
    send_buffer_bytes: Number
    receive_buffer_bytes: Number
    security_protocol: Text
    ssl_context: ssl.SSLContext | Callable[[], Any] | None
    ssl_protocol: Text
    ssl_enabled_protocols: Texts
    ssl_cipher_suites: Texts
    ssl_endpoint_identification_algorithm: Text
    ssl_truststore_type: Text
    ssl_truststore_location: Text | None
    ssl_truststore_password: Text | None
    ssl_truststore_certificates: Text | None
    ssl_keystore_type: Text
    ssl_keystore_location: Text | None
    ssl_keystore_password: Text | None
    ssl_keystore_key: Text | None
    ssl_keystore_certificate_chain: Text | None
    ssl_key_password: Text | None
    sasl_mechanism: Text
    sasl_jaas_config: Text | None
    sasl_login_callback_handler_class: Text | None
    sasl_login_connect_timeout_ms: Number | None
    sasl_login_read_timeout_ms: Number | None
    sasl_kerberos_service_name: Text | None
    sasl_kerberos_ticket_renew_window_factor: Number | float
    sasl_kerberos_ticket_renew_jitter: Number | float
    sasl_kerberos_min_time_before_relogin: Number
    sasl_login_refresh_window_factor: Number | float
    sasl_login_refresh_window_jitter: Number | float
    sasl_login_refresh_min_period_seconds: Number
    sasl_login_refresh_buffer_seconds: Number
    sasl_login_retry_backoff_ms: Number
    sasl_login_retry_backoff_max_ms: Number
    sasl_oauthbearer_token_endpoint_url: Text | None
    sasl_oauthbearer_jwt_retriever_class: Text
    sasl_oauthbearer_scope: Text | None
    sasl_oauthbearer_scope_claim_name: Text
    sasl_oauthbearer_sub_claim_name: Text
    sasl_oauthbearer_client_credentials_client_id: Text | None
    sasl_oauthbearer_client_credentials_client_secret: Text | None
    sasl_oauthbearer_header_urlencode: Boolean
    sasl_oauthbearer_assertion_file: Text | None
    sasl_oauthbearer_assertion_private_key_file: Text | None
    sasl_oauthbearer_assertion_private_key_passphrase: Text | None
    sasl_oauthbearer_assertion_algorithm: Text
    sasl_oauthbearer_assertion_template_file: Text | None
    sasl_oauthbearer_assertion_claim_aud: Text | None
    sasl_oauthbearer_assertion_claim_iss: Text | None
    sasl_oauthbearer_assertion_claim_sub: Text | None
    sasl_oauthbearer_assertion_claim_exp_seconds: Number
    sasl_oauthbearer_assertion_claim_nbf_seconds: Number
    sasl_oauthbearer_assertion_claim_jti_include: Boolean
    group_id: Text | None
    group_instance_id: Text | None
    group_protocol: Text
    group_remote_assignor: Text | None
    session_timeout_ms: Number
    heartbeat_interval_ms: Number
    max_poll_interval_ms: Number
    partition_assignment_strategy: Any
    exclude_internal_topics: Boolean
    enable_auto_commit: Boolean
    internal_throw_on_fetch_stable_offset_unsupported: Boolean
    auto_commit_interval_ms: Number
    auto_offset_reset: Text | None
    isolation_level: Text
    max_poll_records: Number
    fetch_min_bytes: Number
    fetch_max_bytes: Number
    fetch_max_wait_ms: Number
    max_partition_fetch_bytes: Number
    check_crcs: Boolean
    interceptors: Any
    on_decode_error: Text
    dead_letters: Any
    metric_reporters: Any
    metrics_sample_window_ms: Number
    metrics_num_samples: Number
    max_frame_bytes: Number
    max_decompressed_batch_bytes: Number
    max_headers_per_record: Number
    buffer_memory_bytes: Number
    missing_topic_timeout_ms: Number
    on_no_committed_offset: Text | timedelta | None
    on_offset_out_of_range: Text | None
    sasl_username: Text | None
    sasl_password: Text | None
    sasl_oauth_token_provider: Any
    scram_max_iterations: Number
    allow_plaintext_credentials: Boolean
    tls_insecure_skip_verify: Boolean
