"""Schemas in files of this machine, which the options of Spark and of the command line name."""

from __future__ import annotations

from typing import Final

from kclient.errors import ConfigError
from kclient.security.local_file import read_local
from kclient.security.secret import problem_of

MAX_SCHEMA_BYTES: Final = 4 << 20


def read_schema_file(option: str, path: str, why: str) -> bytes:
    """Read a schema file. `why` says why the option's text is a file's name. Raises ConfigError."""
    try:
        return read_local(path, MAX_SCHEMA_BYTES)
    except (OSError, ValueError) as exc:
        raise ConfigError(
            f"{option} {why}, and {path[:200]!r} cannot be read: {problem_of(exc)}. "
            "Give the path of a schema that this process can read, or the schema itself."
        ) from exc
