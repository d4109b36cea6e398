"""The streaming job that lands the topic: `kclient ingest` on Spark, killed half way and started again.

It is a child like any other use of the command line. It begins before there is anything to read, so that Spark starts
beside the publisher. Half way by the manifest SIGKILL goes to all its processes, JVM and Python workers too; the same
command with the same checkpoint then goes on. Only the files in the manifest count, whatever the job reports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self

from demo.job import Job
from demo.landed import landed
from demo.processes import Child, Tail, members
from demo.recorder import Recorder
from demo.recording import DONE, KILLED, STARTED, Batch
from demo.terminal import bar
from localkafka.processes import deferred_signals

DEADLINE_SECONDS: Final = 400.0
LAG_SECONDS: Final = 15.0
END_SECONDS: Final = 60.0
LANE: Final = "ingest"
MEASURED: Final = ("rows", "bytes", "files", "fetch_ms", "decode_ms", "write_ms")


class Pipeline:
    """Runs the job, and once more after it was killed; `tick` is called now and then while other things happen."""

    def __init__(self, job: Job, recorder: Recorder) -> None:
        self.rows = 0
        self._job = job
        self._chronicle = recorder
        self._run = 0
        self._child: Child | None = None
        self._lines = Tail(job.out / "ingest-1.jsonl")

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.kill()

    def tick(self) -> Sequence[str]:
        """Read the job's events and the manifest; kill it when half is written. Return the progress lines.

        Raise RuntimeError if it has ended unexpectedly.
        """
        child = self._running()
        if (code := child.process.poll()) is not None:
            raise RuntimeError(f"the ingest job ended unexpectedly with {code}:\n{child.log_end()}")
        self._read_progress()
        if self._run == 1 and 2 * self.rows >= self._job.total:
            self._kill()
            self._start()
        return [f"          landed      {bar(self.rows, self._job.total)} {self.rows:>8,}"]

    def finish(self, lag: Callable[[], int | None]) -> None:
        """Wait until all has landed and the group shows it; then SIGTERM. Raises RuntimeError."""
        self._wait(lambda: self._run == 2 and self.rows >= self._job.total, DEADLINE_SECONDS)
        self._wait(lambda: lag() == 0, LAG_SECONDS, enough=True)  # the job commits once more at its end
        self._chronicle.event(
            DONE,
            f"landed: {self.rows:,} rows by {self._job.counted_by}, lag {lag() or 0:,}",
        )
        child = self._running()
        code = child.end(END_SECONDS)
        self._chronicle.finish(LANE)
        self._read_progress()
        self._fill_in()
        if code != 0:
            raise RuntimeError(f"the ingest job ended with {code}:\n{child.log_end()}")

    def _wait(self, done: Callable[[], bool], seconds: float, *, enough: bool = False) -> None:
        """Wait for a condition. Raise RuntimeError after `seconds`, unless `enough` is set."""
        deadline = time.monotonic() + seconds
        while not done():
            self._chronicle.terminal.draw(self.tick(), f"landed {self.rows:,} of {self._job.total:,}")
            time.sleep(0.1)
            if time.monotonic() > deadline:
                if enough:
                    return
                words = self._running().log_end()
                raise RuntimeError(f"the ingest job did not finish within {seconds:g} s:\n{words}")

    def _start(self) -> None:
        self._run += 1
        metrics = self._job.out / f"ingest-{self._run}.jsonl"
        metrics.unlink(missing_ok=True)
        self._lines = Tail(metrics)
        arguments = self._job.arguments(metrics)
        with deferred_signals():
            self._child = Child("kclient", arguments, self._job.out / f"ingest-{self._run}.log", talks=False)
        self._chronicle.begin(LANE, "starts")
        if self._run > 1:
            self._chronicle.event(STARTED, "the same ingest command started again, with the same checkpoint")

    def _kill(self) -> None:
        """SIGKILL to the command, the JVM and Spark's Python workers."""
        child = self._running()
        family = len(members(child.pid))
        child.kill()
        self._chronicle.finish(LANE, killed=True)
        self._read_progress()
        self._chronicle.event(
            KILLED,
            f"the ingest job (pid {child.pid}, {family} processes) killed with {self.rows:,} rows in "
            f"{self._job.counted_by}",
        )

    def _read_progress(self) -> None:
        """Read the row count from the manifest, and the job's batch events."""
        self.rows = sum(batch.rows for batch in landed(self._job))
        for line in self._lines.read():
            if line["event"] == "batch" and line["rows"]:
                self._add(line)

    def _add(self, line: dict[str, Any]) -> None:
        """Add a written batch. The first one of a run ends Spark's start; batches do not overlap."""
        recording = self._chronicle.recording
        before = recording.batches[-1] if recording.batches else None
        end = self._chronicle.since(line["time_ms"] / 1000)
        start = round(max(end - line["duration_ms"] / 1000, before.end if before else 0.0), 3)
        if before is None or before.run != self._run:
            recording.begin(LANE, "lands", start)
        measured = {name: line[name] for name in MEASURED}
        recording.batches.append(Batch(self._run, line["batch"], start, end, **measured))

    def _fill_in(self) -> None:
        """Add batches that the killed job did not report; their time is that of the manifest or the version."""
        recording = self._chronicle.recording
        known = {batch.number for batch in recording.batches}
        for found in landed(self._job):
            if found.number not in known:
                end = self._chronicle.since(found.at)
                start = max((batch.end for batch in recording.batches if batch.end <= end), default=end)
                recording.batches.append(
                    Batch(1, found.number, start, end, found.rows, found.bytes, found.files)
                )
        recording.batches.sort(key=lambda batch: batch.end)

    def _running(self) -> Child:
        if self._child is None:
            raise RuntimeError("the ingest job was not started")
        return self._child
