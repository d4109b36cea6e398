"""A proxy between a consumer and a real broker that decodes all traffic and changes none of it.

tap = Tap()
with Consumer("orders", runtime=tap, …) as consumer: …
assert [one.version for one in tap.asked("Fetch")] == …
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable
from typing import Any

import attrs

from kclient.protocol.headers import read_response_header, request_header_version
from kclient.protocol.registry import read_message, request_name, response_name
from kclient.runtime import Address, Runtime

SIZE = struct.Struct(">i")
KEY_AND_VERSION = struct.Struct(">hh")


@attrs.define
class Exchange:
    """One request, the port of the broker it went to, and its response once that has come.

    `beside` are the ports that requests of the same API had gone to and were not answered yet; `connection` is the
    same for all requests of one connection, and for no other.
    """

    api: str
    version: int
    request: Any
    port: int
    beside: list[int] = attrs.field(factory=list)
    client_id: str | None = None
    connection: object = None
    response: Any = None


@attrs.define
class Tap(Runtime):
    """The usual runtime, whose connections are read along; the oldest request first."""

    exchanges: list[Exchange] = attrs.field(factory=list, repr=False)

    def asked(self, api: str) -> list[Exchange]:
        """The requests of one API."""
        return [one for one in list(self.exchanges) if one.api == api]

    def answered(self, api: str) -> list[Exchange]:
        """Those of them that have a response."""
        return [one for one in self.asked(api) if one.response is not None]

    def apis(self) -> list[str]:
        """The APIs of all requests, in their order."""
        return [one.api for one in list(self.exchanges)]

    def forget(self) -> None:
        """Begin again."""
        self.exchanges.clear()

    async def connect(
        self, factory: Callable[[], asyncio.BaseProtocol], address: Address, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        def tapped() -> asyncio.BaseProtocol:
            inner = factory()
            return (
                TappedProtocol(inner, self, address.port)
                if isinstance(inner, asyncio.BufferedProtocol)
                else inner
            )

        return await Runtime.connect(self, tapped, address, **options)


class TappedProtocol(asyncio.BufferedProtocol):
    """Between a transport and the protocol that it serves."""

    def __init__(self, inner: asyncio.BufferedProtocol, tap: Tap, port: int) -> None:
        self._inner = inner
        self._tap = tap
        self._port = port
        self._said, self._heard = bytearray(), bytearray()
        self._open: dict[int, Exchange] = {}
        self._buffer = memoryview(b"")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._inner.connection_made(TappedTransport(transport, self.said))

    def get_buffer(self, sizehint: int) -> memoryview:
        self._buffer = memoryview(self._inner.get_buffer(sizehint))
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._heard += self._buffer[:nbytes]
        for frame in whole_frames(self._heard):
            self._answered(frame)
        self._inner.buffer_updated(nbytes)

    def said(self, data: bytes | bytearray | memoryview) -> None:
        """The client has sent these bytes."""
        self._said += data
        for frame in whole_frames(self._said):
            self._asked(frame)

    def _asked(self, frame: bytes) -> None:
        key, version = KEY_AND_VERSION.unpack_from(frame)
        name = request_name(key)
        header, at = read_message("RequestHeader", request_header_version(key, version), frame)
        request, _ = read_message(name, version, frame, at)
        api = name.removesuffix("Request")
        beside = [one.port for one in self._tap.asked(api) if one.response is None]
        client_id: str | None = header.client_id  # type: ignore[attr-defined]
        exchange = Exchange(api, version, request, self._port, beside, client_id, self)
        self._open[header.correlation_id] = exchange  # type: ignore[attr-defined]
        self._tap.exchanges.append(exchange)

    def _answered(self, frame: bytes) -> None:
        (correlation_id,) = SIZE.unpack_from(frame)
        exchange = self._open.pop(correlation_id)
        key = exchange.request.API_KEY
        version = exchange.version
        if exchange.api == "ApiVersions" and int.from_bytes(frame[4:6]) == 35:
            version = 0  # UNSUPPORTED_VERSION comes in a form that every client can read
        _, at = read_response_header(key, version, frame)
        exchange.response, _ = read_message(response_name(key), version, frame, at)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


class TappedTransport(asyncio.Transport):
    """A transport that reports what is written to it."""

    def __init__(self, inner: asyncio.Transport, said: Callable[[Any], None]) -> None:
        super().__init__()
        self._inner = inner
        self._tell = said

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._tell(data)
        self._inner.write(data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def abort(self) -> None:
        self._inner.abort()

    def close(self) -> None:
        self._inner.close()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._inner.get_write_buffer_size()

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()


def whole_frames(data: bytearray) -> Iterable[bytes]:
    """Take the frames that are whole off the front."""
    while len(data) >= SIZE.size:
        (size,) = SIZE.unpack_from(data)
        if len(data) < SIZE.size + size:
            return
        frame = bytes(data[SIZE.size : SIZE.size + size])
        del data[: SIZE.size + size]
        yield frame
