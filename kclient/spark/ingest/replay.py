"""`--from-dlq`: land dead letters that can be decoded by now in the sink, where their records would have been.

    each manifest of dead letters → raw keys and values, decoded again → files → a manifest of its own

The new manifest is named after the one of the dead letters, so each of these lands once. In a table that is the name
`JOB/replay-…` of a progress of its own, and dead letters with a row in the table are left out.

What still cannot be read ends
the job, becomes null, or goes to another directory of dead letters.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.records.arrow import SCHEMA
from kclient.runtime import Runtime
from kclient.spark.decoding.decoder import RAW
from kclient.spark.ingest import resume
from kclient.spark.ingest.batch_commit import BatchCommitter, BatchTimes, LandedBatch
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.preflight import target_of
from kclient.spark.ingest.progress import Ended, IngestListener, IngestPlan, IngestResult
from kclient.spark.ingest.setting_values import matches
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.ingest.sinks import check_sinks
from kclient.spark.ingest.stop_signals import StopRequest
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink import manifest
from kclient.spark.sink.atomic_files import reading
from kclient.spark.sink.manifest import Manifest, WrittenFile
from kclient.spark.sink.parquet import DirectTarget, WrittenRange, write_batches
from kclient.spark.sink.row_layout import NAMES
from kclient.spark.sink.store import Store, store_of
from kclient.spark.sink.tables import BESIDE, LakeTable, load_with_retries, owner, retried
from kclient.spark.sink.verify import by_partition
from kclient.types import TopicPartition

log: Final = get_logger("kclient.spark")

V = TypeVar("V")

ROWS: Final = 10_000


def prepare(settings: IngestSettings) -> tuple[list[Manifest], IngestPlan]:
    """Return the dead letters to land, and the plan. Raises ConfigError, SinkError."""
    check_sinks(settings, Checkpoint(settings.checkpoint))
    table, letters = resume.table_of(settings), list[Manifest]()
    if settings.from_dlq is not None and table is not None:
        letters = _missing_in_table(settings.from_dlq.where, table)
    elif settings.from_dlq is not None:
        letters = _missing(settings.from_dlq.where, settings.sink.where, _left_out)
    _check_topics(settings, letters)
    return letters, _plan(settings, letters)


def run(settings: IngestSettings, listener: IngestListener, stop: StopRequest) -> IngestResult:
    """Land the dead letters of a directory, one manifest after the other. Raises as `run` of `ingest` does."""
    letters, plan = prepare(settings)
    listener.planned(plan)
    source = store_of(settings.from_dlq.where if settings.from_dlq else "")
    job = Checkpoint(settings.checkpoint).job()
    dead, table = None if settings.dlq is None else settings.dlq.where, resume.table_of(settings)
    committer = BatchCommitter(settings.sink.where, "replay" if job is None else job.job, dead, table)
    replay = _Replay(settings, source, committer, table)
    ended: Ended = "drained"
    for number, letter in enumerate(letters):
        if stop:
            ended = "stopped"
            break
        replay.land(number, letter, listener)
    result = replay.committer.result(ended, {}, {}, signal=stop.signal)
    listener.finished(result)
    return result


@attrs.define
class _Replay:
    """One replay."""

    settings: IngestSettings
    source: Store
    committer: BatchCommitter
    table: LakeTable[Any] | None = None
    runtime: Runtime = attrs.field(factory=Runtime)

    def land(self, number: int, letter: Manifest, listener: IngestListener) -> None:
        """Land the dead letters of one manifest, unless they have landed already."""
        name, table = f"replay-{_digest(letter)}", self.table
        if table is None and self.committer.has_landed(name):
            return
        began_ms = self.runtime.wall_ms()
        options = SourceOptions.parse(self.settings.stream_options(), "stream")
        target = target_of(self.settings, options).of_manifest(name)
        if table is not None:
            self.committer.job = _name_in_table(letter)
            keys, evolves = self.settings.partition_by, self.settings.evolves
            files = table.prepare(target.layout.schema(), keys, evolves=evolves)
            target = attrs.evolve(target, root=files.root, table=files)
        written = [self._write(file, target) for file in letter.files]
        whole = self.committer.count(name, {}, {}, written, began_ms, None if table is None else 0)
        times = BatchTimes(duration_ms=max(0, self.runtime.wall_ms() - began_ms))
        listener.batch(self.committer.report(number, LandedBatch.of(whole, written), {}, times))

    def _write(self, file: WrittenFile, target: DirectTarget) -> WrittenRange:
        wanted = OffsetRange(file.topic, file.partition, file.start, file.end)
        return write_batches(wanted, _records(self.source, file.path, wanted, target.layout.read()), target)


def _records(
    source: Store, key: str, wanted: OffsetRange, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield dead letters as they were read from the topic."""
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    with reading(Path(key)), source.open_read(key) as stream, pq.ParquetFile(stream) as file:
        _check_raw(source.place(key), file.schema_arrow)
        for batch in file.iter_batches(ROWS):
            there = {NAMES.get(name, RAW): name for name in columns}
            arrays = [
                batch.column(kept)
                if kept in batch.schema.names
                else pa.nulls(len(batch), schema.field(name).type)
                for kept, name in there.items()
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _check_raw(path: str, there: pa.Schema) -> None:
    """Refuse dead letters with decoded keys or values: only the raw bytes can be decoded again."""
    for name, kind in ((NAMES["key"], SCHEMA.field("key").type), (RAW, SCHEMA.field("value").type)):
        if name not in there.names or there.field(name).type != kind:
            what = there.field(name).type if name in there.names else "missing"
            raise SinkError(
                f"{path} has no dead letters as they came: its column {name} is {what}, not {kind}. An older release "
                "or another program wrote it. Land these records from the topic, in a sink of their own.",
                path=path,
            )


def _missing(dlq: str, sink: str, left_out: Callable[[str, Manifest], bool]) -> list[Manifest]:
    """Return the manifests of dead letters whose records the sink left out, by its own manifests or its table.

    Those of a batch without a manifest in the sink are left out: it runs again, and may find other ones. Raises
    ConfigError if nothing remains, and if no job has kept dead letters.
    """
    if not manifest.exists(dlq):
        raise ConfigError(
            f"{dlq} is not a directory of dead letters: it has no {manifest.DIRECTORY}. "
            "Give the directory that a job was given as --dlq."
        )
    there = [letter for letter in manifest.read_all(dlq) if letter.files]
    missing = [letter for letter in there if left_out(sink, letter)]
    if there and not missing:
        raise ConfigError(
            f"{dlq} has dead letters, but none that were left out of {sink}: they are another sink's, or of a batch "
            "that was killed. Give the sink that they are missing from, or run the job again first."
        )
    return missing


def _left_out(sink: str, letter: Manifest) -> bool:
    whole = manifest.read(sink, letter.name)
    return whole is not None and (whole.job, whole.dead_letters) == (letter.job, letter.files)


def _missing_in_table(dlq: str, table: LakeTable[Any]) -> list[Manifest]:
    """Return the manifests of dead letters that a table lacks. Raises as `_missing` does."""
    version = load_with_retries(table)

    def left_out(_: str, letter: Manifest) -> bool:
        kept = table.progress(version, letter.job)
        return kept is not None and all(kept.offsets.get(tp, 0) >= end for tp, end in letter.end.items())

    missing = _missing(dlq, table.name, left_out)
    new = [letter for letter in missing if table.progress(version, _name_in_table(letter)) is None]
    return _without_rows(store_of(dlq), table, version, new) if new else []


def _without_rows(
    source: Store, table: LakeTable[V], version: V, letters: Sequence[Manifest]
) -> list[Manifest]:
    """Return the manifests none of whose dead letters is a row of a table.

    One that a killed run has written stays if the run after it keeps no dead letters: its records may have landed.
    """
    offsets = {letter.name: _offsets_of(source, letter) for letter in letters}
    topics = {file.topic for letter in letters for file in letter.files}
    there = set(retried(table.name, lambda: list(_known(table, version, topics, offsets))))
    for letter in letters:
        if letter.name in there:
            log.warning(
                "%s has records of %s already: its dead letters do not land again", table.name, letter.name
            )
    return [letter for letter in letters if letter.name not in there]


def _known(
    table: LakeTable[V],
    version: V,
    topics: Collection[str],
    offsets: Mapping[str, Mapping[TopicPartition, pa.Array]],
) -> Iterator[str]:
    """Yield the manifests of which some dead letter is a row of a table."""
    for batch in table.coordinates(version, topics):
        for tp, rows in by_partition(batch):
            for name, wanted in offsets.items():
                if tp in wanted and pc.any(pc.is_in(wanted[tp], rows)).as_py():
                    yield name


def _offsets_of(source: Store, letter: Manifest) -> dict[TopicPartition, pa.Array]:
    """Return the offsets of dead letters."""
    found: dict[TopicPartition, list[pa.Array]] = {}
    for file in letter.files:
        with reading(Path(file.path)), source.open_read(file.path) as stream:
            column = pq.ParquetFile(stream).read(["_offset"]).column(0)
        found.setdefault(TopicPartition(file.topic, file.partition), []).extend(column.chunks)
    return {tp: pa.concat_arrays(chunks) for tp, chunks in found.items()}


def _name_in_table(letter: Manifest) -> str:
    """Return the name of the progress in a table that says that dead letters have landed."""
    return f"{owner(letter.job)}{BESIDE}replay-{_digest(letter)}"


def _check_topics(settings: IngestSettings, letters: Sequence[Manifest]) -> None:
    """Refuse dead letters of other topics than those named, because a manifest counts as a whole."""
    there = dict.fromkeys(file.topic for letter in letters for file in letter.files)
    if other := [topic for topic in there if not any(matches(name, topic) for name in settings.topics)]:
        raise ConfigError(
            f"{settings.from_dlq} has dead letters of {', '.join(other)} too, which --topics does not name. "
            "All of them land together. Name every topic whose dead letters are there."
        )


def _plan(settings: IngestSettings, letters: Sequence[Manifest]) -> IngestPlan:
    return IngestPlan(
        cluster_id=None,
        topics=tuple(dict.fromkeys(file.topic for letter in letters for file in letter.files)),
        partitions=(),
        tasks=sum(len(letter.files) for letter in letters),
        sink=str(settings.sink),
        engine="direct",
        trigger=f"replay of {settings.from_dlq}",
        checkpoint=Checkpoint(settings.checkpoint).state_beside(),
    )


def _digest(letter: Manifest) -> str:
    return hashlib.sha256(f"{letter.job} {letter.name}".encode()).hexdigest()[:16]
