"""A few worker processes that write ranges, for the engine without Spark.

    parent   sends a range to an idle worker, receives the result
    worker   receives a range → write_range → sends the files, or the error; ends when the parent is gone

A worker keeps the parent's locks as long as it lives. So if only the parent is killed, no second run can
start and count files that a worker of the first one is still writing.

A worker that dies is replaced and its range tried again, as Spark does with a task; an error that it reports ends the
batch. Workers are fresh interpreters, so they inherit no loop, no thread and no lock of the parent.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Sequence
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
class WorkerProcess:
    """A worker process, and the range that it is writing."""

    process: subprocess.Popen[bytes]
    pipe: Connection
    lifeline: Connection
    index: int | None = None

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
        """Close the pipe and wait for the process; kill it if it does not end in time."""
        self.pipe.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.lifeline.close()


@attrs.define(eq=False)
class BatchWork:
    """The ranges of one batch, the indexes of those that wait, and the results."""

    ranges: Sequence[OffsetRange]
    options: SourceOptions
    target: DirectTarget
    waiting: deque[int]
    attempts: Counter[int] = attrs.field(factory=Counter)
    results: dict[int, WrittenRange] = attrs.field(factory=dict)


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
        """Give each idle worker a range, and return. `finish` does the rest; pass it every work, one after another."""
        work = BatchWork(ranges, options, target, deque(range(len(ranges))))
        self._hand_out(work)
        return work

    def finish(self, work: BatchWork) -> list[WrittenRange]:
        """Write what is left of a work; the results are in the order of its ranges. Raises as `write_range` does."""
        if self._size == 1:
            return [write_range(wanted, work.options, work.target) for wanted in work.ranges]
        while len(work.results) < len(work.ranges):
            for worker in self._ready():
                self._receive(worker, work)
            self._hand_out(work)
        return [work.results[index] for index in range(len(work.ranges))]

    def close(self) -> None:
        """End the workers; what they were writing stays hidden or is not counted."""
        for worker in self._workers:
            if worker.index is not None:
                worker.process.kill()
            worker.end()
        self._workers.clear()

    def _hand_out(self, work: BatchWork) -> None:
        while self._size > 1 and work.waiting and (worker := self._idle()) is not None:
            self._send(worker, work)

    def _idle(self) -> WorkerProcess | None:
        for worker in self._workers:
            if worker.index is None:
                return worker
        if len(self._workers) == self._size:
            return None
        self.start(len(self._workers) + 1)
        return self._workers[-1]

    def _send(self, worker: WorkerProcess, work: BatchWork) -> None:
        worker.index = work.waiting.popleft()
        work.attempts[worker.index] += 1
        with suppress(BrokenPipeError, ConnectionResetError):  # it died: `_receive` sees it
            worker.pipe.send((work.ranges[worker.index], work.options, work.target))

    def _ready(self) -> list[WorkerProcess]:
        pipes = wait([worker.pipe for worker in self._workers if worker.index is not None])
        return [worker for worker in self._workers if worker.pipe in pipes]

    def _receive(self, worker: WorkerProcess, work: BatchWork) -> None:
        """Store the result that a worker sends, or raise its error; give the range of a dead worker to another one."""
        index = cast("int", worker.index)
        try:
            response = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._workers.remove(worker)
            worker.end()
            if work.attempts[index] >= ATTEMPTS:
                raise _workers_died(work.ranges[index], worker.process.returncode) from None
            work.waiting.appendleft(index)  # first in line: the batch waits for it
            return
        worker.index = None
        if isinstance(response, BaseException):
            raise response
        work.results[index] = response


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
