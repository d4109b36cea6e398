"""What the snapshots and files of an Iceberg table say of a job: whether the rows of its last batch are still there.

Expiring snapshots takes summaries away and leaves the rows; a rollback takes rows away and leaves the property of the
job. So the property says where the job stands, and the snapshot in it whether its rows are still there:

    it is an ancestor of the current snapshot              they are
    it was cherry-picked, with all that it lacked          they are
    it is known, or older ancestors are, and it is not     SinkError: the table was rolled back
    it is not known, nor is anything that old              it expired: the table is asked for its last batch

First for a file of this batch, since other jobs may land the same offsets, and then for its rows in files of other
programs: these may have compacted it. Where both are gone, a rollback is told from a deletion by the snapshots that are
left: if all of them keep rows, nothing has deleted any, and the table was rolled back before they expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import attrs
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestFile
from pyiceberg.table import Table as Version
from pyiceberg.table.snapshots import Operation, Snapshot

from kclient.spark.sink import table_files
from kclient.spark.sink.iceberg_schema import table_name
from kclient.spark.sink.partitions import COORDINATES
from kclient.spark.sink.tables import TableProgress

SUMMARY: Final = "kclient."
"""What the names of a job's entries in the summary of a snapshot begin with."""

SOURCE: Final = "source-snapshot-id"
"""In the summary of a copy: the snapshot that was cherry-picked."""


class LandedFile(NamedTuple):
    """One file with rows: its offsets, from `start` to before `end`, and its name without directories."""

    topic: str
    partition: int
    start: int
    end: int
    file: str | None = None


@attrs.frozen(kw_only=True)
class KeptProgress:
    """The property of a job: its progress, its last snapshot, and a file with rows of its newest batch.

    In format version 1 each `sequence` is 0, and the snapshot's time `at` takes its place.
    """

    progress: TableProgress
    snapshot: int
    sequence: int
    at: int
    landed: LandedFile | None


# --- the snapshots of a table ----------------------------------------------------------------------------------------


def ancestors(version: Version, of: int | None = None) -> Iterator[Snapshot]:
    """Yield a snapshot, by default the current one, and those before it, as far as they are kept.

    pyiceberg's own looks for each one in the list of all.
    """
    known: dict[int | None, Snapshot] = {each.snapshot_id: each for each in version.metadata.snapshots}
    snapshot = known.get(version.metadata.current_snapshot_id if of is None else of)
    while snapshot is not None:
        yield snapshot
        snapshot = known.get(snapshot.parent_snapshot_id)


def is_in_history(version: Version, job: str, kept: KeptProgress) -> bool | None:
    """Return whether the last snapshot of a job is an ancestor of the current one, None if it expired."""
    oldest = None
    for oldest in ancestors(version):
        if oldest.snapshot_id == kept.snapshot:
            return True
    if _is_cherry_picked(version, job, kept.snapshot):
        return True
    if version.metadata.snapshot_by_id(kept.snapshot) is not None or oldest is None:
        return False
    # Snapshots expire from the oldest on. One that is older and still there shows that this one was not expired.
    is_older = (oldest.sequence_number or 0, oldest.timestamp_ms) < (kept.sequence, kept.at)
    return False if is_older else None


def _is_cherry_picked(version: Version, job: str, last: int) -> bool:
    """Return whether a job's last snapshot, and those of its before that are gone, were cherry-picked.

    Each such copy names its source. One alone would leave out the rows of those before it.
    """
    history = {each.snapshot_id: noted(each, SOURCE) for each in ancestors(version)}
    copied = {source for source in history.values() if source is not None}
    if str(last) not in copied:
        return False
    parent: int | None = last
    for each in ancestors(version, last):
        if each.snapshot_id in history:
            return True
        source = noted(each, SOURCE)  # a copy of a batch is one too
        if (noted(each, f"{SUMMARY}job") == job or source) and not {str(each.snapshot_id), source} & copied:
            return False
        parent = each.parent_snapshot_id
    return parent is None  # or those before it are unknown


def noted(snapshot: Snapshot, name: str) -> str | None:
    """Return what the summary of a snapshot has under a name."""
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)


def keeps_rows(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has only added rows, or has the same rows as before in other files."""
    kinds = (Operation.APPEND, Operation.REPLACE)
    return snapshot.summary is not None and snapshot.summary.operation in kinds


# --- the files of a table --------------------------------------------------------------------------------------------


def files_in(version: Version, manifests: Iterable[ManifestFile]) -> Iterator[DataFile]:
    for each in manifests:
        for entry in each.fetch_manifest_entry(version.io, discard_deleted=True):
            yield entry.data_file


def files_of(version: Version, content: ManifestContent) -> Iterator[DataFile]:
    """Yield the files of the current snapshot with rows, or those with deletes."""
    snapshot = version.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(version.io)
    return files_in(version, (each for each in manifests if each.content == content))


def has_equality_deletes(version: Version) -> bool:
    """Return whether rows are deleted by their values: pyiceberg scans no such table."""
    deletes = files_of(version, ManifestContent.DELETES)
    return any(file.content == DataFileContent.EQUALITY_DELETES for file in deletes)


def has_rows(version: Version, landed: LandedFile) -> bool:
    """Return whether files that no job has written, as a compaction does, have rows with these offsets."""
    topic, partition, offset = map(table_name, COORDINATES)
    rows = (
        f"{topic} = '{landed.topic}' AND {partition} = {landed.partition} AND "
        f"{offset} >= {landed.start} AND {offset} < {landed.end}"
    )
    scan = version.scan(row_filter=rows, selected_fields=(offset,), limit=1)
    tasks = [
        task
        for task in scan.plan_files()
        if landed.file is None or not table_files.is_of_a_job(task.file.file_path)
    ]
    found = ArrowScan(version.metadata, version.io, scan.projection(), scan.row_filter, limit=1)
    return bool(found.to_table(tasks).num_rows)
