"""The settings of a consumer as keyword arguments, for editors and type checkers.

Written by `python -m tools.write_settings` from the keys of `model.py`, which also check the values. The types are what
a value may be written as: a number or a boolean also as text, a list also as comma-separated text. In place of a value
a function without parameters may provide it. The deserializers are parameters of the consumers.
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
    """host:port of one broker or more, as a list or separated by commas; the others are found through them.

    It has no default.
    """
    client_dns_lookup: Text
    """use_all_dns_ips tries every address of a name; the other one looks up the name of each address, for Kerberos.

    Default: "use_all_dns_ips".
    """
    bootstrap_resolve_timeout_ms: Number
    """How long the names of bootstrap_servers may take to resolve; 0: an error at once (KIP-909).

    Default: 0.
    """
    client_id: Text
    """The name of this client in the brokers' logs, metrics and quotas.

    Default: "kclient".
    """
    client_rack: Text
    """Where this client is, to read from a replica there (KIP-392) and for assignors that know racks (KIP-881).

    Default: "".
    """
    metadata_max_age_ms: Number
    """The metadata of topics and brokers is requested again after this time, also without a change.

    Default: 300000.
    """
    metadata_recovery_strategy: Text
    """If no known broker is reachable: rebootstrap asks bootstrap_servers again (KIP-899), none does not.

    Default: "rebootstrap".
    """
    metadata_cluster_check_enable: Boolean
    """Say in each connection which cluster and node is meant, so that another one refuses (KIP-1242).

    Default: True.
    """
    metadata_recovery_rebootstrap_trigger_ms: Number
    """With rebootstrap: ask bootstrap_servers after this time without metadata (KIP-1102).

    Default: 300000.
    """
    allow_auto_create_topics: Boolean
    """Let brokers create a missing topic that is asked for, if they do that; else UnknownTopicError.

    Default: True.
    """
    request_timeout_ms: Number
    """How long a response may take; the connection is closed then.

    Default: 30000.
    """
    default_api_timeout_ms: Number
    """How long a call may take for which no timeout is given; DeadlineError then.

    Default: 60000.
    """
    retry_backoff_ms: Number
    """The pause before a request is sent again; it doubles with each failure.

    Default: 100.
    """
    retry_backoff_max_ms: Number
    """The longest pause before a request is sent again.

    Default: 1000.
    """
    reconnect_backoff_ms: Number
    """The pause before a new connection to the same broker; it doubles with each failure.

    Default: 50.
    """
    reconnect_backoff_max_ms: Number
    """The longest pause before a new connection to the same broker.

    Default: 1000.
    """
    socket_connection_setup_timeout_ms: Number
    """How long a connection may take to be made; it doubles with each failure.

    Default: 10000.
    """
    socket_connection_setup_timeout_max_ms: Number
    """The longest time that a connection may take to be made.

    Default: 30000.
    """
    connections_max_idle_ms: Number
    """Close connections without requests after this time; -1: never.

    Default: 540000.
    """
    send_buffer_bytes: Number
    """The socket's send buffer (SO_SNDBUF); -1: the system's own.

    Default: 131072.
    """
    receive_buffer_bytes: Number
    """The socket's receive buffer (SO_RCVBUF); -1: the system's own, which grows with need.

    Default: -1.
    """
    security_protocol: Text
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.

    Default: "PLAINTEXT".
    """
    ssl_context: ssl.SSLContext | Callable[[], Any] | None
    """A ready ssl.SSLContext, in place of the other ssl_ keys but ssl_endpoint_identification_algorithm.

    Default: None.
    """
    ssl_protocol: Text
    """The newest version of TLS: TLSv1.3 or TLSv1.2.

    Default: "TLSv1.3".
    """
    ssl_enabled_protocols: Texts
    """The versions of TLS that may be negotiated.

    Default: ('TLSv1.2', 'TLSv1.3').
    """
    ssl_cipher_suites: Texts
    """The cipher suites that may be negotiated; empty: OpenSSL's own choice.

    Default: ().
    """
    ssl_endpoint_identification_algorithm: Text
    """https checks that the certificate is the broker's; empty switches the check off.

    Default: "https".
    """
    ssl_truststore_type: Text
    """PEM or PKCS12: the format of ssl_truststore_location; JKS, the default: it follows from the content.

    Default: "JKS".
    """
    ssl_truststore_location: Text | None
    """A file with the certificates of the authorities to trust; not set: those of the system.

    Default: None.
    """
    ssl_truststore_password: Text | None
    """The password of ssl_truststore_location.

    Default: None.
    """
    ssl_truststore_certificates: Text | None
    """The certificates of the authorities to trust, as PEM text.

    Default: None.
    """
    ssl_keystore_type: Text
    """PEM or PKCS12: the format of ssl_keystore_location; JKS, the default: it follows from the content.

    Default: "JKS".
    """
    ssl_keystore_location: Text | None
    """A file with this client's certificate and private key, for mutual TLS.

    Default: None.
    """
    ssl_keystore_password: Text | None
    """The password of ssl_keystore_location.

    Default: None.
    """
    ssl_keystore_key: Text | None
    """This client's private key, as PEM text.

    Default: None.
    """
    ssl_keystore_certificate_chain: Text | None
    """This client's certificate and those that signed it, as PEM text.

    Default: None.
    """
    ssl_key_password: Text | None
    """The password of the private key.

    Default: None.
    """
    sasl_mechanism: Text
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, GSSAPI (Kerberos) or AWS_MSK_IAM.

    Default: "GSSAPI".
    """
    sasl_jaas_config: Text | None
    """Java's login configuration: LoginModule, "required" and its options; or use sasl_username and sasl_password.

    Default: None.
    """
    sasl_login_callback_handler_class: Text | None
    """A Java class of a login that kclient has too; others are refused.

    Default: None.
    """
    sasl_login_connect_timeout_ms: Number | None
    """How long the connection to a token endpoint may take to be made; None: 10 seconds.

    Default: None.
    """
    sasl_login_read_timeout_ms: Number | None
    """How long a token endpoint may take to answer; None: 10 seconds.

    Default: None.
    """
    sasl_kerberos_service_name: Text | None
    """The first part of the brokers' Kerberos name, usually kafka.

    Default: None.
    """
    sasl_kerberos_ticket_renew_window_factor: Number | float
    """Renew the ticket of a keytab after this part of its lifetime.

    Default: 0.8.
    """
    sasl_kerberos_ticket_renew_jitter: Number | float
    """A random part of the lifetime that is added to the time of the renewal.

    Default: 0.05.
    """
    sasl_kerberos_min_time_before_relogin: Number
    """The least time between two logins with a keytab.

    Default: 60000.
    """
    sasl_login_refresh_window_factor: Number | float
    """Renew the token after this part of its lifetime.

    Default: 0.8.
    """
    sasl_login_refresh_window_jitter: Number | float
    """A random part of the lifetime that is added to the time of the renewal.

    Default: 0.05.
    """
    sasl_login_refresh_min_period_seconds: Number
    """The least time between two renewals of the token, in seconds.

    Default: 60.
    """
    sasl_login_refresh_buffer_seconds: Number
    """Renew the token at least so many seconds before it expires.

    Default: 300.
    """
    sasl_login_retry_backoff_ms: Number
    """The pause before a token is requested again; it doubles with each failure.

    Default: 100.
    """
    sasl_login_retry_backoff_max_ms: Number
    """The longest pause before a token is requested again, and the time after which it is an error.

    Default: 10000.
    """
    sasl_oauthbearer_token_endpoint_url: Text | None
    """The https URL that grants tokens, or the file:// URL of a token.

    Default: None.
    """
    sasl_oauthbearer_jwt_retriever_class: Text
    """Which source of tokens is meant, by the names of Kafka's own classes (KIP-1139).

    Default: "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever".
    """
    sasl_oauthbearer_scope: Text | None
    """The scope of the requested token.

    Default: None.
    """
    sasl_oauthbearer_scope_claim_name: Text
    """The claim of the token that holds its scope.

    Default: "scope".
    """
    sasl_oauthbearer_sub_claim_name: Text
    """The claim of the token that holds its subject.

    Default: "sub".
    """
    sasl_oauthbearer_client_credentials_client_id: Text | None
    """The client id of the client credentials grant.

    Default: None.
    """
    sasl_oauthbearer_client_credentials_client_secret: Text | None
    """The client secret of the client credentials grant.

    Default: None.
    """
    sasl_oauthbearer_header_urlencode: Boolean
    """Encode id and secret for the Authorization header, as RFC 6749 says (KIP-1025).

    Default: False.
    """
    sasl_oauthbearer_assertion_file: Text | None
    """A file with a signed assertion, which something else renews (KIP-1258).

    Default: None.
    """
    sasl_oauthbearer_assertion_private_key_file: Text | None
    """The private key, as PEM, that signs assertions; needs [oauth].

    Default: None.
    """
    sasl_oauthbearer_assertion_private_key_passphrase: Text | None
    """The passphrase of that private key.

    Default: None.
    """
    sasl_oauthbearer_assertion_algorithm: Text
    """How assertions are signed: RS256 or ES256.

    Default: "RS256".
    """
    sasl_oauthbearer_assertion_template_file: Text | None
    """A JSON file with more of the assertion's header and payload.

    Default: None.
    """
    sasl_oauthbearer_assertion_claim_aud: Text | None
    """The audience of assertions.

    Default: None.
    """
    sasl_oauthbearer_assertion_claim_iss: Text | None
    """The issuer of assertions.

    Default: None.
    """
    sasl_oauthbearer_assertion_claim_sub: Text | None
    """The subject of assertions.

    Default: None.
    """
    sasl_oauthbearer_assertion_claim_exp_seconds: Number
    """How long an assertion is valid, in seconds.

    Default: 300.
    """
    sasl_oauthbearer_assertion_claim_nbf_seconds: Number
    """How long before now an assertion is valid already, in seconds.

    Default: 60.
    """
    sasl_oauthbearer_assertion_claim_jti_include: Boolean
    """Give each assertion an id of its own.

    Default: False.
    """
    group_id: Text | None
    """The consumer group: its members share the partitions, and offsets are committed for it.

    Default: None.
    """
    group_instance_id: Text | None
    """A name that makes this a static member (KIP-345): a restart within the session causes no rebalance.

    Default: None.
    """
    group_protocol: Text
    """classic, consumer (KIP-848: the brokers assign), or auto: consumer where all brokers support it.

    Default: "classic".
    """
    group_remote_assignor: Text | None
    """With the consumer protocol: the brokers' assignor, uniform or range; None: the brokers' first.

    Default: None.
    """
    session_timeout_ms: Number
    """A member without heartbeats for this time is removed from a classic group.

    Default: 45000.
    """
    heartbeat_interval_ms: Number
    """The time between heartbeats in a classic group; at most a third of session_timeout_ms.

    Default: 3000.
    """
    max_poll_interval_ms: Number
    """A member that does not ask for records for this time leaves the group, so that others go on.

    Default: 300000.
    """
    partition_assignment_strategy: Any
    """How a classic group shares partitions: range, roundrobin, sticky, cooperative-sticky, or your own.

    Default: ('range', 'cooperative-sticky').
    """
    exclude_internal_topics: Boolean
    """A pattern does not match the cluster's internal topics.

    Default: True.
    """
    enable_auto_commit: Boolean
    """Commit the offsets of processed records automatically; False without group_id.

    Default: True.
    """
    internal_throw_on_fetch_stable_offset_unsupported: Boolean
    """Raise an error if the brokers cannot hold back offsets of open transactions.

    Default: False.
    """
    auto_commit_interval_ms: Number
    """The time between automatic commits.

    Default: 5000.
    """
    auto_offset_reset: Text | None
    """Without a committed offset, and for one that the log lost: earliest, latest, none, by_duration:PT1H.

    Default: None.
    """
    isolation_level: Text
    """read_committed leaves out records of aborted and open transactions; read_uncommitted reads all.

    Default: "read_uncommitted".
    """
    max_poll_records: Number
    """The most records that a poll returns.

    Default: 500.
    """
    fetch_min_bytes: Number
    """A broker waits until it has so many bytes, at most fetch_max_wait_ms.

    Default: 1.
    """
    fetch_max_bytes: Number
    """The most bytes of one fetch; the first batch is returned also if it is larger.

    Default: 52428800.
    """
    fetch_max_wait_ms: Number
    """How long a broker waits for fetch_min_bytes.

    Default: 500.
    """
    max_partition_fetch_bytes: Number
    """The most bytes of one partition in a fetch; its first batch is returned also if it is larger.

    Default: 1048576.
    """
    check_crcs: Boolean
    """Check the checksum of each batch.

    Default: True.
    """
    interceptors: Any
    """Objects, classes or import paths of classes with on_consume and on_commit: docs/interceptors.md.

    Default: ().
    """
    on_decode_error: Text
    """For a record that a deserializer refuses: raise, skip, keep (as Undecoded) or dlq (to dead_letters).

    Default: "raise".
    """
    dead_letters: Any
    """With on_decode_error="dlq": a function that takes a DeadLetter, or the path of a file of JSON lines.

    Default: None.
    """
    metric_reporters: Any
    """Objects with metric_added, metric_removed and close: docs/metrics.md.

    Default: ().
    """
    metrics_sample_window_ms: Number
    """The length of the windows over which rates, averages and maxima are measured.

    Default: 30000.
    """
    metrics_num_samples: Number
    """The number of those windows.

    Default: 2.
    """
    max_frame_bytes: Number
    """A larger response closes the connection before memory is allocated for it.

    Default: 104857600.
    """
    max_decompressed_batch_bytes: Number
    """A batch that is larger when decompressed raises BatchTooLargeError.

    Default: 134217728.
    """
    max_headers_per_record: Number
    """A record with more headers raises TooManyHeadersError.

    Default: 10000.
    """
    buffer_memory_bytes: Number
    """The bytes of fetched records that may wait for polls; a single larger batch is still accepted.

    Default: 67108864.
    """
    missing_topic_timeout_ms: Number
    """How long a topic or partition may be missing before a poll raises UnknownTopicError.

    Default: 10000.
    """
    on_no_committed_offset: Text | timedelta | None
    """Where a group without committed offset begins: earliest, latest, error, or a timedelta: so long ago.

    Default: None.
    """
    on_offset_out_of_range: Text | None
    """When the log no longer has the position: earliest, latest, or error.

    Default: None.
    """
    sasl_username: Text | None
    """The user name for PLAIN and SCRAM.

    Default: None.
    """
    sasl_password: Text | None
    """The password for PLAIN and SCRAM: text, or where it comes from: env("NAME"), file("path"), a function.

    Default: None.
    """
    sasl_oauth_token_provider: Any
    """For OAUTHBEARER: a function that returns a token, module:function, aws_msk_iam, azure or gcp.

    Default: None.
    """
    scram_max_iterations: Number
    """The largest SCRAM iteration count that is accepted from a broker.

    Default: 131072.
    """
    allow_plaintext_credentials: Boolean
    """Send a password or a token over a connection without TLS.

    Default: False.
    """
    tls_insecure_skip_verify: Boolean
    """Accept any certificate: for tests only.

    Default: False.
    """
