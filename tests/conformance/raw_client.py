"""A blocking client that sends one request and reads its response: no retries, no routing, nothing hidden.

    with RawClient("127.0.0.1", 9092) as raw_client:
        response = raw_client.ask(MetadataRequest(topics=None), 12)

`send` and `receive` take the two halves apart, for responses that a broker holds back. What stands after a response's
message fails the test (H-06 lets a client tolerate it, a judge does not).
"""

from __future__ import annotations

import socket
import struct
from typing import Any, Self

from kclient.protocol.headers import read_response_header, request_frame
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, response_name

SECONDS = 10.0


class RawClient:
    """One connection. Requests may overlap; responses come in the order of the requests."""

    def __init__(
        self, host: str, port: int, client_id: str | None = "asker", timeout: float = SECONDS
    ) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._client_id = client_id
        self._asked: list[tuple[int, int, int]] = []  # correlation id, API, version
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and wait for its response. Raises TimeoutError, ConnectionError."""
        self.send(request, version)
        return self.receive()

    def send(self, request: Message, version: int, behind: bytes = b"") -> None:
        """Send a request, with bytes `behind` its message that do not belong to it."""
        self._correlation_id += 1
        api_key = request.API_KEY
        assert api_key is not None
        frame = b"".join(request_frame(request, version, self._correlation_id, self._client_id)[1:]) + behind
        self._asked.append((self._correlation_id, api_key, version))
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def send_raw(self, frame: bytes) -> None:
        """Send a frame as it is; `read_frame` reads what comes."""
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, timeout: float = SECONDS) -> Any:
        """The response to the oldest request that has none. Raises TimeoutError, ConnectionError."""
        correlation_id, api_key, version = self._asked[0]
        frame = self.read_frame(timeout)
        del self._asked[0]
        echoed, at = read_response_header(api_key, version, frame)
        assert echoed == correlation_id
        response, end = read_message(response_name(api_key), version, frame, at)
        assert end == len(frame), f"{len(frame) - end} bytes behind {response}"
        return response

    def read_frame(self, timeout: float = SECONDS) -> bytes:
        """The next frame without its size. Raises TimeoutError, ConnectionError."""
        self._socket.settimeout(timeout)
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        self._socket.settimeout(seconds)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) is None
        except TimeoutError:
            return True

    def closed(self) -> bool:
        """Whether the broker ends the connection without another byte."""
        self._socket.settimeout(SECONDS)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
            data += part
        return bytes(data)
