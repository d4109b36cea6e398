"""In which order a pool hands out the ranges of two batches, and whose an error is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from threading import Thread
from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kclient.errors import DataLossError, InternalError
from kclient.spark.ingest import worker_pool
from kclient.spark.ingest.worker_pool import ATTEMPTS, BatchWork, WorkerPool, WorkerProcess
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink.parquet import DirectTarget, WrittenRange

pytestmark = pytest.mark.timeout(60)

OPTIONS = SourceOptions.parse({"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"})
TARGET = DirectTarget(root="sink")
DIES = object()
NEVER = 1_000
LATE_SECONDS = 10.0


def ranges(topic: str, count: int) -> list[OffsetRange]:
    return [OffsetRange(topic, partition, 0, 1) for partition in range(count)]


class ScriptedWorkers:
    """Workers whose answers the test decides: `answers[topic, partition]` are an error, or DIES; else it is written.

    `given` are the ranges in the order in which they were handed out. A range of `late` is answered after so many
    others were handed out.
    """

    def __init__(self) -> None:
        self.given: list[tuple[str, int]] = []
        self.answers: dict[tuple[str, int], object] = {}
        self.late: dict[tuple[str, int], int] = {}
        self.threads: list[Thread] = []

    def start(self, locks: Sequence[int] = ()) -> WorkerProcess:
        ours, theirs = Pipe()
        process = SimpleNamespace(wait=lambda timeout=None: -9, kill=lambda: None, returncode=-9)
        self.threads.append(thread := Thread(target=self._serve, args=(theirs,)))
        thread.start()
        return WorkerProcess(cast(Any, process), ours, Pipe()[0])

    def _serve(self, pipe: Connection) -> None:
        with pipe, suppress(EOFError, BrokenPipeError, ConnectionResetError):  # the pool closes its end
            while True:
                wanted, *_ = pipe.recv()
                key = (wanted.topic, wanted.partition)
                self.given.append(key)
                answer = self.answers.get(key, WrittenRange(range=wanted))
                if answer is DIES:
                    return
                deadline = monotonic() + LATE_SECONDS
                while (
                    len(self.given) <= self.late.get(key, 0)
                    and not pipe.poll(0.001)
                    and monotonic() < deadline
                ):
                    pass
                pipe.send(answer)


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedWorkers]:
    scripted = ScriptedWorkers()
    monkeypatch.setattr(worker_pool.WorkerProcess, "start", scripted.start)
    yield scripted
    for thread in scripted.threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def pool(workers: ScriptedWorkers) -> Iterator[WorkerPool]:
    pool = WorkerPool(2)
    yield pool
    pool.close()


def finish_both(
    pool: WorkerPool, first: list[OffsetRange], second: list[OffsetRange]
) -> tuple[list[WrittenRange], BatchWork]:
    """Finish the first batch, and begin the second when the pool asks for it."""
    begun: list[BatchWork] = []

    def begin_next() -> BatchWork:
        begun.append(pool.begin(second, OPTIONS, TARGET))
        return begun[-1]

    found = pool.finish(pool.begin(first, OPTIONS, TARGET), begin_next)
    assert len(begun) == 1
    return found, begun[0]


def test_an_idle_worker_writes_the_next_batch_while_the_last_range_of_one_is_written(
    pool: WorkerPool, workers: ScriptedWorkers
) -> None:
    first, second = ranges("first", 3), ranges("second", 4)
    workers.late["first", 2] = (
        6  # the last range of the first batch ends after three of the second were handed out
    )
    found, work = finish_both(pool, first, second)
    assert [one.range for one in found] == first
    assert [one for one in workers.given if one[0] == "second"][:3] == [("second", n) for n in range(3)]
    assert [one.range for one in pool.finish(work)] == second


def test_the_next_batch_is_asked_for_once_also_when_every_range_is_written(
    pool: WorkerPool, workers: ScriptedWorkers
) -> None:
    asked: list[bool] = []
    found = pool.finish(pool.begin(ranges("first", 2), OPTIONS, TARGET), lambda: asked.append(True))
    assert (len(found), asked) == (2, [True])


def test_an_error_in_the_next_batch_waits_for_that_batch(pool: WorkerPool, workers: ScriptedWorkers) -> None:
    lost = DataLossError("planted", kind="TRUNCATED", partitions=())
    workers.answers["second", 0] = lost
    workers.late["first", 1] = 2
    found, work = finish_both(pool, ranges("first", 2), ranges("second", 3))
    assert len(found) == 2
    with pytest.raises(DataLossError, match="planted"):
        pool.finish(work)


def test_a_range_of_the_next_batch_that_ends_every_worker_is_the_error_of_that_batch(
    pool: WorkerPool, workers: ScriptedWorkers
) -> None:
    workers.answers["second", 0] = DIES
    workers.late["first", 1] = 1 + ATTEMPTS
    found, work = finish_both(pool, ranges("first", 2), ranges("second", 1))
    assert len(found) == 2
    with pytest.raises(InternalError, match="second"):
        pool.finish(work)
    assert workers.given.count(("second", 0)) == ATTEMPTS


def test_the_range_of_a_dead_worker_goes_before_those_of_the_next_batch(
    pool: WorkerPool, workers: ScriptedWorkers
) -> None:
    workers.answers["first", 1] = DIES
    workers.late["first", 0] = NEVER
    with pytest.raises(InternalError, match="first"):
        finish_both(pool, ranges("first", 2), ranges("second", 3))
    assert workers.given.count(("first", 1)) == ATTEMPTS
    assert [one for one in workers.given if one[0] == "second"] == []


def test_a_pool_of_one_does_not_ask_for_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        worker_pool, "write_range", lambda wanted, options, target: WrittenRange(range=wanted)
    )
    pool = WorkerPool(1)
    begin_next = pytest.fail
    assert len(pool.finish(pool.begin(ranges("first", 2), OPTIONS, TARGET), begin_next)) == 2
