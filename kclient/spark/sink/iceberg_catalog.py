"""Opening an Iceberg catalog, and what the errors of catalogs and of their stores mean for a commit.

--catalog FILE     catalogs in pyiceberg's own form:  catalog: {NAME: {type: …, uri: …, warehouse: …}}
without it         pyiceberg's own places: ~/.pyiceberg.yaml and PYICEBERG_* in the environment

error                                                            raised as
CommitFailedException                                            TableConflict: another writer was faster
5xx, time-outs, broken connections, a locked database            TableUnavailable: look, and try again
everything else: no permission, no such table, a full disk       SinkError: trying again would not help
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs

from kclient.errors import ConfigError, KclientError, SinkError
from kclient.runtime import Runtime
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.secret import problem_of, without_secret
from kclient.spark.sink.store import StoreUnavailable
from kclient.spark.sink.tables import TableConflict, TableUnavailable

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

REQUEST_SECONDS: Final = 60.0
"""How long a catalog may take to open, and a REST catalog to answer a request: pyiceberg itself would wait forever."""

FINAL: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR}
)
"""Errors of a file system that another try does not mend."""

_SECRET: Final = re.compile(r"secret|password|token|credential|access-key|account-key|sas-", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(?<=://)[^\s/:@]*:[^\s/]*@")


@attrs.frozen
class TableName:
    """A table of a catalog: `CATALOG.NAMESPACE.TABLE`, where the namespace may have parts."""

    catalog: str
    identifier: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Parse a name that the settings have checked."""
        catalog, *identifier = text.split(".")
        return cls(catalog, tuple(identifier))

    @property
    def namespace(self) -> tuple[str, ...]:
        return self.identifier[:-1]


def open_catalog(name: str, file: str | None) -> Catalog:
    """Return a catalog. Asks it nothing yet, except where its type does so.

    Raises ConfigError, TableUnavailable if it does not answer, SinkError.
    """
    from pyiceberg.catalog import load_catalog

    from kclient.spark.sink.iceberg_io import use_store

    properties = {} if file is None else _properties(Path(file), name)
    with table_errors(name, "Opening the catalog", properties):
        try:
            catalog = Runtime().within(REQUEST_SECONDS, lambda: load_catalog(name, **properties))
        except ValueError as exc:
            raise _incomplete(name, exc, is_known=bool(properties)) from None
    _bound_requests(catalog)
    # `refs` would leave out snapshots: their files would be garbage, and rollbacks could not be told from expiry.
    catalog.properties["snapshot-loading-mode"] = "all"
    use_store(catalog)
    return catalog


def _incomplete(name: str, problem: ValueError, *, is_known: bool) -> Exception:
    """Return the error of a catalog that pyiceberg cannot open for lack of a property, others as they are.

    It `is_known` from --catalog, or else pyiceberg's own places may describe it.
    """
    from pyiceberg.catalog import list_catalogs

    if "infer the catalog type" in str(problem):
        return ConfigError(
            f"The catalog {name} has no type, and its uri does not show which it is. Give it one: `type: sql` for a "
            "database, or rest, hive, glue, dynamodb or bigquery."
        )
    if "URI missing" not in str(problem):
        return problem
    if not is_known and name.lower() not in (others := sorted(list_catalogs())):
        known = f"; those of pyiceberg's own places are {', '.join(others)}" if others else ""
        return ConfigError(
            f"No catalog {name} is known, which the sink names{known}. Give --catalog FILE with a catalog of this "
            "name, or describe it in ~/.pyiceberg.yaml: an entry below `catalog:` with its type, uri and warehouse."
        )
    return ConfigError(
        f"The catalog {name} has no uri. Add one to it, in the file of --catalog or in ~/.pyiceberg.yaml, or set "
        f"PYICEBERG_CATALOG__{name.upper()}__URI."
    )


def _bound_requests(catalog: Any) -> None:
    """Give each request of a REST catalog a time-out, and each token that its authorization fetches."""
    session = getattr(catalog, "_session", None)
    if session is None:
        return
    send, authorize = session.send, session.auth

    def bounded(request: Any, **options: Any) -> Any:
        return send(request, **{**options, "timeout": options.get("timeout") or REQUEST_SECONDS})

    session.send = bounded
    if authorize is not None:
        session.auth = lambda request: Runtime().within(REQUEST_SECONDS, lambda: authorize(request))


def _properties(file: Path, name: str) -> dict[str, Any]:
    """Return the properties of a catalog in a file, as pyiceberg reads its own. Raises ConfigError."""
    import strictyaml

    try:
        content = strictyaml.load(read_local(file, LARGEST_TEXT).decode()).data
        catalogs = _lower(content)["catalog"]
        if name.lower() in catalogs:
            return dict(catalogs[name.lower()])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, strictyaml.YAMLError) as exc:
        # An error of YAML quotes the lines around it, which may hold a secret.
        reason = (
            "it is not YAML of the form `catalog: {NAME: {uri: …}}`"
            if not isinstance(exc, OSError)
            else problem_of(exc)
        )
        raise ConfigError(
            f"--catalog names {file}, which cannot be used: {reason}. Write it as .pyiceberg.yaml of pyiceberg: below "
            "`catalog:` one entry for each catalog, with its type, uri and warehouse."
        ) from None
    raise ConfigError(
        f"--catalog {file} has no catalog {name}, which --sink names; it has {', '.join(sorted(catalogs)) or 'none'}. "
        "Name one of them in --sink iceberg:CATALOG.NAMESPACE.TABLE, or add it to the file."
    )


def _lower(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mapping with all its names in lower case, as pyiceberg takes them."""
    return {
        name.lower(): _lower(value) if isinstance(value, dict) else value for name, value in content.items()
    }


@contextmanager
def table_errors(name: str, doing: str, properties: Mapping[str, Any]) -> Iterator[None]:
    """Turn what catalogs and stores raise into the three kinds of errors that `tables.commit` knows.

    `properties` are those of the catalog: an error shows none of their secrets.
    """
    from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

    try:
        yield
    except StoreUnavailable as exc:
        raise TableUnavailable(exc.text) from exc
    except (KclientError, TableConflict, TableUnavailable):
        raise
    except CommitFailedException as exc:
        raise TableConflict(_first_line(exc, properties)) from exc
    except NoSuchTableError as exc:
        raise SinkError(
            f"{doing} {name} failed: the table does not exist any more. It was dropped or renamed. Restore it, or "
            "start again with a new checkpoint to create it and land everything again.",
            path=name,
        ) from exc
    except Exception as exc:  # noqa: BLE001 – raised again, but not always with its cause
        reason = f"{type(exc).__name__}: {_first_line(exc, properties)}"
        # A traceback shows the cause, so one with a secret is left out.
        cause = exc if _without_secrets(str(exc), properties) == str(exc) else None
        if _is_transient(exc):
            raise TableUnavailable(reason) from cause
        raise SinkError(
            f"{doing} {name} failed: {reason}. Correct the catalog's properties, its permissions or the table, and "
            "start again: nothing will count twice.",
            path=name,
        ) from cause


def _is_transient(exc: Exception) -> bool:
    """Return whether a later try may succeed."""
    from pyiceberg import exceptions

    rest = (
        exceptions.CommitStateUnknownException,
        exceptions.ServerError,
        exceptions.ServiceUnavailableError,
        exceptions.TooManyRequestsError,
        exceptions.WaitingForLockException,
    )
    if isinstance(exc, rest):
        return True
    module = type(exc).__module__
    if module.startswith("sqlalchemy."):  # a locked database, a lost connection; not a wrong statement
        return type(exc).__name__ in ("OperationalError", "InterfaceError", "TimeoutError")
    if isinstance(exc, OSError):  # those of requests and of pyarrow's file systems too
        return exc.errno not in FINAL and not isinstance(exc, FileNotFoundError | PermissionError)
    return module.startswith(("botocore.", "urllib3.", "http."))


def _first_line(exc: Exception, properties: Mapping[str, Any]) -> str:
    text = _without_secrets(str(exc).strip(), properties)
    return text.splitlines()[0][:300].rstrip(".") if text else type(exc).__name__


def _without_secrets(text: str, properties: Mapping[str, Any]) -> str:
    """Return a text without secrets of the properties, and without passwords in URLs, which errors of drivers quote."""
    for name, value in properties.items():
        if isinstance(value, str):
            text = without_secret(text, value if _SECRET.search(name) else _password(value))
    return _LOGIN.sub("***@", text)


def _password(uri: str) -> str:
    """Return the password in a URI, which may be no valid one."""
    login = uri.rpartition("@")[0]
    return login.rpartition("://")[2].partition(":")[2]
