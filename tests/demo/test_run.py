"""The whole job on few flights and without Spark: the numbers agree, and a planted error is reported and fails the run.

The ingest is the real command with `--engine direct`, killed and started again; the question is asked with Arrow.
"""

from __future__ import annotations

import io
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from demo.answer import ask_arrow
from demo.brokers import Embedded
from demo.flights import data_file
from demo.job import Job
from demo.pipeline import Pipeline
from demo.recording import KILLED, Recording
from demo.report.figures import figures
from demo.run import GROUP, PIPELINE, run
from demo.terminal import Terminal
from kclient.spark.sink import manifest
from tests.demo.needs import needs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

FLIGHTS = 6_000


@pytest.fixture(scope="module", autouse=True)
def needs_flights() -> None:
    try:
        data_file("flights.csv.zip")
    except FileNotFoundError as exc:
        needs(str(exc))


@pytest.fixture(scope="module")
def ran(needs_flights: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path, str]:
    out, said = tmp_path_factory.mktemp("run"), io.StringIO()
    return run(FLIGHTS, out, None, Terminal(said), "direct"), out, said.getvalue()


def test_the_five_numbers_agree(ran: tuple[int, Path, str]) -> None:
    code, out, said = ran
    assert code == 0, said
    for name, value in (("published", FLIGHTS), ("consumed", FLIGHTS), ("committed", FLIGHTS), ("lag", 0)):
        assert any(line.split() == ["✓", name, f"{value:,}"] for line in said.splitlines()), said
    assert manifest.count(out / "flights") == FLIGHTS
    assert "All five numbers agree." in (out / "report.html").read_text()


def test_a_broker_a_member_and_the_job_were_killed(ran: tuple[int, Path, str]) -> None:
    recording = Recording.load(ran[1] / "run.json")
    killed = [event.text for event in recording.events if event.kind == KILLED]
    assert len(killed) == 3
    assert {span.lane.split()[0] for span in recording.spans if span.killed} == {"broker", "member", "ingest"}
    [dead] = [span.lane for span in recording.spans if span.killed and span.lane.startswith("member")]
    [survivor] = {owner.member for owner in recording.owners} - {dead.split()[1]}
    assert {owner.partition for owner in recording.owners if owner.member == survivor} == set(range(6))


def test_recovery_after_each_kill_is_measured(ran: tuple[int, Path, str]) -> None:
    run = Recording.load(ran[1] / "run.json")
    names = [figure.name for figure in figures(run)]
    assert set(names[:3]) == {
        "The job killed",
        "The broker killed",
        "The member killed",
    }  # in the order of this run
    assert {"Consumed and committed", "From acknowledged to landed", "Machine", "Versions"} <= set(names)
    assert all(0 < one.seconds < 60 for one in run.recoveries)


def test_the_time_from_publish_to_read_is_measured_while_the_group_reads(ran: tuple[int, Path, str]) -> None:
    run = Recording.load(ran[1] / "run.json")
    assert run.latency is not None
    assert run.latency.records >= 10
    assert 0 < run.latency.median <= run.latency.p99 <= run.latency.longest < 60
    assert "From publish to read" in [figure.name for figure in figures(run)]


def test_every_batch_that_counts_is_recorded_once(ran: tuple[int, Path, str]) -> None:
    recording = Recording.load(ran[1] / "run.json")
    assert {batch.run for batch in recording.batches} == {1, 2}
    assert len({batch.number for batch in recording.batches}) == len(recording.batches)
    assert sum(batch.rows for batch in recording.batches) == FLIGHTS
    assert all(batch.start <= batch.end for batch in recording.batches)


def test_both_groups_lag_and_catch_up(ran: tuple[int, Path, str]) -> None:
    recording = Recording.load(ran[1] / "run.json")
    for group in (GROUP, PIPELINE):
        totals = [sample.total for sample in recording.lags[group]]
        assert max(totals) > 0
        assert totals[-1] == 0


def test_the_question_without_spark_is_answered_from_the_files_alone(ran: tuple[int, Path, str]) -> None:
    _, out, said = ran
    flights = pa.concat_tables(
        pq.ParquetFile(file).read(["carrier", "dep_delay"]) for file in manifest.files(out / "flights")
    )
    delays: dict[str, list[int]] = {}
    for row in flights.to_pylist():
        delays.setdefault(row["carrier"], []).extend([] if row["dep_delay"] is None else [row["dep_delay"]])
    means = {carrier: fmean(found) for carrier, found in delays.items()}
    carriers = Recording.load(out / "run.json").carriers
    assert [one.code for one in carriers] == sorted(means, key=lambda carrier: -means[carrier])[:10]
    assert [one.departure for one in carriers] == [round(means[one.code], 2) for one in carriers]
    assert "Frontier Airlines Inc." in said
    assert "without Spark" in (out / "report.html").read_text()


def test_a_second_run_begins_again(ran: tuple[int, Path, str]) -> None:
    """Over the same directory; a page of the first is not there meanwhile."""
    _, out, _ = ran
    pages: list[bool] = []

    class Watching(Terminal):
        def say(self, text: str, kind: str = "") -> None:
            pages.append((out / "report.html").exists())
            super().say(text, kind)

    assert run(FLIGHTS // 2, out, None, Watching(io.StringIO()), "direct") == 0
    assert manifest.count(out / "flights") == FLIGHTS // 2
    assert pages[:-1] == [False] * len(pages[:-1])
    assert pages[-1]


def test_what_the_demo_has_not_written_stays(tmp_path: Path) -> None:
    (tmp_path / "flights").mkdir()
    (tmp_path / "flights" / "mine").touch()
    with pytest.raises(FileExistsError, match="flights is not the demo's"):
        run(1, tmp_path, None, Terminal(io.StringIO()), "direct")
    assert (tmp_path / "flights" / "mine").exists()


def test_wrong_numbers_fail_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One offset fewer committed than consumed; a file that two manifests name."""
    truth, finish = Embedded.committed, Pipeline.finish

    def twice(self: Pipeline, *arguments: Any) -> None:
        finish(self, *arguments)
        sink = tmp_path / "flights"
        last = list(manifest.read_all(sink))[-1]
        copy = Path(sink, manifest.DIRECTORY, f"{last.name}.json").read_bytes()
        Path(sink, manifest.DIRECTORY, f"{manifest.batch_name(int(last.name) + 1)}.json").write_bytes(copy)
        self.rows = manifest.count(sink)

    monkeypatch.setattr(Embedded, "committed", lambda self, group: truth(self, group) - 1)
    monkeypatch.setattr(Pipeline, "finish", twice)
    said = io.StringIO()
    assert run(FLIGHTS, tmp_path, None, Terminal(said), "direct") == 1
    assert "THE NUMBERS DIFFER" in said.getvalue()
    wrong = [line.split()[1:] for line in said.getvalue().splitlines() if line.split()[0] == "✗"]
    assert wrong[0] == ["committed", f"{FLIGHTS - 1:,}"]
    assert [line[:2] for line in wrong[1:]] == [["in", "Parquet"]]
    page = (tmp_path / "report.html").read_text()
    assert f"<b>{FLIGHTS - 1:,}</b><em> wrong</em>" in page
    assert "All five numbers agree." not in page


@pytest.mark.parametrize("sink", ["iceberg", pytest.param("delta", marks=pytest.mark.exhaustive)])
def test_a_table_holds_each_record_once_by_two_readers(sink: str, tmp_path: Path) -> None:
    said = io.StringIO()
    assert run(FLIGHTS, tmp_path, None, Terminal(said), "direct", sink) == 0, said.getvalue()
    assert any(
        line.split() == ["✓", "in", "the", "table", f"{FLIGHTS:,}"] for line in said.getvalue().splitlines()
    )
    recording = Recording.load(tmp_path / "run.json")
    assert {span.lane.split()[0] for span in recording.spans if span.killed} == {"broker", "member", "ingest"}
    assert {batch.run for batch in recording.batches} == {1, 2}
    assert sum(batch.rows for batch in recording.batches) == FLIGHTS
    assert sum(one.flights for one in recording.carriers) > 0
    page = (tmp_path / "report.html").read_text()
    assert "All five numbers agree." in page
    assert "In Parquet" not in page


def test_two_readers_that_differ_fail_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("demo.answer.read", lambda job: (pa.table({"carrier": ["UA"]}), 2))
    with pytest.raises(RuntimeError, match="one reader finds 1 rows, another one 2"):
        ask_arrow(Job("", "", "", tmp_path, 0))
