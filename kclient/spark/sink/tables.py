"""What the table formats share: where a job stands in a table, and how a batch of files becomes part of it, once.

Rows and offsets go into the table in one atomic commit, so the table alone says where a job goes on. `commit` is the
same for every format; a format implements `Table`, whose `try_commit` is one compare-and-swap on one version:

    load      → the newest version, and in it the job's progress
    the progress is this batch with this end    → it was committed: an answer was lost, or a run before did it
    the progress is not where the batch starts  → SinkError: another run of the job has gone on, so this one must not
    the batch ends before the progress          → SinkError: the progress never goes back
    another part of its family has the offsets  → SinkError: a backfill and its job never land the same records
    its files are days old                      → SinkError: they may have been removed as garbage
    try_commit on the version that was read     → committed
        another writer was faster               → load again
        no answer, or one of a failing service  → the outcome is unknown: load again, look, and only then try again

A commit that was delayed on its way can do no harm later: it names the version that it was tried on. Pure of Spark and
of every table library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import attrs

from kclient.errors import SinkError
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.runtime import Runtime
from kclient.spark.offsets import MAX_OFFSET, dump_offsets, parse_offsets
from kclient.spark.sink.manifest import Garbage, WrittenFile
from kclient.spark.sink.partitions import TableFiles
from kclient.text import format_names
from kclient.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

log: Final = get_logger("kclient.spark")

Offsets = Mapping[TopicPartition, int]
T = TypeVar("T")
V = TypeVar("V")

BESIDE: Final = "/"
"""Between the name of a job and that of what lands beside it, a backfill for example; no job's own name has it."""

QUERY: Final = "(query)"
"""What stands in place of a topic for the id of a query of Spark: no topic can have this name."""

COMMIT_TRIES: Final = 20
"""How often a commit is tried, whatever ended the tries before. With the pauses between them that is about two minutes,
and the time that the table's own requests take."""

GARBAGE_AGE_MS: Final = 72 * 3_600_000
"""How old a file is before `gc` takes it for garbage, as Iceberg's own remove_orphan_files: writers hold no lock."""

LONGEST_BATCH_MS: Final = 48 * 3_600_000
"""How old the files of a batch may be when it is committed: a process that slept for days may name removed ones."""

LOAD_TRIES: Final = 8
"""How often a table is read: with the pauses about twelve seconds, in which a catalog may restart."""
FIRST_PAUSE_MS: Final = 100
LONGEST_PAUSE_MS: Final = 10_000


@attrs.frozen(kw_only=True)
class TableCommit:
    """One batch of a job: the offsets that it covers, and its files. `start` names the partitions new in it too.

    `topics` are the marks of their ids (`topic_mark`), and that of a query (`QUERY`). `began_ms` is when the first of
    its files was begun, in ms since 1970, None if that is unknown.
    """

    job: str
    batch: int
    start: Offsets
    end: Offsets
    files: tuple[WrittenFile, ...] = ()
    topics: Mapping[str, int] = attrs.field(factory=dict)
    began_ms: int | None = None

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


@attrs.frozen(kw_only=True)
class TableProgress:
    """Where a job stands in a table: its last batch, the next offsets to read, and where each partition began.

    `topics` has the mark of each topic's id, for brokers that have ids: offsets of a topic that was deleted and
    recreated are those of other records.
    """

    batch: int
    offsets: Offsets
    first: Offsets = attrs.field(factory=dict)
    topics: Mapping[str, int] = attrs.field(factory=dict)

    def recreated(self, ids: Mapping[str, str]) -> list[str]:
        """Return the topics whose ids, in hexadecimal digits, are not those of the landed offsets."""
        return sorted(
            topic for topic, id_ in ids.items() if self.topics.get(topic, topic_mark(id_)) != topic_mark(id_)
        )

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps(
            {
                "batch": self.batch,
                "offsets": json.loads(dump_offsets(self.offsets)),
                "first": json.loads(dump_offsets(self.first)),
                "topics": dict(self.topics),
            }
        )

    @classmethod
    def parse(cls, text: str) -> TableProgress:
        """Parse what `dump` returned. Raises ValueError."""
        try:
            content = json.loads(text)
        except RecursionError as exc:
            raise ValueError("it is not JSON") from exc
        if not isinstance(content, dict) or not isinstance(content.get("batch"), int):
            raise ValueError("it has no batch")
        return cls(
            batch=content["batch"],
            offsets=_offsets(content, "offsets"),
            first=_offsets(content, "first"),
            topics=_marks(content.get("topics", {})),
        )


def next_progress(before: TableProgress | None, wanted: TableCommit) -> TableProgress:
    """Return the progress of a job once a batch is committed after `before`; a partition that is gone stays in it."""
    before = before or TableProgress(batch=-1, offsets={})
    return TableProgress(
        batch=wanted.batch,
        offsets={**before.offsets, **wanted.end},
        first={**wanted.start, **before.first},
        topics={**before.topics, **wanted.topics},
    )


def topic_mark(topic_id: str) -> int:
    """Return what a table keeps of a topic id (KIP-516): both halves in 63 bits, which fit a `txn` action of Delta."""
    return (int(topic_id[:16], 16) ^ int(topic_id[16:], 16)) & (2**63 - 1)


class TableConflict(Exception):
    """Another writer has committed a newer version: nothing of this try is in the table."""


class TableUnavailable(Exception):
    """The table's store or catalog gave no answer, or that of a failing service: what it did is unknown."""


class Table(Protocol[V]):
    """A table of one format. V is one version of it, as the format's library describes one.

    Both methods that ask the store or catalog have a bound on their time, and raise TableUnavailable where a later try
    may succeed, SinkError where it cannot.
    """

    @property
    def name(self) -> str:
        """The table as the user typed it."""
        ...

    def load(self) -> V:
        """Return the newest version. Raises TableUnavailable, SinkError."""
        ...

    def progress(self, version: V, job: str) -> TableProgress | None:
        """Return where a job stands in a version, None if it has committed nothing. Raises SinkError.

        An error too: a table in which rows of the job were taken back, for example by a rollback.
        """
        ...

    def family(self, version: V, job: str) -> Mapping[str, TableProgress]:
        """Return a job and all that landed beside it, by name: where each stood when it last committed.

        Also of those whose rows were taken back since. Raises SinkError.
        """
        ...

    def try_commit(self, base: V, commit: TableCommit) -> None:
        """Add the files and the job's progress to the table in one atomic step, if `base` is its newest version still.

        Raises TableConflict if it is not, TableUnavailable if the outcome is unknown, SinkError if it is refused.
        """
        ...


class LakeTable(Table[V], Protocol[V]):
    """A table that a job lands in: made or checked for the columns of its rows, and read to prove what is in it.

    `keys` are partition keys as they are typed (`partitions.py`). `evolves` lets the job add and widen columns.
    """

    def check(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> None:
        """Check that rows with these columns can land there; write nothing. Raises ConfigError, SinkError."""
        ...

    def prepare(self, columns: pa.Schema, keys: Sequence[str], *, evolves: bool) -> TableFiles:
        """Create the table if it is not there, or add the columns that it lacks; return how its files are written.

        Raises as `check` does.
        """
        ...

    def find(self) -> V | None:
        """Return the newest version, None if the table is not there. Raises SinkError."""
        ...

    def rows(self, version: V) -> int | None:
        """Return how many rows are in a version, all writers' together; None if it does not say so."""
        ...

    def jobs(self, version: V) -> Collection[str]:
        """Return the names of the jobs that have landed something by a version. Raises SinkError."""
        ...

    def coordinates(self, version: V, topics: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield `_topic`, `_partition` and `_offset` of all rows of some topics in a version. Raises SinkError."""
        ...

    def garbage(self, before_ms: int) -> list[Garbage]:
        """Return the files of jobs that no version of the table names, older than a time. Raises SinkError."""
        ...

    def remove(self, found: Iterable[Garbage]) -> None:
        """Delete files that `garbage` has returned. Raises SinkError."""
        ...


def commit(table: Table[V], wanted: TableCommit, runtime: Runtime | None = None) -> bool:
    """Make a batch part of the table. Return False if it was there already.

    Raises SinkError if another run of the job has gone on, if the table refuses it, and when the tries are used up.
    """
    runtime = runtime or Runtime()
    failure: Exception | None = None
    for _ in _tries(COMMIT_TRIES, runtime):
        try:
            base = table.load()
            found = table.progress(base, wanted.job)
            check_query(table.name, found, wanted)
            if _is_committed(found, wanted):
                return False
            _check_follows(table.name, found, wanted)
            check_not_landed(table, base, wanted)
            _check_age(table.name, wanted, runtime.wall_ms())
            table.try_commit(base, wanted)
            return True
        except TableConflict as exc:
            failure = exc
            log.info("another writer of %s was faster; batch %d is tried again", table.name, wanted.batch)
        except TableUnavailable as exc:
            failure = exc
            log.warning(
                "no usable answer to the commit of batch %d into %s (%s): it is looked up, and tried again if it is "
                "not there",
                wanted.batch,
                table.name,
                exc,
            )
    raise SinkError(
        f"Batch {wanted.batch} could not be committed into {table.name} in {COMMIT_TRIES} tries; the last: {failure}. "
        "Either other writers are always faster, or its store or catalog does not answer. Start again later: the run "
        "looks first whether the batch is there.",
        path=table.name,
    ) from failure


def check(table: Table[V], wanted: TableCommit, runtime: Runtime | None = None) -> None:
    """Refuse a batch that `commit` would refuse now, before anything else is written of it. Raises SinkError."""
    base = load_with_retries(table, runtime)
    found = table.progress(base, wanted.job)
    check_query(table.name, found, wanted)
    if not _is_committed(found, wanted):
        _check_follows(table.name, found, wanted)
        check_not_landed(table, base, wanted)


def check_not_landed(table: Table[V], version: V, wanted: TableCommit) -> None:
    """Refuse offsets that another part of the job's family has landed, or will. Raises SinkError."""
    if not wanted.end:
        return
    for other, progress in table.family(version, owner(wanted.job)).items():
        for tp, end in wanted.end.items() if other != wanted.job else ():
            first, last = _claimed(other, progress, tp)
            if max(first, wanted.start.get(tp, end)) < min(last, end):
                until = "on" if last == MAX_OFFSET else f"to {last}"
                raise SinkError(
                    f"{table.name} has records that were to land again: {other} lands {tp} from {first} {until}. They "
                    "would count twice, so nothing was committed. Give other offsets: a backfill with --start and "
                    "--end, a new job with a --start after them.",
                    path=table.name,
                )


def owner(name: str) -> str:
    """Return the job beside which something has landed; of a job its own name."""
    return name.partition(BESIDE)[0]


def _claimed(name: str, progress: TableProgress, tp: TopicPartition) -> tuple[int, int]:
    """Return the offsets of a partition that only this job or backfill may land, from the first to before the last.

    A job goes on for ever, and reads new partitions of its topics from their beginning.
    """
    if BESIDE in name:
        return progress.first.get(tp, 0), progress.offsets.get(tp, 0)
    is_of_job = any(tp.topic == known.topic for known in progress.offsets)
    return progress.first.get(tp, 0), MAX_OFFSET if is_of_job else 0


def load_with_retries(table: Table[V], runtime: Runtime | None = None) -> V:
    """Return the newest version of a table that may not answer at first. Raises SinkError."""
    return retried(table.name, table.load, runtime)


def retried(name: str, call: Callable[[], T], runtime: Runtime | None = None) -> T:
    """Return what a call on a table returns that may be made again; it may not answer at first. Raises SinkError."""
    failure: Exception | None = None
    for _ in _tries(LOAD_TRIES, runtime or Runtime()):
        try:
            return call()
        except (TableUnavailable, TableConflict) as exc:
            failure = exc
            log.warning("%s cannot be used yet: %s", name, exc)
    raise SinkError(
        f"{name} cannot be used: {failure}. Its store or catalog did not answer {LOAD_TRIES} times. See whether both "
        "run and this machine reaches them, and start again.",
        path=name,
    ) from failure


def _tries(most: int, runtime: Runtime) -> Iterator[int]:
    """Count tries, with a pause between each two of them."""
    pauses = Backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS, runtime.rng)
    for tried in range(most):
        if tried:
            runtime.pause(pauses.next())
        yield tried


def check_query(name: str, found: TableProgress | None, wanted: TableCommit) -> None:
    """Refuse a batch of another query than that whose batches are there. Raises SinkError.

    Both count their batches from 0, so the number alone would make the rows of the one pass for those of the other.
    """
    there = {} if found is None else found.topics
    if QUERY in there and there[QUERY] != wanted.topics.get(QUERY, there[QUERY]):
        raise SinkError(
            f"Another query lands as the job {wanted.job} in {name}, or this one has a new checkpoint: its batch "
            f"{wanted.batch} is not that of the job. Nothing of it was committed. Give the query the checkpoint back, "
            "or another job name; under that it lands everything that it reads.",
            path=name,
        )


def _is_committed(found: TableProgress | None, wanted: TableCommit) -> bool:
    if found is None or found.batch != wanted.batch:
        return False
    return all(found.offsets.get(tp) == end for tp, end in wanted.end.items())


def _check_follows(name: str, found: TableProgress | None, wanted: TableCommit) -> None:
    """Refuse a batch that does not begin where the job stands in the table. Raises SinkError."""
    if found is None:
        if wanted.batch == 0:
            return
        raise SinkError(
            f"{name} knows nothing of the job {wanted.job}, whose batch {wanted.batch} was to follow on others. The "
            "table was dropped, emptied or replaced since this run began. Nothing was committed. Restore the table, or "
            "start again with a new checkpoint and another --job to land everything again.",
            path=name,
        )
    moved = [str(tp) for tp, start in wanted.start.items() if found.offsets.get(tp, start) != start]
    if found.batch + 1 == wanted.batch and not moved:
        _check_goes_on(name, found, wanted)
        return
    raise SinkError(
        f"Another run of the job {wanted.job} has gone on in {name}: its batch {found.batch} is there, and this run's "
        f"batch {wanted.batch} does not follow on it"
        + (f" ({format_names(moved)})" if moved else "")
        + ". Nothing of this batch was committed, and no row counts twice. Two runs have the same job name, or this "
        "one was taken for dead and replaced. Stop one of them, or give each a --job of its own.",
        path=name,
    )


def _check_goes_on(name: str, found: TableProgress, wanted: TableCommit) -> None:
    """Refuse a batch that ends before it begins: the progress would go back, and rows land twice. Raises SinkError."""
    back = [str(tp) for tp, end in wanted.end.items() if end < found.offsets.get(tp, end)]
    if not back:
        return
    raise SinkError(
        f"Batch {wanted.batch} of the job {wanted.job} would end before it begins ({format_names(back)}): a run of "
        f"before {name} was put back to a copy, or with another checkpoint, has written where it ends. Nothing of it "
        "was committed, and no row counts twice. Start again: the job goes on where the table stands.",
        path=name,
    )


def _check_age(name: str, wanted: TableCommit, now_ms: int) -> None:
    """Refuse files so old that `gc` may have removed them: the table would name what is not there. Raises SinkError."""
    if wanted.began_ms is None or now_ms - wanted.began_ms <= LONGEST_BATCH_MS:
        return
    hours = (now_ms - wanted.began_ms) // 3_600_000
    raise SinkError(
        f"The files of batch {wanted.batch} of the job {wanted.job} are {hours} hours old: this "
        f"run stood still, or its clock was set. Nothing was committed into {name}, because files without a commit may "
        "be removed as garbage meanwhile. Start again: the batch is written again.",
        path=name,
    )


def rows_of(topics: Iterable[str]) -> str:
    """Return the filter of the rows of topics, as pyiceberg and delta-rs parse it. Kafka's names have no quotes."""
    names = ", ".join(f"'{topic}'" for topic in sorted(topics))
    return f"_topic IN ({names})"


def default_job(cluster_id: str | None, topics: Iterable[str], sink: str) -> str:
    """Return the name of a job that was given none: the same for the same cluster, topics and sink.

    A run whose checkpoint was lost so finds its place in the table.
    """
    described = json.dumps([cluster_id, sorted(topics), sink])
    return f"kclient-{hashlib.sha256(described.encode()).hexdigest()[:16]}"


def _marks(found: Any) -> dict[str, int]:
    if not isinstance(found, dict) or not all(isinstance(mark, int) for mark in found.values()):
        raise ValueError(f"its topics cannot be {found!r}")
    return found


def _offsets(content: Mapping[str, Any], name: str) -> Offsets:
    found = content.get(name)
    return parse_offsets(json.dumps(found)) if found else {}
