"""`kclient decode`: the bytes of a request or response, in hex, as the message that they are.

A request says what it is: API key and version are in its header. A response does not, so --api and --version must say
whose response it is. The int32 size before a frame may be there or not. In a capture of packets (`conversations.py`)
each response has its request.
"""

from __future__ import annotations

import json as json_form
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from struct import Struct
from typing import Annotated, Any, BinaryIO, Final

from cyclopts import Parameter

from kclient.cli import program
from kclient.cli.capture import segments
from kclient.cli.conversations import Conversations
from kclient.cli.exit_codes import OK
from kclient.cli.frames import read_request, read_response
from kclient.cli.options import flag, option
from kclient.errors import ArgumentError
from kclient.protocol.registry import message_class, message_names, request_name
from kclient.security.secret import problem_of
from kclient.text import printable

SIZE: Final = Struct(">i")
_BETWEEN: Final = re.compile(r"[\s:,]|0x", re.IGNORECASE)


def decode(
    *words: Annotated[
        str,
        Parameter(
            name="HEX", required=False, help="one frame; none reads standard input, a frame on each line"
        ),
    ],
    api: Annotated[
        str | None,
        option(
            "the API of a response, as ApiVersions or 18; of a capture, only this API", "NAME", alias="-a"
        ),
    ] = None,
    version: Annotated[int | None, option("the version of its request", "N", alias="-V")] = None,
    capture: Annotated[
        str | None,
        option(
            "read the packets of tcpdump, tshark or Wireshark (pcap, pcapng); - is standard input",
            "FILE",
            alias="-r",
            allow_leading_hyphen=True,
        ),
    ] = None,
    port: Annotated[
        list[int] | None, option("of a capture, only brokers at this port; repeat for more", "N", alias="-p")
    ] = None,
    json: Annotated[bool, flag("one JSON object on a line for each frame")] = False,
) -> int:
    """Decode requests and responses of the Kafka protocol from hex digits, or from a capture of packets.

    In hex, a request needs no option; a response needs --api and --version of its request. What SaslAuthenticate
    carries is not shown.

        echo 00120004000000010004746573740000 | kclient decode
        tcpdump -i any -w - port 9092 | kclient decode --json -r -
    """
    if capture is not None:
        if words or version is not None:
            raise ArgumentError(
                "--capture is not allowed with HEX, nor with --version: a capture has the requests"
            )
        return _decode_capture(capture, port or (), None if api is None else _name(api), json)
    if port:
        raise ArgumentError("--port belongs to --capture FILE")
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


def _decode_capture(path: str, ports: Sequence[int], api: str | None, json: bool) -> int:
    """Print the requests and responses of a capture, and on standard error what could not be read."""
    conversations = Conversations(ports)
    with _opened(path) as file:
        for found in conversations.read(segments(file)):
            if api is None or api in (found.get(kind, {}).get("api") for kind in ("request", "response")):
                sys.stdout.write(json_form.dumps(found, indent=None if json else 2) + "\n")
    sys.stdout.flush()
    sys.stderr.writelines(f"{program()} decode: {line}\n" for line in conversations.summary())
    return OK


def _opened(path: str) -> AbstractContextManager[BinaryIO]:
    if path == "-":
        return nullcontext(sys.stdin.buffer)
    try:
        return open(path, "rb")
    except OSError as exc:
        raise ArgumentError(f"--capture {printable(path)} cannot be read: {problem_of(exc)}") from exc


def _name(api: str) -> str:
    """Return the name of an API of which the name or number is given. Raise ArgumentError."""
    return request_name(_key(api)).removesuffix("Request")


def _key(api: str) -> int:
    """Return the API key of a name or number. Raise ArgumentError."""
    names = {name.removesuffix("Request"): name for name in message_names() if name.endswith("Request")}
    keys = {short: message_class(name).API_KEY for short, name in names.items()}
    found = next((key for short, key in keys.items() if api.lower() in (short.lower(), str(key))), None)
    if found is None:
        raise ArgumentError(f"--api {api} is no API that kclient knows. There are {', '.join(sorted(keys))}.")
    return found
