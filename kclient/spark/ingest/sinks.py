"""Which job a sink belongs to, and which files count in it, for every writer.

    parquet:DIR  --writer direct    _manifest           the files that it names
    parquet:DIR  --writer spark     _spark_metadata     the files that it names; `_kclient/job.json` names its job
    table:NAME                      the table format    the files in its log
    iceberg:NAME, delta:DIR         the table           its files; the progress of each job in it: `resume.py`

Spark's sink skips a batch number that its log has, even from another job: in the directory of another job the first
batches of a new one would be lost without an error. So every sink belongs to one checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import attrs

from kclient.errors import SinkError
from kclient.log import get_logger
from kclient.spark.ingest import sink_claims
from kclient.spark.ingest.checkpoint import Checkpoint, Job, Offsets, check_same
from kclient.spark.ingest.setting_values import Location
from kclient.spark.ingest.settings import IngestSettings, Writer
from kclient.spark.ingest.sink_claims import OffsetClaim
from kclient.spark.offsets import MAX_OFFSET
from kclient.spark.sink import manifest, spark_metadata
from kclient.spark.sink.atomic_files import is_directory, read_json, write_atomically
from kclient.spark.sink.manifest import Manifest, batch_name
from kclient.spark.sink.store import is_remote
from kclient.text import format_count

log: Final = get_logger("kclient.spark")

OWN: Final = "_kclient"
LOOK_BACK: Final = 100  # manifests


def lock_directory(sink: Location, writer: Writer) -> Path | None:
    """Return the directory that a running job locks; None for a table and an object store, which have no lock."""
    if sink.kind != "parquet" or is_remote(sink.where):
        return None
    return Path(sink.where) / (manifest.DIRECTORY if writer == "direct" else OWN)


def check_sinks(settings: IngestSettings, checkpoint: Checkpoint, name: str | None = None) -> None:
    """Refuse a sink whose batches are another job's, and one without what this checkpoint's job has landed.

    This job's batches would take the place of another's, or land beside the sink that is to be mounted there. Raises
    SinkError, and ConfigError for another sink than the job's. `name` is that of a job without its checkpoint, which a
    table may know.
    """
    job = checkpoint.job()
    name = name if job is None else job.job
    if job is not None:
        check_same(checkpoint.where, job, attrs.evolve(job, sink=str(settings.sink)))
    _check(settings.sink, settings.writer, name)
    if settings.dlq is not None:
        _check(settings.dlq, "direct", name, "place for dead letters")
        sink_claims.check_dead_letters(settings.dlq.where, name, str(settings.sink))
    if job is not None:
        _check_newest_batch(job, checkpoint)
    if settings.dlq is not None and settings.sink.kind == "parquet":
        _warn_of_missing_dead_letters(settings.sink, settings.dlq.where)


def _warn_of_missing_dead_letters(sink: Location, dlq: str) -> None:
    """Warn where the newest dead letters of the sink are not in the directory: it may not be mounted.

    A job may be given another directory, so this is not refused.
    """
    for name in reversed(manifest.names(sink.where)[-LOOK_BACK:]):
        whole = manifest.read(sink.where, name)
        if whole is None or not whole.dead_letters:
            continue
        if manifest.read(dlq, name) is None:
            log.warning(
                "%s has no dead letters of %s, which left some out of %s. If this is the directory of earlier runs, it "
                "may not be mounted; --from-dlq needs them.",
                dlq,
                name,
                sink.where,
            )
        return


def _check(sink: Location, writer: Writer, job: str | None, what: str = "sink") -> None:
    if sink.kind != "parquet":
        return
    manifests = manifest.batches(sink.where)
    logged = [] if is_remote(sink.where) else spark_metadata.batches(sink.where)
    if writer == "direct":
        if logged:
            raise _other_writer(sink, spark_metadata.DIRECTORY, "spark")
        last = manifest.read(sink.where, manifests[-1]) if manifests else None
        if last is not None and last.job != job:
            raise _other_job(sink, len(manifests), what)
        return
    if manifest.names(sink.where):
        raise _other_writer(sink, manifest.DIRECTORY, "direct")
    if logged and _owner(sink) != job:
        raise _other_job(sink, len(logged), what)


def _check_newest_batch(job: Job, checkpoint: Checkpoint) -> None:
    """Refuse a sink in which the newest finished batch does not count."""
    position = checkpoint.position()
    if position is None or not position.batch or _counts(job, position.batch - 1, position.start):
        return
    where = job.location.where
    raise SinkError(
        f"{where} does not hold batch {position.batch - 1}, which the checkpoint {checkpoint.where} has landed there. "
        "The sink is not mounted, was emptied, or is an older copy. Mount or restore it; to do without what is gone, "
        "begin with a new checkpoint and sink.",
        path=where,
    )


def _counts(job: Job, batch: int, end: Offsets) -> bool:
    """Return whether a finished batch counts; for a table only its own log knows."""
    if job.location.kind != "parquet":
        return True
    if job.writer == "spark":
        return batch in spark_metadata.batches(job.location.where)
    whole = manifest.read(job.location.where, batch_name(batch))
    return whole is not None and (whole.job, whole.end) == (job.job, end)


def has_landed(checkpoint: Checkpoint) -> bool:
    """Return whether anything of the checkpoint's job counts, also after a batch whose commit is missing.

    Raises SinkError.
    """
    job, position = checkpoint.job(), checkpoint.position()
    if job is None or (position is not None and position.batch):
        return job is not None
    if job.location.kind != "parquet":  # its own log keeps its columns
        return False
    if job.writer == "spark":
        return bool(spark_metadata.batches(job.location.where))
    return any(whole.job == job.job for whole in manifest.read_all(job.location.where))


def claim(sink: Location, writer: Writer, job: Job, start: Offsets) -> None:
    """Write which job owns a sink, unless its manifests say so, and from where on it does. Raises SinkError."""
    if writer == "direct" and sink.kind == "parquet":
        sink_claims.claim(sink.where, OffsetClaim(job.job, start, topics=job.topics))
    if writer == "spark" and sink.kind == "parquet":
        write_atomically(Path(sink.where) / OWN / "job.json", json.dumps({"job": job.job}).encode())


def claim_dead_letters(settings: IngestSettings, job: Job | None) -> None:
    """Make the place of the dead letters the job's, also for what lands beside it. Raises SinkError."""
    if settings.dlq is not None and job is not None:
        sink_claims.claim_dead_letters(settings.dlq.where, job.job, job.sink)


def check_not_landed(sink: str, start: Offsets, end: Offsets, name: str) -> None:
    """Refuse to land what counts already, but for an earlier run of the same name. Raises SinkError."""
    wanted = Manifest(job="", name=name, start=start, end=end)
    if (other := manifest.overlap(manifest.read_all(sink), wanted)) is not None:
        raise SinkError(
            f"{sink} has records that were to land again: its manifest {other} covers these offsets. They would count "
            "twice, or, of another cluster or a recreated topic, be taken for each other. Give other offsets with "
            "--start and --end, or another sink.",
            path=sink,
        )


def check_not_backfilled(sink: str, start: Offsets) -> None:
    """Refuse a job that lands from `start` on what a backfill has landed. Raises SinkError."""
    wanted = Manifest(job="", name="", start=start, end=dict.fromkeys(start, MAX_OFFSET))
    if (other := manifest.overlap(manifest.read_all(sink, "backfill-"), wanted)) is not None:
        raise SinkError(
            f"{sink} has a backfill, {other}, of records that this job lands too. They would count twice. Let "
            "a new job start after them with --start; to take back what was given a wrong checkpoint, delete "
            f"{manifest.DIRECTORY}/{other}.json: then its files do not count.",
            path=sink,
        )


def rows(job: Job) -> int | None:
    """Return the number of rows that count in a job's sink. Raises SinkError.

    None if unknown: for a table, which only its own tools can read, and for a directory that is empty or not mounted.
    """
    sink = job.location
    if sink.kind != "parquet":
        return None
    if job.writer == "direct":
        return manifest.count(sink.where) if manifest.exists(sink.where) else None
    there = is_directory(Path(sink.where) / spark_metadata.DIRECTORY)
    return spark_metadata.count(sink.where) if there else None


def last_written(sink: Location, writer: Writer) -> tuple[int, int] | None:
    """Return rows and bytes of the newest batch with rows, None if unknown. Raise SinkError."""
    if sink.kind != "parquet":
        return None
    if writer == "direct":
        for name in reversed(manifest.batches(sink.where)):
            if (whole := manifest.read(sink.where, name)) is not None and whole.rows:
                return whole.rows, whole.bytes
        return None
    for batch in reversed(spark_metadata.batches(sink.where)):
        if files := spark_metadata.added(sink.where, batch):
            return sum(spark_metadata.rows_of(file.path) for file in files), sum(file.bytes for file in files)
    return None


def newest_epoch(sink: Location, writer: Writer) -> int:
    """Return the epoch of the run that has committed the newest batch, 0 if there is none. Raises SinkError."""
    if (sink.kind, writer) != ("parquet", "direct"):
        return 0
    batches = manifest.batches(sink.where)
    newest = manifest.read(sink.where, batches[-1]) if batches else None
    return 0 if newest is None else newest.epoch


def _owner(sink: Location) -> str | None:
    path = Path(sink.where) / OWN / "job.json"
    return read_json(
        path,
        lambda content: str(content["job"]),
        f"{path}, which names the job of the batches,",
        "Restore it from a copy, or begin a new job with a sink of its own.",
    )


def _other_job(sink: Location, batches: int, what: str) -> SinkError:
    return SinkError(
        f"{sink.where} holds {format_count(batches, 'batch', 'batches')} of another job. Its checkpoint was "
        f"another one, or was deleted. Give this checkpoint a {what} of its own, or go on with the checkpoint "
        f"that belongs to this {what}.",
        path=sink.where,
    )


def _other_writer(sink: Location, log: str, writer: Writer) -> SinkError:
    return SinkError(
        f"{sink.where} was written with --writer {writer}: its {log} lists the files that count, and no others. "
        f"Give --writer {writer}, or another sink.",
        path=sink.where,
    )
