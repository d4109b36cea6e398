"""The rules between keys: what must agree, and what one key says about another that was left out."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Mapping
from typing import Any

from kclient.config import security_rules

log = logging.getLogger("kclient.config")

_consumers = itertools.count(1)

_BASES_AND_MAXIMA = (
    ("retry_backoff_ms", "retry_backoff_max_ms"),
    ("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
    ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"),
)


def disagreements(
    values: Mapping[str, Any], given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[str]:
    """What contradicts what, one sentence each. `values` holds every key, `given` those that the user set."""
    problems = []
    if values["heartbeat_interval_ms"] >= values["session_timeout_ms"]:
        problems.append(
            f"heartbeat_interval_ms ({values['heartbeat_interval_ms']}) must be smaller than session_timeout_ms "
            f"({values['session_timeout_ms']}), best a third of it"
        )
    if given.get("enable_auto_commit") and values["group_id"] is None:
        problems.append("enable_auto_commit=True needs group_id: offsets are committed for a group")
    problems += security_rules.disagreements(values, defaults)
    return problems


def settle(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Derive what one key says about another. Spec: B.1.1, S3-01…S3-04."""
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
        who = values["group_instance_id"] or str(next(_consumers))
        values["client_id"] = f"consumer-{values['group_id'] or 'null'}-{who}"
