"""One connection to one broker: requests are pipelined, and the responses must come in the same order.

    connect → ApiVersions → (authenticate → ApiVersions) → ready → closed

Every request has a correlation id and a deadline. A response with another id than the oldest request's means that the
stream is damaged, and the connection is closed. A request whose caller was cancelled stays in the queue, so that its
response is dropped and not taken for the response to the next request. When a deadline passes, the connection is closed
and all requests in flight fail: TCP keeps the order, so no later response could come before the missing one.

If the broker limits the SASL session, the connection authenticates again before the session ends (KIP-368). Requests
wait until this is over; those in flight are not affected.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import attrs

from kclient.change_signal import ChangeSignal, wait_any
from kclient.errors import (
    AuthenticationError,
    CorruptDataError,
    InvalidFrameError,
    KclientError,
    ProtocolDecodeError,
)
from kclient.generated.api_versions_response import ApiVersionsResponse
from kclient.generated.metadata_request import MetadataRequest
from kclient.log import get_logger
from kclient.metrics.network import NodeMetrics, unmeasured
from kclient.network import errors
from kclient.network.api_versions import (
    THROTTLES_SINCE,
    Features,
    Range,
    choose_version,
    negotiate,
    read_api_versions,
)
from kclient.network.peer import Peer
from kclient.network.sasl import SaslChannel, SaslReauthentication
from kclient.network.transport import SIZE, SMALLEST_FRAME, FrameProtocol, ReceiveBudget
from kclient.protocol.errors import NONE
from kclient.protocol.headers import read_response_header, request_frame
from kclient.protocol.message import Message
from kclient.protocol.registry import message_class, read_message, response_name
from kclient.protocol.struct_limit import MOST_STRUCTS, SMALL_BYTES, require_few_structs
from kclient.security.tls import Tls

logger: Final = get_logger("kclient.connection")

HANDSHAKE_FRAME_BYTES: Final = (
    1_048_576  # no response before ready is larger; text of other protocols announces more
)
API_VERSIONS: Final = 18
NEVER: Final = 1 << 15


@attrs.frozen
class ConnectionSettings:
    """The settings that all connections of a client share. Times in seconds; `idle_timeout` None for no limit."""

    client_id: str
    max_frame_bytes: int
    request_timeout: float
    idle_timeout: float | None = None
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    tls: Tls | None = None
    # Called before the connection is ready, and again after the seconds that it returns (None: never).
    authenticate: Callable[[SaslChannel], Awaitable[float | None]] | None = None
    traffic: NodeMetrics = attrs.field(factory=unmeasured)
    features: Features = attrs.field(factory=Features)
    receive_budget: ReceiveBudget | None = None
    # The cluster id for ApiVersions; with None the broker checks nothing (KIP-1242).
    cluster_id: Callable[[], str | None] = lambda: None


class Connection:
    """A connection that is being set up, ready, or closed."""

    def __init__(
        self,
        peer: Peer,
        settings: ConnectionSettings,
        on_closed: Callable[[Connection, KclientError | None], None],
    ) -> None:
        self.peer = peer
        self.offered: Mapping[int, Range] = {}  # API key → the versions the broker speaks
        self.ready: bool = False
        self.closed: bool = False
        self.reason: KclientError | None = None  # the error that closed it; None if closed on purpose
        self.cause: Exception | None = None  # the exception with which the transport ended
        self.stage: str = "versions"  # of the set-up: versions, sasl
        self.if_too_slow: KclientError | None = None  # the error if the set-up's time is over now
        self.responses: int = 0  # received since the connection is ready
        self._counted = False  # whether the metrics count it as open
        self.closed_by_peer: bool = False
        self.trailing_bytes: int = 0
        self.protocol: Final = FrameProtocol(
            HANDSHAKE_FRAME_BYTES, self._on_frame, self._on_lost, settings.receive_budget
        )
        self._settings = settings
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._in_flight = InFlightRequests(self._loop)
        self._turns = asyncio.Lock()  # fair: requests are sent in the order of their calls
        self._turn_changed = self.protocol.write_changed
        self._throttled_until = 0.0
        self._last_used = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._why = "closed by kclient"
        self._gone = ChangeSignal()
        self._raw: asyncio.Future[bytes] | None = None  # the response to a SASL token without Kafka's header
        self._session: SaslReauthentication | None = None
        if settings.authenticate is not None:
            self._session = SaslReauthentication(settings.authenticate, self, self._renewed)

    @property
    def in_flight(self) -> int:
        """The number of requests without a response, cancelled ones included."""
        return len(self._in_flight)

    @property
    def throttled(self) -> bool:
        """Whether the throttle time of an earlier response is not over yet."""
        return self._loop.time() < self._throttled_until

    # --- setting up

    async def shake_hands(self) -> None:
        """Negotiate versions, authenticate, and become ready. Raise KclientError if that fails."""
        if self.protocol.connected:
            self._counted = True
            self._settings.traffic.opened()
        # With SASL, ApiVersions is sent twice: the cluster id goes only to a peer that has authenticated itself.
        if self._session is not None:
            self.offered = await negotiate(self._ask_versions, self.peer)
            self.stage = "sasl"
            await self._session.begin()
        self.offered = await negotiate(self._ask_versions, self.peer, self._settings.cluster_id())
        if self.closed:  # for example by a damaged frame that came together with the last response
            raise errors.lost(self.peer, "becoming ready", self._why)
        self.protocol.limit = self._settings.max_frame_bytes
        self.ready = True
        self._watch_idle()

    async def _ask_versions(self, message: Message, version: int) -> Message:
        response = await self.request(message, version, self._loop.time() + self._settings.request_timeout)
        if isinstance(response, ApiVersionsResponse) and response.error_code == NONE:
            self._settings.features.learn(response)
        return response

    # --- authentication

    def _renewed(self, error: KclientError | None) -> None:
        """Continue sending requests after a renewal, or close the connection with its error."""
        if error is not None:
            self._end("the session could not be renewed", error)
        self._turn_changed.notify()

    async def ask(self, message: Message, version: int, deadline: float) -> Message:
        """Send a request for authentication before all waiting requests. Raise as `request` does."""
        if self.closed:
            raise errors.lost(self.peer, "authenticating", self._why)
        return await self._send(message, version, deadline)

    async def exchange_raw(self, token: bytes, deadline: float) -> bytes:
        """Send a SASL token without Kafka's header and return the broker's (SaslHandshake version 0)."""
        if self.closed:
            raise errors.lost(self.peer, "authenticating", self._why)
        self._raw = self._loop.create_future()
        self.protocol.smallest = 0
        self.protocol.write([len(token).to_bytes(4, "big"), token])
        try:
            async with asyncio.timeout_at(deadline):
                return await self._raw
        except TimeoutError as exc:
            raise errors.not_sent_in_time(self.peer, "an authentication token") from exc
        finally:
            self._raw = None
            self.protocol.smallest = SMALLEST_FRAME

    # --- requests

    def version_for(self, message: type[Message], lowest: int = 0, highest: int | None = None) -> int:
        """Return the version of a request to use on this connection. Raise VersionError if there is none."""
        return choose_version(message, self.offered, self.peer, lowest, highest)

    async def request(self, message: Message, version: int, deadline: float) -> Message:
        """Send a request and return its response. `deadline` is in the loop's time. The call can be cancelled.

        Raise ConnectError if the connection is closed, DeadlineError if the deadline passes before the request could
        be sent, ProtocolDecodeError if the response cannot be read.
        """
        await self._wait_to_send(message.NAME.removesuffix("Request"), deadline)
        return await self._send(message, version, deadline)

    async def _send(self, message: Message, version: int, deadline: float) -> Message:
        # No await from the correlation id to the write: brokers answer in order, and `InFlightRequests` relies on it.
        frame = request_frame(message, version, self._in_flight.next_id, self._settings.client_id)
        entry = self._in_flight.add(message, version, deadline, self._late)
        self._last_used = self._loop.time()
        entry.sent = self._settings.traffic.sent(sum(map(len, frame)))
        self.protocol.write(frame)
        return await entry.response

    async def _wait_to_send(self, name: str, deadline: float) -> None:
        """Wait until a request can be sent: not throttled, fewer than MAX_IN_FLIGHT, the socket accepts bytes.

        Requests are sent in the order of their calls: a commit that overtook an earlier one would be overwritten by
        the older offset.
        """
        try:
            async with asyncio.timeout_at(deadline), self._turns:
                while not self._can_send(name):
                    quiet = self._throttled_until - self._loop.time() if self.throttled else None
                    await wait_any((self._turn_changed, self._turn_changed.count), timeout=quiet)
        except TimeoutError as exc:
            raise errors.not_sent_in_time(self.peer, name) from exc

    def _can_send(self, name: str) -> bool:
        if self.closed:
            if isinstance(self.reason, AuthenticationError):
                raise copy.copy(self.reason)
            raise errors.lost(self.peer, f"{name} was to be sent", self._why)
        if self._session is not None and self._session.renewing():
            return False
        may_send = not self.throttled and not self._in_flight.full and self.protocol.writable
        if may_send and self._session is not None:
            self._session.request_sent()
        return may_send

    def _late(self, entry: InFlightRequest) -> None:
        why = f"no response to {entry.name} in time"
        self._end(why, errors.lost(self.peer, f"waiting for the response to {entry.name}", why))

    # --- responses

    def _on_frame(self, frame: memoryview) -> None:
        self._last_used = self._loop.time()
        if self._raw is not None:
            if not self._raw.done():
                self._raw.set_result(bytes(frame))
            return
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        entry = self._in_flight.due(correlation_id)
        if entry is None:
            self._end("a response out of turn", self._wrong_correlation_id(correlation_id))
            return
        self._settings.traffic.received(SIZE.size + len(frame), entry.sent)
        # Done already if its caller was cancelled: the response keeps its place in the order and is dropped.
        if not entry.response.done():
            try:  # the entry stays in the queue until the response is read, so that any failure reaches its caller
                message = self._read(entry, frame)
            except ProtocolDecodeError as exc:
                entry.response.set_exception(exc)
                self._end("a response that cannot be read", exc)
                return
            self._note_throttle(entry, message)
            entry.response.set_result(message)
        self._in_flight.answered()
        # Not during the handshake, whose responses do not show that the broker accepts requests without SASL.
        self.responses += self.ready
        self._turn_changed.notify()

    def _read(self, entry: InFlightRequest, frame: memoryview) -> Message:
        _, at = read_response_header(entry.api_key, entry.version, frame)
        if entry.api_key == API_VERSIONS:
            message, end = read_api_versions(entry.version, frame, at)
        else:
            name = response_name(entry.api_key)
            if len(frame) > SMALL_BYTES:
                require_few_structs(message_class(name), entry.version, frame, at, entry.most_structs)
            message, end = read_message(name, entry.version, frame, at)
        if end != len(frame):
            self.trailing_bytes += len(frame) - end
            logger.debug(
                "%s: %d extra bytes after the response to %s", self.peer, len(frame) - end, entry.name
            )
        return message

    def _note_throttle(self, entry: InFlightRequest, message: Message) -> None:
        """Send nothing for the throttle time, but at most half the request timeout: a waiting request must not fail."""
        throttle_ms = getattr(message, "throttle_time_ms", 0)
        if throttle_ms > 0 and entry.version >= THROTTLES_SINCE.get(entry.api_key, NEVER):
            seconds = min(throttle_ms / 1000, self._settings.request_timeout / 2)
            self._throttled_until = max(self._throttled_until, self._loop.time() + seconds)

    def _wrong_correlation_id(self, correlation_id: int) -> CorruptDataError:
        due = self._in_flight.first
        return CorruptDataError(
            f"{self.peer}: a response has correlation id {correlation_id}, and "
            f"{'none' if due is None else due.correlation_id} was expected. "
            "The stream is damaged or the peer is not Kafka; the connection was closed. "
            "kclient reconnects automatically; if this repeats, look for a proxy in between."
        )

    # --- close

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        self._end("closed by kclient", None)

    async def wait_closed(self) -> None:
        """Wait until the transport has ended."""
        if self.protocol.connected:
            await self._gone.wait(0)

    def _watch_idle(self) -> None:
        idle = self._settings.idle_timeout
        if idle is None or self.closed:
            return
        # A request in flight may take longer than the idle time: JoinGroup waits for the whole group.
        unused = 0.0 if self._in_flight else self._loop.time() - self._last_used
        if unused >= idle:
            logger.debug("%s: closed, unused for %.0f s", self.peer, unused)
            self._end("unused for too long", None)
        else:
            self._idle_timer = self._loop.call_later(idle - unused, self._watch_idle)

    def _on_lost(self, cause: Exception | None) -> None:
        """Handle the end of the transport: closed by kclient, by the peer (`cause` None), or by a failure."""
        self._gone.notify()
        if self._counted:
            self._settings.traffic.closed()
        self.cause = cause
        self.closed_by_peer = not self.closed
        why = "closed by the peer" if cause is None else str(cause)
        if isinstance(cause, InvalidFrameError):
            self._end(cause.text, cause)
            return
        due = self._in_flight.first
        doing = "nothing was asked" if due is None else f"waiting for the response to {due.name}"
        self._end(why, errors.lost(self.peer, doing, why))

    def _end(self, why: str, reason: KclientError | None) -> None:
        """Close at once: fail the requests in flight, abort the transport, notify the owner.

        `reason` is None if the connection is closed on purpose.
        """
        if self.closed:
            return
        # Set first: the end of the transport, which abort() causes, calls this again.
        self.closed, self.ready, self.reason, self._why = True, False, reason, why
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self._in_flight.fail(
            lambda entry: errors.lost(self.peer, f"waiting for the response to {entry.name}", why)
        )
        if self._raw is not None and not self._raw.done():
            self._raw.set_exception(errors.lost(self.peer, "waiting for an authentication token", why))
        if self._session is not None:
            self._session.end()
        self.protocol.abort()
        self._turn_changed.notify()
        self._on_closed(self, reason)


MAX_IN_FLIGHT: Final = 100
MOST_OF_ALL_TOPICS: Final = 1_000_000  # brokers, topics and partitions of a cluster
MOST_OF_NO_TOPIC: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 1_000
# As bytes a line end and an empty line: a server of a line protocol (HTTP, SMTP, Redis) answers the first request at
# once instead of waiting for more input, and its response shows that it is not Kafka.
FIRST_CORRELATION_ID: Final = int.from_bytes(b"\r\n\r\n", "big")


@attrs.define(eq=False)
class InFlightRequest:
    """One request. If its caller was cancelled, the future `response` is cancelled too, and the response is dropped."""

    correlation_id: int
    name: str
    api_key: int
    version: int
    response: asyncio.Future[Message]
    most_structs: int = MOST_STRUCTS
    timer: asyncio.TimerHandle = attrs.field(init=False)
    sent: float = 0.0  # in the loop's time


class InFlightRequests:
    """The requests that wait for their responses, in the order in which they were sent, each with a deadline."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._entries: deque[InFlightRequest] = deque()
        self._next_id = FIRST_CORRELATION_ID

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        return len(self._entries) >= MAX_IN_FLIGHT

    @property
    def first(self) -> InFlightRequest | None:
        """The oldest request, whose response comes next."""
        return self._entries[0] if self._entries else None

    @property
    def next_id(self) -> int:
        """The correlation id of the next request that is added."""
        return self._next_id

    def add(
        self, message: Message, version: int, deadline: float, late: Callable[[InFlightRequest], None]
    ) -> InFlightRequest:
        """Add a request that is being sent; `late` is called if it has no response at its deadline."""
        api_key = -1 if message.API_KEY is None else message.API_KEY
        name = message.NAME.removesuffix("Request")
        response: asyncio.Future[Message] = self._loop.create_future()
        entry = InFlightRequest(self._next_id, name, api_key, version, response, most_structs(message))
        entry.timer = self._loop.call_at(deadline, late, entry)
        # An int32 on the wire: 0 follows 2**31 - 1, never a negative number.
        self._next_id = (self._next_id + 1) & 0x7FFF_FFFF
        self._entries.append(entry)
        return entry

    def due(self, correlation_id: int) -> InFlightRequest | None:
        """Return the oldest request if the response belongs to it; None means that the stream is damaged."""
        first = self.first
        return first if first is not None and first.correlation_id == correlation_id else None

    def answered(self) -> None:
        """Remove the oldest request, which has its response."""
        self._entries.popleft().timer.cancel()

    def fail(self, error_for: Callable[[InFlightRequest], KclientError]) -> None:
        """Fail all requests, because the connection has ended."""
        entries, self._entries = self._entries, deque()
        for entry in entries:
            entry.timer.cancel()
            if not entry.response.done():
                entry.response.set_exception(error_for(entry))


def most_structs(request: Message) -> int:
    """Return how many structs a response may contain; fewer for Metadata of a given list of topics."""
    if not isinstance(request, MetadataRequest):
        return MOST_STRUCTS
    if request.topics is None:
        return MOST_OF_ALL_TOPICS
    return min(MOST_OF_NO_TOPIC + PARTITIONS_PER_TOPIC * len(request.topics), MOST_OF_ALL_TOPICS)
