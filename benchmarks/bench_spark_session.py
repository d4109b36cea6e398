"""What a job costs a whole Spark session: seconds, and the CPU of its JVM and its Python processes."""

from __future__ import annotations

from typing import Any

import attrs

from benchmarks.bench_spark_process import Cpu, tree, used
from localspark.session import Session


@attrs.frozen
class Cost:
    """What one job took, for all of its rows."""

    seconds: float
    cpu: Cpu


def measured(session: Session, job: dict[str, Any]) -> Cost:
    """Let a session of `bench_spark_child` do one job. Raises LocalKafkaError with Spark's log when it fails."""
    before = tree(session.pid)
    answer = session.ask(job)
    return Cost(answer["seconds"], used(before, tree(session.pid)))
