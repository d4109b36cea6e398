"""What an ingest job tells machines: one JSON object on a line for each event. The schema is in docs/ingest.md.

Names stay, and what is added later is added beside them. Every object has `event`, `version` and `time_ms`; what is not
known is null. Offsets have the form of checkpoints: `{"orders": {"0": 12}}`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, Final, TextIO

from kclient.errors import KclientError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import BatchProgress, IngestPlan, IngestResult
from kclient.spark.offsets import dump_offsets
from kclient.types import TopicPartition

VERSION: Final = 1


class JsonLines:
    """Writes every event, and flushes: who reads along sees it at once."""

    def __init__(self, out: TextIO, runtime: Runtime) -> None:
        self._out = out
        self._runtime = runtime

    def planned(self, plan: IngestPlan) -> None:
        self._write("plan", plan_fields(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._write("batch", batch_fields(progress))

    def finished(self, result: IngestResult) -> None:
        self._write("finished", finished_fields(result))

    def failed(self, error: BaseException, exit_code: int) -> None:
        self._write("failed", failed_fields(error, exit_code))

    def close(self) -> None:
        """Close the file, unless it is standard output."""
        if self._out is not sys.stdout:
            self._out.close()

    def _write(self, event: str, fields: Mapping[str, Any]) -> None:
        line = {"event": event, "version": VERSION, "time_ms": self._runtime.wall_ms(), **fields}
        self._out.write(json.dumps(line) + "\n")
        self._out.flush()


def plan_fields(plan: IngestPlan) -> dict[str, Any]:
    """What is about to be done."""
    return {
        "cluster_id": plan.cluster_id,
        "topics": list(plan.topics),
        "partitions": [
            {
                "topic": one.partition.topic,
                "partition": one.partition.partition,
                "start": one.start,
                "end": one.end,
                "backlog": one.backlog,
                "backlog_bytes": one.backlog_bytes,
            }
            for one in plan.partitions
        ],
        "backlog_rows": plan.backlog_rows,
        "backlog_bytes": plan.backlog_bytes,
        "tasks": plan.tasks,
        "sink": plan.sink,
        "engine": plan.engine,
        "trigger": plan.trigger,
        "group": plan.group,
        "checkpoint": plan.checkpoint.state,
        "next_batch": plan.checkpoint.next_batch,
        "again": plan.checkpoint.again,
    }


def batch_fields(progress: BatchProgress) -> dict[str, Any]:
    """A batch that counts now."""
    return {
        "batch": progress.batch,
        "rows": progress.rows,
        "bytes": progress.bytes,
        "files": progress.files,
        "bad_records": progress.bad_records,
        "duration_ms": progress.duration_ms,
        "fetch_ms": progress.fetch_ms,
        "decode_ms": progress.decode_ms,
        "write_ms": progress.write_ms,
        "commit_ms": progress.commit_ms,
        "rows_per_second": round(progress.rows_per_second, 1),
        "bytes_per_second": round(progress.bytes_per_second, 1),
        "lag_records": progress.lag_records,
        "lag_seconds": progress.lag_seconds,
        "start": offsets(progress.start),
        "end": offsets(progress.end),
        "latest": offsets(progress.latest),
    }


def finished_fields(result: IngestResult) -> dict[str, Any]:
    """How a run ended. The totals are of this run."""
    return {
        "ended": result.ended,
        "signal": result.signal,
        "batches": result.batches,
        "total_rows": result.rows,
        "total_bytes": result.bytes,
        "total_files": result.files,
        "total_bad_records": result.bad_records,
        "seconds": round(result.seconds, 3),
        "lag_records": result.lag_records,
        "committed": result.committed,
        "end": offsets(result.end),
    }


def failed_fields(error: BaseException, exit_code: int) -> dict[str, Any]:
    """What ended a run before its time."""
    known = isinstance(error, KclientError)
    return {
        "error": type(error).__name__,
        "code": error.kc_code if isinstance(error, KclientError) else None,
        "text": error.text if isinstance(error, KclientError) else str(error),
        "retriable": known and bool(getattr(error, "retriable", False)),
        "exit_code": exit_code,
    }


def offsets(found: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as checkpoints hold them."""
    content: dict[str, dict[str, int]] = json.loads(dump_offsets(found))
    return content
