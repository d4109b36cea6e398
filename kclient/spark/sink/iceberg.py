"""An Iceberg table that a job lands in, by pyiceberg: one commit adds a batch's files and the job's progress.

    table property    kclient.job.<job>        {"batch": 7, "offsets": …, "first": …, "snapshot": …, "sequence": …,
                                               "at": …, "landed": …}
    snapshot summary  kclient.job, .batch, .start, .end         the batch, and the partitions that moved in it, if they
                                                                are few; while the snapshot is kept. Nothing reads these

Expiring snapshots takes summaries away and leaves the rows; a rollback takes rows away and leaves the property. So the
property says where the job stands, and the snapshot in it whether its rows are still there:

    it is an ancestor of the current snapshot              they are
    it was cherry-picked, with all that it lacked          they are
    it is known, or older ancestors are, and it is not     SinkError: the table was rolled back
    it is not known, nor is anything that old              it expired: the table is asked for its last batch

First for a file of this batch, since other jobs may land the same offsets, and then for its rows in files of other
programs: these may have compacted it. Where both are gone, a rollback is told from a deletion by the snapshots that are
left: if all of them keep rows, nothing has deleted any, and the table was rolled back before they expired.

pyiceberg's own retries are switched off. They would add the files to a newer version without looking at the progress in
it, and so count a batch twice that another run has committed in between.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import NoSuchTableError, ResolveError, ValidationError
from pyiceberg.io.pyarrow import (
    ArrowScan,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestFile
from pyiceberg.table import Table as Version
from pyiceberg.table import Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
    TableRequirement,
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
)
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.table.update.snapshot import _MergeAppendFiles
from pyiceberg.typedef import Record
from pyiceberg.types import BinaryType, DateType, TimestampType, TimestamptzType

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.spark.offsets import dump_offsets
from kclient.spark.sink import table_files
from kclient.spark.sink.iceberg_catalog import TableName, open_catalog, table_errors
from kclient.spark.sink.iceberg_schema import (
    RENAMED,
    any_value,
    check_case,
    column_changes,
    file_schema,
    partitioning_of,
    spec_of,
    spec_texts,
    table_columns,
    table_keys,
    table_name,
    table_schema,
)
from kclient.spark.sink.manifest import Garbage, WrittenFile
from kclient.spark.sink.partitions import COORDINATES, TableFiles
from kclient.spark.sink.store import ObjectMissing, checked_url, is_remote, lost
from kclient.spark.sink.tables import (
    TableCommit,
    TableConflict,
    TableProgress,
    TableUnavailable,
    load_with_retries,
    next_progress,
    owner,
    retried,
    rows_of,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

log: Final = get_logger("kclient.spark")

PROPERTY: Final = "kclient.job."
SUMMARY: Final = "kclient."
MOST_NAMED: Final = 100
"""Partitions of one summary."""

SOURCE: Final = "source-snapshot-id"
"""In the summary of a copy: the snapshot that was cherry-picked."""

NO_RETRIES: Final = {"commit.retry.num-retries": "0"}
MERGING: Final = {"commit.manifest-merge.enabled": "true"}
"""The default of Iceberg itself: 100 manifests become one. pyiceberg's is false, and its readers open each of them."""

GONE: Final = (FileNotFoundError, ObjectMissing)
"""What reading a file raises that is not there: of pyiceberg's own file systems, and of a store."""

METRICS: Final = "write.metadata.metrics.column."
NEWEST_FORMAT: Final = 2
_TIMES: Final = (DateType, TimestampType, TimestamptzType)


class _Landed(NamedTuple):
    """One file with rows: its offsets, from `start` to before `end`, and its name without directories."""

    topic: str
    partition: int
    start: int
    end: int
    file: str | None = None


@attrs.frozen(kw_only=True)
class _Kept:
    """The property of a job: its progress, its last snapshot, and a file with rows of its newest batch.

    In format version 1 each `sequence` is 0, and the snapshot's time `at` takes its place.
    """

    progress: TableProgress
    snapshot: int
    sequence: int
    at: int
    landed: _Landed | None


class IcebergTable:
    """A table of a catalog. Methods may raise SinkError; see `tables.LakeTable`."""

    def __init__(self, name: str, catalog_file: str | None = None) -> None:
        self._table = TableName.parse(name)
        self._catalog_file = catalog_file
        self._opened: Catalog | None = None
        self._prepared: tuple[Version, pa.Schema] | None = None

    @property
    def name(self) -> str:
        """The table as the user typed it."""
        return ".".join((self._table.catalog, *self._table.identifier))

    @property
    def _catalog(self) -> Catalog:
        if self._opened is None:
            self._opened = open_catalog(self._table.catalog, self._catalog_file)
        return self._opened

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Raise what went wrong as `table_errors` does. Leave a catalog that gave no usable answer, and open it again.

        A connection to its database may hold a change that it could not commit: another look through this connection
        would find the change as if it were there, and the end of the process would take it back.
        """
        try:
            with table_errors(self.name, doing, {} if self._opened is None else self._opened.properties):
                yield
        except TableUnavailable:
            left, self._opened = self._opened, None
            if left is not None:
                left.close()
            raise

    @contextmanager
    def _conflicts(self, base: Version) -> Iterator[None]:
        """Raise TableConflict for a file of a version that is gone, if the version is not the newest any more."""
        try:
            yield
        except GONE as exc:
            if self.load().metadata_location == base.metadata_location:
                raise
            raise TableConflict(f"its version {base.metadata_location} has been removed meanwhile") from exc

    # --- reading where a job stands

    def load(self) -> Version:
        """Return the newest version. Raises TableUnavailable, SinkError."""
        with self._errors("Reading"):
            try:
                return self._catalog.load_table(self._table.identifier)
            except GONE:  # another writer has removed the metadata that the catalog named a moment ago
                return self._catalog.load_table(self._table.identifier)

    def find(self) -> Version | None:
        """Return the newest version, None if the table is not there."""
        try:
            return load_with_retries(self)
        except SinkError as exc:
            if isinstance(exc.__cause__, NoSuchTableError):
                return None
            raise

    def progress(self, version: Version, job: str) -> TableProgress | None:
        """Return where a job stands, None if it has committed nothing. Raises SinkError after a rollback."""
        text = version.properties.get(PROPERTY + job)
        if text is None:
            self._check_no_batches(job, version)
            return None
        kept = self._kept(job, text)
        is_there = _is_in_history(version, job, kept)
        if is_there is False or (is_there is None and self._lost_rows(version, job, kept)):
            raise self._rolled_back(job, kept.progress, kept.snapshot)
        return kept.progress

    def _lost_rows(self, version: Version, job: str, kept: _Kept) -> bool:
        """Return whether rows of the last batch are gone, although nothing that is left has deleted rows."""
        if kept.landed is None:
            return False
        with self._errors("Reading"):
            files = _files_of(version, ManifestContent.DATA)
            if any(table_files.name_of(file.file_path) == kept.landed.file for file in files):
                return False
            has_deletes = _has_equality_deletes(version)
            if not has_deletes and _has_rows(version, kept.landed):
                return False
        if not has_deletes and all(map(_keeps_rows, _ancestors(version))):
            return True
        log.warning(
            "%s has no rows of batch %d of the job %s, and no snapshot of that time. Rows were deleted since, so the "
            "job goes on. If the table was rolled back too, give another --job, and --start",
            self.name,
            kept.progress.batch,
            job,
        )
        return False

    def family(self, version: Version, job: str) -> Mapping[str, TableProgress]:
        """Return a job and what landed beside it, by the properties of a version. Raises SinkError."""
        names = [key.removeprefix(PROPERTY) for key in version.properties if key.startswith(PROPERTY)]
        ours = [name for name in names if owner(name) == job]
        return {name: self._kept(name, version.properties[PROPERTY + name]).progress for name in ours}

    def _kept(self, job: str, text: str) -> _Kept:
        """Parse the property of a job. Raises SinkError."""
        try:
            progress, content = TableProgress.parse(text), json.loads(text)
            landed = content.get("landed")
            return _Kept(
                progress=progress,
                snapshot=int(content["snapshot"]),
                sequence=int(content["sequence"]),
                at=int(content.get("at", 0)),
                landed=None if landed is None else _Landed(*landed),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise SinkError(
                f"The property {PROPERTY}{job} of {self.name} cannot be understood: {exc!r}. Another program changed "
                "it. Set it back from an older metadata file of the table: it says where the job stands.",
                path=self.name,
            ) from exc

    def _check_no_batches(self, job: str, version: Version) -> None:
        for snapshot in _ancestors(version):
            summary = snapshot.summary
            if summary is not None and summary.additional_properties.get(f"{SUMMARY}job") == job:
                raise SinkError(
                    f"{self.name} has batches of the job {job}, and its property {PROPERTY}{job} is gone, which says "
                    "where the job stands. Somebody removed it. Set it back from an older metadata file of the table, "
                    "or land with another --job and the --start that fits.",
                    path=self.name,
                )

    def _rolled_back(self, job: str, progress: TableProgress, snapshot: int) -> SinkError:
        return SinkError(
            f"Rows of the job {job} were taken back from {self.name}: it was rolled back or replaced, and the snapshot "
            f"{snapshot} of batch {progress.batch} is no part of its history any more. Going on would leave their "
            "offsets out. Either bring them back (Spark: CALL system.set_current_snapshot, with that snapshot; or, to "
            "keep what others have added since, cherrypick_snapshot of each of the job's that is gone, to that one), "
            "or land them again with another --job, a new --checkpoint and --start from a file of offsets.",
            path=self.name,
        )

    def rows(self, version: Version) -> int | None:
        """Return how many rows are in a version, by the summary of its snapshot."""
        snapshot = version.current_snapshot()
        if snapshot is None:
            return 0
        total = (
            None if snapshot.summary is None else snapshot.summary.additional_properties.get("total-records")
        )
        return None if total is None else int(total)

    # --- committing

    def try_commit(self, base: Version, commit: TableCommit) -> None:
        """Add the files and the progress in one commit. Raises as `tables.Table` says."""
        self._check_unchanged(base)
        progress = next_progress(self.progress(base, commit.job), commit)
        with self._errors("Committing into"), self._conflicts(base):
            version = _with_our_defaults(base)
            added = _DataFiles(version)
            transaction = _Transaction(version)
            # The catalog refuses the commit if the columns change from here on: then they are checked again.
            schema_id = {"current-schema-id": base.metadata.current_schema_id}
            transaction._apply((), (AssertCurrentSchemaId.model_validate(schema_id),))
            append = _Append(Operation.APPEND, transaction, base.io, snapshot_properties=_summary(commit))
            for file in commit.files:
                append.append_data_file(added.of(file))
            sequence = version.metadata.next_sequence_number()
            append.commit()
            self._check_manifests(transaction)
            described = {
                **json.loads(progress.dump()),
                "snapshot": append.snapshot_id,
                "sequence": sequence,
                "at": transaction.table_metadata.last_updated_ms,
                "landed": self._landed(base, commit),
            }
            transaction.set_properties({PROPERTY + commit.job: json.dumps(described)})
            after = transaction.commit_transaction()
            self._check_metadata(base, after)

    def _check_unchanged(self, base: Version) -> None:
        """Refuse the files of this run if the table is no more what they were prepared for. Raises SinkError."""
        changes = [] if self._prepared is None else [*_changes(*self._prepared, base)]
        if changes:
            raise SinkError(
                f"{self.name} was changed while this run wrote files for it: {'; '.join(changes)}. Nothing of this "
                "batch was committed. Start again: its files are then written for the table as it is.",
                path=self.name,
            )

    def _check_manifests(self, transaction: Transaction) -> None:
        """Look for a commit's manifest list before it counts; pyiceberg has asked for the size of each manifest."""
        for update in transaction._updates:
            place = update.snapshot.manifest_list if isinstance(update, AddSnapshotUpdate) else ""
            if is_remote(place) and not transaction._table.io.new_input(place).exists():
                raise lost(place)

    def _check_metadata(self, base: Version, after: Version) -> None:
        """Look for the metadata file that the catalog names since a commit. Raise SinkError if there is none."""
        place = after.metadata_location
        if is_remote(place) and not after.io.new_input(place).exists():
            raise SinkError(
                f"{lost(place)} The catalog names it, so nobody can read {self.name}. Once the service is repaired, "
                f"register the table with the metadata file before it: {base.metadata_location}. The batch is not in "
                "that one, and lands again.",
                path=self.name,
            )

    def _landed(self, base: Version, commit: TableCommit) -> _Landed | None:
        """Return one file of the job's newest batch with rows, None where rows have no offsets."""
        for file in commit.files if commit.end else ():
            if file.rows:
                name = table_files.name_of(file.path)
                return _Landed(file.topic, file.partition, file.start, file.end, name)
        text = base.properties.get(PROPERTY + commit.job)
        return None if text is None else self._kept(commit.job, text).landed

    # --- making the table

    def check(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> None:
        """Check that rows with these columns can land there; write nothing. Raises ConfigError, SinkError."""
        columns, keys = table_columns(columns), table_keys(keys)
        version = self.find()
        if version is None:
            spec_of(keys, table_schema(columns))
        elif evolves:
            self._growth(version, columns)
        else:
            self._files(version, columns, keys)

    def prepare(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> TableFiles:
        """Create the table, or add what it lacks; return how its files are written. Raises ConfigError, SinkError."""
        columns, keys = table_columns(columns), table_keys(keys)
        version = retried(self.name, lambda: self.find() or self._create(columns, keys))
        if evolves:
            version = retried(self.name, lambda: self._evolved(self.load(), columns))
        files = self._files(version, columns, keys)
        self._prepared = version, files.schema
        return files

    def _create(self, columns: pa.Schema, keys: Sequence[str]) -> Version:
        from pyiceberg.exceptions import TableAlreadyExistsError

        schema = table_schema(columns)
        spec = spec_of(keys, schema)
        with self._errors("Creating"):
            self._catalog.create_namespace_if_not_exists(self._table.namespace)
            try:
                return self._catalog.create_table(self._table.identifier, schema, partition_spec=spec)
            except TableAlreadyExistsError:  # another job was faster
                return self.load()

    def _evolved(self, version: Version, columns: pa.Schema) -> Version:
        """Add the columns that the table lacks, and widen those that are narrower, where there are any."""
        with self._errors("Adding columns to"), self._conflicts(version):
            self._growth(version, columns).commit()
        return self.load()

    def _growth(self, version: Version, columns: pa.Schema) -> _Growth:
        """Return what `_evolved` would do to a version. Raises ConfigError."""
        wanted = table_schema(columns)
        update = _Growth(Transaction(version, autocommit=True), name_mapping=version.name_mapping())
        try:
            grown = update.union_by_name(wanted)._apply()
        except (ResolveError, ValidationError, ValueError) as exc:
            raise ConfigError(
                f"The columns of {self.name} cannot be changed to those of the rows: {exc}."
            ) from exc
        check_case(grown, version.schema())
        return update

    def _files(self, version: Version, columns: pa.Schema, keys: Sequence[str]) -> TableFiles:
        """Return how files of a version are written. Raises ConfigError."""
        if version.format_version > NEWEST_FORMAT:
            raise ConfigError(
                f"{self.name} has format version {version.format_version}, and kclient writes up to {NEWEST_FORMAT}. "
                "Give the job a table of its own."
            )
        schema, spec = version.schema(), version.spec()
        here, wanted = spec_texts(spec, schema), list(keys)
        if here != wanted and wanted not in ([], ["_topic"]):
            raise ConfigError(
                f"{self.name} is partitioned by {', '.join(here) or 'nothing'}, and --partition-by says "
                f"{', '.join(wanted)}. Leave --partition-by out to follow the table, or change the table's spec first."
            )
        columns = file_schema(columns, schema, self.name)
        root = _data_location(version)
        if problem := _problem_of(root):
            raise ConfigError(
                f"The data of {self.name} is at a place that cannot be used: {problem.rstrip('.')}. Correct its "
                "write.data.path, or its location."
            )
        partitioning = partitioning_of(spec, schema, columns, self.name)
        mark = table_files.table_mark(_table_id(version))
        return TableFiles(_local(root), mark, columns, partitioning, RENAMED)

    # --- what is in it

    def coordinates(self, version: Version, topics: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield topic, partition and offset of all rows of some topics, by pyiceberg's own scan. Raises SinkError."""
        with self._errors("Reading"):
            if _has_equality_deletes(version):
                raise SinkError(
                    f"{self.name} has equality deletes, as upserts of Flink write them, and pyiceberg cannot tell "
                    "which rows they leave. Jobs land there all the same. Compact the table until no such file is "
                    "left, and start again, or compare its rows in an engine that reads them.",
                    path=self.name,
                )
            selected = tuple(map(table_name, COORDINATES))
            found = version.scan(row_filter=rows_of(topics), selected_fields=selected)
            for batch in found.to_arrow_batch_reader():
                yield batch.select(selected).rename_columns(COORDINATES)

    def garbage(self, before_ms: int) -> list[Garbage]:
        """Return data files of this table's jobs that no snapshot names, of any branch.

        Raises SinkError, and ConfigError for a table whose files others may name.
        """
        version = self._there()
        self._check_owns_files(version)
        old = table_files.written_before(_local(_data_location(version)), _table_id(version), before_ms)
        # The version is read after the files were listed: what was committed meanwhile is named in it.
        named = self._named(self._there()) if old else frozenset()
        return table_files.not_named(old, named)

    def _check_owns_files(self, version: Version) -> None:
        """Raise ConfigError for a table whose files others may name, as Iceberg's own clean-up does."""
        if version.properties.get("gc.enabled", "true").lower() == "false":
            raise ConfigError(
                f"{self.name} has gc.enabled=false: other tables, or other branches of its catalog, may name its "
                "files. Nothing was removed. Use the clean-up of the catalog, or set the property to true once nothing "
                "else names them."
            )

    def remove(self, found: Iterable[Garbage]) -> None:
        """Delete files that `garbage` has returned."""
        table_files.remove(_local(_data_location(self._there())), found)

    def _there(self) -> Version:
        return load_with_retries(self)

    def _named(self, version: Version) -> frozenset[str]:
        """Return the paths of all data files that any snapshot holds: a reader may still travel back to it."""
        with self._errors("Reading"):
            manifests = {
                each.manifest_path: each
                for snapshot in version.metadata.snapshots
                for each in snapshot.manifests(version.io)
            }
            return frozenset(file.file_path for file in _files_in(version, manifests.values()))


# --- the snapshots of a table ----------------------------------------------------------------------------------------


def _ancestors(version: Version, of: int | None = None) -> Iterator[Snapshot]:
    """Yield a snapshot, by default the current one, and those before it, as far as they are kept.

    pyiceberg's own looks for each one in the list of all.
    """
    known: dict[int | None, Snapshot] = {each.snapshot_id: each for each in version.metadata.snapshots}
    snapshot = known.get(version.metadata.current_snapshot_id if of is None else of)
    while snapshot is not None:
        yield snapshot
        snapshot = known.get(snapshot.parent_snapshot_id)


def _is_in_history(version: Version, job: str, kept: _Kept) -> bool | None:
    """Return whether the last snapshot of a job is an ancestor of the current one, None if it expired."""
    oldest = None
    for oldest in _ancestors(version):
        if oldest.snapshot_id == kept.snapshot:
            return True
    if _is_cherry_picked(version, job, kept.snapshot):
        return True
    if version.metadata.snapshot_by_id(kept.snapshot) is not None or oldest is None:
        return False
    # Snapshots expire from the oldest on. One that is older and still there shows that this one was not expired.
    is_older = (oldest.sequence_number or 0, oldest.timestamp_ms) < (kept.sequence, kept.at)
    return False if is_older else None


def _changes(before: Version, files: pa.Schema, now: Version) -> Iterator[str]:
    """Yield why files with these columns, which were prepared for one version, must not go into another."""
    if now.metadata.table_uuid != before.metadata.table_uuid:
        yield "it was dropped and created again"
    if _data_location(now) != _data_location(before):
        yield f"its files go to {_data_location(now)} and no more to {_data_location(before)}"
    if now.spec().spec_id != before.spec().spec_id:
        yield "its partition spec is another one"
    if now.metadata.current_schema_id != before.metadata.current_schema_id:
        yield from column_changes(files, now.schema())


def _is_cherry_picked(version: Version, job: str, last: int) -> bool:
    """Return whether a job's last snapshot, and those of its before that are gone, were cherry-picked.

    Each such copy names its source. One alone would leave out the rows of those before it.
    """
    history = {each.snapshot_id: _noted(each, SOURCE) for each in _ancestors(version)}
    copied = {source for source in history.values() if source is not None}
    if str(last) not in copied:
        return False
    parent: int | None = last
    for each in _ancestors(version, last):
        if each.snapshot_id in history:
            return True
        source = _noted(each, SOURCE)  # a copy of a batch is one too
        if (_noted(each, f"{SUMMARY}job") == job or source) and not {str(each.snapshot_id), source} & copied:
            return False
        parent = each.parent_snapshot_id
    return parent is None  # or those before it are unknown


def _noted(snapshot: Snapshot, name: str) -> str | None:
    return None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)


def _keeps_rows(snapshot: Snapshot) -> bool:
    """Return whether a snapshot has only added rows, or has the same rows as before in other files."""
    kinds = (Operation.APPEND, Operation.REPLACE)
    return snapshot.summary is not None and snapshot.summary.operation in kinds


# --- the files of a table --------------------------------------------------------------------------------------------


def _files_in(version: Version, manifests: Iterable[ManifestFile]) -> Iterator[DataFile]:
    for each in manifests:
        for entry in each.fetch_manifest_entry(version.io, discard_deleted=True):
            yield entry.data_file


def _files_of(version: Version, content: ManifestContent) -> Iterator[DataFile]:
    """Yield the files of the current snapshot with rows, or those with deletes."""
    snapshot = version.current_snapshot()
    manifests = [] if snapshot is None else snapshot.manifests(version.io)
    return _files_in(version, (each for each in manifests if each.content == content))


def _has_equality_deletes(version: Version) -> bool:
    """Return whether rows are deleted by their values: pyiceberg scans no such table."""
    deletes = _files_of(version, ManifestContent.DELETES)
    return any(file.content == DataFileContent.EQUALITY_DELETES for file in deletes)


def _has_rows(version: Version, landed: _Landed) -> bool:
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


def _with_our_defaults(base: Version) -> Version:
    """Return a version whose transactions try once, take any partition value, and merge manifests by default.

    The table's own properties may forbid to merge.
    """
    properties = {**MERGING, **base.metadata.properties, **NO_RETRIES}
    specs = [any_value(spec) for spec in base.metadata.partition_specs]
    metadata = base.metadata.model_copy(update={"properties": properties, "partition_specs": specs})
    return Version(base.name(), metadata, base.metadata_location, base.io, base.catalog, base.config)


class _Transaction(Transaction):
    """A transaction that computes its metadata once after each change, and shares the snapshots of its table.

    pyiceberg computes them at every look, fifteen times in a commit, and copies all snapshots in depth each time. With
    1,000 snapshots that was most of a commit's time.
    """

    _computed: tuple[tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        if not self._updates:
            return self._table.metadata
        if self._computed is None or self._computed[0] is not self._updates:
            context, found = _TableMetadataUpdateContext(), self._table.metadata
            for update in self._updates:
                found = _apply_table_update(update, found, context)
            self._computed = (self._updates, found)
        return self._computed[1]

    def _stage(
        self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()
    ) -> Transaction:
        return super()._stage(tuple(map(self._in_order, updates)), requirements)

    def _in_order(self, update: TableUpdate) -> TableUpdate:
        """Give a snapshot a time after those in the table, which may be of a clock that is ahead.

        Iceberg's Java reads no table whose history goes back by more than a minute.
        """
        if not isinstance(update, AddSnapshotUpdate):
            return update
        metadata, snapshot = self._table.metadata, update.snapshot
        snapshots = [each.timestamp_ms for each in metadata.snapshot_log[-1:]]
        versions = [each.timestamp_ms for each in metadata.metadata_log[-1:]]
        newest_ms = max(metadata.last_updated_ms, *snapshots, *versions, snapshot.timestamp_ms - 1)
        later = snapshot.model_copy(update={"timestamp_ms": newest_ms + 1})
        return AddSnapshotUpdate(snapshot=later)


class _Append(_MergeAppendFiles):
    """An append that leaves manifests as they are whose partition type is lost, because a column of their spec is gone.

    pyiceberg cannot write them again. No new ones are made, so they stay few.
    """

    def _process_manifests(self, manifests: list[ManifestFile]) -> list[ManifestFile]:
        known, specs = self.schema().field_ids, self._transaction.table_metadata.partition_specs
        lost = {spec.spec_id for spec in specs if not {field.source_id for field in spec.fields} <= known}
        kept = [each for each in manifests if each.partition_spec_id in lost]
        others = [each for each in manifests if each.partition_spec_id not in lost]
        return super()._process_manifests(others) + kept


class _Growth(UpdateSchema):
    """A change of a schema that adds and widens columns. Required ones stay required; pyiceberg would relax them."""

    def make_column_optional(self, path: str | tuple[str, ...]) -> UpdateSchema:
        return self


def _summary(commit: TableCommit) -> dict[str, str]:
    """Return what a snapshot says of its batch. It is short: each commit writes that of all snapshots again."""
    batch = {f"{SUMMARY}job": commit.job, f"{SUMMARY}batch": str(commit.batch)}
    end = {tp: end for tp, end in commit.end.items() if commit.start.get(tp) != end}
    if len(end) > MOST_NAMED:
        return batch
    start = {tp: start for tp, start in commit.start.items() if tp in end}
    return {**batch, f"{SUMMARY}start": dump_offsets(start), f"{SUMMARY}end": dump_offsets(end)}


def _table_id(version: Version) -> str:
    return str(version.metadata.table_uuid)


def _data_location(version: Version) -> str:
    default = f"{version.location().rstrip('/')}/data"
    return version.properties.get("write.data.path", default).rstrip("/")


def _problem_of(location: str) -> str | None:
    """Return why kclient cannot write at a location, or why readers would not find there what it writes."""
    parts = urlsplit(location)
    if set("?#") & set(location):
        return "it has ? or #, where a path ends for readers"
    if is_remote(location):
        try:
            checked_url(location)
        except ConfigError as exc:
            return exc.text
    elif not location.startswith(("file:/", "/")) or parts.netloc:
        return f"{location} is neither the URL of a store nor file:///DIRECTORY"
    return None


def _local(location: str) -> str:
    """Return a location on this machine as a path."""
    return urlsplit(location).path if location.startswith("file:") else location


class _DataFiles:
    """The data files of one commit, as Iceberg describes them."""

    def __init__(self, version: Version) -> None:
        schema = version.schema()
        kinds = {name: schema.find_type(name) for name in schema.column_names}
        # Columns of raw bytes have no statistics: see parquet.py.
        none = {f"{METRICS}{name}": "none" for name, kind in kinds.items() if isinstance(kind, BinaryType)}
        counts = {f"{METRICS}{name}": "counts" for name, kind in kinds.items() if isinstance(kind, _TIMES)}
        self._root = _data_location(version)
        self._spec = version.spec().spec_id
        self._plan = compute_statistics_plan(schema, {**version.properties, **none})
        self._plan_without_times = compute_statistics_plan(schema, {**version.properties, **none, **counts})
        self._ids = parquet_path_to_id_mapping(schema)

    def of(self, file: WrittenFile) -> DataFile:
        """Return one file, with the statistics of its footer."""
        footer = pq.read_metadata(BytesIO(file.footer or b""))
        try:
            statistics = data_file_statistics_from_parquet_metadata(footer, self._plan, self._ids)
        except OverflowError:  # Python has no years after 9999, where a producer's wrong clock may lead
            statistics = data_file_statistics_from_parquet_metadata(
                footer, self._plan_without_times, self._ids
            )
        for bounds in statistics.column_aggregates.values():
            if isinstance(bounds.current_max, str):
                # pyiceberg cuts it and counts the last character up. U+D7FF has no next one; a bound may be larger.
                bounds.current_max = bounds.current_max.replace("\ud7ff", "\ue000")
        return DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=f"{self._root}/{file.path}",
            file_format=FileFormat.PARQUET,
            partition=Record(*file.values),
            file_size_in_bytes=file.bytes,
            sort_order_id=None,
            spec_id=self._spec,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
