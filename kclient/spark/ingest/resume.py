"""Where a job goes on whose sink is a table: the table and the checkpoint compared, and the table believed.

Rows and progress are one commit in the table, so it holds exactly the rows up to its progress, whatever a checkpoint
says. `next` is the batch that the checkpoint would run, `b` the job's last one in the table:

    checkpoint                      table            what happens
    new                             nothing          the job begins
    batch 0, begun or not           nothing          it goes on: batch 0 was not committed
    batches were finished           nothing          SinkError: the table was dropped, emptied, or is another one
    new, lost                       batch b          WARNING: it goes on after b
    next = b + 1, same offsets      batch b          it goes on; a batch that was begun ends where it was to end
    b begun and not finished        batch b          the run before died between the two: it goes on after b
    behind, ahead, other offsets    batch b          WARNING: it goes on after b
    next would end before it begins batch b          WARNING: it goes on after b, and ends where it may
    any of the warnings             another topic id ConfigError: a topic was deleted and recreated (KIP-516)

A checkpoint that is ahead names batches whose rows the table does not have: one of the two was restored from a copy.
They are read again from the offsets of the table. Where the logs do not hold them any more, the run ends with
DataLossError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.spark.ingest.checkpoint import Checkpoint, Offsets, Position
from kclient.spark.ingest.setting_values import Location
from kclient.spark.ingest.settings import IngestSettings
from kclient.spark.offsets import MAX_OFFSET
from kclient.spark.sink.tables import LakeTable, TableCommit, TableProgress, check_not_landed

log: Final = get_logger("kclient.spark")


def table_of(settings: IngestSettings) -> LakeTable[Any] | None:
    """Return the table of a job, None for a sink of another kind. Asks nothing yet. Raises ConfigError."""
    if not settings.sink.is_lake:
        return None
    return open_table(settings.sink, settings.catalog)


def open_table(sink: Location, catalog: str | None) -> LakeTable[Any]:
    """Return the table of a sink. Raises ConfigError if its library is not installed."""
    kind, where = sink.kind, sink.where
    package = "pyiceberg" if kind == "iceberg" else "deltalake"
    try:
        if kind == "iceberg":
            from kclient.spark.sink.iceberg import IcebergTable

            return IcebergTable(where, catalog)
        import deltalake  # noqa: F401 the module below loads it on first use

        from kclient.spark.sink.delta import DeltaSink
    except ModuleNotFoundError as exc:
        if not str(exc.name).startswith(package):
            raise
        raise ConfigError(
            f"--sink {kind}:… needs the package {package}, which is not installed. "
            f"pip install 'kclient-kafka[{kind}]'."
        ) from exc
    return DeltaSink(where)


def named_table(sink: Location, catalog: str | None) -> LakeTable[Any]:
    """Return the table that a user has named. Raises ConfigError also if it is not there, SinkError."""
    table = open_table(sink, catalog)
    if table.find() is None:
        what = ", and at its catalog" if sink.kind == "iceberg" else ", and whether its place is mounted"
        raise ConfigError(f"There is no table {sink}. Look at the name in --sink{what}.")
    return table


def position_in(
    table: LakeTable[Any], job: str, checkpoint: Checkpoint, position: Position | None
) -> tuple[Position | None, TableProgress | None]:
    """Return where the next batch begins, and the table's progress if the checkpoint has to adopt it.

    Raises SinkError if the table lost what the checkpoint has landed there.
    """
    version = table.find()
    progress = None if version is None else table.progress(version, job)
    if progress is None:
        _check_nothing_landed(table.name, job, checkpoint, position)
        return position, None
    if position is not None and _agrees(position, progress):
        return position, None
    if position is None or not _is_unfinished(position, progress):
        log.warning(
            "%s, and %s holds the job %s up to batch %d: the job goes on after that, as the table says",
            _described(checkpoint, position),
            table.name,
            job,
            progress.batch,
        )
    return Position(progress.batch + 1, progress.offsets), progress


def check_not_recreated(name: str, job: str, progress: TableProgress, topic_ids: Mapping[str, str]) -> None:
    """Refuse to go on after the offsets of a topic that was deleted. Raises ConfigError."""
    if recreated := progress.recreated(topic_ids):
        different = [f"topic {topic} was deleted and recreated since" for topic in recreated]
        raise ConfigError(
            f"{name} holds the job {job} up to batch {progress.batch}, and {'; '.join(different)}: the offsets in it "
            "are those of other records. Going on would skip or repeat records. Give this job a table, a --job and a "
            "--checkpoint of its own.",
            problems=tuple(different),
        )


def check_not_backfilled(table: LakeTable[Any], job: str, start: Offsets) -> None:
    """Refuse a job that lands from `start` on what a backfill has landed. Raises SinkError."""
    if (version := table.find()) is not None:
        end = dict.fromkeys(start, MAX_OFFSET)
        check_not_landed(table, version, TableCommit(job=job, batch=0, start=start, end=end))


def _check_nothing_landed(name: str, job: str, checkpoint: Checkpoint, position: Position | None) -> None:
    if position is None or not position.batch:
        return
    raise SinkError(
        f"{name} does not hold batch {position.batch - 1} of the job {job}, which the checkpoint {checkpoint.path} has "
        "landed there. The table was dropped, emptied or replaced, or the catalog is another one. Restore it, or name "
        "the right catalog; to land everything again, begin with a new checkpoint.",
        path=name,
    )


def _agrees(position: Position, progress: TableProgress) -> bool:
    same = all(progress.offsets.get(tp) == offset for tp, offset in position.start.items())
    return position.batch == progress.batch + 1 and same and _goes_on(position)


def _goes_on(position: Position) -> bool:
    """Return whether a batch that was begun ends after its start.

    One that does not was begun by a run of before the table was put back to a copy, which had not heard of that.
    """
    end = position.end
    return end is None or all(end.get(tp, -1) >= offset for tp, offset in position.start.items())


def _is_unfinished(position: Position, progress: TableProgress) -> bool:
    """Return whether the checkpoint lacks only the end of the table's last batch."""
    end = position.end or {}
    same = all(progress.offsets.get(tp) == offset for tp, offset in end.items())
    return position.batch == progress.batch and bool(end) and same


def _described(checkpoint: Checkpoint, position: Position | None) -> str:
    if position is None:
        return f"the checkpoint {checkpoint.path} is new"
    return f"the checkpoint {checkpoint.path} would go on with batch {position.batch}"
