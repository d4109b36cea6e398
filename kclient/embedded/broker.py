"""One broker: it listens, decodes requests, lets the module of the API handle them, and sends the responses.

A broker can be killed (its connections are reset, its memory is lost), paused (it handles nothing, its connections
stay) and started again on the same port.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from kclient.embedded import apis, sasl
from kclient.embedded.api_error import ApiError
from kclient.embedded.connection import ServerConnection
from kclient.embedded.faults import Rule
from kclient.embedded.listener import Listener
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import BrokerState, ClusterState
from kclient.errors import ProtocolDecodeError
from kclient.generated.response_header import ResponseHeader
from kclient.log import get_logger
from kclient.protocol.headers import request_header_version, response_header_version
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, request_name, write_message

logger: Final = get_logger("kclient.embedded")

ANSWERS_BEFORE_THROTTLING: Final = Release.parse("2.0")  # older brokers delay the response itself


class EmbeddedBroker(BrokerState):
    """The server of a broker: its ports, its connections, and the requests that come in on them."""

    def __init__(
        self, state: ClusterState, node_id: int, listeners: list[Listener], rack: str | None
    ) -> None:
        super().__init__(state, node_id, listeners, rack)
        self.starting: Final = asyncio.Lock()  # one start at a time
        self.connections: list[ServerConnection] = []

    # --- life

    async def start(self, port: int | None = None) -> None:
        """Listen on the previous ports, the first listener on `port`. Raise OSError if one is in use."""
        first = self.listeners[0]
        before, first.port = first.port, first.port if port is None else port
        try:
            for listener in self.listeners:
                await self._listen(listener)
        except OSError:
            first.port = before
            self.stop()
            raise
        self.running = self.up = True

    async def _listen(self, listener: Listener) -> None:
        connection = partial(ServerConnection, self, listener, self.connections, self.handle_request)
        listener.server = await self.state.serve(connection, listener)
        if listener.port == 0:
            listener.port = listener.server.sockets[0].getsockname()[1]

    def stop(self, *, gently: bool = False) -> None:
        """Close the listeners, reset (or gently: close) every connection, drop all local state."""
        self.forget()
        for listener in self.listeners:
            if listener.server is not None:
                listener.server.close()
        for connection in list(self.connections):
            connection.kill(gently=gently)
        self.connections.clear()

    # --- requests

    async def handle_request(self, connection: ServerConnection, frame: memoryview) -> None:
        """Handle one request. Raise ProtocolDecodeError for an invalid one, which closes the connection."""
        await self._while_paused()
        context = self._decode(connection, frame)
        if context is None:
            return
        for observer in self.state.observers:
            observer.requested(context)
        rules = self.state.faults.take(context)
        response = await self._answer(context, rules)
        throttled = max((rule.throttle_ms for rule in rules), default=0) / 1000
        if throttled > 0 and self.state.release < ANSWERS_BEFORE_THROTTLING:
            await self.state.clock.sleep(throttled)
        await self._while_paused()
        for observer in self.state.observers:
            observer.answered(context, response)
        if response is not None:
            self._send(context, response, rules)
        elif any(rule.cut is not None for rule in rules):
            connection.abort()
        if throttled > 0 and self.state.release >= ANSWERS_BEFORE_THROTTLING:
            await self.state.clock.sleep(throttled)  # later requests of the connection wait (KIP-219)

    async def _while_paused(self) -> None:
        while self.paused:
            await self.resumed.wait(self.resumed.count)

    def _decode(self, connection: ServerConnection, frame: memoryview) -> RequestContext | None:
        """Return the request; None if its version is unsupported and that was answered. Raise ProtocolDecodeError."""
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        lowest, highest = apis.offered(self.state.release).get(key, (0, -1))
        if not lowest <= version <= highest:
            if key == apis.API_VERSIONS:
                connection.send(apis.versions_unsupported(correlation_id, self.state.release))
                return None
            raise ProtocolDecodeError(f"API {key} in version {version} is not spoken by {self.state.release}")
        waiting = not connection.authenticated and connection.sasl is None
        if waiting and key not in apis.BEFORE_AUTHENTICATION:
            raise ProtocolDecodeError(f"API {key} came before authentication")
        ends = connection.session_ends
        if ends is not None and self.state.clock.now() > ends and key not in apis.AUTHENTICATION:
            raise ProtocolDecodeError(f"API {key} came after the session's end")
        header, at = read_message("RequestHeader", request_header_version(key, version), frame)
        message, _ = read_message(request_name(key), version, frame, at)
        return RequestContext(
            node_id=self.node_id,
            connection_number=connection.number,
            api=request_name(key).removesuffix("Request"),
            version=version,
            message=message,
            client_id=getattr(header, "client_id", None) or "",
            client_host=f"/{connection.client_address}",
            principal=connection.principal,
            correlation_id=correlation_id,
            received_at=self.state.clock.now(),
            broker=self,
            connection=connection,
        )

    async def _answer(self, context: RequestContext, rules: list[Rule]) -> Message | None:
        """Return the response of the API's module after all fault rules; None if nothing is sent."""
        module = apis.module(context.api)
        response: Message | None = None
        for rule in rules:
            if rule.delay:
                await self.state.clock.sleep(rule.delay)
                await self._while_paused()
            if rule.ignore:
                return None
        try:
            refused = next((rule.error for rule in rules if rule.error is not None), None)
            if refused is not None:
                raise ApiError(refused)
            sasl.require_turn(context.connection, context.api)
            response = await module.handle(context, context.message)
        except ApiError as exc:
            response = module.error_response(context, context.message, exc)
        for rule in rules:
            if rule.edit is not None and response is not None:
                response = rule.edit(context.message, response)
            if rule.throttle_ms and hasattr(response, "throttle_time_ms"):
                setattr(response, "throttle_time_ms", rule.throttle_ms)  # noqa: B010 – most responses have it, not all
        return None if any(rule.silent for rule in rules) else response

    def _send(self, context: RequestContext, response: Message, rules: list[Rule]) -> None:
        key = response.API_KEY or 0
        header = write_message(
            ResponseHeader(correlation_id=context.correlation_id),
            response_header_version(key, context.version),
        )
        parts = [*header, *write_message(response, context.version)]
        cut = next((rule.cut for rule in rules if rule.cut is not None), None)
        if cut is None:
            context.connection.send(parts)
        else:
            context.connection.send_some(parts, cut)
