"""Files that exist whole or not at all, also after a crash: temporary name, fsync, rename, fsync of the directory.

A reader of a directory sees the old file or the new one, never a part. Directories are locked with flock, which the
system releases when the process ends.

Tasks of a run that was killed are fenced off, so that they cannot rename their files any more:

    run      begin_run(directories)      write a new token to `_manifest/.run` of each: only this run counts from now on
    task     with current_run(…):        hold a shared lock on the token's file while hidden files get their names

The driver's lock ends with the driver, but its tasks may live on: they notice its death when they answer. By then the
next run may have written the same names with another schema. The lock on the token's file orders the two: the new run
waits until a task that is renaming has finished, and a task that comes later finds another token. Pure of pyspark.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from kclient.errors import SinkError
from kclient.runtime import Runtime

T = TypeVar("T")

TEMPORARY: Final = ".tmp"
TRIES: Final = 20
TRY_SECONDS: Final = 0.1
"""How often and how far apart a lock is tried before it counts as held by another process."""

_TEMPORARY_NAME: Final = re.compile(r"\..+\.[0-9a-f]{12}\.tmp", re.ASCII | re.DOTALL)


def temporary_name(path: Path, runtime: Runtime | None = None) -> Path:
    """Return a unique hidden name in the directory of `path`."""
    token = (runtime or Runtime()).random_bytes(6).hex()
    return path.with_name(f".{path.name}.{token}{TEMPORARY}")


def is_temporary(name: str) -> bool:
    """Return whether a file's name is one that `temporary_name` returns."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def publish(temporary: Path, path: Path) -> None:
    """Give a finished file its name, once its bytes are on the disk."""
    sync(temporary)
    os.replace(temporary, path)
    sync(path.parent)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the file with this content, replacing an older one. Makes its directory. Raises SinkError."""
    with sink_errors(path):
        make_directory(path.parent)
        temporary = temporary_name(path)
        try:
            temporary.write_bytes(content)
            publish(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def make_directory(path: Path) -> None:
    """Create the directory and its parents, and sync each entry to the disk."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync(place.parent)


def sync(path: Path) -> None:
    """Wait until what was written to a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_optional(path: Path) -> str | None:
    """Return the text of a file, None if it does not exist. Raise SinkError, and ValueError if it is not UTF-8."""
    try:
        with reading(path):
            return path.read_text(encoding="utf-8")
    except SinkError as exc:
        if isinstance(exc.__cause__, FileNotFoundError):
            return None
        raise


def read_json(path: Path, parse: Callable[[Any], T], what: str, next_step: str) -> T | None:
    """Return what `parse` makes of a JSON file, None if the file does not exist.

    Raises SinkError if it cannot be read or parsed: `what` names the file in the text, `next_step` is its advice.
    """
    try:
        text = read_optional(path)
        return None if text is None else parse(json.loads(text))
    except (KeyError, TypeError, ValueError, RecursionError) as exc:
        raise SinkError(f"{what} cannot be understood: {exc!r}. {next_step}", path=str(path)) from exc


def list_names(directory: Path) -> list[str]:
    """Return the names in a directory, none if it does not exist. Raises SinkError if it cannot be read."""
    with reading(directory):
        try:
            return os.listdir(directory)
        except FileNotFoundError:
            return []


def is_directory(path: Path) -> bool:
    """Return whether a directory exists. Raises SinkError if that cannot be checked."""
    with reading(path):
        try:
            return stat.S_ISDIR(path.stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False


@contextmanager
def sink_errors(
    path: Path,
    doing: str = "Writing below",
    advice: str = "The disk may be full, or the directory not writable. Free space or grant the permission",
    end: str = ": nothing will count twice.",
) -> Iterator[None]:
    """Turn an OSError into a SinkError with the path and advice."""
    try:
        yield
    except SinkError:
        raise
    except OSError as exc:
        raise SinkError(
            f"{doing} {path} failed: {exc.strerror or exc}. {_advice(exc, advice)}, and start again{end}",
            path=str(path),
        ) from exc


def reading(path: Path) -> AbstractContextManager[None]:
    """Turn an OSError into a SinkError with the path and advice for a file that is only read."""
    advice = "It may be another path, a share that is gone, or not readable for this user. Make it readable"
    return sink_errors(path, "Reading", advice, end=".")


def _advice(error: OSError, usual: str) -> str:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return (
            "This process, or the system, may have no more files open at once. Raise the limit (ulimit -n, or "
            "LimitNOFILE= of systemd)"
        )
    return usual


@contextmanager
def locked(path: Path, owner: str) -> Iterator[int]:
    """Lock a directory for this process; the system releases the lock when the process ends, however it ends.

    Gives the lock's descriptor: a process that inherits it holds the directory, too. Raises SinkError while another
    process holds it. Workers of a process that was killed get a moment to end.
    """
    in_use = SinkError(
        f"{path} is in use: another process works there. {owner} needs it alone, or rows would be lost or "
        "counted twice. Wait until the other one has ended, or stop it.",
        path=str(path),
    )
    with sink_errors(path):
        make_directory(path)
    with _locked_file(path / ".lock", os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX, in_use) as descriptor:
        yield descriptor


@contextmanager
def _locked_file(path: Path, flags: int, kind: int, in_use: SinkError) -> Iterator[int]:
    """Open a file and lock it (LOCK_EX or LOCK_SH). Raise `in_use` if another process keeps the lock."""
    with sink_errors(path):
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        if not wait_for_lock(descriptor, path, kind):
            raise in_use
        yield descriptor
    finally:
        os.close(descriptor)


def wait_for_lock(descriptor: int, path: Path, kind: int) -> bool:
    """Take a lock (LOCK_EX or LOCK_SH) on an open file; False if another process keeps it all the time."""
    for _ in range(TRIES):
        if _taken(descriptor, path, kind):
            return True
        Runtime().pause(TRY_SECONDS)
    return False


def _taken(descriptor: int, path: Path, kind: int) -> bool:
    with sink_errors(path):
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


# --- fencing off earlier runs ----------------------------------------------------------------------------------------


RUN_FILE: Final = ".run"
TOKEN_BYTES: Final = 16


def begin_run(directories: Sequence[Path], runtime: Runtime | None = None) -> str:
    """Fence off all earlier runs of the sinks with these manifests. Return the new token. Raises SinkError."""
    token = (runtime or Runtime()).random_bytes(TOKEN_BYTES).hex()
    for directory in directories:
        _write_token(directory, token)
    return token


@contextmanager
def current_run(directories: Sequence[Path], token: str) -> Iterator[None]:
    """Let no new run begin inside the block. Raises SinkError if one has begun already."""
    with ExitStack() as held:
        for directory in directories:
            held.enter_context(_token_held(directory, token))
        yield


def _write_token(directory: Path, token: str) -> None:
    path = directory / RUN_FILE
    in_use = SinkError(
        f"{directory} is in use: a task of an earlier run is giving its files their names and does not get "
        "on. It may be stopped, or its disk hangs. Wait until it has ended, or end it, and start again.",
        path=str(directory),
    )
    with sink_errors(path):
        make_directory(directory)
    with _locked_file(path, os.O_RDWR | os.O_CREAT, fcntl.LOCK_EX, in_use) as descriptor, sink_errors(path):
        # In place, because tasks hold locks on this very file. A crash leaves a token that belongs to no run.
        os.ftruncate(descriptor, 0)
        os.write(descriptor, token.encode())
        os.fsync(descriptor)


@contextmanager
def _token_held(directory: Path, token: str) -> Iterator[None]:
    newer_run = SinkError(
        f"A newer run owns {directory}: this task belongs to a run that was killed. Its files were discarded, "
        "and the newer run writes the same records. There is nothing to do.",
        path=str(directory),
    )
    with _locked_file(directory / RUN_FILE, os.O_RDONLY, fcntl.LOCK_SH, newer_run) as descriptor:
        if os.read(descriptor, 64) != token.encode():
            raise newer_run
        yield
