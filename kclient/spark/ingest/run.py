"""`kclient ingest`: topics into Parquet, exactly once.

plan(settings)              what a run would do; writes nothing
run(settings, listener)     lock checkpoint and sink → plan → claim them → the engine's batches → result
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path

from kclient.errors import ConfigError, DataLossError
from kclient.spark.client import DriverClient
from kclient.spark.ingest import backfill, replay, schemas, sinks
from kclient.spark.ingest.checkpoint import Checkpoint
from kclient.spark.ingest.preflight import Engine, Prepared, prepare
from kclient.spark.ingest.progress import IngestListener, IngestPlan, IngestResult, SilentListener
from kclient.spark.ingest.settings import IngestSettings, as_typed
from kclient.spark.ingest.spark_session import without_spark
from kclient.spark.ingest.stop_signals import StopRequest, stop_on_signals
from kclient.spark.options import SourceOptions
from kclient.spark.sink.atomic_files import is_directory, locked
from kclient.spark.sink.manifest import DIRECTORY
from kclient.spark.sink.store import is_remote, store_of


@contextmanager
def _options_as_typed() -> Iterator[None]:
    """Rewrite the source's errors in terms of the options of `kclient ingest`."""
    try:
        yield
    except (ConfigError, DataLossError) as exc:
        exc.args = (as_typed(exc.text),)
        raise


@_options_as_typed()
def plan(settings: IngestSettings) -> IngestPlan:
    """Return what a run would do now. Writes nothing.

    Raises ConfigError (also for a checkpoint of another job), SinkError, ConnectError, AuthorizationError,
    UnknownTopicError, DeadlineError.
    """
    settings = _beside(settings)
    if settings.backfill:
        return backfill.prepare(settings).plan(settings)
    if settings.from_dlq is not None:
        return replay.prepare(settings)[1]
    with _prepared(settings) as prepared:
        return prepared.plan


@_options_as_typed()
def run(
    settings: IngestSettings, listener: IngestListener | None = None, stop: StopRequest | None = None
) -> IngestResult:
    """Land the topics until they are drained or a signal asks to stop; only the main thread receives signals.

    Raises what `plan` raises, DataLossError, DecodeError, CorruptDataError, and SinkError while another run holds the
    checkpoint or the sink. KeyboardInterrupt at the second signal, and at Ctrl-C while the cluster is still looked at.
    After any of them a new run goes on with the batch that does not count yet.
    """
    listener = SilentListener() if listener is None else listener
    with ExitStack() as stack:
        stop = stack.enter_context(stop_on_signals()) if stop is None else stop
        if not all(is_directory(directory) for directory, _ in _directories_to_lock(settings)):
            plan(
                settings
            )  # a refused job must not leave a directory: readers would take it for an empty sink
        for url in _object_stores(settings):
            store_of(url).check_conditional_writes()
        locks = [
            stack.enter_context(locked(directory, owner))
            for directory, owner in _directories_to_lock(settings)
        ]
        settings = _beside(settings)
        if _runs_beside(settings):
            sinks.claim_dead_letters(settings, Checkpoint(settings.checkpoint).job())
        if settings.from_dlq is not None:
            stop.begin_work()
            return replay.run(settings, listener, stop)
        with stop.shield():  # reports a missing Spark before anything is claimed
            engine = stack.enter_context(_engine(settings, locks))
        if settings.backfill:
            return backfill.run(settings, listener, stop, locks)
        prepared = stack.enter_context(_prepared(settings))
        stop.begin_work()
        listener.planned(prepared.plan)
        result = engine(prepared, listener, stop)
        listener.finished(result)
        return result


@contextmanager
def _prepared(settings: IngestSettings) -> Iterator[Prepared]:
    client = DriverClient(SourceOptions.parse(settings.stream_options(), "stream"))
    try:
        client.connect()
        yield prepare(settings, client)
    finally:
        client.close()


def _beside(settings: IngestSettings) -> IngestSettings:
    """Give the settings of what runs beside a job the schema that the job has found."""
    return (
        schemas.with_job_schema(settings, Checkpoint(settings.checkpoint))
        if _runs_beside(settings)
        else settings
    )


def _runs_beside(settings: IngestSettings) -> bool:
    return settings.backfill or settings.from_dlq is not None


def _object_stores(settings: IngestSettings) -> Iterator[str]:
    """Yield the URLs where a job writes without a lock."""
    places = (settings.checkpoint, *(place.where for place in (settings.sink, settings.dlq) if place))
    return (where for where in places if is_remote(where))


def _directories_to_lock(settings: IngestSettings) -> Iterator[tuple[Path, str]]:
    # Beside a table's job nothing is written into its checkpoint, and the job may go on.
    if not is_remote(settings.checkpoint) and not (_runs_beside(settings) and settings.sink.is_lake):
        yield Path(settings.checkpoint) / "kclient", "A checkpoint's job"
    if (directory := sinks.lock_directory(settings.sink, settings.writer)) is not None:
        yield directory, "The job of a sink"
    if settings.dlq is not None and not is_remote(settings.dlq.where):
        yield Path(settings.dlq.where) / DIRECTORY, "The job of a dead-letter directory"


def _engine(settings: IngestSettings, locks: Sequence[int]) -> AbstractContextManager[Engine]:
    """Return the engine, imported on demand: one engine needs Spark. Raises ConfigError without it."""
    if settings.engine == "direct":
        from kclient.spark.ingest import engine_direct

        return engine_direct.engine(settings, locks)
    try:
        from kclient.spark.ingest import engine_spark
    except ImportError as exc:
        raise without_spark() from exc
    return nullcontext(engine_spark.run)
