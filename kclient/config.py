"""The configuration: Kafka's own keys in snake_case, with Kafka's defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Config:
    """A checked configuration. Times are milliseconds, sizes bytes, as in Kafka's own keys. Spec: B.1."""

    bootstrap_servers: tuple[str, ...]
    client_dns_lookup: str = "use_all_dns_ips"
    group_id: str | None = None
    group_instance_id: str | None = None
    client_id: str = "kclient"
    client_rack: str = ""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    partition_assignment_strategy: tuple[Any, ...] = ("range",)
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: str | None = None
    isolation_level: str = "read_uncommitted"
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    max_partition_fetch_bytes: int = 1_048_576
    check_crcs: bool = True
    allow_auto_create_topics: bool = True
    exclude_internal_topics: bool = True
    key_deserializer: Callable[[str, Any, bytes], Any] | None = None
    value_deserializer: Callable[[str, Any, bytes], Any] | None = None
    metadata_max_age_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    send_buffer_bytes: int = 131_072
    receive_buffer_bytes: int = 65_536
    max_frame_bytes: int = 104_857_600
    max_decompressed_batch_bytes: int = 134_217_728
    buffer_memory_bytes: int = 67_108_864
    topic_wait_ms: int = 10_000
