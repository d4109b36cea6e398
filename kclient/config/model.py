"""The keys that kclient honours: Kafka's own names in snake_case, Kafka's defaults, and what each value may be.

This class is the table. `key(default, rule)` declares one, and the string below it says what it means. The rules are in
`values.py`, the rules between keys in `rules.py`, and what kclient knows but refuses in `refused.py`.
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
    """host:port of one broker or more, as a list or separated by commas; the others are found through them."""
    client_dns_lookup: str = key(
        "use_all_dns_ips", one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    )
    """use_all_dns_ips tries every address of a name; the other one looks up the name of each address, for Kerberos."""
    bootstrap_resolve_timeout_ms: int = key(0, integer(0, INT64_MAX))
    """How long the names of bootstrap_servers may take to resolve; 0: an error at once (KIP-909)."""
    client_id: str = key("kclient", text)
    """The name of this client in the brokers' logs, metrics and quotas."""
    client_rack: str = key("", text)
    """Where this client is, to read from a replica there (KIP-392) and for assignors that know racks (KIP-881)."""
    metadata_max_age_ms: int = key(300_000, integer(0, INT64_MAX))
    """The metadata of topics and brokers is requested again after this time, also without a change."""
    metadata_recovery_strategy: str = key("rebootstrap", one_of("rebootstrap", "none"))
    """If no known broker is reachable: rebootstrap asks bootstrap_servers again (KIP-899), none does not."""
    metadata_cluster_check_enable: bool = key(True, boolean)
    """Say in each connection which cluster and node is meant, so that another one refuses (KIP-1242)."""
    metadata_recovery_rebootstrap_trigger_ms: int = key(300_000, integer(0, INT64_MAX))
    """With rebootstrap: ask bootstrap_servers after this time without metadata (KIP-1102)."""
    allow_auto_create_topics: bool = key(True, boolean)
    """Let brokers create a missing topic that is asked for, if they do that; else UnknownTopicError."""
    request_timeout_ms: int = key(30_000, integer(0))
    """How long a response may take; the connection is closed then."""
    default_api_timeout_ms: int = key(60_000, integer(0))
    """How long a call may take for which no timeout is given; DeadlineError then."""
    retry_backoff_ms: int = key(100, integer(0, INT64_MAX))
    """The pause before a request is sent again; it doubles with each failure."""
    retry_backoff_max_ms: int = key(1_000, integer(0, INT64_MAX))
    """The longest pause before a request is sent again."""
    reconnect_backoff_ms: int = key(50, integer(0, INT64_MAX))
    """The pause before a new connection to the same broker; it doubles with each failure."""
    reconnect_backoff_max_ms: int = key(1_000, integer(0, INT64_MAX))
    """The longest pause before a new connection to the same broker."""
    socket_connection_setup_timeout_ms: int = key(10_000, integer(0, INT64_MAX))
    """How long a connection may take to be made; it doubles with each failure."""
    socket_connection_setup_timeout_max_ms: int = key(30_000, integer(0, INT64_MAX))
    """The longest time that a connection may take to be made."""
    connections_max_idle_ms: int = key(540_000, integer(-1, INT64_MAX))
    """Close connections without requests after this time; -1: never."""
    send_buffer_bytes: int = key(131_072, integer(-1))
    """The socket's send buffer (SO_SNDBUF); -1: the system's own."""
    # Kafka's 65,536 would switch off the kernel's own sizing: three times as many reads for the same bytes.
    receive_buffer_bytes: int = key(-1, integer(-1))
    """The socket's receive buffer (SO_RCVBUF); -1: the system's own, which grows with need."""

    # --- security
    security_protocol: str = key("PLAINTEXT", secure.security_protocol)
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    ssl_context: ssl.SSLContext | None = attrs.field(default=None, metadata={"rule": secure.ready_context})
    """A ready ssl.SSLContext, in place of the other ssl_ keys but ssl_endpoint_identification_algorithm."""
    ssl_protocol: str = key("TLSv1.3", secure.tls_version)
    """The newest version of TLS: TLSv1.3 or TLSv1.2."""
    ssl_enabled_protocols: tuple[str, ...] = key(("TLSv1.2", "TLSv1.3"), secure.tls_versions)
    """The versions of TLS that may be negotiated."""
    ssl_cipher_suites: tuple[str, ...] = key((), secure.ciphers)
    """The cipher suites that may be negotiated; empty: OpenSSL's own choice."""
    ssl_endpoint_identification_algorithm: str = key("https", secure.identification)
    """https checks that the certificate is the broker's; empty switches the check off."""
    ssl_truststore_type: str = key("JKS", secure.store_type)
    """PEM or PKCS12: the format of ssl_truststore_location; JKS, the default: it follows from the content."""
    ssl_truststore_location: str | None = key(None, filled_text)
    """A file with the certificates of the authorities to trust; not set: those of the system."""
    ssl_truststore_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """The password of ssl_truststore_location."""
    ssl_truststore_certificates: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """The certificates of the authorities to trust, as PEM text."""
    ssl_keystore_type: str = key("JKS", secure.store_type)
    """PEM or PKCS12: the format of ssl_keystore_location; JKS, the default: it follows from the content."""
    ssl_keystore_location: str | None = key(None, filled_text)
    """A file with this client's certificate and private key, for mutual TLS."""
    ssl_keystore_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """The password of ssl_keystore_location."""
    ssl_keystore_key: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """This client's private key, as PEM text."""
    ssl_keystore_certificate_chain: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    """This client's certificate and those that signed it, as PEM text."""
    ssl_key_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """The password of the private key."""
    sasl_mechanism: str = key("GSSAPI", secure.mechanism)
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI (Kerberos) or AWS_MSK_IAM."""
    sasl_jaas_config: Secret | None = attrs.field(default=None, metadata={"rule": secure.jaas})
    """Java's login configuration: LoginModule, "required" and its options; or use sasl_username and sasl_password."""
    sasl_login_callback_handler_class: str | None = key(None, oauth.handler_class)
    """A Java class of a login that kclient has too; others are refused."""
    sasl_login_connect_timeout_ms: int | None = key(None, integer(1))
    """How long the connection to a token endpoint may take to be made; None: 10 seconds."""
    sasl_login_read_timeout_ms: int | None = key(None, integer(1))
    """How long a token endpoint may take to answer; None: 10 seconds."""
    sasl_kerberos_service_name: str | None = key(None, filled_text)
    """The first part of the brokers' Kerberos name, usually kafka."""
    sasl_kerberos_ticket_renew_window_factor: float = key(0.8, number(0.5, 1.0))
    """Renew the ticket of a keytab after this part of its lifetime."""
    sasl_kerberos_ticket_renew_jitter: float = key(0.05, number(0.0, 0.25))
    """A random part of the lifetime that is added to the time of the renewal."""
    sasl_kerberos_min_time_before_relogin: int = key(60_000, integer(0, INT64_MAX))
    """The least time between two logins with a keytab."""
    sasl_login_refresh_window_factor: float = key(0.8, number(0.5, 1.0))
    """Renew the token after this part of its lifetime."""
    sasl_login_refresh_window_jitter: float = key(0.05, number(0.0, 0.25))
    """A random part of the lifetime that is added to the time of the renewal."""
    sasl_login_refresh_min_period_seconds: int = key(60, integer(0, 900))
    """The least time between two renewals of the token, in seconds."""
    sasl_login_refresh_buffer_seconds: int = key(300, integer(0, 3_600))
    """Renew the token at least so many seconds before it expires."""
    sasl_login_retry_backoff_ms: int = key(100, integer(0, INT64_MAX))
    """The pause before a token is requested again; it doubles with each failure."""
    sasl_login_retry_backoff_max_ms: int = key(10_000, integer(0, INT64_MAX))
    """The longest pause before a token is requested again, and the time after which it is an error."""
    sasl_oauthbearer_token_endpoint_url: str | None = key(None, oauth.endpoint_url)
    """The https URL that grants tokens, or the file:// URL of a token."""
    sasl_oauthbearer_jwt_retriever_class: str = key(
        f"{oauth.PACKAGE}.DefaultJwtRetriever", oauth.retriever_class
    )
    """Which source of tokens is meant, by the names of Kafka's own classes (KIP-1139)."""
    sasl_oauthbearer_scope: str | None = key(None, filled_text)
    """The scope of the requested token."""
    sasl_oauthbearer_scope_claim_name: str = key("scope", filled_text)
    """The claim of the token that holds its scope."""
    sasl_oauthbearer_sub_claim_name: str = key("sub", filled_text)
    """The claim of the token that holds its subject."""
    sasl_oauthbearer_client_credentials_client_id: str | None = key(None, filled_text)
    """The client id of the client credentials grant."""
    sasl_oauthbearer_client_credentials_client_secret: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    """The client secret of the client credentials grant."""
    sasl_oauthbearer_header_urlencode: bool = key(False, boolean)
    """Encode id and secret for the Authorization header, as RFC 6749 says (KIP-1025)."""
    sasl_oauthbearer_assertion_file: str | None = key(None, filled_text)
    """A file with a signed assertion, which something else renews (KIP-1258)."""
    sasl_oauthbearer_assertion_private_key_file: str | None = key(None, filled_text)
    """The private key, as PEM, that signs assertions; needs [oauth]."""
    sasl_oauthbearer_assertion_private_key_passphrase: Secret | None = attrs.field(
        default=None, metadata={"rule": secure.secret}
    )
    """The passphrase of that private key."""
    sasl_oauthbearer_assertion_algorithm: str = key("RS256", oauth.algorithm)
    """How assertions are signed: RS256 or ES256."""
    sasl_oauthbearer_assertion_template_file: str | None = key(None, filled_text)
    """A JSON file with more of the assertion's header and payload."""
    sasl_oauthbearer_assertion_claim_aud: str | None = key(None, filled_text)
    """The audience of assertions."""
    sasl_oauthbearer_assertion_claim_iss: str | None = key(None, filled_text)
    """The issuer of assertions."""
    sasl_oauthbearer_assertion_claim_sub: str | None = key(None, filled_text)
    """The subject of assertions."""
    sasl_oauthbearer_assertion_claim_exp_seconds: int = key(300, integer(0, 86_400))
    """How long an assertion is valid, in seconds."""
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = key(60, integer(0, 3_600))
    """How long before now an assertion is valid already, in seconds."""
    sasl_oauthbearer_assertion_claim_jti_include: bool = key(False, boolean)
    """Give each assertion an id of its own."""

    # --- the group
    group_id: str | None = key(None, filled_text)
    """The consumer group: its members share the partitions, and offsets are committed for it."""
    group_instance_id: str | None = key(None, instance_id)
    """A name that makes this a static member (KIP-345): a restart within the session causes no rebalance."""
    group_protocol: str = key("classic", one_of("classic", "consumer", "auto"))
    """classic, consumer (KIP-848: the brokers assign), or auto: consumer where all brokers support it."""
    group_remote_assignor: str | None = key(None, filled_text)
    """With the consumer protocol: the brokers' assignor, uniform or range; None: the brokers' first."""
    session_timeout_ms: int = key(45_000, integer(1))
    """A member without heartbeats for this time is removed from a classic group."""
    heartbeat_interval_ms: int = key(3_000, integer(1))
    """The time between heartbeats in a classic group; at most a third of session_timeout_ms."""
    max_poll_interval_ms: int = key(300_000, integer(1))
    """A member that does not ask for records for this time leaves the group, so that others go on."""
    partition_assignment_strategy: tuple[Any, ...] = key(("range", "cooperative-sticky"), assignors)
    """How a classic group shares partitions: range, roundrobin, sticky, cooperative-sticky, or your own."""
    exclude_internal_topics: bool = key(True, boolean)
    """A pattern does not match the cluster's internal topics."""
    enable_auto_commit: bool = key(True, boolean)
    """Commit the offsets of processed records automatically; False without group_id."""
    internal_throw_on_fetch_stable_offset_unsupported: bool = key(False, boolean)
    """Raise an error if the brokers cannot hold back offsets of open transactions."""
    auto_commit_interval_ms: int = key(5_000, integer(0))
    """The time between automatic commits."""

    # --- records
    auto_offset_reset: str | None = key(None, offset_reset)
    """Without a committed offset, and for one that the log lost: earliest, latest, none, by_duration:PT1H."""
    isolation_level: str = key("read_uncommitted", one_of("read_uncommitted", "read_committed"))
    """read_committed leaves out records of aborted and open transactions; read_uncommitted reads all."""
    max_poll_records: int = key(500, integer(1))
    """The most records that a poll returns."""
    fetch_min_bytes: int = key(1, integer(0))
    """A broker waits until it has so many bytes, at most fetch_max_wait_ms."""
    fetch_max_bytes: int = key(52_428_800, integer(0))
    """The most bytes of one fetch; the first batch is returned also if it is larger."""
    fetch_max_wait_ms: int = key(500, integer(0))
    """How long a broker waits for fetch_min_bytes."""
    max_partition_fetch_bytes: int = key(1_048_576, integer(0))
    """The most bytes of one partition in a fetch; its first batch is returned also if it is larger."""
    check_crcs: bool = key(True, boolean)
    """Check the checksum of each batch."""
    key_deserializer: DeserializerFunction[Any] | None = attrs.field(
        default=None, metadata={"rule": deserializer}
    )
    """A function (topic, headers, data), or an object or class with deserialize; None: keys are bytes."""
    value_deserializer: DeserializerFunction[Any] | None = attrs.field(
        default=None, metadata={"rule": deserializer}
    )
    """A function (topic, headers, data), or an object or class with deserialize; None: values are bytes."""
    interceptors: tuple[Any, ...] = key((), plugins.interceptors)
    """Objects, classes or import paths of classes with on_consume and on_commit: docs/interceptors.md."""
    on_decode_error: str = key("raise", one_of("raise", "skip", "keep", "dlq"))
    """For a record that a deserializer refuses: raise, skip, keep (as Undecoded) or dlq (to dead_letters)."""
    dead_letters: DeadLetterSink | None = attrs.field(default=None, metadata={"rule": dead_letters})
    """With on_decode_error="dlq": a function that takes a DeadLetter, or the path of a file of JSON lines."""

    # --- metrics
    metric_reporters: tuple[Any, ...] = key((), plugins.reporters)
    """Objects with metric_added, metric_removed and close: docs/metrics.md."""
    metrics_sample_window_ms: int = key(30_000, integer(1, INT64_MAX))
    """The length of the windows over which rates, averages and maxima are measured."""
    metrics_num_samples: int = key(2, integer(1))
    """The number of those windows."""

    # --- kclient's own keys
    max_frame_bytes: int = key(104_857_600, integer(1_024))
    """A larger response closes the connection before memory is allocated for it."""
    max_decompressed_batch_bytes: int = key(134_217_728, integer(1_024))
    """A batch that is larger when decompressed raises BatchTooLargeError."""
    max_headers_per_record: int = key(10_000, integer(0))
    """A record with more headers raises TooManyHeadersError."""
    buffer_memory_bytes: int = key(67_108_864, integer(1_024, INT64_MAX))
    """The bytes of fetched records that may wait for polls; a single larger batch is still accepted."""
    missing_topic_timeout_ms: int = key(10_000, integer(0, INT64_MAX))
    """How long a topic or partition may be missing before a poll raises UnknownTopicError."""
    on_no_committed_offset: str | timedelta | None = attrs.field(
        default=None, metadata={"rule": resets.no_offset}
    )
    """Where a group without committed offset begins: earliest, latest, error, or a timedelta: so long ago."""
    on_offset_out_of_range: str | None = key(None, one_of(*resets.WORDS))
    """When the log no longer has the position: earliest, latest, or error."""
    sasl_username: str | None = key(None, secure.username)
    """The user name for PLAIN and SCRAM."""
    sasl_password: Secret | None = attrs.field(default=None, metadata={"rule": secure.secret})
    """The password for PLAIN and SCRAM: text, or where it comes from: env("NAME"), file("path"), a function."""
    sasl_oauth_token_provider: TokenProvider | None = attrs.field(
        default=None, metadata={"rule": cloud.token_provider}
    )
    """For OAUTHBEARER: a function that returns a token, module:function, aws_msk_iam, azure or gcp."""
    scram_max_iterations: int = key(MAX_ITERATIONS, integer(MIN_ITERATIONS))
    """The largest SCRAM iteration count that is accepted from a broker."""
    allow_plaintext_credentials: bool = key(False, boolean)
    """Send a password or a token over a connection without TLS."""
    tls_insecure_skip_verify: bool = key(False, boolean)
    """Accept any certificate: for tests only."""

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
