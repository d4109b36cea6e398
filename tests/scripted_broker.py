"""A broker that answers from a script, on a real loopback socket, for tests of error → action tables.

    async with ScriptedBroker(
        On("FindCoordinatorRequest", FindCoordinatorResponse(error_code=15)),
        On("JoinGroupRequest", lambda request: JoinGroupResponse(...), check=lambda r: r.member_id == ""),
        On("HeartbeatRequest", close=True),                  # the connection ends, after the response if there is one
        On("FetchRequest", FetchResponse(...), delay=0.2),   # later requests on the connection wait for it
        On("SyncGroupRequest"),                              # never answered, as all later requests on the connection
        On("LeaveGroupRequest", raw=b"..."),                 # these bytes as they are, size included
        topics={"orders": 3},
    ) as peer:
        cluster = Cluster(Config(bootstrap_servers=(peer.address,)), Runtime())

A request takes the first remaining step of its name: the script orders the requests of one API, not those of different
APIs. ApiVersions is answered from `versions` (name → range). Once no step of a name is left, `default_responses`
(name → response) is used. With `topics` it answers Metadata: `brokers` (this broker alone unless set) and the requested
topics, led by `leaders[topic, partition]`, else by this broker. With `tls` all traffic uses TLS. On exit from the
block the test fails for a request that no step expected (its connection is closed), for a failed check and for a step
that no request took.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kclient.generated.response_header import ResponseHeader
from kclient.generated.sasl_handshake_response import SaslHandshakeResponse
from kclient.protocol.errors import ILLEGAL_SASL_STATE
from kclient.protocol.headers import request_header_version, response_header_version
from kclient.protocol.registry import read_message, request_name, write_message
from tests.default_responses import api_versions, metadata

NO_SASL_HERE = SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE)
Topics = Mapping[str, int] | None
Versions = Mapping[str, tuple[int, int]] | None


class On(NamedTuple):
    """One step: the expected request, and its response (a response, or a function that returns one) or a fault."""

    request: str
    answer: Any = None
    check: Callable[[Any], object] | None = None
    delay: float = 0.0
    close: bool = False
    raw: bytes = b""


class Seen(NamedTuple):
    """A received request: `connection` counts from 0, `at` is the loop's time."""

    name: str
    version: int
    message: Any
    connection: int
    at: float


class ScriptedBroker:
    """See the module. `port` is set inside the block; `requests` holds the received requests without ApiVersions."""

    def __init__(
        self,
        *script: On,
        node_id: int = 0,
        topics: Topics = None,
        versions: Versions = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.tls = tls
        self.script, self.node_id, self.topics = list(script), node_id, dict(topics or {})
        self.versions, self.host, self.port = dict(versions or {}), "127.0.0.1", 0
        self.default_responses: dict[str, Any] = {"SaslHandshakeRequest": NO_SASL_HERE}
        if topics is not None:
            self.default_responses["MetadataRequest"] = partial(metadata, self)
        self.brokers: Sequence[ScriptedBroker] = [self]
        self.leaders: dict[tuple[str, int], int] = {}
        self.leader_epoch = 0
        self.requests: list[Seen] = []
        self.connections: list[asyncio.StreamWriter] = []
        self.problems: list[str] = []

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def of(self, name: str) -> list[Any]:
        return [seen.message for seen in self.requests if seen.name == name]

    def drop_connections(self) -> None:
        for writer in self.connections:
            writer.transport.abort()

    async def __aenter__(self) -> ScriptedBroker:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, kind: object, raised: BaseException | None, trace: object) -> None:
        self._server.close()
        self.drop_connections()
        problems = "; ".join([*self.problems, *(f"{step.request} was never sent" for step in self.script)])
        if raised is not None:
            raised.add_note(f"broker {self.node_id}: {problems or 'as scripted'}")
        elif problems:
            raise AssertionError(f"broker {self.node_id}: {problems}")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = len(self.connections)
        self.connections.append(writer)
        try:
            while await self._step(number, reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client or the test has ended
        except Exception as exc:  # noqa: BLE001 – any error must fail the test
            self.problems.append(repr(exc))
        writer.close()

    async def _step(
        self, connection: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        frame = await reader.readexactly(struct.unpack(">i", await reader.readexactly(4))[0])
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        _, at = read_message("RequestHeader", request_header_version(key, version), frame)
        message, end = read_message(request_name(key), version, frame, at)
        if end != len(frame):
            raise ValueError(f"{len(frame) - end} bytes after {message}")
        now = asyncio.get_running_loop().time()
        step = self._take(Seen(request_name(key), version, message, connection, now))
        await asyncio.sleep(step.delay)
        if step.answer is not None:
            response = step.answer(message) if callable(step.answer) else step.answer
            header = ResponseHeader(correlation_id=correlation_id)
            head = write_message(header, response_header_version(key, version))
            body = b"".join([*head, *write_message(response, version)])
            writer.write(struct.pack(">i", len(body)) + body)
        writer.write(step.raw)
        if step.answer is None and not step.raw and not step.close:
            await reader.read()
        return not step.close

    def _take(self, seen: Seen) -> On:
        if seen.name == "ApiVersionsRequest" and not any(step.request == seen.name for step in self.script):
            return On(seen.name, api_versions(self.versions))
        self.requests.append(seen)
        step = next((step for step in self.script if step.request == seen.name), None)
        if step is None and seen.name in self.default_responses:
            return On(seen.name, self.default_responses[seen.name])
        if step is None:
            self.problems.append(f"unexpected {seen.message}")
            return On(seen.name, close=True)
        self.script.remove(step)
        if step.check is not None and not step.check(seen.message):
            self.problems.append(f"the check failed for {seen.message}")
        return step
