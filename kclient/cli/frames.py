"""Frames of the Kafka protocol, requests and responses, as JSON."""

from __future__ import annotations

from struct import Struct
from typing import Any, Final

from kclient.errors import ArgumentError, ProtocolDecodeError
from kclient.generated.request_header import RequestHeader
from kclient.protocol import to_json
from kclient.protocol.headers import read_response_header, request_header_version
from kclient.protocol.registry import message_class, read_message, request_name, response_name

START: Final = Struct(">hh")
HIDDEN: Final = "authBytes"  # of SaslAuthenticate: the password of PLAIN, for one


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
