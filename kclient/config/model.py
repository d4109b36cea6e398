"""The keys that kclient honours: Kafka's own names in snake_case, Kafka's defaults, and what each value may be.

This class is the table. `key(default, rule)` declares one; the rules are in `values.py`, the rules between keys in
`rules.py`, and what kclient knows but refuses in `refused.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from kclient.config.deserializers import deserializer
from kclient.config.values import (
    INT64_MAX,
    Rule,
    assignors,
    boolean,
    filled_text,
    instance_id,
    integer,
    offset_reset,
    one_of,
    servers,
    text,
)

Deserializer = Callable[[str, Any, bytes], Any]


def key(default: Any, rule: Rule) -> Any:
    """A key with its default and the rule that its value keeps."""
    return attrs.field(default=default, metadata={"rule": rule})


@attrs.frozen(kw_only=True)
class Config:
    """A checked configuration. Times are milliseconds, sizes bytes, as in Kafka's own keys. Spec: B.1."""

    # --- reaching the cluster
    bootstrap_servers: tuple[str, ...] = attrs.field(metadata={"rule": servers})
    client_dns_lookup: str = key(
        "use_all_dns_ips", one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")
    )
    client_id: str = key("kclient", text)
    client_rack: str = key("", text)
    metadata_max_age_ms: int = key(300_000, integer(0, INT64_MAX))
    metadata_recovery_strategy: str = key("rebootstrap", one_of("rebootstrap", "none"))
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

    # --- the group
    group_id: str | None = key(None, filled_text)
    group_instance_id: str | None = key(None, instance_id)
    session_timeout_ms: int = key(45_000, integer(1))
    heartbeat_interval_ms: int = key(3_000, integer(1))
    max_poll_interval_ms: int = key(300_000, integer(1))
    partition_assignment_strategy: tuple[Any, ...] = key(("range",), assignors)
    exclude_internal_topics: bool = key(True, boolean)
    enable_auto_commit: bool = key(True, boolean)
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
    key_deserializer: Deserializer | None = attrs.field(default=None, metadata={"rule": deserializer})
    value_deserializer: Deserializer | None = attrs.field(default=None, metadata={"rule": deserializer})

    # --- kclient's own keys
    max_frame_bytes: int = key(104_857_600, integer(1_024))
    max_decompressed_batch_bytes: int = key(134_217_728, integer(1_024))
    buffer_memory_bytes: int = key(67_108_864, integer(1_024, INT64_MAX))
    topic_wait_ms: int = key(10_000, integer(0, INT64_MAX))


def rules() -> dict[str, Rule]:
    """The rule of every key, by its name."""
    return {field.name: field.metadata["rule"] for field in attrs.fields(Config)}
