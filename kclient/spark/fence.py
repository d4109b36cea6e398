"""A fence between runs of a job on Spark: tasks of a run that was killed give no file its name.

    run      begin_run(directories)      a new token in `_manifest/.run` of each: from now on only this run counts
    task     with current_run(…):        holds the token's file shared while hidden files get their names

The driver's lock ends with the driver, but its tasks may live on: they learn of its death when they answer. By then the
next run may have written the same names with another schema. The lock on the token's file orders the two: the new run
waits until a task that is renaming has finished, and a task that comes later finds another token. Pure of pyspark.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from kclient.errors import SinkError
from kclient.runtime import Runtime
from kclient.spark.durable import make_directory, told, wait_for_lock

NAME: Final = ".run"
TOKEN_BYTES: Final = 16


def begin_run(directories: Sequence[Path], runtime: Runtime | None = None) -> str:
    """Fence off all earlier runs of the sinks with these manifests. Returns the new token. Raises SinkError."""
    token = (runtime or Runtime()).random_bytes(TOKEN_BYTES).hex()
    for directory in directories:
        _write_token(directory, token)
    return token


@contextmanager
def current_run(directories: Sequence[Path], token: str) -> Iterator[None]:
    """Let no new run begin inside of the block. Raises SinkError if one has begun already."""
    with ExitStack() as held:
        for directory in directories:
            held.enter_context(_token_held(directory, token))
        yield


def _write_token(directory: Path, token: str) -> None:
    path = directory / NAME
    with told(path):
        make_directory(directory)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        if not wait_for_lock(descriptor, path, fcntl.LOCK_EX):
            raise SinkError(
                f"{directory} is in use: a task of an earlier run is giving its files their names and does not get "
                "on. It may be stopped, or its disk hangs. Wait until it has ended, or end it, and start again.",
                path=str(directory),
            )
        with told(path):
            # In place, because tasks hold locks on this very file. A crash leaves a token that belongs to no run.
            os.ftruncate(descriptor, 0)
            os.write(descriptor, token.encode())
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _token_held(directory: Path, token: str) -> Iterator[None]:
    path = directory / NAME
    with told(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if not wait_for_lock(descriptor, path, fcntl.LOCK_SH) or os.read(descriptor, 64) != token.encode():
            raise SinkError(
                f"A newer run owns {directory}: this task belongs to a run that was killed. Its files were discarded, "
                "and the newer run writes the same records. There is nothing to do.",
                path=str(directory),
            )
        yield
    finally:
        os.close(descriptor)
