"""A broker whose responses are bytes that no codec of ours would write, on a loopback socket of the same loop."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

from kclient.generated.response_header import ResponseHeader
from kclient.protocol.headers import request_header_version, response_header_version
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, request_name, write_message
from tests.default_responses import api_versions

Body = bytes | Message | None
Respond = Callable[[Any, int], Body]
SIZE = struct.Struct(">i")


class RawPeer:
    """`responses`: the name of a request → a function from request and version to the body of the response.

    A body is a message, bytes as they are, or None: the size of a frame of `announced` bytes is sent and `sent` bytes
    of it, and no more.
    """

    def __init__(self, responses: dict[str, Respond], announced: int = 0, sent: int = 0) -> None:
        self.responses: dict[str, Respond] = {
            "ApiVersionsRequest": lambda *asked: api_versions({}),
            **responses,
        }
        self.announced, self.sent = announced, sent
        self.port = 0
        self.asked: list[str] = []

    async def __aenter__(self) -> RawPeer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                frame = await reader.readexactly(SIZE.unpack(await reader.readexactly(4))[0])
                writer.write(self._response(frame))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    def _response(self, frame: bytes) -> bytes:
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        _, at = read_message("RequestHeader", request_header_version(key, version), frame)
        name = request_name(key)
        request, _ = read_message(name, version, frame, at)
        self.asked.append(name)
        body = self.responses[name](request, version)
        if body is None:
            return SIZE.pack(self.announced) + bytes(self.sent)
        head = write_message(
            ResponseHeader(correlation_id=correlation_id), response_header_version(key, version)
        )
        parts = [*head, *([body] if isinstance(body, bytes) else write_message(body, version))]
        return b"".join([SIZE.pack(sum(map(len, parts))), *parts])


def uvarint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([number & 0x7F | 0x80]), number >> 7
    return out + bytes([number])


def compact(text: str) -> bytes:
    return uvarint(len(text) + 1) + text.encode()


def broker(node_id: int, host: str, port: int) -> bytes:
    """A broker of Metadata 12 and 13."""
    return struct.pack(">i", node_id) + compact(host) + struct.pack(">i", port) + b"\0\0"


def topic(name: str, partitions: int = 0, code: int = 0) -> bytes:
    """A topic of Metadata 12 and 13; node 0 leads its partitions."""
    rows = b"".join(
        struct.pack(">hiii", 0, index, 0, 0) + b"\x02" + bytes(4) + b"\x02" + bytes(4) + b"\x01\0"
        for index in range(partitions)
    )
    head = struct.pack(">h", code) + compact(name) + name.encode()[:16].ljust(16, b"\1") + b"\0"
    return head + uvarint(partitions + 1) + rows + struct.pack(">i", 0) + b"\0"


def metadata(version: int, brokers: list[bytes], topics: bytes, topic_count: int) -> bytes:
    """The body of Metadata 12 or 13."""
    head = bytes(4) + uvarint(len(brokers) + 1) + b"".join(brokers) + compact("c") + bytes(4)
    tail = (struct.pack(">h", 0) if version >= 13 else b"") + b"\0"
    return head + uvarint(topic_count + 1) + topics + tail
