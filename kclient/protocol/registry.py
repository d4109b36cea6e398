"""From a name and a version to the generated code, and from what that raises to the typed errors.

The modules of `kclient.generated` are imported when a message of theirs is first needed: a consumer that never
describes a group never pays for that module.
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
    """The names of all messages, in alphabetical order."""
    return tuple(sorted(MESSAGES))


def request_name(api_key: int) -> str:
    """The request of an API; KeyError where there is none."""
    return _REQUESTS[api_key]


def response_name(api_key: int) -> str:
    """The response of an API; KeyError where there is none."""
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
    """The generated class of a message. Raises ArgumentError for a name that no message has."""
    return _load(name)[0]


def read_message(name: str, version: int, data: Buffer, offset: int = 0) -> tuple[Message, int]:
    """The message that begins at `offset`, and the offset behind it; what lies there is the caller's business.

    Records and nothing else remain a view into `data`. Raises ProtocolDecodeError, and ArgumentError for a name
    that no message has.
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
    """The message's bytes in parts, for `writelines`; records are passed on, not copied.

    Raises ProtocolEncodeError, also for a field that is set though the version lacks it and it is not ignorable.
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
        from difflib import get_close_matches  # only ever needed here

        near = get_close_matches(name, MESSAGES, n=1)
        raise ArgumentError(f"There is no message {name!r}." + (f" Did you mean {near[0]}?" if near else ""))
    module = import_module(f"kclient.generated.{MESSAGES[name].module}")
    return getattr(module, name), module.CODECS
