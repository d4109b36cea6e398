"""What an error of delta-rs means for the job: it ends, or tries again.

    an answer that is lost, a service that fails    TableUnavailable: the next try looks what is there
    missing permissions, a damaged log              SinkError
    a protocol that this delta-rs does not know     SinkError: each other try would end in the same way. delta-rs checks
                                                    it before it reads or writes a version, so nothing was committed

delta-rs has few classes of errors, and raises `Exception` itself, too: its texts tell which one it is. Those about
protocols are of delta-rs 1.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kclient.errors import ConfigError, SinkError
from kclient.spark.sink.tables import TableConflict, TableUnavailable

_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
_QUERY: Final = re.compile(r"\?[^\s\"'<>)]*")
_BACKTRACE: Final = re.compile(r"\n\s*(?:(?:stack )?backtrace:\s*)?0: .*", re.DOTALL | re.IGNORECASE)
_REFUSED: Final = re.compile(
    r"lacked the necessary privileges|PermissionDenied|Permission denied|Unauthenticated|Access ?Denied|NoSuchBucket"
    r"|InvalidAccessKeyId|SignatureDoesNotMatch|Read-only file system|Invalid protocol action|Schema error",
    re.IGNORECASE,
)
_PROTOCOL: Final = re.compile(
    r"Unsupported table features required|Table features must be specified|Kernel error: Unsupported"
    r"|catalog-managed table|does not support (?:reader|writer) version",
    re.IGNORECASE,
)


@contextmanager
def delta_errors(url: str, doing: str) -> Iterator[None]:
    """Turn what delta-rs and the log raise into SinkError if it is final, else into TableUnavailable."""
    try:
        yield
    except (SinkError, ConfigError, TableConflict, TableUnavailable):
        raise
    except Exception as exc:
        failed = f"{doing} failed: {reason_of(exc)}"
        advice = _advice(exc)
        if advice is None:
            raise TableUnavailable(failed) from exc
        raise SinkError(f"{url}: {failed}. {advice}", path=url) from exc


def _advice(exc: Exception) -> str | None:
    """Return what to do about an error that is final, None for one that may go away."""
    from deltalake.exceptions import DeltaProtocolError, SchemaMismatchError

    if _PROTOCOL.search(str(exc)):
        return (
            "Another writer has given the table a protocol that the installed deltalake does not know. Upgrade "
            "deltalake, drop the feature from the table (ALTER TABLE … DROP FEATURE … TRUNCATE HISTORY), or give "
            "another table; then start again: nothing will count twice."
        )
    if isinstance(exc, DeltaProtocolError | SchemaMismatchError | ValueError | KeyError) or _REFUSED.search(
        str(exc)
    ):
        return (
            "The table, the permissions or the credentials do not allow it. Correct that, and start again: nothing "
            "will count twice."
        )
    return None


def reason_of(exc: Exception) -> str:
    """Return the first 300 characters of an error of delta-rs, without colours, backtrace and the query of a URL."""
    text = _QUERY.sub("?…", _COLOURS.sub("", _BACKTRACE.sub("", str(exc)))).replace("↳", "")
    return " ".join(text.split())[:300].rstrip(". ") or type(exc).__name__
