"""Cooperative rebalances of the blocking Consumer: in which thread listeners run, and what they may call there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kclient import Consumer, RebalanceListener, TopicPartition
from kclient.embedded import EmbeddedCluster
from tests.group.cooperative_assignor import KeepAndShare

T = [TopicPartition("t", number) for number in range(4)]


class Committing(RebalanceListener):
    """Commits while partitions go; notes the thread, the partitions, and what is assigned meanwhile."""

    def __init__(self) -> None:
        self.consumer: Consumer[Any, Any] | None = None
        self.calls: list[tuple[Any, ...]] = []

    def _note(self, what: str, partitions: tuple[TopicPartition, ...]) -> None:
        assert self.consumer is not None
        self.calls.append((what, partitions, self.consumer.assignment(), threading.current_thread().name))

    def on_partitions_assigned(self, partitions: tuple[TopicPartition, ...]) -> None:
        self._note("assigned", partitions)

    def on_partitions_revoked(self, partitions: tuple[TopicPartition, ...]) -> None:
        assert self.consumer is not None
        self.consumer.commit()
        self._note("revoked", partitions)


def polled(consumers: list[Consumer[Any, Any]], done: Callable[[], bool]) -> list[Any]:
    """Poll in turn until something holds; the records on the way."""
    records: list[Any] = []
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        for consumer in consumers:
            records += consumer.poll(0.02)
    return records


def consumer_of(cluster: EmbeddedCluster, listener: Committing) -> Consumer[Any, Any]:
    listener.consumer = Consumer(
        "t",
        bootstrap_servers=cluster.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=50,
        partition_assignment_strategy=[KeepAndShare()],
        listener=listener,
    )
    return listener.consumer


@pytest.mark.spec("B.3.1", "S3-34", "S3-44", "S3-49", "I-12")
def test_both_halves_of_a_rebalance_run_in_the_polling_thread_and_a_commit_in_between_counts() -> None:
    with EmbeddedCluster(topics={"t": 4}) as cluster:
        for tp in T:
            cluster.produce("t", ["0", "1"], partition=tp.partition)
        first, second = Committing(), Committing()
        with consumer_of(cluster, first) as a:
            assert len(polled([a], lambda: len(a.assignment()) == 4 and a.position(T[3]) == 2)) == 8
            with consumer_of(cluster, second) as b:
                again = polled([a, b], lambda: len(b.assignment()) == 2 and b.position(T[3]) == 2)
                name = threading.current_thread().name
                gone = b.assignment()
                kept = tuple(tp for tp in T if tp not in gone)
                assert first.calls[1:3] == [("revoked", gone, tuple(T), name), ("assigned", (), kept, name)]
                assert second.calls[-1] == ("assigned", gone, gone, name)
                assert again == []  # what goes was committed in the revocation; what stays was not read twice
                assert cluster.committed("g") == dict.fromkeys(T, 2)
