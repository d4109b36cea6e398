"""One broker: it listens, decodes requests, lets the module of the API handle them, and sends the responses.

A broker can be killed (its connections are reset, its memory is lost), paused (it handles nothing, its connections
stay) and started again on the same port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kclient.change_signal import ChangeSignal
from kclient.embedded import apis, auth
from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.connection import Listener, ServerConnection
from kclient.embedded.faults import Rule
from kclient.embedded.releases import Release
from kclient.embedded.request_context import RequestContext
from kclient.embedded.state import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, Partition
from kclient.errors import ProtocolDecodeError
from kclient.generated.response_header import ResponseHeader
from kclient.log import get_logger
from kclient.protocol.headers import request_header_version, response_header_version
from kclient.protocol.message import Message
from kclient.protocol.registry import read_message, request_name, write_message

if TYPE_CHECKING:
    from kclient.embedded.groups.coordinator import GroupCoordinator
    from kclient.embedded.state import ClusterState
    from kclient.embedded.transactions.coordinator import TransactionCoordinator

Local = TypeVar("Local")

logger = get_logger("kclient.embedded")

ANSWERS_BEFORE_THROTTLING: Final = Release.parse("2.0")  # older brokers delay the response itself


class EmbeddedBroker:
    """See the module. `running`: the process is there; `up`: the rest of the cluster counts on it."""

    def __init__(
        self, state: ClusterState, node_id: int, listeners: list[Listener], rack: str | None
    ) -> None:
        self.state = state
        self.node_id = node_id
        self.listeners = listeners
        self.rack = rack
        self.running = False
        self.up = False
        self.paused = False
        self.expiry: Timer | None = None  # when the other brokers notice that it is gone
        self.lost: list[Partition] = []  # the partitions that it led then
        self.resumed = ChangeSignal()
        self.starting = asyncio.Lock()  # one start at a time
        self.connections: list[ServerConnection] = []
        self.memory: dict[type, object] = {}  # `broker_local` objects, lost when the process ends
        self._timers: list[Timer] = []
        self._missed: list[Timer] = []

    @property
    def groups(self) -> GroupCoordinator:
        """The groups that this broker coordinates."""
        from kclient.embedded.groups.coordinator import GroupCoordinator

        return self.broker_local(GroupCoordinator, lambda: GroupCoordinator(self))

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids that this broker coordinates."""
        from kclient.embedded.transactions.coordinator import TransactionCoordinator

        return self.broker_local(TransactionCoordinator, lambda: TransactionCoordinator(self))

    def broker_local(self, kind: type[Local], make: Callable[[], Local]) -> Local:
        """Return the object of this type that is local to the running broker; `make` creates it on first use."""
        found = self.memory.get(kind)
        if not isinstance(found, kind):
            found = self.memory[kind] = make()
        return found

    def listener(self, name: str) -> Listener | None:
        """Return the listener of this name, or None."""
        return next((listener for listener in self.listeners if listener.name == name), None)

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
        listener.server = await self.state.serve(partial(ServerConnection, self, listener), listener)
        if listener.port == 0:
            listener.port = listener.server.sockets[0].getsockname()[1]

    def stop(self, *, gently: bool = False) -> None:
        """Close the listeners, reset (or gently: close) every connection, drop all local state."""
        self.running = self.paused = False
        for listener in self.listeners:
            if listener.server is not None:
                listener.server.close()
        for connection in list(self.connections):
            connection.kill(gently=gently)
        for timer in self._timers:
            timer.cancel()
        self.connections.clear()
        self.memory.clear()
        self._timers.clear()
        self._missed.clear()

    def pause(self) -> None:
        """Stop handling requests and timers, as a stopped process does."""
        self.paused = True

    def resume(self) -> None:
        """Continue, first with the timers that were due meanwhile."""
        self.paused = False
        missed, self._missed = self._missed, []
        for timer in missed:
            if timer.callback is not None:  # not cancelled since it was due
                timer.callback()
        self.resumed.notify()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Set a timer of this broker: dropped when the broker is killed, delayed while it is paused."""
        self._timers = [timer for timer in self._timers if timer.callback is not None]
        timer = self.state.clock.call_later(seconds, lambda: self._ring(timer, callback))
        self._timers.append(timer)
        return timer

    def _ring(self, timer: Timer, callback: Callable[[], None]) -> None:
        if self.paused:
            self._missed.append(timer)
            return
        timer.cancel()
        try:
            callback()
        except Exception as exc:
            self.state.bugs.append(exc)  # raised when the cluster ends, as errors of requests are
            raise

    def leader_changed(self, partition: Partition) -> None:
        """Load or unload a coordinator's partition that this broker begins or ceases to lead."""
        if not self.running:
            return
        if partition.topic.name == OFFSETS_TOPIC:
            self.groups.leader_changed(partition)
        elif partition.topic.name == TRANSACTIONS_TOPIC:
            self.transactions.leader_changed(partition)

    # --- requests

    async def serve(self, connection: ServerConnection, frame: memoryview) -> None:
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
        if ends is not None and self.state.clock.now() > ends and key not in apis.BEFORE_AUTHENTICATION:
            raise ProtocolDecodeError(f"API {key} came after the session's end")
        header, at = read_message("RequestHeader", request_header_version(key, version), frame)
        message, _ = read_message(request_name(key), version, frame, at)
        return RequestContext(
            self,
            connection,
            request_name(key).removesuffix("Request"),
            version,
            message,
            getattr(header, "client_id", None) or "",
            correlation_id,
            self.state.clock.now(),
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
            auth.require_turn(context)
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
