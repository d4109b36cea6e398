"""What a store is, and the store of a directory.

An object is whole or not there, also after a crash: its bytes are on the disk under a hidden name before the name shows
(`atomic_files.py`). `store.py` has the table of the calls, and object stores.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

import attrs

from kclient.errors import SinkError
from kclient.spark.sink.atomic_files import (
    make_directory,
    publish,
    reading,
    sink_errors,
    sync,
    temporary_name,
    write_atomically,
)

LARGEST_READ: Final = 64 << 20
"""What `read` returns at most: it is for manifests and the like. `open_read` is for files of rows."""


@attrs.frozen
class StoredObject:
    """One object: its key below the store, its size in bytes, and when it was written, in ms since 1970."""

    key: str
    bytes: int
    modified_ms: int


class ObjectWriter(ABC):
    """A binary file that is written once. The object appears whole at `close`; `discard` leaves none.

    As a context manager it closes at the end of the block, and discards if the block raises. The methods raise
    SinkError.
    """

    def __init__(self) -> None:
        self.closed: bool = False
        self.discarded: bool = False
        self.bytes: int = 0

    def write(self, content: Any) -> int:
        """Write a bytes-like object, and return its size. After `discard` it goes nowhere."""
        size = memoryview(content).nbytes
        if not self.discarded:
            self._write(content)
            self.bytes += size
        return size

    @abstractmethod
    def _write(self, content: Any) -> None:
        """Take what is written."""

    @abstractmethod
    def close(self) -> None:
        """Finish the object: when this returns, readers see all of it. A second call does nothing."""

    @abstractmethod
    def discard(self) -> None:
        """Give the object up. After `close` this does nothing."""

    def flush(self) -> None:
        """Return: what is written is durable at `close`, not before."""
        return

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.bytes

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


class Store(ABC):
    """Named objects below `url`. Keys are relative, with `/`. Pickles. Every method may raise SinkError."""

    url: str

    @abstractmethod
    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write an object unless the key has one. Return whether it holds this content now, False if another one.

        A lost answer is looked up: an equal content counts as written by this call. So let the content name its
        writer where two writers must not both get True.
        """

    @abstractmethod
    def put(self, key: str, content: bytes) -> None:
        """Write an object, in place of an older one."""

    @abstractmethod
    def read(self, key: str) -> bytes | None:
        """Return the content of an object of at most `LARGEST_READ` bytes, None if there is none."""

    @abstractmethod
    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        """Yield the objects whose key begins with the path `prefix` (`a` is for `a/b`, not for `ab`), in no order.

        Files whose name begins with a dot are no objects.
        """

    @abstractmethod
    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""

    @abstractmethod
    def open_write(self, key: str) -> ObjectWriter:
        """Return a file that writes an object in parts. The key must be one that no other writer uses."""

    @abstractmethod
    def open_read(self, key: str) -> BinaryIO:
        """Return a file, seekable, that reads an object. Raise SinkError if there is none."""

    def check_conditional_writes(self) -> None:
        """Raise SinkError if `put_if_absent` would replace an object here. A directory never does."""
        return

    def place(self, key: str) -> str:
        """Return the path or URL of a key, for messages and for other readers."""
        return f"{self.url.rstrip('/')}/{key}" if key else self.url


def checked_key(key: str) -> str:
    """Return the key if it stays below a store. Raises SinkError."""
    parts = key.split("/")
    if "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise SinkError(
            f"{key!r} cannot be the key of an object: it must be a relative path without empty parts and `..`. "
            "It came from a damaged manifest, or from a bug.",
            path=key,
        )
    return key


@attrs.frozen
class LocalStore(Store):
    """The files below a directory."""

    directory: Path

    @property
    def url(self) -> str:  # type: ignore[override]
        return str(self.directory)

    def path(self, key: str) -> Path:
        """Return the file of a key."""
        return self.directory / checked_key(key)

    def put_if_absent(self, key: str, content: bytes) -> bool:
        path = self.path(key)
        with sink_errors(path):
            make_directory(path.parent)
            temporary = temporary_name(path)
            try:
                temporary.write_bytes(content)
                sync(temporary)
                os.link(temporary, path)  # unlike a rename this fails if the name is taken
                sync(path.parent)
            except FileExistsError:
                return self.read(key) == content
            finally:
                temporary.unlink(missing_ok=True)
        return True

    def put(self, key: str, content: bytes) -> None:
        write_atomically(self.path(key), content)

    def read(self, key: str) -> bytes | None:
        path = self.path(key)
        with reading(path):
            try:
                with path.open("rb") as file:
                    return bounded(file.read(LARGEST_READ + 1), str(path))
            except FileNotFoundError:
                return None

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        root = self.path(prefix) if prefix else self.directory
        with reading(root):
            for folder, _, names in os.walk(root, onerror=_raise_unless_missing):
                for name in names:
                    if not name.startswith("."):
                        yield from self._listed(Path(folder) / name)

    def delete(self, key: str) -> None:
        path = self.path(key)
        with sink_errors(
            path, "Deleting", "The directory may not be writable. Grant the permission", end="."
        ):
            path.unlink(missing_ok=True)

    def open_write(self, key: str) -> ObjectWriter:
        return _LocalWriter(self.path(key))

    def open_read(self, key: str) -> BinaryIO:
        path = self.path(key)
        with reading(path):
            return path.open("rb")

    def _listed(self, path: Path) -> Iterator[StoredObject]:
        with contextlib.suppress(FileNotFoundError):  # deleted since its directory was read
            status = path.stat()
            key = path.relative_to(self.directory).as_posix()
            yield StoredObject(key, status.st_size, int(status.st_mtime * 1000))


class _LocalWriter(ObjectWriter):
    """A file with a hidden name until it is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._temporary = temporary_name(path)
        with sink_errors(path):
            make_directory(path.parent)
            self._file = self._temporary.open("xb")

    def _write(self, content: Any) -> None:
        with sink_errors(self._path):
            self._file.write(content)

    def close(self) -> None:
        if self.closed:
            return
        with sink_errors(self._path):
            self._file.close()
            publish(self._temporary, self._path)
        self.closed = True

    def discard(self) -> None:
        if self.closed:
            return
        self.closed = self.discarded = True
        with sink_errors(self._path):
            self._file.close()
            self._temporary.unlink(missing_ok=True)


def _raise_unless_missing(exc: OSError) -> None:
    if not isinstance(exc, FileNotFoundError):
        raise exc


def bounded(content: bytes, place: str) -> bytes:
    """Return the content unless it is larger than `read` may return. Raises SinkError."""
    if len(content) > LARGEST_READ:
        raise SinkError(
            f"{place} has more than {LARGEST_READ >> 20} MiB, which no manifest or checkpoint has. Another program "
            "wrote it. Restore it from a copy.",
            path=place,
        )
    return content
