"""A Delta table of the ingest job, by delta-rs: rows and offsets in one commit, without a JVM.

    txn kclient/JOB                            the number of the job's last batch
    txn kclient/JOB/version                    the table's version with that batch
    txn kclient/JOB/TOPIC/PARTITION            the next offset to read
    txn kclient/JOB/TOPIC/PARTITION/first      where the job began to read it
    txn kclient/JOB/TOPIC/PARTITION/landed     where a file of it begins: one of the last batch that had rows
    txn kclient/JOB/TOPIC/PARTITION/landed/in  the number of this batch
    txn kclient/JOB/TOPIC/id                   the mark of the topic's id; of a query's id with `(query)` as TOPIC

`txn` actions are what Delta keeps for writers like this one: each checkpoint of the log has them, and clean-up of the
log does not touch them. What delta-rs 1.6 and Spark do, and what follows for this module:

    a commit with max_commit_retries=0     is for the version after the one read, or fails: a compare-and-swap
    one with more retries                  is rebased over appends and OPTIMIZE: not used, since nothing would look
                                           whether another run of the job was among them
    a txn as high as the table's, or less  is accepted once that version was read: the rules of `tables.py` refuse it
    a handle after its own commit          stays at the version that it read: the next `load` brings it up to date
    bringing it up to date                 does not see that the table was dropped, or that another one, or a backup,
                                           is at its place: `load` looks whether the entry of the version that it has
                                           read is there still, and that one
    columns and partitions of a commit     are not compared with those of the table: `_check_fits` does that
    checkpoint and clean-up after it       may fail when the commit has succeeded: it is looked up. Clean-up lists the
                                           whole log each time: it runs with every hundredth version, as checkpoints do
    RESTORE                                leaves each txn as it is, and takes rows away: see `_check_not_restored`;
                                           where clean-up has deleted the log of it, the rows themselves are looked for
    delta.setTransactionRetentionDuration  lets Spark drop idle txn actions, and at once those without a time: such a
                                           table would forget the job, so it is refused
    S3                                     creates a version by PUT with If-None-Match; a store that ignores this header
                                           lets two writers write one version: `prepare` refuses it

Files are in directories like `_topic=orders`: most readers take the values from the log, Polars takes them from paths.
delta-rs escapes the paths for the log itself.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem, PyFileSystem

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.spark.sink import store, table_files
from kclient.spark.sink.atomic_files import make_directory, sink_errors, sync
from kclient.spark.sink.delta_errors import delta_errors
from kclient.spark.sink.delta_features import check_features
from kclient.spark.sink.delta_log import DIRECTORY, EntryMark, TransactionLog
from kclient.spark.sink.delta_partitions import (
    DeltaPartitioning,
    check_not_null,
    check_values,
    columns_of,
    key_of,
    text_of,
)
from kclient.spark.sink.delta_schema import check_rows, delta_schema, new_table
from kclient.spark.sink.delta_statistics import statistics
from kclient.spark.sink.manifest import Garbage, WrittenFile
from kclient.spark.sink.partitions import COORDINATES, PartitionKey, TableFiles, partition_key
from kclient.spark.sink.store import is_remote, store_of
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
from kclient.text import format_names
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from deltalake import DeltaTable, Transaction
    from deltalake.transaction import AddAction

log: Final = get_logger("kclient.spark")

REMOTE_OPTIONS: Final = {
    "connect_timeout": f"{store.CONNECT_SECONDS}s",
    "timeout": f"{store.REQUEST_SECONDS}s",
    "max_retries": str(store.RETRIES),
    "retry_timeout": f"{store.RETRY_SECONDS}s",
}
"""The bounds of one request to an object store, and of its repetitions: those of a `Store`."""

CLEAN_UP_EVERY: Final = 100
"""After so many versions of the table the log is cleaned up: as often as delta-rs writes a checkpoint by itself."""

MOST_ASKED: Final = 8
"""New partitions of one commit about which delta-rs is asked, too."""

_OF_PARTITION: Final = re.compile(r"/(?P<topic>[^/]+)/(?P<partition>[0-9]{1,10})(?P<first>/first)?", re.ASCII)
_OF_LANDED: Final = re.compile(r"/(?P<topic>[^/]+)/(?P<partition>[0-9]{1,10})/landed/in", re.ASCII)
_OF_TOPIC: Final = re.compile(r"/(?P<topic>[^/]+)/id", re.ASCII)
_TAKEN: Final = re.compile(r"Failed to commit transaction: \d+$|already exists", re.IGNORECASE)


class DeltaSink:
    """A Delta table at a directory, or at an `s3://`, `gs://` or `abfss://` URL. It implements `tables.LakeTable`.

    delta-rs takes credentials from the environment or the platform, as a `Store` does. `url` is without them.
    """

    def __init__(self, url: str, runtime: Runtime | None = None) -> None:
        self.url = url
        self._runtime = runtime or Runtime()
        self._compared: tuple[str, int | None] | None = None
        self._newest: tuple[int, EntryMark] | None = None
        self._used_up: DeltaTable | None = None

    @property
    def name(self) -> str:
        """The table as the user typed it."""
        return self.url

    # --- reading where a job stands

    def load(self) -> DeltaTable:
        """Return the newest version. Raises TableUnavailable; SinkError if there is no table.

        A version that was given to `try_commit` is brought up to date, and returned: to open a table anew is to read
        its log since the last checkpoint, twice.
        """
        used_up, self._used_up = self._used_up, None
        with self._errors("reading it"):
            if not self._is_still_there():
                used_up = None
                if self._newest is not None:
                    self._log.forget()
            table = self._brought_up_to_date(used_up) or self._open()
            mark = self._log.entry_mark(table.version())
            self._newest = None if mark is None else (table.version(), mark)
            return table

    def _is_still_there(self) -> bool:
        """Whether the log has the entry of the version that was read last: neither another one nor none."""
        return self._newest is not None and self._log.entry_mark(self._newest[0]) == self._newest[1]

    def _brought_up_to_date(self, used_up: DeltaTable | None) -> DeltaTable | None:
        from deltalake.exceptions import DeltaError

        if used_up is None:
            return None
        try:
            used_up.update_incremental()
        except DeltaError as exc:  # clean-up may have deleted what comes next
            log.info("%s is opened anew: %s", self.name, exc)
            return None
        return used_up

    def _open(self) -> DeltaTable:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        try:
            return DeltaTable(self.url, storage_options=storage_options(self.url))
        except TableNotFoundError as exc:
            raise SinkError(
                f"There is no table at {self.url}. It was dropped, or its directory is not mounted. Nothing was "
                "committed. Restore or mount it, and start again.",
                path=self.url,
            ) from exc

    def find(self) -> DeltaTable | None:
        """Return the newest version, None if the table is not there. Raises SinkError."""
        from deltalake.exceptions import TableNotFoundError

        try:
            return load_with_retries(self, self._runtime)
        except SinkError as exc:
            if isinstance(exc.__cause__, TableNotFoundError):
                return None
            raise

    def progress(self, version: DeltaTable, job: str) -> TableProgress | None:
        """Return where a job stands in a version, None if it has committed nothing.

        Raises SinkError if rows of the job were taken back by a RESTORE, and for a log that cannot be read.
        """
        return retried(self.name, lambda: self._progress(version, job), self._runtime)

    def _progress(self, version: DeltaTable, job: str) -> TableProgress | None:
        with self._errors("reading its log"):
            found = self._known(version)
            self._compare(version, job, found)
            if app_id(job) not in found:
                return None
            self._check_not_restored(version, job, found)
        return progress_of(job, found)

    def _compare(self, version: DeltaTable, job: str, found: Mapping[str, int]) -> None:
        """Raise ValueError if delta-rs reads another batch of the job.

        It reads its whole log for the answer, so it is asked once, and again once the log was read from another
        checkpoint: only that can lack what a version says.
        """
        here = (job, self._log.checkpoint)
        if self._compared == here:
            return
        batch = version.transaction_version(app_id(job))
        if found.get(app_id(job)) != batch:
            raise ValueError(f"delta-rs reads batch {batch} of {job}, and kclient {found.get(app_id(job))}")
        self._compared = here

    def family(self, version: DeltaTable, job: str) -> Mapping[str, TableProgress]:
        """Return a job and what landed beside it, by the log up to a version. Raises SinkError."""
        return retried(self.name, lambda: self._family(version, job), self._runtime)

    def jobs(self, version: DeltaTable) -> Collection[str]:
        """Return the names of the jobs that have landed something, by the log up to a version. Raises SinkError."""
        return retried(self.name, lambda: self._jobs(version), self._runtime)

    def _jobs(self, version: DeltaTable) -> Collection[str]:
        with self._errors("reading its log"):
            return jobs_of(self._known(version))

    def _family(self, version: DeltaTable, job: str) -> Mapping[str, TableProgress]:
        with self._errors("reading its log"):
            return family_of(job, self._known(version))

    def rows(self, version: DeltaTable) -> int | None:
        """Return how many rows are in a version, by the statistics of its files; None if they do not say it."""
        with self._errors("reading it"):
            if "deletionVectors" in (version.protocol().writer_features or ()):
                return None
            counts = pa.table(version.get_add_actions()).column("num_records")
        return None if counts.null_count else int(pc.sum(counts).as_py() or 0)

    # --- committing

    def try_commit(self, base: DeltaTable, commit: TableCommit) -> None:
        """Add the files and the job's progress to the version after `base`.

        Raises TableConflict if that exists, TableUnavailable if the outcome is unknown, SinkError for a table that
        does not fit the files any more.
        """
        from deltalake import CommitProperties, PostCommitHookProperties

        self._used_up = base
        self._check_fits(base, commit.files)
        number, keys = base.version() + 1, base.metadata().partition_columns
        cleans_up = None if number % CLEAN_UP_EVERY == 0 else False  # None: if the table says so
        with self._errors("committing into it"), _conflicts(number):
            before = progress_of(commit.job, self._known(base))
            _check_new(base, commit, before)
            properties = CommitProperties(
                max_commit_retries=0,  # the version after `base`, or none
                app_transactions=_transactions(before, commit, number),
                custom_metadata={"kclient.job": commit.job, "kclient.batch": commit.batch},
            )
            base.create_write_transaction(
                [self._add(file, keys) for file in commit.files],
                mode="append",
                schema=base.schema(),
                partition_by=keys,
                commit_properties=properties,
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=cleans_up),
            )
        self._sync(number)

    # --- making the table

    def check(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> None:
        """Check that rows with these columns can land there; write nothing. Raises ConfigError, SinkError."""
        version = self.find()
        if version is None:
            new_table(self.name, columns, keys)
        else:
            self._files(version, columns, keys, may_add=evolves)
            delta_schema(self.name, pa.schema(_missing(version, columns)))

    def prepare(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> TableFiles:
        """Create the table, or add the columns that it lacks; return how its files are written.

        Raises ConfigError, SinkError; the latter also for an object store that ignores conditional writes.
        """
        version = self.find()
        if version is None:
            if is_remote(self.url):
                store_of(self.url).check_conditional_writes()
            retried(self.name, lambda: self._create(columns, keys), self._runtime)
        elif evolves:
            self._files(
                version, columns, keys, may_add=True
            )  # before a column is added to a table that does not fit
            retried(self.name, lambda: self._add_columns(self.load(), columns), self._runtime)
        return self._files(load_with_retries(self, self._runtime), columns, keys)

    def _create(self, columns: pa.Schema, keys: Sequence[str]) -> None:
        from deltalake import DeltaTable

        schema, partitions = new_table(self.name, columns, keys)
        if not is_remote(self.url):
            with sink_errors(Path(self.url)):
                make_directory(Path(self.url))
        with self._errors("creating it"):
            table = DeltaTable.create(
                self.url,
                schema=schema,
                mode="ignore",  # another job may have been faster
                partition_by=partitions,
                storage_options=storage_options(self.url),
            )
        self._sync(table.version(), Path(self.url))

    def _add_columns(self, version: DeltaTable, columns: pa.Schema) -> None:
        from deltalake import CommitProperties

        more, number = pa.schema(_missing(version, columns)), version.version() + 1
        if not more:
            return
        with self._errors("adding columns to it"), _conflicts(number):
            version.alter.add_columns(
                delta_schema(self.name, more).fields,
                commit_properties=CommitProperties(max_commit_retries=0),
            )
        self._sync(number)

    def _files(
        self, version: DeltaTable, rows: pa.Schema, wanted: Sequence[str], *, may_add: bool = False
    ) -> TableFiles:
        """Return how rows are written for a version. Raises ConfigError where the two do not fit together."""
        check_features(self.name, version)
        table = pa.schema(version.schema().to_arrow())
        partitions = version.metadata().partition_columns
        keys = {column: key_of(table.field(column), rows) for column in partitions}
        self._check_keys(keys, wanted)
        check_rows(self.name, table, rows, keys, may_add=may_add)
        check_values(self.name, keys, version.partitions() if partitions else [])
        schema = pa.schema(
            [table.field(name).remove_metadata() for name in table.names if name in rows.names]
        )
        mark = table_files.table_mark(str(version.metadata().id))
        return TableFiles(self.url, mark, schema, DeltaPartitioning(tuple(filter(None, keys.values()))))

    def _check_keys(self, keys: Mapping[str, PartitionKey | None], wanted: Sequence[str]) -> None:
        """Refuse other keys than those of the table; the default, and no keys, follow it. Raises ConfigError."""
        given = [partition_key(text) for text in wanted]
        if list(keys.values()) != given and given not in ([], [partition_key("topic")]):
            raise ConfigError(
                f"{self.name} is partitioned by {', '.join(keys) or 'nothing'}, and --partition-by says "
                f"{', '.join(wanted)}. Leave --partition-by out to follow the table, or give another table."
            )

    # --- what is in it

    def coordinates(self, version: DeltaTable, topics: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield topic, partition and offset of all rows of some topics, by delta-rs' own scan. Raises SinkError."""
        try:
            with self._errors("reading it"):
                for batch in version.scan(list(COORDINATES), rows_of(topics)):
                    yield pa.record_batch(batch)
        except TableUnavailable as exc:
            raise SinkError(
                f"{self.name}: {exc}. Start again when its store answers.", path=self.url
            ) from exc

    def garbage(self, before_ms: int) -> list[Garbage]:
        """Return files of this table's jobs that no action in the log names, older than a time. Raises SinkError."""
        version = load_with_retries(self, self._runtime)
        old = table_files.written_before(self.url, str(version.metadata().id), before_ms)
        # Read after the listing: a file that is committed meanwhile is in the log then.
        named = retried(self.name, self._named_files, self._runtime) if old else set()
        return table_files.not_named(old, named)

    def remove(self, found: Iterable[Garbage]) -> None:
        """Delete files that `garbage` has returned. Raises SinkError."""
        table_files.remove(self.url, found)

    def _named_files(self) -> set[str]:
        with self._errors("reading its log"):
            return self._log.named_files()

    # --- checks

    def _check_fits(self, base: DeltaTable, files: Sequence[WrittenFile]) -> None:
        """Refuse files that do not fit the table any more: it was changed while they were written. Raises SinkError."""
        check_features(self.name, base)
        if not files or files[0].footer is None:
            return
        written = pq.read_metadata(BytesIO(files[0].footer)).schema.to_arrow_schema()
        table, partitions = pa.schema(base.schema().to_arrow()), base.metadata().partition_columns
        changed = [
            name for name in written.names
            if name not in table.names or name in partitions or table.field(name).type != written.field(name).type
        ]  # fmt: skip
        if changed or columns_of(files[0].path) != partitions:
            raise SinkError(
                f"{self.name} was changed while files were written for it: "
                f"{format_names(changed) or 'its partitions'} differ. Nothing of this batch was committed. Start "
                "again: the batch is then written for the table as it is.",
                path=self.url,
            )
        check_not_null(self.name, [table.field(name) for name in partitions], files)

    def _check_not_restored(self, version: DeltaTable, job: str, transactions: Mapping[str, int]) -> None:
        """Refuse a table from which a RESTORE took rows of the job: its offsets are still there. Raises SinkError."""
        committed = transactions[f"{app_id(job)}/version"]
        since = self._log.since(committed, version.version())
        number, there = since.holds(committed)
        landed, is_cleaned_up = last_landed(job, transactions), number == since.first_missing
        if there is None:
            there = is_cleaned_up if landed is None else self._has_rows(version, landed)
        if there:
            return
        if is_cleaned_up and landed is not None:
            self._refuse_lost_rows(job, landed, deletes=since.deletes)
            return
        raise SinkError(
            f"{self.name} was restored, by its version {number}, to what it was before the last batch of the job "
            f"{job}: rows of it are gone, but not its offsets. To get them back, RESTORE the table to version "
            f"{number - 1}. To land them again, give a new checkpoint, another --job, and where to --start.",
            path=self.url,
        )

    def _refuse_lost_rows(self, job: str, landed: Landed, *, deletes: bool) -> None:
        """Refuse a table whose log is cleaned up, unless rows were deleted since. Raises SinkError."""
        offsets = f"offsets {landed.start} to {landed.end} of {landed.tp}"
        gone = f"{self.name} has no rows of the job {job} from the {offsets}"
        if deletes:
            log.warning(
                "%s, and no log of that time. Rows were deleted since, so the job goes on. If the table was restored "
                "too, give another --job, and --start",
                gone,
            )
            return
        raise SinkError(
            f"{gone}, which were its last. The log of that time is cleaned up, and the rest of it deletes no rows: the "
            "table was restored to a version before them. Going on would leave them out. Land them again with a new "
            "checkpoint, another --job and where to --start, or give --start after them to do without them.",
            path=self.url,
        )

    def _has_rows(self, version: DeltaTable, landed: Landed) -> bool:
        where = f"{rows_of([landed.tp.topic])} AND _partition = {landed.tp.partition}"
        found = version.scan(["_offset"], f"{where} AND _offset >= {landed.start} AND _offset < {landed.end}")
        return any(len(pa.record_batch(batch)) for batch in found)

    # --- how

    @cached_property
    def _listing(self) -> FileSystem:
        """The files of the table's directory, by delta-rs, so that there is one set of credentials."""
        from deltalake.fs import DeltaStorageHandler

        return PyFileSystem(DeltaStorageHandler(self.url, storage_options(self.url)))

    @cached_property
    def _log(self) -> TransactionLog:
        return TransactionLog(self._listing)

    def _known(self, version: DeltaTable) -> Mapping[str, int]:
        """Return the `txn` actions that hold in a version."""
        return self._log.transactions(version.version(), str(version.metadata().id))

    def _add(self, file: WrittenFile, keys: Sequence[str]) -> AddAction:
        from deltalake.transaction import AddAction

        return AddAction(
            path=file.path,
            size=file.bytes,
            partition_values=dict(zip(keys, map(text_of, file.values), strict=True)),
            modification_time=self._runtime.wall_ms(),
            data_change=True,
            stats=json.dumps({"numRecords": file.rows}) if file.footer is None else statistics(file.footer),
        )

    def _sync(self, version: int, *more: Path) -> None:
        """Put a version on the disk, where the table is on one: a checkpoint says next that its batch is done.

        `more` are directories to which its log was added.
        """
        if not is_remote(self.url):
            path = Path(self.url) / DIRECTORY / f"{version:020d}.json"
            with sink_errors(path):
                for place in (path, path.parent, *more):
                    sync(place)

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return delta_errors(self.url, doing)


# --- what is written into the log ------------------------------------------------------------------------------------


def app_id(job: str, tp: TopicPartition | None = None) -> str:
    """Return the name under which Delta keeps a number of a job, or of one of its partitions."""
    name = f"kclient/{quote(job, safe='')}"  # no slash, so that no job has the names of another
    return name if tp is None else f"{name}/{tp.topic}/{tp.partition}"


def _transactions(before: TableProgress | None, commit: TableCommit, version: int) -> list[Transaction]:
    """Return the job's `txn` actions that a commit changes."""
    from deltalake import Transaction

    now, job = next_progress(before, commit), commit.job
    before = before or TableProgress(batch=-1, offsets={})
    numbers = {app_id(job): commit.batch, f"{app_id(job)}/version": version}
    numbers |= {app_id(job, tp): end for tp, end in now.offsets.items() if before.offsets.get(tp) != end}
    numbers |= {
        f"{app_id(job, tp)}/first": start for tp, start in now.first.items() if tp not in before.first
    }
    numbers |= _of_landed(commit)
    numbers |= {
        f"{app_id(job)}/{topic}/id": mark
        for topic, mark in now.topics.items()
        if before.topics.get(topic) != mark
    }
    return [Transaction(name, number) for name, number in numbers.items()]


def _check_new(base: DeltaTable, commit: TableCommit, before: TableProgress | None) -> None:
    """Ask delta-rs, too, whether partitions are new to a job: one that was overlooked would land twice.

    It reads its log again for each name, so it is asked for a few. Raises ValueError.
    """
    new = [tp for tp in commit.end if before is not None and tp not in before.offsets]
    for tp in new[:MOST_ASKED]:
        found = base.transaction_version(app_id(commit.job, tp))
        if found is not None:
            raise ValueError(f"delta-rs reads {tp} of {commit.job} up to {found}, and kclient does not")


def _of_landed(commit: TableCommit) -> dict[str, int]:
    """Return what a commit keeps of one of its files: rows without offsets have none, and a batch without rows."""
    for file in commit.files if commit.end else ():
        if file.rows:
            name = f"{app_id(commit.job, TopicPartition(file.topic, file.partition))}/landed"
            return {name: file.start, f"{name}/in": commit.batch}
    return {}


class Landed(NamedTuple):
    """Offsets of a partition that landed in the last batch of a job that had rows."""

    tp: TopicPartition
    start: int
    end: int


def last_landed(job: str, transactions: Mapping[str, int]) -> Landed | None:
    """Return a range of the job's last rows, None if its `txn` actions name none."""
    batches = {
        TopicPartition(match["topic"], int(match["partition"])): batch
        for name, batch in transactions.items()
        if name.startswith(app_id(job)) and (match := _OF_LANDED.fullmatch(name.removeprefix(app_id(job))))
    }
    if not batches:
        return None
    tp = max(batches, key=lambda tp: batches[tp])
    name = app_id(job, tp)
    return Landed(tp, transactions[f"{name}/landed"], transactions[name])


def progress_of(job: str, transactions: Mapping[str, int]) -> TableProgress | None:
    """Return the progress that a job's `txn` actions hold, None without any."""
    if app_id(job) not in transactions:
        return None
    offsets: dict[TopicPartition, int] = {}
    first: dict[TopicPartition, int] = {}
    topics: dict[str, int] = {}
    for name, number in transactions.items():
        rest = name.removeprefix(app_id(job))
        if match := _OF_PARTITION.fullmatch(rest):
            kind = first if match["first"] else offsets
            kind[TopicPartition(match["topic"], int(match["partition"]))] = number
        elif match := _OF_TOPIC.fullmatch(rest):
            topics[match["topic"]] = number
    return TableProgress(batch=transactions[app_id(job)], offsets=offsets, first=first, topics=topics)


def jobs_of(transactions: Mapping[str, int]) -> set[str]:
    """Return the names of the jobs of which there are `txn` actions."""
    names = (app.removeprefix(app_id("")) for app in transactions if app.startswith(app_id("")))
    return {owner(unquote(name)) for name in names if "/" not in name}


def family_of(job: str, transactions: Mapping[str, int]) -> dict[str, TableProgress]:
    """Return the progress of a job and of what landed beside it, by name."""
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for app, number in transactions.items():
        if app.startswith(app_id(job)):  # or that of another job whose name begins in the same way
            found[unquote(app.split("/")[1])][app] = number
    ours = {name: progress_of(name, numbers) for name, numbers in found.items() if owner(name) == job}
    return {name: progress for name, progress in ours.items() if progress is not None}


@contextmanager
def _conflicts(version: int) -> Iterator[None]:
    """Turn delta-rs' error for a version that is there into TableConflict, and no other of its errors."""
    from deltalake.exceptions import CommitFailedError

    try:
        yield
    except CommitFailedError as exc:
        if _TAKEN.search(str(exc)) is None:
            raise
        raise TableConflict(f"version {version} is another writer's") from exc


def _missing(version: DeltaTable, columns: pa.Schema) -> list[pa.Field]:
    """Return the columns of rows that a table lacks, as it would get them."""
    there = {field.name for field in version.schema().fields}
    return [field.with_nullable(True) for field in columns if field.name not in there]


def storage_options(url: str) -> dict[str, str]:
    """Return the options of delta-rs for a table at `url`: bounds of its requests; credentials are the platform's."""
    if not is_remote(url):
        return {}
    return {**REMOTE_OPTIONS, **({"allow_http": "true"} if store.is_plain_endpoint(url) else {})}
