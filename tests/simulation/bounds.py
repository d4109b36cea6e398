"""How long things may take once every fault has ended. Seconds of virtual time."""

from __future__ import annotations

from typing import Final

from tests.simulation.scenario import Scenario

RECONNECT_BACKOFF_MAX: Final = 1.0
RETRY_BACKOFF_MAX: Final = 1.0
JOIN_GRACE: Final = 5.0  # JoinGroup waits for so much longer than the rebalance timeout


def progress_seconds(scenario: Scenario) -> float:
    """Until every assigned partition goes on (I-22): twice the worst of a request and its retry, and a rebalance."""
    request = scenario.request_timeout_ms / 1000 + RECONNECT_BACKOFF_MAX + RETRY_BACKOFF_MAX
    return 2 * request + rebalance_seconds(scenario) + JOIN_GRACE


def rebalance_seconds(scenario: Scenario) -> float:
    """The rebalance timeout."""
    return scenario.max_poll_interval_ms / 1000


def call_seconds(scenario: Scenario) -> float:
    """default_api_timeout_ms."""
    return 4 * scenario.request_timeout_ms / 1000


def convergence_seconds(scenario: Scenario) -> float:
    """Until the group stands (I-27): the dead are noticed, the living come back; a rebalance, two heartbeats."""
    dead = scenario.session_timeout_ms / 1000
    return dead + progress_seconds(scenario) + 2 * scenario.heartbeat_interval_ms / 1000
