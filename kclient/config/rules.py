"""The rules between keys: which values must agree, and which value follows from another key."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Final

from kclient.config import oauth, resets, security
from kclient.log import get_logger

log: Final = get_logger("kclient.config")

_consumers = itertools.count(1)

_BASES_AND_MAXIMA = (
    ("retry_backoff_ms", "retry_backoff_max_ms"),
    ("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
    ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"),
    ("sasl_login_retry_backoff_ms", "sasl_login_retry_backoff_max_ms"),
)

_CLASSIC_ONLY = ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy")


def disagreements(
    values: Mapping[str, Any], given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[str]:
    """Return the contradictions, one sentence each. `values` holds every key, `given` those that the user set."""
    problems = []
    if values["heartbeat_interval_ms"] >= values["session_timeout_ms"]:
        problems.append(
            f"heartbeat_interval_ms ({values['heartbeat_interval_ms']}) must be smaller than session_timeout_ms "
            f"({values['session_timeout_ms']}), best a third of it"
        )
    if given.get("enable_auto_commit") and values["group_id"] is None:
        problems.append("enable_auto_commit=True needs group_id: offsets are committed for a group")
    problems += _of_the_group_protocol(values, given)
    problems += resets.contradictions(given)
    problems += _of_undecodable_records(values)
    problems += security.disagreements(values, defaults)
    return problems


def _of_the_group_protocol(values: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Check the keys that only one group protocol has; with auto either protocol may be used."""
    protocol = values["group_protocol"]
    if protocol == "consumer":
        return [
            f"{name} is for group_protocol='classic': with 'consumer' the broker decides, so leave it out"
            for name in _CLASSIC_ONLY
            if name in given
        ]
    if protocol == "classic" and values["group_remote_assignor"] is not None:
        return [
            "group_remote_assignor needs group_protocol='consumer': "
            "in classic groups partition_assignment_strategy decides"
        ]
    return []


def _of_undecodable_records(values: Mapping[str, Any]) -> list[str]:
    mode, sink = values["on_decode_error"], values["dead_letters"]
    problems = []
    if mode == "dlq" and sink is None:
        problems.append(
            "on_decode_error='dlq' needs dead_letters: a function that takes a DeadLetter, or a path"
        )
    if mode != "dlq" and sink is not None:
        problems.append(
            f"dead_letters is not used with on_decode_error={mode!r}: write 'dlq', or leave it out"
        )
    if mode != "raise" and values["key_deserializer"] is None and values["value_deserializer"] is None:
        problems.append(
            f"on_decode_error={mode!r} needs key_deserializer or value_deserializer: bytes never fail"
        )
    return problems


def settle(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Derive the value of a key from other keys."""
    oauth.settle(values)
    if values["group_id"] is None:
        values["enable_auto_commit"] = False
    if "reconnect_backoff_ms" in given and "reconnect_backoff_max_ms" not in given:
        values["reconnect_backoff_max_ms"] = values["reconnect_backoff_ms"]
    for base, maximum in _BASES_AND_MAXIMA:
        if values[maximum] < values[base]:
            log.warning(
                "%s (%d) is smaller than %s (%d): the smaller one is used as a constant delay",
                maximum, values[maximum], base, values[base],
            )  # fmt: skip
            values[base] = values[maximum]
    if values["fetch_max_wait_ms"] >= values["request_timeout_ms"]:
        log.warning(
            "fetch_max_wait_ms should be smaller than request_timeout_ms: quiet fetches will time out"
        )
    if not given.get("client_id"):
        suffix = values["group_instance_id"] or str(next(_consumers))
        group = values[
            "group_id"
        ]  # without one Java writes consumer-null-1, which looks like a mistake in a broker's log
        values["client_id"] = f"consumer-{suffix}" if group is None else f"consumer-{group}-{suffix}"
