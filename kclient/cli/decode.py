"""`kclient decode`: the bytes of a request or response, in hex, as the message that they are.

A request says what it is: API key and version are in its header. A response does not, so --api and --version must say
whose response it is. The int32 size before a frame may be there or not.
"""

from __future__ import annotations

import json as json_form
import re
import sys
from collections.abc import Iterator
from struct import Struct
from typing import Annotated, Any, Final

from cyclopts import Parameter

from kclient.cli.exit_codes import OK
from kclient.cli.options import flag, option
from kclient.errors import ArgumentError, ProtocolDecodeError
from kclient.generated.request_header import RequestHeader
from kclient.protocol import to_json
from kclient.protocol.headers import read_response_header, request_header_version
from kclient.protocol.registry import message_class, message_names, read_message, request_name, response_name

SIZE: Final = Struct(">i")
START: Final = Struct(">hh")
_BETWEEN: Final = re.compile(r"[\s:,]|0x", re.IGNORECASE)
HIDDEN: Final = "authBytes"  # of SaslAuthenticate: the password of PLAIN, for one


def decode(
    *words: Annotated[
        str,
        Parameter(
            name="HEX", required=False, help="one frame; none reads standard input, a frame on each line"
        ),
    ],
    api: Annotated[
        str | None, option("the API of a response, as ApiVersions or 18", "NAME", alias="-a")
    ] = None,
    version: Annotated[int | None, option("the version of its request", "N", alias="-V")] = None,
    json: Annotated[bool, flag("one JSON object on a line for each frame")] = False,
) -> int:
    """Decode requests and responses of the Kafka protocol from hex digits.

    A request needs no option; a response needs --api and --version of its request. What SaslAuthenticate carries is
    not shown.

        echo 00120004000000010004746573740000 | kclient decode
    """
    if (api is None) != (version is None):
        raise ArgumentError("a response is decoded with --api and --version, a request with neither of them")
    for frame in _frames(words):
        found = (
            read_request(frame)
            if api is None or version is None
            else read_response(frame, _key(api), version)
        )
        sys.stdout.write(json_form.dumps(found, indent=None if json else 2) + "\n")
    return OK


def _frames(words: tuple[str, ...]) -> Iterator[bytes]:
    """Yield the frames of the arguments, which are one, or of the lines of standard input."""
    lines: Any = [" ".join(words)] if words else (sys.stdin or ())
    for line in lines:
        if digits := _BETWEEN.sub("", line):
            try:
                frame = bytes.fromhex(digits)
            except ValueError as exc:
                raise ArgumentError(
                    f"these are not bytes in hex: {exc}. Write two digits for each byte."
                ) from exc
            yield _without_size(frame)


def _without_size(frame: bytes) -> bytes:
    has_size = len(frame) >= SIZE.size and SIZE.unpack_from(frame)[0] == len(frame) - SIZE.size
    return frame[SIZE.size :] if has_size else frame


def _key(api: str) -> int:
    """Return the API key of a name or number. Raise ArgumentError."""
    names = {name.removesuffix("Request"): name for name in message_names() if name.endswith("Request")}
    keys = {short: message_class(name).API_KEY for short, name in names.items()}
    found = next((key for short, key in keys.items() if api.lower() in (short.lower(), str(key))), None)
    if found is None:
        raise ArgumentError(f"--api {api} is no API that kclient knows. There are {', '.join(sorted(keys))}.")
    return found


def read_request(frame: bytes) -> dict[str, Any]:
    """Return a request without its size as JSON. Raise ArgumentError for an unknown API, ProtocolDecodeError."""
    if len(frame) < START.size:
        raise ArgumentError(f"a request has at least {START.size} bytes, these are {len(frame)}")
    key, version = START.unpack_from(frame)
    try:
        name = request_name(key)
    except KeyError:
        raise ArgumentError(
            f"API key {key} is none that kclient knows: it is no request, or begins elsewhere. "
            "A response needs --api and --version."
        ) from None
    header, at = read_message("RequestHeader", request_header_version(key, version), frame)
    assert isinstance(header, RequestHeader)  # noqa: S101 – for the type checker
    start = {"api": name.removesuffix("Request"), "version": version, "correlationId": header.correlation_id}
    return {"request": start | {"clientId": header.client_id}, "message": _message(name, version, frame, at)}


def read_response(frame: bytes, key: int, version: int) -> dict[str, Any]:
    """Return a response without its size as JSON. Raise ArgumentError for an unknown version, ProtocolDecodeError."""
    name = response_name(key)
    low, high = message_class(name).VERSIONS
    if not low <= version <= high:
        raise ArgumentError(f"--version {version}: {name} has the versions {low} to {high}")
    correlation_id, at = read_response_header(key, version, frame)
    start = {"api": name.removesuffix("Response"), "version": version, "correlationId": correlation_id}
    return {"response": start, "message": _message(name, version, frame, at)}


def _message(name: str, version: int, frame: bytes, at: int) -> dict[str, Any]:
    message, end = read_message(name, version, frame, at)
    if end != len(frame):
        raise ProtocolDecodeError(
            f"{len(frame) - end} bytes are left after {name} version {version}. They are another frame, or this one is "
            "of another version. Give one frame a line.",
            message=name,
            version=version,
            field="",
            offset=end,
        )
    found = to_json(message, version)
    if HIDDEN in found:
        found[HIDDEN] = "***"
    return found
