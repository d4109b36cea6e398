"""Jobs called where an event loop runs already, as in a cell of a notebook."""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kclient import Consumer, OffsetAndMetadata, TopicPartition
from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.offsets_history import HistoryRun, OffsetsHistorySettings
from kclient.spark.offsets_history.job import watch
from kclient.spark.sink.atomic_files import locked
from tests.spark.jobs.support import fill, rows, run
from tests.spark.offsets_history_support import keep, table


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(topics={"orders": 2}) as made:
        yield made


def in_a_cell(job: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """What `job` gives back on a thread whose event loop runs."""

    async def cell() -> Any:
        return job(*args, **settings)

    return asyncio.run(cell())


def commit(cluster: EmbeddedCluster, offset: int) -> None:
    settings = {"bootstrap_servers": cluster.bootstrap_servers, "group_id": "readers"}
    with Consumer(**settings, enable_auto_commit=False) as consumer:
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(offset)})


@pytest.mark.parametrize("parallelism", [1, 2])
def test_ingest_lands_all(cluster: EmbeddedCluster, tmp_path: Path, parallelism: int) -> None:
    wanted = fill(cluster, 100)
    in_a_cell(run, cluster, tmp_path, parallelism=parallelism)
    wanted += fill(cluster, 100, first=100)
    run(cluster, tmp_path, parallelism=parallelism)  # the same process without a loop: another client
    assert rows(tmp_path / "sink") == sorted(wanted)


def test_a_backfill_lands_what_was_before_the_job(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    wanted = fill(cluster, 20)
    in_a_cell(run, cluster, tmp_path, start="latest")
    in_a_cell(run, cluster, tmp_path, backfill=True)
    assert rows(tmp_path / "sink") == sorted(wanted)


def test_offsets_history_keeps_commits(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    commit(cluster, 7)
    in_a_cell(keep, cluster.bootstrap_servers, tmp_path)
    assert [row["offset"] for row in table(tmp_path, "commits")] == [7]


def test_offsets_history_watches(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    commit(cluster, 7)
    settings = OffsetsHistorySettings.parse(
        {"bootstrap": cluster.bootstrap_servers, "out": str(tmp_path), "every": "250ms"}
    )
    runs: list[HistoryRun] = []
    stop = StopRequest()

    def heard(one: HistoryRun) -> None:
        runs.append(one)
        if len(runs) == 2:
            stop.signal = 15

    in_a_cell(watch, settings, heard, stop)
    assert [one.resumed for one in runs] == [False, True]


def test_a_lock_that_is_given_back_soon_is_waited_for(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    threading.Timer(0.3, os.close, [descriptor]).start()

    def hold() -> bool:
        with locked(tmp_path, "The job"):
            return True

    assert in_a_cell(hold)
