"""How a job with Spark ends that was asked to stop: by the signal, or by what failed before it could. No session."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import attrs
import pytest

from kclient.errors import SinkError
from kclient.spark.ingest import engine_spark
from kclient.spark.ingest.batch_commit import BatchCommitter
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.preflight import Prepared
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.ingest.writers import DirectWriter
from tests.spark.jobs.support import RecordingReporter

FULL = SinkError("The disk is full.")
INTERRUPTED = RuntimeError("Job 7 cancelled because its query was stopped")


@attrs.define
class Query:
    """A query that works until it is stopped, or fails after `fails_after` looks at it, or when it is stopped.

    `reported` is the exception that Spark returns, `failure` what `foreachBatch` raised.
    """

    failure: Exception | None = None
    reported: Exception | None = None
    fails_after: int | None = None
    isActive: bool = True  # noqa: N815 - Spark's names
    recentProgress: tuple[Any, ...] = ()  # noqa: N815
    status: dict[str, bool] = attrs.field(factory=lambda: {"isTriggerActive": False})
    writer: Any = None

    def awaitTermination(self, _: float) -> bool:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                self._end()
        return not self.isActive

    def stop(self) -> None:
        if self.isActive:
            self._end()

    def exception(self) -> Exception | None:
        return None if self.isActive else self.reported

    def _end(self) -> None:
        self.isActive = False
        self.writer.failure = self.failure


def ended(monkeypatch: pytest.MonkeyPatch, root: Path, query: Query) -> str:
    """How a job ends whose signal has come already."""

    def start(writer: DirectWriter, _: Any) -> Any:
        query.writer = writer
        return query

    @contextmanager
    def no_session(_: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(DirectWriter, "start", start)
    monkeypatch.setattr(engine_spark, "session_of", no_session)
    monkeypatch.setattr(engine_spark, "with_schema", lambda prepared, _: prepared)
    prepared = SimpleNamespace(
        settings=SimpleNamespace(sink=SimpleNamespace(where=str(root)), writer="direct", group=None),
        checkpoint=Checkpoint(root),
        target=SimpleNamespace(dead=None),
        committer=lambda: BatchCommitter(str(root), "a"),
        position=SimpleNamespace(start={}),
        plan=SimpleNamespace(partitions=()),
        table=None,
        epoch=None,
        claim=lambda: prepared,
        with_table=lambda: prepared,
    )
    return engine_spark.run(
        cast("Prepared", prepared), RecordingReporter(), StopRequest(signal.SIGTERM)
    ).ended


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize(
    "query",
    [
        Query(failure=FULL, fails_after=0),
        Query(reported=FULL, fails_after=0),
        Query(reported=RuntimeError("The disk is full."), fails_after=0),
        Query(failure=FULL),
    ],
    ids=["in foreachBatch", "as Spark tells it", "in no words of ours", "while it was being stopped"],
)
def test_a_failure_beside_a_signal_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: Query
) -> None:
    with pytest.raises((SinkError, RuntimeError), match=r"The disk is full\."):
        ended(monkeypatch, tmp_path, query)


@pytest.mark.spec("SP-85")
@pytest.mark.parametrize("query", [Query(), Query(failure=INTERRUPTED), Query(reported=INTERRUPTED)])
def test_what_the_stop_interrupts_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, query: Query
) -> None:
    assert ended(monkeypatch, tmp_path, query) == "stopped"
