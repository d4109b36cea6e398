"""The metrics of one consumer: one registry, and for each part of the consumer the object that it updates."""

from __future__ import annotations

from typing import Final

from kclient.config import Config
from kclient.fetch.buffer import FetchBuffer
from kclient.metrics.calls import CallMetrics, KclientMetrics
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.fetching import FetchMetrics
from kclient.metrics.network import NetworkMetrics
from kclient.metrics.registry import MetricValues, Registry
from kclient.metrics.sensor import Windows
from kclient.positions.lookup_context import TRUNCATED, OffsetReset
from kclient.positions.table import Positions
from kclient.types import TopicPartition


class ConsumerMetrics:
    """The metrics of one consumer."""

    def __init__(self, config: Config, positions: Positions, buffer: FetchBuffer) -> None:
        self._positions = positions
        windows = Windows(config.metrics_sample_window_ms / 1000, config.metrics_num_samples)
        self._registry = registry = Registry(config.client_id, windows, config.metric_reporters)
        self.calls: Final = CallMetrics(registry)
        self.network: Final = NetworkMetrics(registry)
        self.coordinator: Final = CoordinatorMetrics(registry, lambda: len(positions))
        self.fetch: Final = FetchMetrics(registry, self._replica_of)
        self.own: Final = KclientMetrics(registry, lambda: buffer.bytes_used)

    def values(self) -> MetricValues:
        """Every metric, now."""
        return self._registry.values()

    def assignment_changed(self) -> None:
        """The metrics of partitions come and go with them."""
        self.fetch.follow_assignment(self._positions.assignment_id, self._positions.assigned())

    def position_jumped(self, jump: OffsetReset) -> None:
        """Note a position that the log lost, and the records that will not be read."""
        self.own.count("offset-resets-total")
        self.own.records_skipped(jump.skipped, "truncation" if jump.strategy == TRUNCATED else "retention")

    def close(self) -> None:
        """Close the metric reporters."""
        self._registry.close()

    def _replica_of(self, tp: TopicPartition) -> int | None:
        state = self._positions.find(tp)
        return None if state is None else state.preferred_read_replica
