"""Direct Parquet: a task writes what it reads of one range by itself, so that no row crosses to a JVM.

    read (Arrow batches) → decode → bad records apart → by date → row groups → hidden files → fsync → names

A file's name is a function of the range: the same range, written again, gives the same names. Nothing counts before a
manifest names it (`manifest.py`), so a crash anywhere in here leaves nothing that a reader would see. Pure of pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import attrs
import pyarrow as pa

from kclient.runtime import Runtime
from kclient.spark import landing
from kclient.spark.fence import begin_run, current_run
from kclient.spark.landing import Layout
from kclient.spark.manifest import DIRECTORY, Written
from kclient.spark.options import SourceOptions
from kclient.spark.plan import OffsetRange
from kclient.spark.range_files import RangeFiles, by_date

T = TypeVar("T")
Clock = Callable[[], float]

BATCH_ROWS: Final = 40_960
BATCH_BYTES: Final = 16_777_216
"""Larger batches than Spark's rows like: here they become row groups and cross no socket."""


@attrs.frozen(kw_only=True)
class DirectTarget:
    """Where a range lands and how. It pickles. `dead` is the directory of dead letters, None where there are none.

    `suffix` ends the names of files whose range has files of another kind already. `rows_per_file` is how many records
    a file should have, None where nobody cares. `run` is the token of the run whose tasks may give files their names
    (`fence.py`), None where the writer's process holds the sink's lock.
    """

    root: str
    layout: Layout = attrs.field(factory=Layout)
    codec: str = "zstd"
    by_date: bool = False
    dead: str | None = None
    suffix: str = ""
    rows_per_file: int | None = None
    run: str | None = None

    def of_batch(self, batch: int) -> DirectTarget:
        """The same for the rows of one batch."""
        return attrs.evolve(self, layout=attrs.evolve(self.layout, batch=batch))

    def of_new_run(self) -> DirectTarget:
        """The same for tasks in processes that do not hold the sink's lock; fences off those of earlier runs."""
        return attrs.evolve(self, run=begin_run(self._manifests))

    def publishing(self) -> AbstractContextManager[None]:
        """Held while files get their names. Raises SinkError for a task of an earlier run."""
        return nullcontext() if self.run is None else current_run(self._manifests, self.run)

    @property
    def _manifests(self) -> list[Path]:
        return [Path(root) / DIRECTORY for root in (self.root, self.dead) if root is not None]


@attrs.frozen(kw_only=True)
class RangeWritten:
    """The files of one range, how many bad values became null, and the milliseconds that went into its parts."""

    range: OffsetRange
    files: tuple[Written, ...] = ()
    dead_letters: tuple[Written, ...] = ()
    nulled: int = 0
    fetch_ms: int = 0
    decode_ms: int = 0
    write_ms: int = 0


def write_range(wanted: OffsetRange, options: SourceOptions, target: DirectTarget) -> RangeWritten:
    """Read one range and write its files. A range without visible records gives none.

    Raises SinkError, DecodeError, and what reading a range raises.
    """
    from kclient.spark.worker import read_range

    options = attrs.evolve(options, batch_rows=BATCH_ROWS, batch_bytes=BATCH_BYTES)
    read = cast("Generator[pa.RecordBatch]", read_range(wanted, options, target.layout.read()))
    with closing(read) as batches:  # a failure here must end the fetch in flight too
        return write_batches(wanted, batches, target)


def write_batches(
    wanted: OffsetRange, batches: Iterable[pa.RecordBatch], target: DirectTarget, clock: Clock | None = None
) -> RangeWritten:
    """Write what is read of a range: Arrow batches of `target.layout.read()`. Raises as `write_range` does."""
    task = _Task(wanted, target, clock or Runtime().wall_clock)
    try:
        for batch in task.timed("fetch", iter(batches)):
            for piece in target.layout.pieces(batch):
                task.take(piece)
        return task.finish()
    except BaseException:
        task.discard()
        raise


class _Task:
    """One range on its way into its files, and where the time goes."""

    def __init__(self, wanted: OffsetRange, target: DirectTarget, clock: Clock) -> None:
        self._wanted = wanted
        self._target = target
        self._clock = clock
        self._files = RangeFiles(wanted, target.codec, target.suffix)
        self._nulled = 0
        self._spent = dict.fromkeys(("fetch", "decode", "write"), 0.0)

    def take(self, raw: pa.RecordBatch) -> None:
        """Write the records of one batch."""
        tp, layout = self._wanted, self._target.layout
        batch = raw if layout.decoder is None else self._measured("decode", layout.decode, raw)
        dead = landing.bad(batch)
        if self._target.dead is None:
            self._nulled += len(dead)
        elif len(dead):
            rows = layout.dead(tp.topic, tp.partition, raw, batch)
            self._measured("write", self._files.add, self._target.dead, None, rows)
            batch = landing.good(batch)
        self._measured("write", self._write, batch)

    def finish(self) -> RangeWritten:
        """Close and name every file."""
        self._measured("write", self._publish)
        spent = {f"{name}_ms": int(seconds * 1000) for name, seconds in self._spent.items()}
        return RangeWritten(
            range=self._wanted,
            files=self._files.written(self._target.root),
            dead_letters=self._files.written(self._target.dead),
            nulled=self._nulled,
            **spent,
        )

    def _publish(self) -> None:
        self._files.finish()
        with self._target.publishing():
            self._files.publish()

    def discard(self) -> None:
        """Take the hidden files away."""
        self._files.discard()

    def timed(self, name: str, items: Iterator[T]) -> Iterator[T]:
        """The items, with the time that each takes counted."""
        while (item := self._measured(name, next, items, None)) is not None:
            yield item

    def _write(self, batch: pa.RecordBatch) -> None:
        target, tp = self._target, self._wanted
        for date, rows in by_date(batch) if target.by_date else [(None, batch)]:
            if len(rows):
                self._files.add(target.root, date, target.layout.landed(tp.topic, tp.partition, rows))

    def _measured(self, name: str, step: Callable[..., T], *args: Any) -> T:
        began = self._clock()
        try:
            return step(*args)
        finally:
            self._spent[name] += max(0.0, self._clock() - began)
