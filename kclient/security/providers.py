"""Where a value comes from when it does not stand in the configuration: the environment, or a file.

Any function without arguments that returns the value is a provider too. A provider of a password or a key is asked
anew for every connection, so a secret that was rotated is used without a restart; that of any other key once.
"""

from __future__ import annotations

import os
from os import PathLike

import attrs

from kclient.security.local_file import LARGEST_TEXT, read_local


def problem_of(problem: OSError | ValueError) -> str:
    """Why a file cannot be read."""
    return (problem.strerror if isinstance(problem, OSError) else None) or str(problem)


@attrs.frozen(repr=False)
class _Env:
    name: str

    def __repr__(self) -> str:
        return f"env({self.name!r})"

    def __call__(self) -> str:
        value = os.environ.get(self.name)
        if value is None:
            raise ValueError(f"comes from the environment variable {self.name}, which is not set")
        return value


@attrs.frozen(repr=False)
class _File:
    path: str

    def __repr__(self) -> str:
        return f"file({self.path!r})"

    def __call__(self) -> str:
        try:
            content = read_local(self.path, LARGEST_TEXT).decode()
        except (OSError, ValueError) as exc:  # ValueError: a path with NUL, too
            why = "it is not UTF-8 text" if isinstance(exc, UnicodeDecodeError) else problem_of(exc)
            raise ValueError(f"comes from the file {self.path}, which cannot be read: {why}") from None
        return content.removesuffix("\n").removesuffix("\r")


def env(name: str) -> _Env:
    """The value of an environment variable: `sasl_password=env("KAFKA_PASSWORD")`."""
    return _Env(name)


def file(path: str | PathLike[str]) -> _File:
    """The text of a file without its last line end: `sasl_password=file("/run/secrets/kafka")`."""
    return _File(os.fspath(path))
