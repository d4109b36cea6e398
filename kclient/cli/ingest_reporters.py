"""Who is told of an ingest job: a terminal, a log, machines, or several of them at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from kclient.cli.ingest_text import batch_line, finished_line, lag, plan_line, rates
from kclient.spark.ingest.progress import BatchProgress, IngestListener, IngestPlan, IngestResult
from kclient.text import format_count


class IngestReporter(IngestListener, Protocol):
    """A listener that is also told how a run failed. `close` comes last, however it ended."""

    def failed(self, error: BaseException, exit_code: int) -> None: ...

    def close(self) -> None: ...


class All:
    """Tells every one of them."""

    def __init__(self, reporters: list[IngestReporter]) -> None:
        self._reporters = reporters

    def planned(self, plan: IngestPlan) -> None:
        self._each(lambda reporter: reporter.planned(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._each(lambda reporter: reporter.batch(progress))

    def finished(self, result: IngestResult) -> None:
        self._each(lambda reporter: reporter.finished(result))

    def failed(self, error: BaseException, exit_code: int) -> None:
        self._each(lambda reporter: reporter.failed(error, exit_code))

    def close(self) -> None:
        self._each(lambda reporter: reporter.close())

    def _each(self, tell: Callable[[IngestReporter], None]) -> None:
        for reporter in self._reporters:
            tell(reporter)


class Lines:
    """One line for each event on standard error: for logs, and for who reads later."""

    def planned(self, plan: IngestPlan) -> None:
        self._say(plan_line(plan))

    def batch(self, progress: BatchProgress) -> None:
        self._say(batch_line(progress))

    def finished(self, result: IngestResult) -> None:
        self._say(finished_line(result))

    def failed(self, error: BaseException, exit_code: int) -> None:
        """The command tells what failed."""

    def close(self) -> None:
        """Nothing is open."""

    def _say(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class Screen:
    """One line that stays and changes, on a terminal: how much has landed, how fast, and how far behind."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._wanted = 0
        self._rows = 0

    def planned(self, plan: IngestPlan) -> None:
        self._wanted = plan.backlog_rows
        self._console.print(Text(plan_line(plan)), soft_wrap=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._live.start()
        self._show(Text("waiting for the first batch …", style="dim"))

    def batch(self, progress: BatchProgress) -> None:
        """What matters most comes first: a narrow terminal cuts the end."""
        self._rows += progress.rows
        line = Text.assemble(
            (f"{_bar(self._rows, self._wanted)} ", "cyan"),
            (f"{self._rows:,} rows", "bold"),
            "  ",
            (f"{progress.bad_records:,} bad", "red" if progress.bad_records else "dim"),
            "  ",
            (lag(progress), "green" if not progress.lag_records else "yellow"),
            f"  {rates(progress)}  batch {progress.batch}  {progress.duration_ms:,} ms  "
            f"{format_count(progress.files, 'file')}",
            no_wrap=True,
            overflow="ellipsis",
        )
        self._show(line)

    def finished(self, result: IngestResult) -> None:
        self.close()
        self._console.print(Text(finished_line(result)), soft_wrap=True)

    def failed(self, error: BaseException, exit_code: int) -> None:
        self.close()

    def close(self) -> None:
        """Give the line back to the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show(self, line: Text) -> None:
        if self._live is not None:
            self._live.update(line, refresh=True)


def _bar(done: int, wanted: int, width: int = 20) -> str:
    full = width if wanted <= 0 else min(width, width * done // wanted)
    return "━" * full + "╌" * (width - full)
