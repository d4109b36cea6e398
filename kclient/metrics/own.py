"""`kclient-metrics`: what Java has no name for."""

from __future__ import annotations

from collections.abc import Callable

from kclient.metrics.registry import Registry

GROUP = "kclient-metrics"
COUNTERS = (
    "auto-commit-total",
    "commit-failed-total",
    "assignments-total",
    "partitions-assigned-total",
    "partitions-revoked-total",
    "partitions-lost-total",
    "offset-resets-total",
)


class OwnMetrics:
    """Counters that only grow. `buffered_bytes` says how much was fetched and not handed out yet."""

    def __init__(self, registry: Registry, buffered_bytes: Callable[[], int] = int) -> None:
        self._registry = registry
        self._counts = dict.fromkeys(COUNTERS, 0.0)
        self._skipped: dict[str, float] = {}
        group = registry.group(GROUP)
        for name in COUNTERS:
            group.add(name, self._reader(self._counts, name))
        group.add("buffered-bytes", lambda now: float(buffered_bytes()))

    def count(self, name: str, amount: int = 1) -> None:
        """Add to one of COUNTERS."""
        self._counts[name] += amount

    def records_skipped(self, amount: int, reason: str) -> None:
        """Records that the application will never see: `retention`, `decode`."""
        if reason not in self._skipped:
            self._skipped[reason] = 0.0
            group = self._registry.group(GROUP, reason=reason)
            group.add("records-skipped-total", self._reader(self._skipped, reason))
        self._skipped[reason] += amount

    @staticmethod
    def _reader(counts: dict[str, float], name: str) -> Callable[[float], float]:
        return lambda now: counts[name]
