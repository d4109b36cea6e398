"""Spark waits ten seconds for its streaming process, which a busy machine may not keep: the query starts again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.errors import StreamingQueryException

from kclient.spark.ingest import engine_spark
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.preflight import Prepared
from kclient.spark.ingest.stop_signals import StopRequest
from tests.spark.jobs.support import RecordingReporter

SLOW = "Python worker failed to connect back."


@contextmanager
def no_session(_: Any) -> Iterator[None]:
    yield


def attempts(monkeypatch: pytest.MonkeyPatch, *ends: str, reported: int = 0) -> int:
    """Run a job whose queries end so; how many were started."""
    started: list[str] = []

    class Engine:
        def __init__(self, *_: Any) -> None:
            self.reported = reported

        def run(self, _: Any) -> str:
            started.append(ends[len(started)])
            if started[-1] != "drained":
                raise StreamingQueryException(started[-1])
            return started[-1]

    monkeypatch.setattr(engine_spark, "session_of", no_session)
    stand_in = SimpleNamespace(
        settings=None,
        checkpoint=Checkpoint("unused"),
        epoch=None,
        claim=lambda: stand_in,
        with_table=lambda: stand_in,
    )
    monkeypatch.setattr(engine_spark, "with_schema", lambda prepared, _: prepared)
    monkeypatch.setattr(engine_spark, "_SparkEngine", Engine)
    prepared = cast("Prepared", stand_in)
    if ends[-1] == "drained":
        assert cast("Any", engine_spark.run(prepared, RecordingReporter(), StopRequest())) == "drained"
    else:
        with pytest.raises(StreamingQueryException, match=ends[-1]):
            engine_spark.run(prepared, RecordingReporter(), StopRequest())
    return len(started)


@pytest.mark.spec("SP-24")
def test_a_query_that_could_not_start_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempts(monkeypatch, SLOW, SLOW, "drained") == 3
    assert attempts(monkeypatch, SLOW, SLOW, SLOW) == 3


@pytest.mark.spec("SP-24")
def test_any_other_end_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attempts(monkeypatch, "out of memory") == 1
    assert attempts(monkeypatch, SLOW, reported=1) == 1
