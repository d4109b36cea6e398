"""Finds the generated code for a name and a version, and turns its exceptions into the typed errors.

The modules of `kclient.generated` are imported on first use of their message: a consumer that never
describes a group does not import that module.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from kclient.errors import ArgumentError, ProtocolDecodeError, ProtocolEncodeError
from kclient.generated.index import MESSAGES as _ROWS
from kclient.protocol.message import Entry, Message
from kclient.protocol.primitives import MALFORMED, UNWRITABLE, Buffer, Codec
from kclient.protocol.read_failure import read_failure
from kclient.protocol.write_failure import write_failure

MESSAGES = {name: Entry(*row) for name, row in _ROWS.items()}

_REQUESTS = {entry.api_key: name for name, entry in MESSAGES.items() if entry.type == "request"}
_RESPONSES = {entry.api_key: name for name, entry in MESSAGES.items() if entry.type == "response"}


def message_names() -> tuple[str, ...]:
    """Return the names of all messages, in alphabetical order."""
    return tuple(sorted(MESSAGES))


def request_name(api_key: int) -> str:
    """Return the name of an API's request. Raise KeyError if there is none."""
    return _REQUESTS[api_key]


def response_name(api_key: int) -> str:
    """Return the name of an API's response. Raise KeyError if there is none."""
    return _RESPONSES[api_key]


def check_version(
    message: type[Message],
    version: int,
    error: type[ProtocolDecodeError] | type[ProtocolEncodeError] = ProtocolEncodeError,
) -> None:
    """Raise `error` for a version that the message does not have."""
    lowest, highest = message.VERSIONS
    if not lowest <= version <= highest:
        text = f"{message.NAME} has versions {lowest} to {highest}, not {version}"
        raise error(text, message=message.NAME, version=version, field="")


def message_class(name: str) -> type[Message]:
    """Return the generated class of a message. Raise ArgumentError for an unknown name."""
    return _load(name)[0]


def read_message(name: str, version: int, data: Buffer, offset: int = 0) -> tuple[Message, int]:
    """Return the message that begins at `offset`, and the offset after it; the caller checks for trailing bytes.

    Only records fields remain views into `data`. Raise ProtocolDecodeError, and ArgumentError for an unknown
    name.
    """
    message, codecs = _load(name)
    check_version(message, version, ProtocolDecodeError)
    try:
        return codecs[version][0](data, offset, len(data))
    except MALFORMED as exc:
        field, at, reason = read_failure(message, version, data, offset)
        raise ProtocolDecodeError(
            f"{name} version {version} cannot be read: {field} at byte {at} of {len(data)}: {reason}. "
            "The bytes are damaged, cut off or of another version. Close the connection and ask again.",
            message=name,
            version=version,
            field=field,
            offset=at,
        ) from exc


def write_message(message: Message, version: int) -> list[bytes | memoryview]:
    """Return the message's bytes in parts, for `writelines`; records are not copied.

    Raise ProtocolEncodeError, also for a field that is set, not ignorable and missing in the version.
    """
    _, codecs = _load(message.NAME)
    check_version(type(message), version)
    parts: list[bytes | memoryview] = []
    try:
        codecs[version][1](message, parts.append)
    except UNWRITABLE as exc:
        field, reason = write_failure(message, version)
        raise ProtocolEncodeError(
            f"{message.NAME} version {version} cannot be written: {field or 'message'}: {reason or exc}. "
            "Change the field, or write a version that has it.",
            message=message.NAME,
            version=version,
            field=field,
        ) from exc
    return parts


@cache
def _load(name: str) -> tuple[type[Message], dict[int, Codec[Any]]]:
    if name not in MESSAGES:
        from difflib import get_close_matches  # needed only here

        near = get_close_matches(name, MESSAGES, n=1)
        raise ArgumentError(f"There is no message {name!r}." + (f" Did you mean {near[0]}?" if near else ""))
    module = import_module(f"kclient.generated.{MESSAGES[name].module}")
    return getattr(module, name), module.CODECS
