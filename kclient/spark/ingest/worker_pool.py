"""A few worker processes that write ranges, for the engine without Spark.

    parent   sends a range to an idle worker, receives the result
    worker   receives a range → write_range → sends the files, or the error; ends when the parent is gone

A worker keeps the parent's locks as long as it lives. So if only the parent is killed, no second run can
start and count files that a worker of the first one is still writing.

A worker that dies is replaced and its range tried again, as Spark does with a task; an error that it reports ends the
batch. An idle worker may have a range of the next batch before this one is whole; its error waits for that batch.
Workers are fresh interpreters, so they inherit no loop, no thread and no lock of the parent.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Final, cast

import attrs

from kclient.errors import InternalError
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange
from kclient.spark.sink.parquet import DirectTarget, WrittenRange, write_range

ATTEMPTS: Final = 4
END_SECONDS: Final = 5.0


@attrs.define(eq=False)
class BatchWork:
    """The ranges of one batch, the indexes of those that wait, the results, and the first error of a worker."""

    ranges: Sequence[OffsetRange]
    options: SourceOptions
    target: DirectTarget
    waiting: deque[int]
    attempts: Counter[int] = attrs.field(factory=Counter)
    results: dict[int, WrittenRange] = attrs.field(factory=dict)
    error: BaseException | None = None


@attrs.frozen
class WorkerTask:
    """One range of a batch, given to a worker."""

    work: BatchWork
    index: int

    @property
    def range(self) -> OffsetRange:
        return self.work.ranges[self.index]


@attrs.define(eq=False)
class WorkerProcess:
    """A worker process, and the task that it has."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    lifeline: Connection
    task: WorkerTask | None = None

    @classmethod
    def start(cls, locks: Sequence[int] = ()) -> WorkerProcess:
        """Start an interpreter with the same import path that inherits these descriptors of locks."""
        ours, theirs = Pipe()
        line, lifeline = Pipe(duplex=False)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        with theirs, line:
            ends = [theirs.fileno(), line.fileno()]
            process = subprocess.Popen(  # noqa: S603 this interpreter
                [sys.executable, "-m", "kclient.spark.ingest.worker_pool", *map(str, ends)],
                pass_fds=[*ends, *locks],
                env=environment,
                stdin=subprocess.DEVNULL,
                process_group=0,  # a terminal's Ctrl-C is for the parent, which lets the batch end
            )
        return cls(process, ours, lifeline)

    def end(self) -> None:
        """Cut the line, so that the process ends at once, and wait for it; kill it if it does not end in time."""
        self.lifeline.close()
        self.pipe.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class WorkerPool:
    """Runs `size` workers, started on first use or before. With one, the ranges are written in this process.

    `locks` are the descriptors of the locks that this process holds on what the workers write.
    """

    def __init__(self, size: int, locks: Sequence[int] = ()) -> None:
        self._size = size
        self._locks = tuple(locks)
        self._workers: list[WorkerProcess] = []

    def start(self, ranges: int) -> None:
        """Start the workers for so many ranges, which are not known yet: they import while the parent does the rest."""
        while self._size > 1 and len(self._workers) < min(self._size, ranges):
            self._workers.append(WorkerProcess.start(self._locks))

    def write(
        self, ranges: Sequence[OffsetRange], options: SourceOptions, target: DirectTarget
    ) -> list[WrittenRange]:
        """Write every range; the results are in their order. Raises as `write_range` does."""
        return self.finish(self.begin(ranges, options, target))

    def begin(self, ranges: Sequence[OffsetRange], options: SourceOptions, target: DirectTarget) -> BatchWork:
        """Give each idle worker a range, and return. `finish` does the rest."""
        work = BatchWork(ranges, options, target, deque(range(len(ranges))))
        self._hand_out(work)
        return work

    def finish(
        self, work: BatchWork, begin_next: Callable[[], BatchWork | None] | None = None
    ) -> list[WrittenRange]:
        """Write what is left of a work; the results are in the order of its ranges. Raises as `write_range` does.

        `begin_next` is called once, when a worker is idle because every range of this work is written or with a worker.
        It may begin the work that is finished after this one. A pool of one does not call it.
        """
        if self._size == 1:
            return [write_range(wanted, work.options, work.target) for wanted in work.ranges]
        following: BatchWork | None = None
        while True:
            if work.error is not None:
                raise work.error
            self._hand_out(work)
            if begin_next is not None and self._idle() is not None:
                following, begin_next = begin_next(), None
            if following is not None:
                self._hand_out(following)
            if begin_next is None and len(work.results) == len(work.ranges):
                return [work.results[index] for index in range(len(work.ranges))]
            for worker in self._ready():
                self._receive(worker)

    def close(self) -> None:
        """End the workers; what they were writing stays hidden or is not counted."""
        for worker in self._workers:
            worker.process.kill()  # also an idle one: while it imports it would not see its line cut
            worker.end()
        self._workers.clear()

    def _hand_out(self, work: BatchWork) -> None:
        if self._size == 1 or work.error is not None:
            return
        while work.waiting and (worker := self._idle()) is not None:
            self._send(worker, WorkerTask(work, work.waiting.popleft()))

    def _idle(self) -> WorkerProcess | None:
        for worker in self._workers:
            if worker.task is None:
                return worker
        if len(self._workers) == self._size:
            return None
        self.start(len(self._workers) + 1)
        return self._workers[-1]

    def _send(self, worker: WorkerProcess, task: WorkerTask) -> None:
        worker.task = task
        task.work.attempts[task.index] += 1
        with suppress(BrokenPipeError, ConnectionResetError):  # it died: `_receive` sees it
            worker.pipe.send((task.range, task.work.options, task.work.target))

    def _ready(self) -> list[WorkerProcess]:
        pipes = wait([worker.pipe for worker in self._workers if worker.task is not None])
        return [worker for worker in self._workers if worker.pipe in pipes]

    def _receive(self, worker: WorkerProcess) -> None:
        """Store the result or the error that a worker sends; give the range of a dead worker to another one."""
        task = cast("WorkerTask", worker.task)
        work = task.work
        try:
            response = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._workers.remove(worker)
            worker.end()
            if work.attempts[task.index] >= ATTEMPTS:
                work.error = work.error or _workers_died(task.range, worker.process.returncode)
            work.waiting.appendleft(task.index)  # first in line: the batch waits for it
            return
        worker.task = None
        if isinstance(response, BaseException):
            work.error = work.error or response
        else:
            work.results[task.index] = response


def _workers_died(wanted: OffsetRange, code: int) -> InternalError:
    return InternalError(
        f"{wanted.tp} from {wanted.start} to {wanted.end} ended {ATTEMPTS} worker processes, the last with {code}. "
        "The system may have had too little memory. Give a smaller --max-per-trigger or --parallelism; if that does "
        "not help, please report it."
    )


def serve(pipe: Connection) -> None:
    """Write ranges until the parent closes the pipe."""
    while True:
        try:
            wanted, options, target = pipe.recv()
        except EOFError:
            return
        try:
            response: object = write_range(wanted, options, target)
        except Exception as exc:  # noqa: BLE001 it is raised where the range was ordered
            response = exc
        with suppress(BrokenPipeError, ConnectionResetError):  # the parent is gone: `recv` sees it
            pipe.send(response)


def end_with_parent(line: Connection) -> None:
    """End the process at once when the other end of `line` closes; nothing is ever sent there."""
    # The kernel sends SIGIO when the pipe closes, so this works while the process decodes or writes, in any call.
    signal.signal(signal.SIGIO, lambda *_: os._exit(1))
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)
    if line.poll():  # it had closed before
        os._exit(1)


def main() -> None:
    """Run a worker; the arguments are the descriptors of its pipe, and of the line that ends with the parent."""
    pipe, line = (Connection(int(descriptor)) for descriptor in sys.argv[1:])
    end_with_parent(line)
    import kclient.spark.executor  # noqa: F401 what the first range needs, before it is known

    serve(pipe)


if __name__ == "__main__":
    main()
