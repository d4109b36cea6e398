"""The whole job, from the first broker to the last number."""

from __future__ import annotations

import asyncio
import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final

from demo import report
from demo.brokers import BROKERS, Brokers, brokers
from demo.flights import flights, require_data
from demo.group import Group, Outcome
from demo.job import BUCKET, SCHEMA_FILE, SPARK, Job
from demo.landed import landed, load_libraries
from demo.pipeline import Pipeline
from demo.probe import TOPIC as PROBES
from demo.probe import Probe
from demo.publish import publish
from demo.query_process import QueryProcess, QueryResult
from demo.recorder import Recorder
from demo.recording import DONE, KILLED, Command, Count, Numbers, Place, Recording
from demo.sampling import LagSampler
from demo.terminal import Terminal, bar, carriers_table, numbers_table
from kclient.spark.sink import manifest
from localkafka.processes import deferred_signals
from locals3 import S3Server, unavailable

TOPIC: Final = "flights"
GROUP: Final = "delays"
PIPELINE: Final = "flights-parquet"
PARTITIONS: Final = 6


def run(
    count: int, out: Path, kafka: str | None, terminal: Terminal, engine: str = SPARK, sink: str = "parquet"
) -> int:
    """Run everything; return 0 if the five numbers agree, else 1. All child processes are ended.

    Raises RuntimeError, FileNotFoundError without the data, FileExistsError where `out` holds what the demo did not
    write, LocalKafkaError, KclientError.
    """
    require_data()
    load_libraries(sink)
    _clear(out)
    terminal.say(f"starting {f'Apache Kafka {kafka}' if kafka else 'brokers'}")
    with brokers(kafka) as cluster, _store(sink) as endpoint:
        recorder = Recorder(_recording(cluster, engine), terminal)
        job = Job(cluster.servers, TOPIC, PIPELINE, out, count, engine, sink, endpoint)
        numbers = _work(cluster, job, recorder)
    recording = recorder.recording
    recording.numbers, recording.seconds = numbers, terminal.elapsed()
    recording.save(out / "run.json")
    report.write(recording, out / "report.html")
    terminal.table(carriers_table(recording.carriers))
    terminal.table(numbers_table(numbers, terminal.paint))
    summary = f"{numbers}; charts of the run: {out / 'report.html'}"
    terminal.say(summary, DONE if numbers.agree else KILLED)
    return 0 if numbers.agree else 1


@contextmanager
def _store(sink: str) -> Iterator[str | None]:
    """An S3 on loopback for a table, with its credentials in the environment; None for files, and without Java."""
    if sink == "parquet" or unavailable() is not None:
        yield None
        return
    with S3Server() as s3:
        s3.create_bucket(BUCKET)
        before = dict(os.environ)
        os.environ.update(s3.environment)
        try:
            yield s3.endpoint
        finally:
            os.environ.clear()
            os.environ.update(before)


def _work(cluster: Brokers, job: Job, recorder: Recorder) -> Numbers:
    """Publish, consume, land, ask; Spark starts beside the publisher, and the SQL session beside the ingest."""
    terminal, servers, count, out = recorder.terminal, cluster.servers, job.total, job.out
    cluster.create(TOPIC, PARTITIONS)
    for node in range(1, BROKERS + 1):
        recorder.begin(f"broker {node}", "serves")
    with ExitStack() as stack:
        sampler = LagSampler(servers, TOPIC, PARTITIONS, (GROUP, PIPELINE), terminal.elapsed)
        recorder.recording.lags = stack.enter_context(sampler).samples
        starts = "starts Spark" if job.engine == SPARK else "starts, without Spark"
        terminal.say(f"{cluster.name} serve at {servers}; the ingest job {starts}")
        with deferred_signals():
            pipeline = stack.enter_context(Pipeline(job, recorder))
        published = _publish(servers, count, recorder, pipeline.tick)
        outcome = _consume(cluster, published, recorder, out, pipeline.tick)
        with deferred_signals():
            query = stack.enter_context(QueryProcess(job, out, recorder))
        pipeline.finish(lambda: sampler.total(PIPELINE))
        result = query.ask()
        recorder.recording.carriers = result.carriers
        recorder.recording.places, recorder.recording.further = _places(job), _further(job)
        return Numbers(
            expected=count,
            published=sum(published),
            consumed=outcome.distinct,
            committed=cluster.committed(GROUP),
            parquet=_landed(pipeline, result),
            lag=cluster.lag(PIPELINE, TOPIC),
            place="in Parquet" if job.kind == "parquet" else "in the table",
        )


def _clear(out: Path) -> None:
    """Start with a new checkpoint and an empty sink, and no report of an earlier one.

    Raises FileExistsError rather than remove what no run of the demo has written.
    """
    out.mkdir(parents=True, exist_ok=True)
    old = [out / name for name in ("flights", "checkpoint") if (out / name).exists()]
    if old and not (out / SCHEMA_FILE).exists():
        raise FileExistsError(f"{old[0]} is not the demo's, which would replace it. Give another --out.")
    for folder in old:
        shutil.rmtree(folder)
    for page in ("report.html", "run.json", "catalog.db", "catalog.yaml"):
        (out / page).unlink(missing_ok=True)


def _recording(cluster: Brokers, engine: str) -> Recording:
    began = datetime.now(UTC).isoformat(timespec="seconds")
    recording = Recording(began, cluster.name, cluster.servers, TOPIC, PARTITIONS, GROUP, PIPELINE, engine)
    recording.machine = machine(engine)
    return recording


def _publish(servers: str, count: int, recorder: Recorder, beside: Callable[[], Sequence[str]]) -> list[int]:
    def show(done: int) -> None:
        recorder.recording.published.append(Count(recorder.terminal.elapsed(), done))
        line = f"          published   {bar(done, count)} {done:>8,}"
        recorder.terminal.draw([line, *beside()], f"published {done:,} of {count:,}")

    recorder.begin("publisher", "publishes")
    published = asyncio.run(publish(servers, TOPIC, PARTITIONS, flights(count), show))
    recorder.recording.published.append(Count(recorder.terminal.elapsed(), sum(published)))
    recorder.finish("publisher")
    recorder.terminal.say(f"published {sum(published):,} records to {TOPIC} in {PARTITIONS} partitions, lz4")
    return published


def _consume(
    cluster: Brokers,
    published: list[int],
    recorder: Recorder,
    logs: Path,
    beside: Callable[[], Sequence[str]],
) -> Outcome:
    def kill_broker() -> None:
        at = recorder.terminal.elapsed()
        killed = cluster.kill_coordinator(GROUP, TOPIC, PARTITIONS)
        recorder.finish(f"broker {killed.node}", killed=True, at=at)
        recorder.event(KILLED, killed.description, at)

    cluster.create(PROBES, 1)
    with ExitStack() as stack:
        with deferred_signals():
            probe = stack.enter_context(Probe(cluster.servers, logs))
        outcome = Group(cluster.servers, TOPIC, GROUP, published, recorder, logs).run(kill_broker, beside)
        recorder.recording.latency = probe.finish()
    recorder.recording.repeated = outcome.repeated
    twice = f"{outcome.repeated:,} of them twice" if outcome.repeated else "none of them twice"
    recorder.event(
        DONE, f"the group has consumed {outcome.distinct:,} different records, {twice}, and committed them"
    )
    return outcome


def _landed(pipeline: Pipeline, result: QueryResult) -> int:
    """Return the rows in Parquet. Raise RuntimeError if the files differ from the manifest."""
    if pipeline.rows != result.rows:
        raise RuntimeError(f"the sink says {pipeline.rows:,} rows, but its files hold {result.rows:,}")
    return pipeline.rows


def _places(job: Job) -> list[Place]:
    batches = landed(job)
    files, size = sum(batch.files for batch in batches), sum(batch.bytes for batch in batches) / 1e6
    if job.kind == "parquet":
        names = "the manifest: a file that none of these names does not count"
        rows = [
            Place(str(job.sink), f"the flights: {files} files of Parquet, {size:.1f} MB"),
            Place(str(job.sink / manifest.DIRECTORY), names),
        ]
    else:
        gone = "" if job.endpoint is None else "; the S3 of this run ended with it"
        rows = [Place(job.place, f"the {job.kind} table: {files} files, {size:.1f} MB{gone}")]
    return [
        *rows,
        Place(str(job.checkpoint), "how far the job has come; the same command would go on from here"),
        Place(str(job.out / "run.json"), "this run as figures"),
        Place(str(job.out / "*.log"), "what the members, the probe, the job and the query said"),
    ]


def _further(job: Job) -> list[Command]:
    arrow = (
        "import pyarrow.dataset as ds\nfrom kclient.spark.sink import manifest\n\n"
        f"flights = ds.dataset(manifest.files({str(job.sink)!r}))\n"
        'print(flights.to_table(columns=["carrier", "dep_delay", "_partition", "_offset"]).slice(0, 5))'
    )
    ingest = job.arguments(job.out / "ingest-2.jsonl")
    page = Command("This page again, from the figures:", _python("demo.report", job.out / "run.json"))
    if job.kind != "parquet":
        again = " \\\n    --".join(_python("kclient", *ingest).split(" --"))
        return [page, Command("What was killed and started again:", again)]
    arrow_too = () if job.engine == SPARK else ("--engine", job.engine)
    return [
        Command("The ten worst carriers again:", _python("demo.answer", job.sink, *arrow_too)),
        Command(
            "How far the job is, without Spark:",
            _python("kclient", "ingest", "status", "--checkpoint", job.checkpoint),
        ),
        Command("The rows in Arrow:", arrow),
        page,
        Command(
            "What was killed and started again:", " \\\n    --".join(_python("kclient", *ingest).split(" --"))
        ),
    ]


def _python(module: str, *arguments: object) -> str:
    return shlex.join(["python", "-m", module, *map(str, arguments)])


def machine(engine: str) -> dict[str, str]:
    """Return the properties of the machine that matter when runs are compared."""
    names = ("kclient-kafka", "pyarrow", *(("pyspark",) if engine == SPARK else ()))
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    return {
        "Machine": f"{_processor()}, {os.cpu_count()} cores, {_memory()}{platform.system()} {platform.machine()}",
        "Versions": f"Python {platform.python_version()}, {versions}",
    }


def _processor() -> str:
    found = re.search(r"model name\s*: (.+)", _text("/proc/cpuinfo"))
    return found[1] if found else platform.processor() or "unknown processor"


def _memory() -> str:
    found = re.search(r"MemTotal:\s+(\d+) kB", _text("/proc/meminfo"))
    return f"{int(found[1]) / 1e6:.0f} GB, " if found else ""


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
