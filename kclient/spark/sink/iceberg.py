"""An Iceberg table that a job lands in, by pyiceberg: one commit adds a batch's files and the job's progress.

    table property    kclient.job.<job>        {"batch": 7, "offsets": …, "first": …, "snapshot": …, "sequence": …,
                                               "at": …, "landed": …}
    snapshot summary  kclient.job, .batch, .start, .end         the batch, and the partitions that moved in it, if they
                                                                are few; while the snapshot is kept. For people, and to
                                                                notice a property that somebody removed

Whether the rows of that batch are still there: `iceberg_history.py`. How a commit is made: `iceberg_commit.py`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError, ResolveError, ValidationError
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table as Version
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertCurrentSchemaId,
)

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.spark.sink import table_files
from kclient.spark.sink.iceberg_catalog import TableName, open_catalog, table_errors
from kclient.spark.sink.iceberg_commit import (
    DataFiles,
    LandingAppend,
    LandingTransaction,
    SchemaGrowth,
    changes_between,
    summary_of,
    with_our_defaults,
)
from kclient.spark.sink.iceberg_history import (
    SUMMARY,
    KeptProgress,
    LandedFile,
    ancestors,
    files_in,
    files_of,
    has_equality_deletes,
    has_rows,
    is_in_history,
    keeps_rows,
    noted,
)
from kclient.spark.sink.iceberg_io import data_location, is_stored, problem_of
from kclient.spark.sink.iceberg_schema import (
    RENAMED,
    check_case,
    file_schema,
    partitioning_of,
    spec_of,
    spec_texts,
    table_columns,
    table_keys,
    table_name,
    table_schema,
)
from kclient.spark.sink.manifest import Garbage
from kclient.spark.sink.partitions import COORDINATES, TableFiles
from kclient.spark.sink.store import ObjectMissing, is_remote, local_path, lost
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
GONE: Final = (FileNotFoundError, ObjectMissing)
"""What reading a file raises that is not there: of pyiceberg's own file systems, and of a store."""

NEWEST_FORMAT: Final = 2


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
        is_there = is_in_history(version, job, kept)
        if is_there is False or (is_there is None and self._lost_rows(version, job, kept)):
            raise self._rolled_back(job, kept.progress, kept.snapshot)
        return kept.progress

    def _lost_rows(self, version: Version, job: str, kept: KeptProgress) -> bool:
        """Return whether rows of the last batch are gone, although nothing that is left has deleted rows."""
        if kept.landed is None:
            return False
        with self._errors("Reading"):
            files = files_of(version, ManifestContent.DATA)
            if any(table_files.name_of(file.file_path) == kept.landed.file for file in files):
                return False
            has_deletes = has_equality_deletes(version)
            if not has_deletes and has_rows(version, kept.landed):
                return False
        if not has_deletes and all(map(keeps_rows, ancestors(version))):
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
        ours = [name for name in self._names(version) if owner(name) == job]
        return {name: self._kept(name, version.properties[PROPERTY + name]).progress for name in ours}

    def jobs(self, version: Version) -> Collection[str]:
        """Return the names of the jobs that have landed something, by the properties of a version."""
        return {owner(name) for name in self._names(version)}

    def _names(self, version: Version) -> list[str]:
        return [key.removeprefix(PROPERTY) for key in version.properties if key.startswith(PROPERTY)]

    def _kept(self, job: str, text: str) -> KeptProgress:
        """Parse the property of a job. Raises SinkError."""
        try:
            progress, content = TableProgress.parse(text), json.loads(text)
            landed = content.get("landed")
            return KeptProgress(
                progress=progress,
                snapshot=int(content["snapshot"]),
                sequence=int(content["sequence"]),
                at=int(content.get("at", 0)),
                landed=None if landed is None else LandedFile(*landed),
            )
        except (KeyError, TypeError, ValueError) as exc:
            raise SinkError(
                f"The property {PROPERTY}{job} of {self.name} cannot be understood: {exc!r}. Another program changed "
                "it. Set it back from an older metadata file of the table: it says where the job stands.",
                path=self.name,
            ) from exc

    def _check_no_batches(self, job: str, version: Version) -> None:
        for snapshot in ancestors(version):
            if noted(snapshot, f"{SUMMARY}job") == job:
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
        total = noted(snapshot, "total-records")
        return None if total is None else int(total)

    # --- committing

    def try_commit(self, base: Version, commit: TableCommit) -> None:
        """Add the files and the progress in one commit. Raises as `tables.Table` says."""
        self._check_unchanged(base)
        progress = next_progress(self.progress(base, commit.job), commit)
        with self._errors("Committing into"), self._conflicts(base):
            version = with_our_defaults(base)
            added = DataFiles(version)
            transaction = LandingTransaction(version)
            # The catalog refuses the commit if the columns change from here on: then they are checked again.
            schema_id = {"current-schema-id": base.metadata.current_schema_id}
            transaction._apply((), (AssertCurrentSchemaId.model_validate(schema_id),))
            append = LandingAppend(
                Operation.APPEND, transaction, base.io, snapshot_properties=summary_of(commit)
            )
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
        changes = [] if self._prepared is None else [*changes_between(*self._prepared, base)]
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
            if is_remote(place) and not is_stored(transaction._table.io, place):
                raise lost(place)

    def _check_metadata(self, base: Version, after: Version) -> None:
        """Look for the metadata file that the catalog names since a commit. Raise SinkError if there is none."""
        place = after.metadata_location
        if is_remote(place) and not is_stored(after.io, place):
            raise SinkError(
                f"{lost(place)} The catalog names it, so nobody can read {self.name}. Once the service is repaired, "
                f"register the table with the metadata file before it: {base.metadata_location}. The batch is not in "
                "that one, and lands again.",
                path=self.name,
            )

    def _landed(self, base: Version, commit: TableCommit) -> LandedFile | None:
        """Return one file of the job's newest batch with rows, None where rows have no offsets."""
        for file in commit.files if commit.end else ():
            if file.rows:
                name = table_files.name_of(file.path)
                return LandedFile(file.topic, file.partition, file.start, file.end, name)
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

    def _growth(self, version: Version, columns: pa.Schema) -> SchemaGrowth:
        """Return what `_evolved` would do to a version. Raises ConfigError."""
        wanted = table_schema(columns)
        update = SchemaGrowth(Transaction(version, autocommit=True), name_mapping=version.name_mapping())
        try:
            grown = update.union_by_name(wanted)._apply()
        except (ResolveError, ValidationError, ValueError) as exc:
            raise ConfigError(
                f"The columns of {self.name} cannot be changed to those of the rows: {exc}. Keep the table's types in "
                "--schema, or give the job a table of its own."
            ) from exc
        check_case(grown, version.schema())
        file_schema(columns, grown, self.name)
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
        root = data_location(version)
        if problem := problem_of(root):
            raise ConfigError(
                f"The data of {self.name} is at a place that cannot be used: {problem.rstrip('.')}. Correct its "
                "write.data.path, or its location."
            )
        partitioning = partitioning_of(spec, schema, columns, self.name)
        mark = table_files.table_mark(str(version.metadata.table_uuid))
        return TableFiles(local_path(root), mark, columns, partitioning, RENAMED)

    # --- what is in it

    def coordinates(self, version: Version, topics: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield topic, partition and offset of all rows of some topics, by pyiceberg's own scan. Raises SinkError."""
        with self._errors("Reading"):
            if has_equality_deletes(version):
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
        old = table_files.written_before(
            local_path(data_location(version)), str(version.metadata.table_uuid), before_ms
        )
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
        table_files.remove(local_path(data_location(self._there())), found)

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
            return frozenset(file.file_path for file in files_in(version, manifests.values()))
