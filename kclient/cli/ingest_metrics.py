"""What an ingest job tells Prometheus: numbers since it began, as text at http://127.0.0.1:PORT/metrics.

The page is written anew with each event, on the job's thread; kclient's loop thread only hands it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kclient.cli.scrape import ScrapeServer
from kclient.spark.ingest.progress import BatchProgress, IngestPlan, IngestResult
from kclient.text import LONGEST_NAME, printable_lines

BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Seconds of a batch: a histogram's bounds."""


class Prometheus:
    """Counts over the run, and the lag of every partition as last seen."""

    def __init__(self, host: str, port: int) -> None:
        self._lag: dict[tuple[str, int], int] = {}
        self._behind: float | None = None
        self._seconds: list[float] = []
        self._rows = self._bytes = self._files = self._bad = 0
        self._server = ScrapeServer(host, port)
        self._publish()

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    @property
    def page(self) -> str:
        """What is handed out now."""
        return self._server.page

    def planned(self, plan: IngestPlan) -> None:
        for one in plan.partitions:
            self._lag[one.partition.topic, one.partition.partition] = one.backlog
        self._publish()

    def batch(self, progress: BatchProgress) -> None:
        self._lag = {(tp.topic, tp.partition): behind for tp, behind in progress.lag.items()}
        self._behind = progress.lag_seconds
        self._seconds.append(progress.duration_ms / 1000)
        self._rows += progress.rows
        self._bytes += progress.bytes
        self._files += progress.files
        self._bad += progress.bad_records
        self._publish()

    def finished(self, result: IngestResult) -> None:
        """The last batch has told everything."""

    def failed(self, error: BaseException, exit_code: int) -> None:
        """A job that has ended is not there to be asked: alert on its absence."""

    def close(self) -> None:
        self._server.close()

    def _publish(self) -> None:
        self._server.page = "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("kclient_lag", "gauge", "Offsets between what has landed and the end of the log.")
        for (topic, partition), behind in sorted(self._lag.items()):
            yield f'kclient_lag{{topic="{_escaped(topic)}",partition="{partition}"}} {behind}'
        if self._behind is not None:
            yield from _head(
                "kclient_lag_seconds",
                "gauge",
                "Age of the newest record that has landed; 0 when nothing waits.",
            )
            yield f"kclient_lag_seconds {self._behind:.3f}"
        yield from _head(
            "kclient_batch_seconds", "histogram", "Time from the begin of a batch to its commit."
        )
        for bound in BUCKETS:
            count = sum(seconds <= bound for seconds in self._seconds)
            yield f'kclient_batch_seconds_bucket{{le="{bound:g}"}} {count}'
        yield f'kclient_batch_seconds_bucket{{le="+Inf"}} {len(self._seconds)}'
        yield f"kclient_batch_seconds_sum {sum(self._seconds):.3f}"
        yield f"kclient_batch_seconds_count {len(self._seconds)}"
        for name, text, number in (
            ("kclient_rows_total", "Rows that have landed.", self._rows),
            ("kclient_bytes_total", "Bytes of the files that were written.", self._bytes),
            ("kclient_files_total", "Files that were written.", self._files),
            ("kclient_bad_records_total", "Records that could not be decoded.", self._bad),
        ):
            yield from _head(name, "counter", text)
            yield f"{name} {number}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _escaped(label: str) -> str:
    return printable_lines(label, LONGEST_NAME).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
