"""Redirects the output of Spark's JVM and Python workers from the terminal to a file.

They inherit the descriptors 1 and 2 of this process. While a job runs these lead to the file, and our own streams to
where they led before.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kclient.errors import SinkError


@contextlib.contextmanager
def talk_into(path: str | Path) -> Iterator[None]:
    """Let descriptors 1 and 2 append to a file for the block. Raise SinkError if it cannot be written."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as exc:
        raise SinkError(
            f"Spark's log {path} cannot be written: {exc.strerror}. Give another file with --spark-log, or '-' for "
            "the terminal.",
            path=str(path),
        ) from exc
    out, err = sys.stdout, sys.stderr
    out.flush()
    err.flush()
    kept = os.dup(1), os.dup(2)
    try:
        sys.stdout, sys.stderr = (os.fdopen(os.dup(one), "w", encoding="utf-8", buffering=1) for one in kept)
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        with contextlib.suppress(BrokenPipeError):  # already reported where it occurred
            sys.stdout.close()
            sys.stderr.close()
        sys.stdout, sys.stderr = out, err
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)
        os.close(file)
