"""The progress of a job as text and as JSON, from invented progress: no cluster, no clock."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import attrs
import pytest
from rich.console import Console

from kclient.cli.prometheus import Prometheus
from kclient.cli.reporters import (
    All,
    JsonLines,
    Screen,
    batch_line,
    finished_line,
    plan_line,
    size_text,
    warnings_shown,
)
from kclient.errors import DataLossError, InternalError
from kclient.runtime import Runtime
from kclient.spark.ingest.progress import (
    BatchProgress,
    CheckpointState,
    IngestPlan,
    IngestResult,
    PartitionPlan,
)
from kclient.types import TopicPartition

ORDERS = [TopicPartition("orders", number) for number in (0, 1, 10)]
PLAN = IngestPlan(
    cluster_id="Zk3",
    topics=("orders",),
    partitions=tuple(PartitionPlan(tp, 5, 1_005, 2_000_000) for tp in ORDERS),
    tasks=4,
    sink="parquet:/lake/raw",
    engine="spark",
    trigger="availableNow",
    checkpoint=CheckpointState("resume", 12, True),
    group="lake-raw",
)
BATCH = BatchProgress(
    batch=12,
    rows=1_500,
    bytes=3_000_000,
    files=3,
    bad_records=2,
    duration_ms=500,
    fetch_ms=100,
    decode_ms=None,
    write_ms=200,
    commit_ms=7,
    start={ORDERS[0]: 5},
    end={ORDERS[0]: 1_505},
    latest={ORDERS[0]: 2_000, ORDERS[2]: 40},
    lag_seconds=3.25,
)
RESULT = IngestResult(
    ended="drained",
    batches=1,
    rows=1_500,
    bytes=3_000_000,
    files=3,
    bad_records=2,
    seconds=0.5,
    end={ORDERS[0]: 1_505},
    lag_records=0,
    committed=True,
)


@pytest.mark.spec("SP-83")
def test_the_plan_is_one_line() -> None:
    assert plan_line(PLAN) == (
        "plan  orders  3 partitions  backlog 3,000 rows (about 6.0 MB)  start orders 0:5 1:5 10:5  4 tasks  "
        "engine spark  trigger availableNow  sink parquet:/lake/raw  "
        "checkpoint resume at batch 12 (begun before, runs again)  group lake-raw"
    )


@pytest.mark.spec("SP-83")
def test_a_plan_of_many_partitions_stays_one_line_that_says_how_many_it_leaves_out() -> None:
    many = tuple(PartitionPlan(TopicPartition("t", number), 0, 0) for number in range(200))
    line = plan_line(attrs.evolve(PLAN, partitions=many, group=None))
    assert "start t 0:0 1:0 2:0 3:0 4:0 5:0 6:0 7:0 … and 192 more" in line
    assert "\n" not in line


def test_names_do_not_steer_a_terminal() -> None:
    assert "\x1b" not in plan_line(attrs.evolve(PLAN, sink="parquet:/\x1b[31m", group="\x1b[31m"))


@pytest.mark.spec("SP-84")
def test_a_batch_is_one_line() -> None:
    assert batch_line(BATCH) == (
        "batch 12  1,500 rows  3,000 rows/s  6.0 MB/s  lag 535 (3.2 s)  "
        "500 ms (fetch 100, write 200, commit 7)  3 files  2 bad"
    )


def test_a_terminal_of_80_columns_shows_bad_records_and_lag() -> None:
    shown = io.StringIO()
    screen = Screen(Console(file=shown, force_terminal=True, color_system=None, width=80))
    screen.planned(PLAN)
    screen.batch(attrs.evolve(BATCH, rows=1_234_567_890, bad_records=12_345))
    screen.close()
    assert "1,234,567,890 rows  12,345 bad  lag 535 (3.2 s)" in shown.getvalue()


def test_a_small_batch_has_a_rate_too() -> None:
    assert "  15.1 kB/s  " in batch_line(attrs.evolve(BATCH, bytes=7_550))


@pytest.mark.parametrize(
    ("committed", "says"), [(True, "group committed"), (False, "NOT committed"), (None, "lag 0")]
)
def test_the_end_is_one_line(committed: bool | None, says: str) -> None:
    line = finished_line(attrs.evolve(RESULT, committed=committed))
    assert line.startswith("drained  1 batch  1,500 rows  3.0 MB  3 files  2 bad  0.5 s  lag 0")
    assert says in line


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (2_540_000, "2.5 MB"), (9e15, "9,000.0 TB")],
)
def test_sizes(size: float, shown: str) -> None:
    assert size_text(size) == shown


# --- warnings


def record(text: str, created: float, *, level: int = logging.WARNING) -> logging.LogRecord:
    found = logging.LogRecord("kclient.spark", level, __file__, 1, text, (), None)
    found.created = created
    return found


def test_a_warning_that_is_repeated_is_shown_once_in_ten_minutes() -> None:
    out, logger = io.StringIO(), logging.getLogger("kclient.spark")
    with warnings_shown(All([JsonLines(out, Runtime())])):
        for at in (1_000.0, 1_599.0, 1_600.0):
            logger.handle(record("the table is slow", at))
        logger.handle(record("another one", 1_600.0))
        logger.handle(record("no warning", 1_600.0, level=logging.INFO))
    logger.handle(record("after the run", 9_000.0))
    shown = [json.loads(line)["text"] for line in out.getvalue().splitlines()]
    assert shown == ["the table is slow", "the table is slow", "another one"]


def test_a_warning_with_an_exception_is_one_line_that_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings_shown():
        try:
            raise ValueError("a\nb")
        except ValueError:
            logging.getLogger("kclient.spark").warning("it failed.", exc_info=True)
    assert capsys.readouterr().err == "warning  it failed. ValueError('a\\nb')\n"


def test_a_warning_that_cannot_be_written_does_not_end_the_job() -> None:
    class Full(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(28, "No space left on device")

    with warnings_shown(JsonLines(Full(), Runtime())):
        logging.getLogger("kclient.spark").warning("the table is slow")


def test_a_terminal_shows_a_warning_above_its_line() -> None:
    shown = io.StringIO()
    screen = Screen(Console(file=shown, force_terminal=True, color_system=None, width=80))
    screen.planned(PLAN)
    with warnings_shown(screen):
        logging.getLogger("kclient.spark").warning("the table %s is slow", "/lake/" + 90 * "x")
    screen.close()
    assert f"warning  the table /lake/{90 * 'x'} is slow\n" in shown.getvalue()


# --- JSON lines


def events() -> list[dict[str, Any]]:
    out = io.StringIO()
    lines = JsonLines(out, Runtime(wall_clock=lambda: 1_700_000_000.5))
    lines.planned(PLAN)
    lines.batch(BATCH)
    lines.finished(RESULT)
    lines.failed(DataLossError("gone", kind="OFFSET_OUT_OF_RANGE"), 6)
    lines.warned("the checkpoint is new")
    return [json.loads(line) for line in out.getvalue().splitlines()]


KEYS = {
    "plan": "cluster_id topics partitions backlog_rows backlog_bytes tasks sink engine trigger group checkpoint "
    "next_batch again",
    "batch": "batch rows bytes files bad_records duration_ms fetch_ms decode_ms write_ms commit_ms rows_per_second "
    "bytes_per_second lag_records lag_seconds start end latest",
    "finished": "ended signal batches total_rows total_bytes total_files total_bad_records seconds lag_records "
    "committed end",
    "failed": "error code text retriable exit_code",
    "warning": "text",
}


@pytest.mark.spec("SP-84")
def test_the_keys_of_every_event_stay() -> None:
    found = {
        event["event"]: [key for key in event if key not in ("event", "version", "time_ms")]
        for event in events()
    }
    assert found == {event: keys.split() for event, keys in KEYS.items()}
    assert {(event["version"], event["time_ms"]) for event in events()} == {(1, 1_700_000_000_500)}


@pytest.mark.spec("SP-84", "SP-46")
def test_what_events_say() -> None:
    plan, batch, finished, failed, warning = events()
    assert warning["text"] == "the checkpoint is new"
    assert plan["partitions"][2] == {
        "topic": "orders",
        "partition": 10,
        "start": 5,
        "end": 1_005,
        "backlog": 1_000,
        "backlog_bytes": 2_000_000,
    }
    assert (plan["checkpoint"], plan["next_batch"], plan["again"]) == ("resume", 12, True)
    assert (batch["rows_per_second"], batch["bytes_per_second"], batch["lag_records"]) == (3_000.0, 6e6, 535)
    assert batch["latest"] == {"orders": {"0": 2_000, "10": 40}}
    assert batch["decode_ms"] is None
    assert (finished["ended"], finished["total_rows"], finished["end"]) == (
        "drained",
        1_500,
        {"orders": {"0": 1_505}},
    )
    assert failed == failed | {"error": "DataLossError", "code": "KC-701", "text": "gone", "exit_code": 6}


def test_a_failure_that_is_none_of_ours_is_reported_too() -> None:
    out = io.StringIO()
    JsonLines(out, Runtime()).failed(InternalError.of("kclient ingest", KeyError("x")), 1)
    assert json.loads(out.getvalue())["text"].startswith("kclient ingest failed: KeyError('x')")


# --- Prometheus


def page() -> dict[str, float]:
    """The samples of the page: name with labels → number."""
    prometheus = Prometheus("127.0.0.1", 0)
    try:
        prometheus.planned(PLAN)
        prometheus.batch(BATCH)
        prometheus.batch(attrs.evolve(BATCH, duration_ms=6_000, latest={TopicPartition('a"b\\', 0): 9}))
        lines = prometheus.page.splitlines()
    finally:
        prometheus.close()
    samples = [line.rpartition(" ") for line in lines if not line.startswith("#")]
    return {name: float(number) for name, _, number in samples}


@pytest.mark.spec("SP-84")
def test_the_page_for_prometheus() -> None:
    samples = page()
    assert samples['kclient_lag{topic="a\\"b\\\\",partition="0"}'] == 9
    assert not [name for name in samples if "orders" in name]  # only what the last batch saw
    assert samples["kclient_bad_records_total"] == 4
    assert samples["kclient_rows_total"] == 3_000
    assert samples["kclient_batch_seconds_count"] == 2
    assert samples["kclient_batch_seconds_sum"] == 6.5
    assert samples['kclient_batch_seconds_bucket{le="0.25"}'] == 0
    assert samples['kclient_batch_seconds_bucket{le="0.5"}'] == 1
    assert samples['kclient_batch_seconds_bucket{le="10"}'] == 2
    assert samples['kclient_batch_seconds_bucket{le="+Inf"}'] == 2
    assert samples["kclient_lag_seconds"] == 3.25
