"""Reading and writing an Iceberg table's metadata in an object store, by the store that writes its data files.

    s3:// s3a:// gs:// abfs:// abfss://       `store_of`: obstore, with the environment's credentials
    s3.endpoint, s3.region, client.region     go with it: they are where, and not who
    other properties s3.* client.* gcs.* adls.*, and everything else     what pyiceberg itself takes

So data and metadata are in one place, with one identity, and writing a file of metadata is one request, of which
pyarrow makes three. The newest files of metadata stay in memory: for a commit pyiceberg reads the table twice, and its
newest manifest list, and these are what this process has written at the commit before. No name is written twice.

For Azure pyiceberg takes adlfs, another package with credentials of its own, or pyarrow, which has no form of
`abfss://CONTAINER@ACCOUNT…`. Who gives pyiceberg's own properties or `py-io-impl`, or has a catalog that hands them
out, means pyiceberg's.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream, load_file_io
from pyiceberg.typedef import EMPTY_DICT, Properties

from kclient.errors import ConfigError
from kclient.spark.sink.store import ObjectStore, RemoteWriter, checked_url, is_remote, store_of

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table as Version

IMPLEMENTATION: Final = "py-io-impl"
AZURE: Final = frozenset({"abfs", "abfss"})
S3: Final = ("s3.", "client.")
THEIRS: Final = {
    "s3": S3, "s3a": S3, "gs": ("gcs.",), "abfs": ("adls.",), "abfss": ("adls.",),
}  # fmt: skip
"""Scheme → what the properties begin with that are for pyiceberg."""

OPTIONS: Final = {"client.region": "region", "s3.region": "region", "s3.endpoint": "endpoint"}
"""Property → the option of a store; a later one goes before."""


_METADATA: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[^/]*\.(json|avro)$")
"""A file of metadata whose name has a UUID, so that it is written once."""

MOST_KEPT_BYTES: Final = 16 << 20
"""How much metadata stays in memory, the newest; a larger file is read each time."""
MOST_KEPT: Final = 64


def use_store(catalog: Catalog) -> None:
    """Have a catalog read and write with `StoreFileIO`, unless its properties name another way."""
    catalog.properties.setdefault(IMPLEMENTATION, f"{StoreFileIO.__module__}.{StoreFileIO.__name__}")


def is_stored(files: FileIO, location: str) -> bool:
    """Whether a store has a file of metadata that a commit has written. One that this process has written, it has."""
    file = files.new_input(location)
    return (isinstance(file, _StoreFile) and file.is_kept) or file.exists()


class StoreFileIO(FileIO):
    """What pyiceberg asks for files. It has the properties of the catalog, and of the table if a service adds some."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._others: dict[str, FileIO] = {}

    def new_input(self, location: str) -> InputFile:
        file = self._ours(location)
        return self._theirs(location).new_input(location) if file is None else file

    def new_output(self, location: str) -> OutputFile:
        file = self._ours(location)
        return self._theirs(location).new_output(location) if file is None else file

    def delete(self, location: str | InputFile | OutputFile) -> None:
        url = location if isinstance(location, str) else location.location
        if (file := self._ours(url)) is not None:
            file.delete()
        else:
            self._theirs(url).delete(url)

    def _ours(self, location: str) -> _StoreFile | None:
        """Return the object of a location, None where pyiceberg is to reach it."""
        scheme = urlsplit(location).scheme
        if scheme not in THEIRS:
            return None
        given = {name: text for name, text in self.properties.items() if name.startswith(THEIRS[scheme])}
        if not given.keys() <= OPTIONS.keys():
            return None
        return _StoreFile(
            location, {option: given[name] for name, option in OPTIONS.items() if name in given}
        )

    def _theirs(self, location: str) -> FileIO:
        """Return what pyiceberg itself takes for a location. It keeps connections, so there is one for each scheme."""
        scheme = urlsplit(location).scheme
        if scheme not in self._others:
            if scheme in AZURE and find_spec("adlfs") is None:
                raise _no_adlfs(location, [name for name in self.properties if name.startswith("adls.")])
            properties = {name: value for name, value in self.properties.items() if name != IMPLEMENTATION}
            self._others[scheme] = load_file_io(properties, location)
        return self._others[scheme]


def _no_adlfs(location: str, given: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"The catalog's properties {', '.join(given)} are for adlfs, by which pyiceberg reaches {location}, and adlfs "
        "is not installed. Leave them out and give AZURE_STORAGE_ACCOUNT_KEY or another credential in the "
        "environment, or pip install adlfs."
    )


class _Kept:
    """The newest files of metadata that this process has written or read, by their URLs and where the store is."""

    def __init__(self) -> None:
        self._files: dict[Hashable, bytes] = {}

    def keep(self, name: Hashable, content: bytes) -> None:
        """Keep a file, and give up the oldest ones beyond `MOST_KEPT_BYTES` and `MOST_KEPT`."""
        self.forget(name)
        if len(content) > MOST_KEPT_BYTES:
            return
        self._files[name] = content
        while len(self._files) > MOST_KEPT or sum(map(len, list(self._files.values()))) > MOST_KEPT_BYTES:
            self.forget(next(iter(list(self._files)), None))

    def get(self, name: Hashable) -> bytes | None:
        return self._files.get(name)

    def forget(self, name: Hashable) -> None:
        self._files.pop(name, None)


_kept: Final = _Kept()


class _MetadataWriter(RemoteWriter):
    """A file of metadata, which is kept when the store has it."""

    def __init__(self, store: ObjectStore, key: str, name: Hashable) -> None:
        super().__init__(store, key)
        self._name = name
        self._content = bytearray()

    def _write(self, content: Any) -> None:
        super()._write(content)
        self._content += content

    def close(self) -> None:
        if not self.closed:
            super().close()
            _kept.keep(self._name, bytes(self._content))


class _StoreFile(InputFile, OutputFile):
    """One object, by its URL."""

    def __init__(self, location: str, options: Mapping[str, str]) -> None:
        super().__init__(location)
        parts = urlsplit(location)
        self._store = cast(ObjectStore, store_of(f"{parts.scheme}://{parts.netloc}", options))
        self._key = location.removeprefix(f"{parts.scheme}://{parts.netloc}").lstrip("/")
        self._name = (location, *sorted(options.items()))

    def __len__(self) -> int:
        if (content := _kept.get(self._name)) is not None:
            return len(content)
        size = self._store.size(self._key)
        if size is None:
            raise FileNotFoundError(f"{self.location} is not there")
        return size

    def exists(self) -> bool:
        return self._store.size(self._key) is not None

    @property
    def is_kept(self) -> bool:
        """Whether this process has written or read it: then the store has it."""
        return _kept.get(self._name) is not None

    def open(self, seekable: bool = True) -> InputStream:
        if not _METADATA.search(self.location):
            return cast(InputStream, self._store.open_read(self._key))
        if (content := _kept.get(self._name)) is not None:
            return cast(InputStream, BytesIO(content))
        file = self._store.open_whole(self._key)
        if isinstance(file, BytesIO):
            _kept.keep(self._name, file.getvalue())
        return cast(InputStream, file)

    def create(self, overwrite: bool = False) -> OutputStream:
        if not overwrite and self.exists():
            raise FileExistsError(f"{self.location} is there already")
        if _METADATA.search(self.location):
            return cast(OutputStream, _MetadataWriter(self._store, self._key, self._name))
        return cast(OutputStream, self._store.open_write(self._key))

    def to_input_file(self) -> InputFile:
        return self

    def delete(self) -> None:
        """Delete the object, if it is there."""
        _kept.forget(self._name)
        self._store.delete(self._key)


# --- where the files of a table are ----------------------------------------------------------------------------------


def data_location(version: Version) -> str:
    """Return where the data files of a table go, as the table says it."""
    default = f"{version.location().rstrip('/')}/data"
    return version.properties.get("write.data.path", default).rstrip("/")


def problem_of(location: str) -> str | None:
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
