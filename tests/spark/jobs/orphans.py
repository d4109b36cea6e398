"""A parent that holds a lock and has one worker at work: `python -m tests.spark.jobs.orphans DIRECTORY ORDER`.

The worker runs the text ORDER while it takes its first order. The parent prints its pid, and waits to be killed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import attrs

from kclient.spark.ingest.worker_pool import WorkerProcess
from kclient.spark.sink.atomic_files import locked


@attrs.frozen
class Order:
    """What runs where it is unpickled."""

    text: str

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.text,)


if __name__ == "__main__":
    directory, order = sys.argv[1:]
    with locked(Path(directory), "The test") as lock:
        worker = WorkerProcess.start([lock])
        worker.pipe.send(Order(order))
        print(worker.process.pid, flush=True)
        time.sleep(60)
