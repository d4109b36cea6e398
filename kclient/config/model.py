"""The keys that kclient honours: Kafka's own names in snake_case, Kafka's defaults, and what each value may be.

This class is the table. `key(default, rule)` declares one; the rules are in `values.py`, the rules between keys in
`rules.py`, and what kclient knows but refuses in `refused.py`.
After a change run `python -m tools.write_settings`, which writes the same keys for editors into `settings.py`.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from kclient.config import cloud, oauth, plugins, resets
from kclient.config import security as secure
from kclient.config.plugins import dead_letters, deserializer
from kclient.config.values import (
    INT64_MAX,
    Rule,
    assignors,
    boolean,
    filled_text,
    instance_id,
    integer,
    number,
    offset_reset,
    one_of,
    servers,
    text,
)
from kclient.security.scram import MAX_ITERATIONS, MIN_ITERATIONS
from kclient.security.secret import Secret
from kclient.types import DeadLetter, DeserializerFunction, IsolationLevel

DeadLetterSink = Callable[[DeadLetter], None]
TokenProvider = Callable[[], Any]


def key(default: Any, rule: Rule) -> Any:
    """Declare a key with its default and the rule that its value keeps."""
    return attrs.field(default=default, metadata={"rule": rule})


@attrs.frozen(kw_only=True, repr=False)
class Config:
    """A checked configuration. Times are milliseconds, sizes bytes, as in Kafka's own keys."""

    # --- reaching the cluster
    bootstrap_servers: tuple[str, ...] = attrs.field(metadata={"rule": servers})
    client_dns_lookup: str = key(
        "use_all_dns_ips", one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    )
    bootstrap_resolve_timeout_ms: int = key(0, integer(0, INT64_MAX))
    client_id: str = key("kclient", text)
    client_rack: str = key("", text)
    metadata_max_age_ms: int = key(300_000, integer(0, INT64_MAX))
    metadata_recovery_strategy: str = key("rebootstrap", one_of("rebootstrap", "none"))
    metadata_cluster_check_enable: bool = key(True, boolean)
    metadata_recovery_rebootstrap_trigger_ms: int = key(300_000, integer(0, INT64_MAX))
    allow_auto_create_topics: bool = key(True, boolean)
    request_timeout_ms: int = key(30_000, integer(0))
    default_api_timeout_ms: int = key(60_000, integer(0))
    retry_backoff_ms: int = key(100, integer(0, INT64_MAX))
    retry_backoff_max_ms: int = key(1_000, integer(0, INT64_MAX))
    reconnect_backoff_ms: int = key(50, integer(0, INT64_MAX))
    reconnect_backoff_max_ms: int = key(1_000, integer(0, INT64_MAX))
    socket_connection_setup_timeout_ms: int = key(10_000, integer(0, INT64_MAX))
    socket_connection_setup_timeout_max_ms: int = key(30_000, integer(0, INT64_MAX))
    connections_max_idle_ms: int = key(540_000, integer(-1, INT64_MAX))
    send_buffer_bytes: int = key(131_072, integer(-1))
    # Kafka's 65,536 would switch off the kernel's own sizing: three times as many reads for the same bytes.
    receive_buffer_bytes: int = key(-1, integer(-1))

    # --- security
    security_protocol: str = key("PLAINTEXT", secure.security_protocol)
    ssl_context: ssl.SSLContext | None = attrs.field(default=None, metadata={"rule": secure.ready_context})
    ssl_protocol: str = key("TLSv1.3", secure.tls_version)
    ssl_enabled_protocols: tuple[str, ...] = key(("TLSv1.2", "TLSv1.3"), secure.tls_versions)
    ssl_cipher_suites: tuple[str, ...] = key((), secure.ciphers)
    ssl_endpoint_identification_algorithm: str = key("https", secure.identification)
    ssl_truststore_type: str = key("JKS", secure.store_type)
    ssl_truststore_location: str | None = key(None, filled_text)
    ssl_truststore_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    ssl_truststore_certificates: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    ssl_keystore_type: str = key("JKS", secure.store_type)
    ssl_keystore_location: str | None = key(None, filled_text)
    ssl_keystore_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    ssl_keystore_key: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    ssl_keystore_certificate_chain: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    ssl_key_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    sasl_mechanism: str = key("GSSAPI", secure.mechanism)
    sasl_jaas_config: Secret | None = attrs.field(default=None, metadata={"rule": secure.jaas})
    sasl_login_callback_handler_class: str | None = key(None, oauth.handler_class)
    sasl_login_connect_timeout_ms: int | None = key(None, integer(1))
    sasl_login_read_timeout_ms: int | None = key(None, integer(1))
    sasl_kerberos_service_name: str | None = key(None, filled_text)
    sasl_kerberos_ticket_renew_window_factor: float = key(0.8, number(0.5, 1.0))
    sasl_kerberos_ticket_renew_jitter: float = key(0.05, number(0.0, 0.25))
    sasl_kerberos_min_time_before_relogin: int = key(60_000, integer(0, INT64_MAX))
    sasl_login_refresh_window_factor: float = key(0.8, number(0.5, 1.0))
    sasl_login_refresh_window_jitter: float = key(0.05, number(0.0, 0.25))
    sasl_login_refresh_min_period_seconds: int = key(60, integer(0, 900))
    sasl_login_refresh_buffer_seconds: int = key(300, integer(0, 3_600))
    sasl_login_retry_backoff_ms: int = key(100, integer(0, INT64_MAX))
    sasl_login_retry_backoff_max_ms: int = key(10_000, integer(0, INT64_MAX))
    sasl_oauthbearer_token_endpoint_url: str | None = key(None, oauth.endpoint_url)
    sasl_oauthbearer_jwt_retriever_class: str = key(
        f"{oauth.PACKAGE}.DefaultJwtRetriever", oauth.retriever_class
    )
    sasl_oauthbearer_scope: str | None = key(None, filled_text)
    sasl_oauthbearer_scope_claim_name: str = key("scope", filled_text)
    sasl_oauthbearer_sub_claim_name: str = key("sub", filled_text)
    sasl_oauthbearer_client_credentials_client_id: str | None = key(None, filled_text)
    sasl_oauthbearer_client_credentials_client_secret: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    sasl_oauthbearer_header_urlencode: bool = key(False, boolean)
    sasl_oauthbearer_assertion_file: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_private_key_file: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_private_key_passphrase: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    sasl_oauthbearer_assertion_algorithm: str = key("RS256", oauth.algorithm)
    sasl_oauthbearer_assertion_template_file: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_claim_aud: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_claim_iss: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_claim_sub: str | None = key(None, filled_text)
    sasl_oauthbearer_assertion_claim_exp_seconds: int = key(300, integer(0, 86_400))
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = key(60, integer(0, 3_600))
    sasl_oauthbearer_assertion_claim_jti_include: bool = key(False, boolean)

    # --- the group
    group_id: str | None = key(None, filled_text)
    group_instance_id: str | None = key(None, instance_id)
    group_protocol: str = key("classic", one_of("classic", "consumer", "auto"))
    group_remote_assignor: str | None = key(None, filled_text)
    session_timeout_ms: int = key(45_000, integer(1))
    heartbeat_interval_ms: int = key(3_000, integer(1))
    max_poll_interval_ms: int = key(300_000, integer(1))
    partition_assignment_strategy: tuple[Any, ...] = key(("range", "cooperative-sticky"), assignors)
    exclude_internal_topics: bool = key(True, boolean)
    enable_auto_commit: bool = key(True, boolean)
    internal_throw_on_fetch_stable_offset_unsupported: bool = key(False, boolean)
    auto_commit_interval_ms: int = key(5_000, integer(0))

    # --- records
    auto_offset_reset: str | None = key(None, offset_reset)
    isolation_level: str = key("read_uncommitted", one_of("read_uncommitted", "read_committed"))
    max_poll_records: int = key(500, integer(1))
    fetch_min_bytes: int = key(1, integer(0))
    fetch_max_bytes: int = key(52_428_800, integer(0))
    fetch_max_wait_ms: int = key(500, integer(0))
    max_partition_fetch_bytes: int = key(1_048_576, integer(0))
    check_crcs: bool = key(True, boolean)
    key_deserializer: DeserializerFunction[Any] | None = attrs.field(
        default=None, metadata={"rule": deserializer}
    )
    value_deserializer: DeserializerFunction[Any] | None = attrs.field(
        default=None, metadata={"rule": deserializer}
    )
    interceptors: tuple[Any, ...] = key((), plugins.interceptors)
    on_decode_error: str = key("raise", one_of("raise", "skip", "keep", "dlq"))
    dead_letters: DeadLetterSink | None = attrs.field(default=None, metadata={"rule": dead_letters})

    # --- metrics
    metric_reporters: tuple[Any, ...] = key((), plugins.reporters)
    metrics_sample_window_ms: int = key(30_000, integer(1, INT64_MAX))
    metrics_num_samples: int = key(2, integer(1))

    # --- kclient's own keys
    max_frame_bytes: int = key(104_857_600, integer(1_024))
    max_decompressed_batch_bytes: int = key(134_217_728, integer(1_024))
    max_headers_per_record: int = key(10_000, integer(0))
    buffer_memory_bytes: int = key(67_108_864, integer(1_024, INT64_MAX))
    missing_topic_timeout_ms: int = key(10_000, integer(0, INT64_MAX))
    on_no_committed_offset: str | timedelta | None = attrs.field(
        default=None, metadata={"rule": resets.no_offset}
    )
    on_offset_out_of_range: str | None = key(None, one_of(*resets.WORDS))
    sasl_username: str | None = key(None, secure.username)
    sasl_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    sasl_oauth_token_provider: TokenProvider | None = attrs.field(
        default=None, metadata={"rule": cloud.token_provider}
    )
    scram_max_iterations: int = key(MAX_ITERATIONS, integer(MIN_ITERATIONS))
    allow_plaintext_credentials: bool = key(False, boolean)
    tls_insecure_skip_verify: bool = key(False, boolean)

    # Not a key: where each key that was set was written, for `explain`.
    sources: Mapping[str, str] = attrs.field(factory=dict, repr=False, eq=False)

    @property
    def isolation(self) -> IsolationLevel:
        """`isolation_level` as ListOffsets and Fetch spell it."""
        return IsolationLevel[self.isolation_level.upper()]

    def __repr__(self) -> str:
        """Return the keys that differ from their defaults. `explain()` lists all of them."""
        values = {field.name: getattr(self, field.name) for field in keys()}
        changed = [field.name for field in keys() if values[field.name] != field.default]
        return f"Config({', '.join(f'{name}={values[name]!r}' for name in changed)})"

    def explain(self) -> str:
        """Return a table of every key: its value (secrets as three stars), where it was set, its default.

        A value that was set nowhere and is not the default follows from other keys: it is `derived`.
        """
        rows = [("key", "value", "set in", "default")]
        for field in keys():
            value = repr(getattr(self, field.name))
            default = "" if field.default is attrs.NOTHING else repr(field.default)
            origin = self.sources.get(field.name, "default" if value == default else "derived")
            rows.append((field.name, value, origin, default))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = ["  ".join((*map(str.ljust, row, widths), row[3])).rstrip() for row in rows]
        return "\n".join(lines)


def keys() -> tuple[attrs.Attribute[Any], ...]:
    """Return every key with its name, its default and its rule."""
    return tuple(field for field in attrs.fields(Config) if "rule" in field.metadata)


SECRETS: Final = frozenset({secure.secret, secure.jaas})
"""The rules of those keys."""

SECRET_KEYS: Final = frozenset(field.name for field in keys() if field.metadata["rule"] in SECRETS)
"""The keys whose values are never shown."""

CALLABLES: Final = frozenset(
    {deserializer, assignors, dead_letters, plugins.interceptors, plugins.reporters, cloud.token_provider}
)
"""The rules of keys whose values may be functions; a function given for any other key provides its value."""


def rules() -> dict[str, Rule]:
    """Return the rule of every key, by its name."""
    return {field.name: field.metadata["rule"] for field in keys()}
