"""A table that a job lands in, of any format: how the job is told of it, and what readers that are not ours find."""

from __future__ import annotations

import random
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.sink.tables import LakeTable
from tests.spark.jobs.support import Landed, RecordingReporter, repeated, run
from tests.spark.jobs.test_kills import CONF, Job, producing

COLUMNS: Final = ("_topic", "_partition", "_offset", "value")


@attrs.frozen
class TableLake(ABC):
    """One directory with a table and the checkpoint of its job. Rows without a topic are those of another writer."""

    root: Path

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @abstractmethod
    def settings(self, **changed: Any) -> dict[str, Any]:
        """What makes a job of `support.given` one into the table."""

    @abstractmethod
    def open(self) -> LakeTable[Any]:
        """The table as the job sees it."""

    @abstractmethod
    def judged(self) -> tuple[list[Landed], ...]:
        """The records in the table, by each of two readers."""

    @abstractmethod
    def batches(self) -> int:
        """How many commits the table has after its creation."""

    @abstractmethod
    def counted_files(self) -> list[str]:
        """The files that the table names."""

    @abstractmethod
    def files_on_disk(self) -> list[str]:
        """All data files below the table."""

    @abstractmethod
    def append(self, rows: pa.Table) -> bool:
        """Append rows as another program does. False if there is no table, or if a job was faster."""

    @abstractmethod
    def appended(self) -> list[int]:
        """The offsets of the rows that `append` has written."""

    def run(self, cluster: EmbeddedCluster, **changed: Any) -> RecordingReporter:
        return run(cluster, self.root, **self.settings(**changed))

    def job(self, cluster: EmbeddedCluster, **changed: str) -> Job:
        """A job of the command line with two workers."""
        return self._job(cluster, {"--engine": "direct", "--parallelism": "2"} | changed)

    def spark_job(self, cluster: EmbeddedCluster) -> Job:
        """The same with Spark: a driver with its JVM, and Python workers."""
        job = self._job(cluster, {"--engine": "spark", "--master": "local[2,4]"})
        job.command += [part for pair in CONF.items() for part in ("--conf", "=".join(pair))]
        return job

    def _job(self, cluster: EmbeddedCluster, options: dict[str, str]) -> Job:
        options = {"--topics": "orders", "--checkpoint": str(self.checkpoint)} | options
        options |= {f"--{name}": value for name, value in self.settings().items()}
        command = [sys.executable, "-m", "kclient", "ingest", "-b", cluster.bootstrap_servers]
        command += [part for pair in options.items() for part in pair]
        return Job(command, Checkpoint(self.checkpoint), self.root / "log")


def landed(rows: list[dict[str, Any]], columns: Sequence[str] = COLUMNS) -> list[Landed]:
    """The rows of records, in order."""
    found = [Landed(*(row[name] for name in columns)) for row in rows]
    return sorted(row for row in found if row.topic is not None)


def assert_exactly_once(lake: TableLake, wanted: list[Landed]) -> None:
    """Every record is in the table once, by two readers."""
    for found in lake.judged():
        assert {row: times for row, times in Counter(found).items() if times > 1} == {}
        assert found == sorted(wanted)


def assert_only_counted_files_stay(lake: TableLake, wanted: list[Landed]) -> None:
    """What killed batches left is found and removed, and nothing that counts."""
    table = lake.open()
    table.remove(table.garbage(2**60))
    assert lake.files_on_disk() == lake.counted_files()
    assert_exactly_once(lake, wanted)


@contextmanager
def other_writers(lake: TableLake, rows: list[int], pause: float = 0.2) -> Iterator[None]:
    """Append rows without a topic to the table, at most half of the time.

    On a busy machine an append and a commit of the job take longer, and a job gives up that is overtaken 20 times.
    """

    def write() -> None:
        began, number = time.monotonic(), len(rows)
        if lake.append(
            pa.table({"_topic": pa.nulls(1, pa.string()), "_offset": pa.array([number], pa.int64())})
        ):
            rows.append(number)
        time.sleep(time.monotonic() - began)

    with repeated(write, pause):
        yield


def killed_at_random(
    cluster: EmbeddedCluster, lake: TableLake, times: int, pause: float = 0.2
) -> list[Landed]:
    """Kill a job so often at random moments beside another writer: each record counts once. Return the records."""
    moments, wanted, others = seeded(), list[Landed](), list[int]()
    job = lake.job(cluster)
    with producing(cluster, wanted), other_writers(lake, others, pause):
        for _ in range(times):
            job.killed_at_work(moments.uniform(0, 0.6))
    job.drain()
    assert_exactly_once(lake, wanted)
    assert job.begun() > times
    assert sorted(lake.appended()) == others
    return wanted


def seeded() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)
