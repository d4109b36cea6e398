"""The metrics of an ingest job for Prometheus: numbers since it began, as text at http://127.0.0.1:PORT/metrics.

The page is rewritten at each event, on the job's thread; kclient's loop thread only serves it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from kclient.bridge import LoopThread
from kclient.errors import ConfigError
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
        """Return the port that it listens on."""
        return self._server.port

    @property
    def page(self) -> str:
        """Return the current page."""
        return self._server.page

    def planned(self, plan: IngestPlan) -> None:
        for one in plan.partitions:
            self._lag[one.partition.topic, one.partition.partition] = one.backlog
        self._publish()

    def batch(self, progress: BatchProgress) -> None:
        self._lag = {(tp.topic, tp.partition): lag for tp, lag in progress.lag.items()}
        self._behind = progress.lag_seconds
        self._seconds.append(progress.duration_ms / 1000)
        self._rows += progress.rows
        self._bytes += progress.bytes
        self._files += progress.files
        self._bad += progress.bad_records
        self._publish()

    def finished(self, result: IngestResult) -> None:
        """Do nothing: the last batch has set every number."""

    def warned(self, text: str) -> None:
        """Do nothing: a warning is no number."""

    def failed(self, error: BaseException, exit_code: int) -> None:
        """Do nothing: an ended job serves no metrics; alert on their absence."""

    def close(self) -> None:
        self._server.close()

    def _publish(self) -> None:
        self._server.page = "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield from _head("kclient_lag", "gauge", "Offsets between what has landed and the end of the log.")
        for (topic, partition), lag in sorted(self._lag.items()):
            yield f'kclient_lag{{topic="{_escaped(topic)}",partition="{partition}"}} {lag}'
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


ASKING_SECONDS: Final = 5.0
LONGEST_REQUEST: Final = 8_192
END: Final = b"\r\n\r\n"


class ScrapeServer:
    """Serves `page` until it is closed."""

    def __init__(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one. Raise ConfigError if the port cannot be bound."""
        self.page = ""
        self._user = object()
        self._thread = LoopThread.join(self._user)
        try:
            self._server: asyncio.Server = self._thread.run(lambda: self._listen(host, port))
        except OSError as exc:
            self._thread.leave(self._user)
            raise ConfigError(
                f"--metrics prometheus:{host}:{port} cannot listen there: {exc.strerror}. Give another port."
            ) from exc
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening."""
        self._thread.run(self._server.close)
        self._thread.leave(self._user)

    async def _listen(self, host: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._serve, host, port, limit=LONGEST_REQUEST)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ASKING_SECONDS):
                request = await reader.readuntil(END)
                writer.write(self._answer(request))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # a malformed request gets no response
        finally:
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD"):
            return _response("405 Method Not Allowed", "only GET\n")
        if path != b"/metrics":
            return _response("404 Not Found", "see /metrics\n")
        return _response("200 OK", self.page, head=method == b"HEAD")


def _response(status: str, text: str, *, head: bool = False) -> bytes:
    body = text.encode()
    lines = (
        f"HTTP/1.1 {status}",
        "Content-Type: text/plain; version=0.0.4; charset=utf-8",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + END + (b"" if head else body)
