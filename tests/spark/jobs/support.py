"""What the tests of ingest share: settings for a cluster, a listener that keeps all, and what a sink holds."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import attrs
import pyarrow.parquet as pq
from pyarrow import fs

from kclient.embedded import EmbeddedCluster
from kclient.spark.ingest import run as ingest
from kclient.spark.ingest.progress import BatchProgress, IngestPlan, IngestResult
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.sink import manifest
from kclient.types import TopicPartition


class Landed(NamedTuple):
    """One row of a sink."""

    topic: str
    partition: int
    offset: int
    value: Any


@attrs.define
class RecordingReporter:
    """A reporter that keeps what it gets."""

    plans: list[IngestPlan] = attrs.field(factory=list)
    batches: list[BatchProgress] = attrs.field(factory=list)
    results: list[IngestResult] = attrs.field(factory=list)

    def planned(self, plan: IngestPlan) -> None:
        self.plans.append(plan)

    def batch(self, progress: BatchProgress) -> None:
        self.batches.append(progress)

    def finished(self, result: IngestResult) -> None:
        self.results.append(result)


@attrs.define
class Stopping(RecordingReporter):
    """A reporter that asks to stop after the first batch."""

    stop: StopRequest = attrs.field(kw_only=True)

    def batch(self, progress: BatchProgress) -> None:
        super().batch(progress)
        self.stop.ask(signal.SIGTERM)


def given(servers: str, root: Path, **changed: Any) -> dict[str, Any]:
    """A job of the direct engine, in this process, with two small batches or more for each run.

    A backfill or a replay gets no setting that it does not use.
    """
    settings = {
        "bootstrap": servers,
        "topics": "orders",
        "sink": f"parquet:{root / 'sink'}",
        "checkpoint": str(root / "checkpoint"),
        "engine": "direct",
        "parallelism": 1,
        "max_per_trigger": 60,
        "group": "lake",
    }
    if changed.get("backfill") or changed.get("from_dlq"):
        changed = {"max_per_trigger": None, "group": None, **changed}
    if changed.get("from_dlq"):
        changed = {"parallelism": None, **changed}
    return {name: value for name, value in {**settings, **changed}.items() if value is not None}


def run(cluster: EmbeddedCluster, root: Path, **changed: Any) -> RecordingReporter:
    """Run a job to its end."""
    reporter = RecordingReporter()
    settings = IngestSettings.parse(given(cluster.bootstrap_servers, root, **changed))
    assert ingest.run(settings, reporter) is reporter.results[0]
    return reporter


def offsets_file(root: Path, *offsets: int) -> str:
    """A file that says where the partitions of the topic begin or end, from the first on."""
    path = root / f"offsets-{'-'.join(map(str, offsets))}.json"
    path.write_text(json.dumps({"orders": {str(number): offset for number, offset in enumerate(offsets)}}))
    return str(path)


def rows(sink: Path | str) -> list[Landed]:
    """What counts in a sink, by its manifests, in order."""
    return landed_in(manifest.files(sink))


def landed_in(files: Iterable[str]) -> list[Landed]:
    """The rows of files, in order; those in S3 by pyarrow's own client."""
    found: list[Landed] = []
    for path in files:
        table = pq.read_table(path.replace("s3://", "", 1), partitioning=None, filesystem=filesystem_of(path))
        value = table.column("value").to_pylist() if "value" in table.column_names else [None] * len(table)
        found += [
            Landed(*row)
            for row in zip(
                table.column("_topic").to_pylist(),
                table.column("_partition").to_pylist(),
                table.column("_offset").to_pylist(),
                value,
                strict=True,
            )
        ]
    return sorted(found)


def filesystem_of(path: str) -> fs.FileSystem | None:
    """The file system of a URL of S3, with the endpoint of the environment; None for a path."""
    if not path.startswith("s3://"):
        return None
    return fs.S3FileSystem(endpoint_override=os.environ["AWS_ENDPOINT_URL"], allow_bucket_creation=False)


def fill(cluster: EmbeddedCluster, count: int, first: int = 0, topic: str = "orders") -> list[Landed]:
    """Publish records, and what they must look like in a sink."""
    values = [b"value %d" % n for n in range(first, first + count)]
    places = cluster.produce(topic, values)
    return [
        Landed(topic, partition, offset, value)
        for (partition, offset), value in zip(places, values, strict=True)
    ]


def ends(wanted: list[Landed]) -> dict[TopicPartition, int]:
    """After the last record of each partition."""
    last: dict[TopicPartition, int] = {}
    for row in wanted:
        tp = TopicPartition(row.topic, row.partition)
        last[tp] = max(row.offset + 1, last.get(tp, 0))
    return last


def assert_exactly_once(sink: Path | str, wanted: list[Landed]) -> None:
    """Every record counts once: by the rows of the files, and by the numbers of the manifests."""
    found = rows(sink)
    repeated = {row: times for row, times in Counter(found).items() if times > 1}
    assert repeated == {}
    assert found == sorted(wanted)
    assert manifest.count(sink) == len(wanted)


def files_of(pid: int) -> set[str]:
    """What the descriptors of a process are open on."""
    return {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}


@contextmanager
def repeated(call: Callable[[], object], every: float) -> Iterator[None]:
    """Make a call again and again from another thread, so many seconds apart, until the block ends."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(every):
            call()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
