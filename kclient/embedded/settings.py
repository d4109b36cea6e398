"""The broker settings that the embedded cluster honours: Kafka's names and, unless it says otherwise, its defaults.

A key that nothing reads raises ConfigError, so that no test relies on a setting without effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final

import attrs

from kclient.config.values import boolean
from kclient.errors import ConfigError

INT32_MAX: Final = 2**31 - 1


def key(name: str, default: Any, least: int = 1) -> Any:
    """A setting under Kafka's name; its type is the default's, and a number is not below `least`."""
    return attrs.field(default=default, metadata={"key": name, "least": least})


@attrs.define(kw_only=True)
class Settings:
    """What all brokers of a cluster share. Times in ms, sizes in bytes."""

    # --- topics
    auto_create_topics_enable: bool = key("auto.create.topics.enable", True)
    num_partitions: int = key("num.partitions", 1)
    default_replication_factor: int = key("default.replication.factor", 1)
    message_max_bytes: int = key("message.max.bytes", 1_048_588, least=0)
    log_retention_ms: int = key("log.retention.ms", 604_800_000, least=-1)
    socket_request_max_bytes: int = key("socket.request.max.bytes", 104_857_600)
    replica_lag_time_max_ms: int = key("replica.lag.time.max.ms", 30_000, least=0)
    max_incremental_fetch_session_cache_slots: int = key(
        "max.incremental.fetch.session.cache.slots", 1000, least=0
    )
    unclean_leader_election_enable: bool = key("unclean.leader.election.enable", False)
    min_insync_replicas: int = key("min.insync.replicas", 1)
    broker_session_timeout_ms: int = key("broker.session.timeout.ms", 9_000, least=0)
    replica_selector_class: str = key("replica.selector.class", "")

    # --- classic groups; Kafka waits 3,000 ms for more members before the first rebalance, tests should not
    group_initial_rebalance_delay_ms: int = key("group.initial.rebalance.delay.ms", 0, least=0)
    group_min_session_timeout_ms: int = key("group.min.session.timeout.ms", 6_000, least=0)
    group_max_session_timeout_ms: int = key("group.max.session.timeout.ms", 1_800_000)
    group_max_size: int = key("group.max.size", INT32_MAX)

    # --- groups of the consumer protocol
    group_consumer_session_timeout_ms: int = key("group.consumer.session.timeout.ms", 45_000)
    group_consumer_heartbeat_interval_ms: int = key("group.consumer.heartbeat.interval.ms", 5_000)
    group_consumer_max_size: int = key("group.consumer.max.size", INT32_MAX)
    group_consumer_assignors: str = key("group.consumer.assignors", "uniform,range")
    group_consumer_migration_policy: str = key("group.consumer.migration.policy", "bidirectional")
    group_consumer_assignment_interval_ms: int = key("group.consumer.assignment.interval.ms", 0, least=0)
    group_consumer_regex_refresh_interval_ms: int = key("group.consumer.regex.refresh.interval.ms", 600_000)

    # --- the topics of the coordinators
    offsets_topic_num_partitions: int = key("offsets.topic.num.partitions", 50)
    offsets_topic_replication_factor: int = key("offsets.topic.replication.factor", 3)
    offsets_topic_segment_bytes: int = key("offsets.topic.segment.bytes", 104_857_600)
    offsets_retention_minutes: int = key("offsets.retention.minutes", 10_080)
    offsets_retention_check_interval_ms: int = key("offsets.retention.check.interval.ms", 600_000)
    offset_metadata_max_bytes: int = key("offset.metadata.max.bytes", 4_096, least=0)
    transaction_state_log_num_partitions: int = key("transaction.state.log.num.partitions", 50)
    transaction_state_log_replication_factor: int = key("transaction.state.log.replication.factor", 3)
    transaction_state_log_segment_bytes: int = key("transaction.state.log.segment.bytes", 104_857_600)
    transaction_state_log_min_isr: int = key("transaction.state.log.min.isr", 2)
    transaction_max_timeout_ms: int = key("transaction.max.timeout.ms", 900_000)
    transactional_id_expiration_ms: int = key("transactional.id.expiration.ms", 604_800_000)

    # --- connections
    connections_max_idle_ms: int = key("connections.max.idle.ms", 600_000, least=-1)
    connections_max_reauth_ms: int = key("connections.max.reauth.ms", 0, least=0)


KEYS: Final = {field.metadata["key"]: field for field in attrs.fields(Settings)}


def settings(given: Mapping[str, Any], brokers: int) -> Settings:
    """Kafka's defaults with the given values; the internal topics get no more replicas than there are brokers.

    Raise ConfigError for a key that is not honoured, and for a value of another type or too small.
    """
    read = {name: _read(name, value) for name, value in given.items()}
    problems = [problem for name, value in read.items() if (problem := _problem(name, value))]
    if problems:
        raise ConfigError("The embedded cluster cannot be set up: " + " ".join(problems))
    few = {
        "offsets.topic.replication.factor": min(3, brokers),
        "transaction.state.log.replication.factor": min(3, brokers),
        "transaction.state.log.min.isr": min(2, brokers),
    }
    return Settings(**{KEYS[name].name: value for name, value in {**few, **read}.items()})


def _read(name: str, value: Any) -> Any:
    """What a text stands for, as the brokers' own files have it: `true`, `300000`. Anything else as it is."""
    wanted = type(KEYS[name].default) if name in KEYS else str
    if not isinstance(value, str) or wanted is str:
        return value
    try:
        return boolean(value) if wanted is bool else int(value)  # there are no settings of other types
    except ValueError:
        return value  # reported as a value of another type


def _problem(name: str, value: Any) -> str | None:
    if name not in KEYS:
        near = get_close_matches(name, KEYS, n=1)
        return f"no setting {name!r} is honoured" + (f", did you mean {near[0]!r}?" if near else ".")
    wanted, least = type(KEYS[name].default), KEYS[name].metadata["least"]
    if type(value) is not wanted:
        return f"{name} must be {'true or false' if wanted is bool else wanted.__name__}, not {value!r}."
    if wanted is int and value < least:
        return f"{name} must be {least} or more, not {value}."
    return None
