"""Records grow old: retention moves the log start up, time after time, and so does who deletes records."""

from __future__ import annotations

from typing import Final

from kclient.embedded import topic_config
from kclient.embedded.state import ClusterState
from kclient.embedded.topics import Partition

FIRST_SECONDS: Final = 30.0
NEXT_SECONDS: Final = 300.0
UNLIMITED: Final = -1


def advance_start(state: ClusterState, partition: Partition, before: int) -> None:
    """Serve nothing below `before` any more; nothing happens where nothing is."""
    if before <= partition.log.start:
        return
    partition.log.advance_start(before)
    partition.changed.notify()
    for observer in state.observers:
        observer.log_start_moved(partition, partition.log.start)


def watch(state: ClusterState) -> None:
    """Look for old records, first after half a minute, then every five, as long as the cluster lives."""
    state.clock.call_later(FIRST_SECONDS, lambda: _round(state))


def _round(state: ClusterState) -> None:
    for partition in state.partitions():
        expire(state, partition)
    state.clock.call_later(NEXT_SECONDS, lambda: _round(state))


def expire(state: ClusterState, partition: Partition) -> None:
    """Delete what is older, or more, than the topic keeps: whole batches, below the high watermark."""
    config, log = partition.topic.config, partition.log
    if not log.batches:
        return
    if "delete" not in topic_config.value("cleanup.policy", config, state.settings):
        return
    retention_ms = topic_config.number("retention.ms", config, state.settings)
    retention_bytes = topic_config.number("retention.bytes", config, state.settings)
    oldest = state.clock.wall_ms() - retention_ms if retention_ms != UNLIMITED else None
    size = sum(len(stored.data) for stored in log.batches)
    before, high_watermark = log.start, partition.high_watermark
    for stored in log.batches:
        too_old = oldest is not None and stored.header.max_timestamp < oldest
        too_much = retention_bytes != UNLIMITED and size - len(stored.data) >= retention_bytes
        if stored.last_offset >= high_watermark or not (too_old or too_much):
            break
        size -= len(stored.data)
        before = stored.last_offset + 1
    advance_start(state, partition, before)
