"""Secrets that never appear in a log or an error, and where their values come from: env() and file().

Only `reveal()` returns the text; repr, str, format, pickle and JSON do not. A secret that gets into a log line, an
exception or a message to another process is three stars or an error. While the text is in use, `HiddenText` and
`HiddenBytes` keep it out of every repr, because an error report may contain the local variables of all functions.

Any function without arguments that returns the value is a provider too. The provider of a password or a key is called
again for each connection, so a rotated secret is used without a restart; that of any other key is called once.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from os import PathLike
from typing import Final, NoReturn
from urllib.parse import unquote_to_bytes

import attrs

from kclient.security.local_file import LARGEST_TEXT, read_local

Source = str | Callable[[], str]

ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{4,}")
NOT_ENCODED: Final = re.compile(r"[^A-Za-z0-9+/_-]+")


class Secret:
    """A password, a key, or a provider of one, which is called each time the text is needed."""

    __slots__ = ("_source",)

    def __init__(self, source: Source) -> None:
        self._source = source

    def reveal(self) -> str:
        """Return the text. Raise ValueError if a provider fails; the message never contains its value.

        A provider that fails otherwise, say with the OSError of a vault, must not pass for a failure of the network;
        one that calls sys.exit() must not end the loop, nor one that was cancelled the task that asks.
        """
        if isinstance(self._source, str):
            return self._source
        try:
            found = self._source()
        except ValueError:
            raise
        except (Exception, asyncio.CancelledError, SystemExit) as exc:
            raise ValueError(
                f"is provided by a function, which failed with {type(exc).__name__}; call it by hand to see why"
            ) from exc
        if not isinstance(found, str):
            raise ValueError(f"must be provided as text, not as {type(found).__name__}")
        return found

    def __repr__(self) -> str:
        return "***"

    def __str__(self) -> str:
        raise TypeError("a secret does not become text by accident; write reveal() where its text is needed")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(_bytes(self), _bytes(other))

    def __hash__(self) -> int:
        return hash(Secret)  # the same for all: a hash of the text would leak something about it

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a secret does not leave its process; send its reference, such as file(…) or env(…), or the option's text"
        )


def _bytes(secret: Secret) -> bytes:
    return secret.reveal().encode("utf-8", "surrogatepass")


class HiddenText(str):
    """Text like any other whose repr is three stars. It pickles, as the text that it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


class HiddenBytes(bytes):
    """Bytes like any other whose repr is three stars."""

    def __repr__(self) -> str:
        return "***"


def without_secret(message: str, secret: str) -> str:
    """Return a peer's message without the secret, which it may have echoed in plain or encoded form."""
    if not secret:
        return message
    message = message.replace(secret, "***")
    if any(secret.encode() in decoded for decoded in _decoded(message)):
        return "(not shown, for it repeats the secret)"
    return message


def _decoded(text: str) -> Iterator[bytes]:
    """Yield the base64, hex and percent-decoded forms of a text, from each offset where an encoded group may begin.

    The broker may have inserted spaces into an encoded password, so the text without them is decoded too.
    """
    yield unquote_to_bytes(text)
    for word in ENCODED.findall(f"{text} {NOT_ENCODED.sub('', text)}"):
        for shift in range(4):  # base64 encodes in groups of 4 characters, so there are four possible starts
            code = word[shift:].replace("+", "-").replace("/", "_")
            with suppress(ValueError):
                yield base64.urlsafe_b64decode(
                    code[: len(code) - (len(code) % 4 == 1)] + "=" * (-len(code) % 4)
                )
            with suppress(ValueError):
                yield bytes.fromhex(code[: len(code) // 2 * 2])


def problem_of(problem: OSError | ValueError) -> str:
    """Return why a file cannot be read."""
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
    """Return a provider of an environment variable's value: `sasl_password=env("KAFKA_PASSWORD")`."""
    return _Env(name)


def file(path: str | PathLike[str]) -> _File:
    """Return a provider of a file's text without its last line end: `sasl_password=file("/run/secrets/kafka")`."""
    return _File(os.fspath(path))
