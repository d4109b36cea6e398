"""What ended a Spark query, as the error that it was before Spark wrapped it into texts.

An error of the planner or of a task arrives as the text of a Python traceback inside of a Java exception; its last line
names the class and what it said. Spark's own sinks fail in Java's words.
"""

from __future__ import annotations

import re
from typing import Final

from kclient import errors
from kclient.errors import KclientError, SinkError

_OURS: Final = re.compile(
    r"^(?:[\w.]*: )*kclient\.errors\.(\w+): (.*?)  \[KC-\d{3}\]", re.MULTILINE | re.DOTALL
)
_WRITING: Final = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied"
    r"|(?:ParentNotDirectory|FileAlreadyExists)Exception: [^\n]*|TASK_WRITE_FAILED[^\n]*"
)
"""What Java and Spark say when a file cannot be written."""


def typed(failure: Exception) -> Exception:
    """The error of ours that Spark tells of, with its text; the failure itself where it tells of none."""
    found = _OURS.findall(str(failure))
    for name, text in reversed(found):
        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, KclientError):
            return kind(text)
    if reason := _WRITING.search(str(failure)):
        return SinkError(
            f"Spark could not write what it read: {reason[0].strip()}. The disk may be full, or a directory not "
            "writable. Make room or grant the permission, and start again: nothing will count twice."
        )
    return failure
