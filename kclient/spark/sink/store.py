"""A store: named objects below a URL, on a directory of this machine or in an object store. There is no rename.

    put_if_absent   put         read        list        delete      open_write       open_read
    create once     overwrite   whole       below a key             whole at close   random access

    /lake/raw                                directory: hidden name, fsync, rename or link     `LocalStore`
    s3://bucket/raw  gs://…  abfss://…       obstore, with conditional writes (If-None-Match)  `ObjectStore`

Both show an object whole or not at all. A store keeps no credentials: it reads those of the environment or of the
platform (the instance's or the pod's role) where it is used, so that none travels in a pickle, a plan or a log.

A service that hangs or fails is bounded. One request: `CONNECT_SECONDS` and `REQUEST_SECONDS`. One call: `RETRIES` more
requests after answers of 5xx and 429, refused and broken connections, none later than `RETRY_SECONDS`; so at most
`RETRY_SECONDS + REQUEST_SECONDS`. `put_if_absent` makes at most `PUT_TRIES` such calls, because it looks up what became
of a write whose answer it did not get.

No answer is believed alone: what was written is read back, of a large object its size. One more request for each write.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, NoReturn, cast
from urllib.parse import urlsplit

import attrs

from kclient.errors import ConfigError, SinkError
from kclient.log import get_logger
from kclient.runtime import Runtime
from kclient.spark.sink.local_store import (
    LARGEST_READ,
    LocalStore,
    ObjectWriter,
    Store,
    StoredObject,
    bounded,
    checked_key,
)

__all__ = [
    "LocalStore",
    "ObjectMissing",
    "ObjectStore",
    "ObjectWriter",
    "Store",
    "StoreUnavailable",
    "StoredObject",
    "is_remote",
    "memory_store",
    "store_of",
]

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

log: Final = get_logger("kclient.spark")

CONNECT_SECONDS: Final = 5
REQUEST_SECONDS: Final = 30
RETRIES: Final = 5
RETRY_SECONDS: Final = 60
PUT_TRIES: Final = 3
PUT_PAUSE_SECONDS: Final = 0.2

PART_BYTES: Final = 8 << 20
PARTS_AT_ONCE: Final = 2
"""An open file holds at most `PARTS_AT_ONCE + 1` parts. S3 takes 10,000, so a file may have 80 GB."""

PROBES: Final = "_kclient/probe"
READ_BYTES: Final = 1 << 20

SCHEMES: Final[Mapping[str, str]] = {
    "s3": "s3", "s3a": "s3", "gs": "gs", "abfs": "az", "abfss": "az", "az": "az",
}  # fmt: skip
"""Scheme of a URL → the service. `s3a` is Hadoop's name for it."""

CREDENTIALS: Final[Mapping[str, str]] = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_KEY",
}
"""Service → the variables that an error names. obstore knows more."""

FORMS: Final[Mapping[str, str]] = {
    "s3": "s3://BUCKET/PREFIX",
    "gs": "gs://BUCKET/PREFIX",
    "az": "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX",
}

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_FILE: Final = re.compile(r"file:(?://)?(/(?!/).*)", re.IGNORECASE | re.DOTALL)
_BUCKET: Final = re.compile(r"[A-Za-z0-9._$-]+(@[A-Za-z0-9.-]+)?", re.ASCII)
_ENDPOINT: Final = re.compile(r"endpoint|base_url", re.IGNORECASE)
_SECRET: Final = re.compile(r"key|secret|token|password|credential|sas", re.IGNORECASE)
_QUERY: Final = re.compile(r"(https?://[^\s?\"'<>)]*)\?[^\s\"'<>)]*")


def store_of(url: str | Path, options: Mapping[str, str] | None = None) -> Store:
    """Return the store of a directory, or of an `s3://`, `gs://` or `abfss://` URL.

    `options` are settings of obstore (`region`, `endpoint`, …) that go before those of the environment. They travel
    with the store, so secrets are refused. Raises ConfigError, also where obstore is not installed.
    """
    text = str(url)
    if is_remote(text):
        return _remote_store(text, tuple(sorted((options or {}).items())))
    if options:
        raise ConfigError(f"{text} is a directory: the options {sorted(options)} are those of object stores.")
    return LocalStore(Path(local_path(text)).absolute())


@lru_cache(maxsize=64)
def _remote_store(url: str, options: tuple[tuple[str, str], ...]) -> ObjectStore:
    """Return one store for each URL of a process: it keeps its connections, and the tokens of a role."""
    return ObjectStore(checked_url(url), dict(options))


def is_remote(url: str | Path) -> bool:
    """Return whether a URL names an object store."""
    scheme = _URL.match(str(url))
    return scheme is not None and scheme[1].lower() != "file"


def local_path(where: str) -> str:
    """Return the path of a directory that is given as such, or as a `file:` URL. Raises ConfigError for another host.

    No `%20` and no `#` is special in such a URL, as in those of Hadoop and Spark.
    """
    if not where.lower().startswith("file:"):
        return where
    if (found := _FILE.fullmatch(where)) is None:
        raise ConfigError(
            f"{where} names no directory of this machine. Write file:///PATH, or the path alone."
        )
    return found[1]


def places_overlap(one: str, other: str) -> bool:
    """Return whether two places are the same, or one lies in the other, under whatever names."""
    (root, account, path), (other_root, other_account, other_path) = _placed(one), _placed(other)
    both = min(len(path), len(other_path))
    accounts = {account, other_account} - {""}
    return root == other_root and len(accounts) < 2 and path[:both] == other_path[:both]


def _placed(where: str) -> tuple[str, str, Sequence[str]]:
    """Return the service and the bucket of a place, an account of Azure unless the environment names it, the path."""
    if not is_remote(where):
        return "", "", Path(os.path.realpath(where)).parts
    scheme, bucket, path = _parts_of(where)
    container, _, host = bucket.lower().partition("@")
    return f"{SCHEMES[scheme]}://{container}", host.partition(".")[0], path.split("/") if path else []


def checked_url(url: str) -> str:
    """Return the URL of a store in its one form. Raises ConfigError for one that cannot be used, or that holds secrets.

    No error quotes the URL: a secret may be anywhere in it.
    """
    scheme, bucket, path = _parts_of(url)
    if (service := SCHEMES.get(scheme)) is None:
        raise ConfigError(
            f"{scheme}://… is no store that kclient knows. Give a directory, or a URL that begins with "
            f"{', '.join(f'{name}://' for name in SCHEMES)}."
        )
    # A secret with a `/` ends the bucket early: s3://KEY:SEC/RET@bucket/raw. One @ is Azure's own.
    if bucket.count("@") > (service == "az") or ":" in bucket or re.search("[?#]", url):
        raise ConfigError(
            f"The URL {scheme}://… holds credentials, a port, a query or a fragment. URLs are shown in plans and "
            f"logs: give the credentials in the environment, as {CREDENTIALS[service]}, or by the platform's role. "
            f"Write {FORMS[service]}."
        )
    if not _BUCKET.fullmatch(bucket):
        raise ConfigError(f"The URL {scheme}://… names no bucket. Write {FORMS[service]}.")
    if not _is_plain(path):
        raise ConfigError(
            f"The path of the URL {scheme}://… has a second spelling: a %, an empty part, `.`, `..`, a control "
            "character, or a space at its end. Write it as the bucket lists it: a space as it is, and no escapes."
        )
    return f"{'s3' if scheme == 's3a' else scheme}://{bucket}/{path}".rstrip("/")


def _is_plain(path: str) -> bool:
    """Return whether no other text names the same path: under two names a job would write over its own files."""
    parts = path.split("/") if path else []
    return not {"", ".", ".."} & {*parts} and "%" not in path and path.isprintable() and path == path.rstrip()


def _parts_of(url: str) -> tuple[str, str, str]:
    """Return the scheme, the bucket and the path of a URL."""
    scheme, _, rest = url.partition("://")
    bucket, _, path = rest.partition("/")
    return scheme.lower(), bucket, path.rstrip("/")


# --- an object store -------------------------------------------------------------------------------------------------


@attrs.define(eq=False)
class ObjectStore(Store):
    """The objects of a bucket below a prefix, by obstore. Its connections are made on first use, and not pickled."""

    url: str
    options: dict[str, str] = attrs.field(factory=dict)
    _made: Client | None = None

    def __attrs_post_init__(self) -> None:
        if secrets := sorted(name for name in self.options if _SECRET.search(name)):
            raise ConfigError(
                f"The options {', '.join(secrets)} of {self.url} are credentials, which would be kept in plans and "
                "sent to executors. Give them in the environment, or by the platform's role."
            )
        self.client  # noqa: B018 – an unknown option or a missing obstore is reported here

    def __getstate__(self) -> tuple[str, dict[str, str]]:
        return self.url, self.options

    def __setstate__(self, state: tuple[str, dict[str, str]]) -> None:
        self.url, self.options = state
        self._made = None

    @property
    def client(self) -> Client:
        """obstore's client of the bucket."""
        if self._made is None:
            self._made = _client_of(self.url, self.options)
        return self._made

    def put_if_absent(self, key: str, content: bytes) -> bool:
        """Write unless present, as `Store` says. An unknown outcome is looked up, at most `PUT_TRIES` times."""
        from obstore.exceptions import AlreadyExistsError, BaseError

        last: Exception | None = None
        for _ in range(PUT_TRIES):
            try:
                self.client.put(checked_key(key), content, mode="create", use_multipart=False)
            except AlreadyExistsError as exc:
                # A request that was sent again after a lost answer finds the object that the first one wrote. Nothing
                # is there after S3's 409: another write of the key is under way, and may fail.
                last = exc
            except (BaseError, OSError) as exc:
                if not _is_transient(exc):
                    self.fail(exc, "Writing", key)
                last = exc
                log.warning("No answer says whether %s was written: it is looked up.", self.place(key))
            else:
                return self._check_stored(key, content)
            if (found := self.read(key)) is not None:
                return found == content
            Runtime().pause(PUT_PAUSE_SECONDS)
        self.fail(cast(Exception, last), "Writing", key)

    def check_conditional_writes(self) -> None:
        """Raise SinkError for a service that ignores If-None-Match: there, two writers would both succeed."""
        key = f"{PROBES}/{Runtime().random_bytes(8).hex()}"
        try:
            self.put_if_absent(key, b"first")
            if not self.put_if_absent(key, b"second"):
                return
        finally:
            self.delete(key)
        raise SinkError(
            f"{self.url} ignores conditional writes (If-None-Match): a second writer replaced an object that it was to "
            "leave. Two runs of a job could not be told apart there. Update the service, or use another one.",
            path=self.url,
        )

    def put(self, key: str, content: bytes) -> None:
        with self.errors("Writing", key):
            self.client.put(checked_key(key), content, use_multipart=False)
        self._check_stored(key, content)

    def read(self, key: str) -> bytes | None:
        with self.errors("Reading", key):
            try:
                found = self.client.get(checked_key(key))
            except FileNotFoundError as exc:
                if _NO_BUCKET.search(str(exc)):
                    self.fail(exc, "Reading", key)
                return None
            if found.meta["size"] > LARGEST_READ:
                return bounded(bytes(LARGEST_READ + 1), self.place(key))
            return bytes(found.bytes())

    def size(self, key: str) -> int | None:
        """Return the bytes of an object, None if there is none."""
        with self.errors("Reading", key):
            try:
                return int(self.client.head(checked_key(key))["size"])
            except FileNotFoundError:
                return None

    def list(self, prefix: str = "") -> Iterator[StoredObject]:
        with self.errors("Listing", prefix):
            for page in self.client.list(checked_key(prefix) if prefix else None):
                for entry in page:
                    if not entry["path"].rpartition("/")[2].startswith("."):
                        modified = int(entry["last_modified"].timestamp() * 1000)
                        yield StoredObject(entry["path"], entry["size"], modified)

    def delete(self, key: str) -> None:
        with self.errors("Deleting", key), contextlib.suppress(FileNotFoundError):
            self.client.delete(checked_key(key))

    def open_write(self, key: str) -> ObjectWriter:
        return RemoteWriter(self, checked_key(key))

    def open_read(self, key: str) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_RemoteReader(self, checked_key(key)), READ_BYTES))

    def open_whole(self, key: str) -> BinaryIO:
        """Return the content of an object, read by one request; that of a larger one than `LARGEST_READ` in ranges."""
        with self.errors("Reading", key):
            found = self.client.get(checked_key(key))
            if found.meta["size"] <= LARGEST_READ:
                return io.BytesIO(found.bytes())
        return self.open_read(key)

    def _check_stored(self, key: str, content: bytes) -> Literal[True]:
        """Read back what the service has said it stored. Raise SinkError if it did not."""
        found = self.read(key)
        if found != content:
            raise lost(self.place(key), "nothing" if found is None else "something else")
        return True

    @contextmanager
    def errors(self, doing: str, key: str) -> Iterator[None]:
        """Turn an error of obstore into a SinkError."""
        from obstore.exceptions import BaseError

        try:
            yield
        except SinkError:
            raise
        except (BaseError, OSError, ValueError) as exc:
            self.fail(exc, doing, key)

    def fail(self, exc: Exception, doing: str, key: str) -> NoReturn:
        """Raise the SinkError of a call that failed."""
        place = self.place(key)
        kind = StoreUnavailable if _is_transient(exc) else SinkError
        kind = ObjectMissing if isinstance(exc, FileNotFoundError) else kind
        raise kind(f"{doing} {place} failed: {_reason(exc)}. {_advice(exc)}", path=place) from None


class RemoteWriter(ObjectWriter):
    """An object that is uploaded in parts; a small one in one request. Parts of a discarded one are never shown.

    The service keeps such parts until a rule of the bucket removes them (AbortIncompleteMultipartUpload).
    """

    closed: bool
    discarded: bool

    def __init__(self, store: ObjectStore, key: str) -> None:
        import obstore

        super().__init__()
        self._store = store
        self._key = key
        with store.errors("Writing", key):
            self._file: Any = obstore.open_writer(
                store.client, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE
            )

    def _write(self, content: Any) -> None:
        with self._store.errors("Writing", self._key):
            self._file.write(content)

    def close(self) -> None:
        from obstore.exceptions import BaseError

        if self.closed:
            return
        failure: Exception | None = None
        try:
            self._file.close()
        except (BaseError, OSError) as exc:
            failure = exc
        # The service may have finished it and lost its answer, or answered and lost it. Only this writer uses the key.
        stored = self._store.size(self._key)
        if stored != self.bytes:
            if failure is not None:
                self._store.fail(failure, "Writing", self._key)
            raise lost(self._store.place(self._key), "nothing" if stored is None else f"{stored} bytes of it")
        self.closed = True

    def discard(self) -> None:
        if self.closed:
            return
        self.closed = self.discarded = True
        self._file = None  # closing it would finish the object


class _RemoteReader(io.RawIOBase):
    """An object that is read in ranges."""

    def __init__(self, store: ObjectStore, key: str) -> None:
        import obstore

        super().__init__()
        self._store = store
        self._key = key
        with store.errors("Reading", key):
            self._file = obstore.open_reader(store.client, key, buffer_size=READ_BYTES)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with self._store.errors("Reading", self._key):
            content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()


def memory_store() -> ObjectStore:
    """Return an empty store in the memory of this process, for tests. It cannot be used after pickling."""
    from obstore.store import MemoryStore

    return ObjectStore("memory:///", {}, MemoryStore())


def _client_of(url: str, options: Mapping[str, str]) -> Client:
    """Return obstore's client, with the environment's settings and credentials. Raise ConfigError."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as exc:
        raise ConfigError(
            f"{url} needs the package obstore, which is not installed. pip install 'kclient-kafka[lake]'."
        ) from exc
    config: Any = dict(options)
    try:
        return from_url(
            url,
            config=config,
            client_options={
                "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
                "timeout": timedelta(seconds=REQUEST_SECONDS),
                "allow_http": is_plain_endpoint(url, options),
            },
            retry_config={
                "max_retries": RETRIES,
                "retry_timeout": timedelta(seconds=RETRY_SECONDS),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=5),
                    "base": 2,
                },
            },
        )
    except (BaseError, ValueError) as exc:
        service = SCHEMES.get(urlsplit(url).scheme.lower(), "s3")
        raise ConfigError(
            f"{url} cannot be used as a store: {_reason(exc)}. Write {FORMS[service]}, and give its credentials in the "
            f"environment, as {CREDENTIALS[service]}, or by the platform's role."
        ) from None


ENDPOINTS: Final[Mapping[str, tuple[str, ...]]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
"""Service → the variables from which obstore and delta-rs take its endpoint."""


def is_plain_endpoint(url: str, options: Mapping[str, str] | None = None) -> bool:
    """Return whether the endpoint of a store was given as http://: whoever writes that means it."""
    service = SCHEMES.get(urlsplit(url).scheme.lower(), "")
    given = [value for name, value in (options or {}).items() if _ENDPOINT.search(name)]
    given += [os.environ.get(name, "") for name in ENDPOINTS.get(service, ())]
    return any(value.lower().startswith("http://") for value in given)


# --- errors of an object store ---------------------------------------------------------------------------------------

_NO_BUCKET: Final = re.compile(r"NoSuchBucket|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_STATUS: Final = re.compile(r"\b([1-5][0-9]{2}) [A-Z][A-Za-z ]+")
_FOR_NOW: Final = re.compile(r"5[0-9]{2}|408|409|429")
"""Also a time-out, a conflict with another write that is under way, and too many requests."""

_ANSWER: Final = re.compile(r": \ufeff?<")
"""The beginning of an answer in XML. Azure's has a byte order mark, and may have its code on another line."""
_CODE: Final = re.compile(r"<Code>([A-Za-z]{1,60})</Code>")


class StoreUnavailable(SinkError):
    """The service was not reachable, too slow, or failed, also after retries: a later try may succeed."""


class ObjectMissing(SinkError):
    """There is no such object, or no such bucket."""


def lost(place: str, found: str = "nothing") -> SinkError:
    """Return the error of a service that has acknowledged an object, and holds none of it, or something else."""
    return SinkError(
        f"The service answered that it stored {place}, and it has {found} there. It loses what it acknowledges, it "
        "shows writes late, or another program replaces objects. Do not use it before that is repaired. Then start "
        "again, and let `kclient ingest verify` count what landed before.",
        path=place,
    )


def _is_transient(exc: Exception) -> bool:
    """Return whether a later try may succeed. Of a write it is not known whether it was applied."""
    from obstore.exceptions import (
        InvalidPathError,
        NotSupportedError,
        PermissionDeniedError,
        UnauthenticatedError,
    )

    known = (
        PermissionDeniedError,
        UnauthenticatedError,
        NotSupportedError,
        InvalidPathError,
        FileNotFoundError,
        ValueError,
    )
    status = _STATUS.search(str(exc))
    return not isinstance(exc, known) and (status is None or _FOR_NOW.fullmatch(status[1]) is not None)


def _reason(exc: Exception) -> str:
    """Return the first line of an error, and the service's code for it.

    Without the query of a URL, which may be a signature, and without the XML of the answer, which quotes the request.
    """
    text = str(exc).strip()
    line = _ANSWER.split(text.splitlines()[0] if text else type(exc).__name__)[0]
    code = _CODE.search(text)
    return _QUERY.sub(r"\1?…", line)[:300].rstrip(".") + (f" ({code[1]})" if code else "")


def _advice(exc: Exception) -> str:
    from obstore.exceptions import NotSupportedError, PermissionDeniedError, UnauthenticatedError

    if _NO_BUCKET.search(str(exc)):
        return "The bucket does not exist, or its region is another. Create it, or correct the URL."
    if isinstance(exc, FileNotFoundError):
        return "The object was deleted, or the URL is another. Restore it from a copy."
    status = _STATUS.search(str(exc))
    if isinstance(exc, PermissionDeniedError | UnauthenticatedError) or (
        status and status[1] in ("401", "403")
    ):
        return (
            "The credentials of the environment or of the platform's role are missing, expired, or lack the "
            "permission. Correct them, and start again: nothing will count twice."
        )
    if isinstance(exc, NotSupportedError):
        return "The service does not support conditional writes, which kclient needs. Use another one."
    return (
        "The service was not reachable, too slow, or failed, also after retries. "
        "Start again when it answers: nothing will count twice."
    )
