"""Request and response headers: their versions, and whole request frames.

A response header does not contain its version, so both sides derive it from the API and the version of the request.
ApiVersions responses have header 0 in every version: a client must be able to read them before it knows which
versions the broker supports.
"""

from __future__ import annotations

from struct import Struct

from kclient.errors import InternalError
from kclient.generated.request_header import RequestHeader
from kclient.generated.response_header import ResponseHeader
from kclient.protocol.message import Message
from kclient.protocol.primitives import Buffer
from kclient.protocol.registry import MESSAGES, read_message, request_name, response_name, write_message

API_VERSIONS = 18

_pack_size = Struct(">i").pack


def request_header_version(api_key: int, version: int) -> int:
    """Return 2 for flexible versions of the request, otherwise 1. Raise KeyError for an unknown API."""
    return 2 if _flexible(request_name(api_key), version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return 1 for flexible versions, otherwise 0; always 0 for ApiVersions. Raise KeyError for an unknown API."""
    return 1 if api_key != API_VERSIONS and _flexible(response_name(api_key), version) else 0


def request_frame(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> list[bytes | memoryview]:
    """Return the parts of a request frame: int32 size, header, the parts of the body.

    Raise ProtocolEncodeError.
    """
    api_key = message.API_KEY
    if api_key is None:
        raise InternalError(f"{message.NAME} is not a request")
    header = RequestHeader(
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    parts = write_message(header, request_header_version(api_key, version)) + write_message(message, version)
    return [_pack_size(sum(map(len, parts))), *parts]


def read_response_header(api_key: int, version: int, frame: Buffer) -> tuple[int, int]:
    """Return the correlation id of a response frame (without its size) and the offset of the body.

    Raise ProtocolDecodeError.
    """
    header, offset = read_message("ResponseHeader", response_header_version(api_key, version), frame)
    if not isinstance(header, ResponseHeader):
        raise InternalError("the response header has another class")
    return header.correlation_id, offset


def _flexible(name: str, version: int) -> bool:
    since = MESSAGES[name].flexible_since
    return since is not None and version >= since
