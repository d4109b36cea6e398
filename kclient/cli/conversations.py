"""Requests and responses of the Kafka protocol in the TCP segments of a capture, matched by their correlation ids.

    segments of one direction   in order, and each byte once        `Reassembly`
    → frames                    int32 size, then so many bytes      `Direction`
    → messages                  a request says what it is; a response belongs to the request with its correlation id

A capture may begin in the middle of a connection, and lack packets. Reading goes on at the next segment that begins
like a frame: with the API and version of a request that exist, or with the correlation id of a request that waits.

Whatever a capture can make large has a bound: bytes that wait, connections, requests without a response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

import attrs

from kclient.cli.capture import ACK, RST, SYN, Segment
from kclient.cli.frames import read_request, read_response
from kclient.cli.places import time_text
from kclient.errors import KclientError
from kclient.protocol.registry import message_class, request_name

LARGEST_FRAME: Final = 100 << 20
"""Bytes of a request that Kafka accepts by default (`socket.request.max.bytes`), here of a response too."""
MOST_WAITING: Final = 256 << 20
"""Bytes that wait for the rest of their frame or for a packet before them, in all connections."""
MOST_AHEAD: Final = 4 << 20
MOST_SEGMENTS: Final = 4_096
"""What waits for a packet before it: bytes, segments. With more, that packet is not in the capture."""
MOST_CONNECTIONS: Final = 10_000
MOST_UNANSWERED: Final = 10_000

SIZE: Final = Struct(">i")
REQUEST_START: Final = Struct(">ihhi")
RESPONSE_START: Final = Struct(">ii")
SEQUENCES: Final = 1 << 32
TLS: Final = b"\x16\x03"  # a handshake
SASL_HANDSHAKE, API_VERSIONS = 17, 18
UNSUPPORTED_VERSION: Final = b"\x00\x23"


class Reassembly:
    """The bytes of one direction in order, from segments in any order."""

    def __init__(self) -> None:
        self._following: int | None = None
        self._ahead: dict[int, Segment] = {}
        self._gap = True
        self.waiting: int = 0

    def begin(self, sequence: int) -> None:
        """Begin a connection at its SYN."""
        self._following, self._gap = (sequence + 1) % SEQUENCES, False
        self._ahead.clear()
        self.waiting = 0

    def add(self, segment: Segment) -> Iterator[tuple[bytes, bool]]:
        """Yield the bytes that are complete now, and whether some before them are missing."""
        if self._following is None:
            self._following = segment.sequence
        if not _size(segment):
            return
        before = self._ahead.get(segment.sequence)
        if before is None or _size(segment) > _size(before):
            self._ahead[segment.sequence] = segment
            self.waiting += _size(segment) - (0 if before is None else _size(before))
        yield from self._complete(None)

    def acknowledge(self, sequence: int) -> Iterator[tuple[bytes, bool]]:
        """The receiver has all bytes before this one: what waits for a packet before it waits in vain."""
        if self._ahead:
            yield from self._complete(sequence)

    def _complete(self, acknowledged: int | None) -> Iterator[tuple[bytes, bool]]:
        while self._ahead:
            sequence = min(self._ahead, key=self._distance)
            if self._distance(sequence) > 0 and not self._misses_a_packet(sequence, acknowledged):
                return
            found = self._ahead.pop(sequence)
            self.waiting -= _size(found)
            yield from self._take(found)

    def _distance(self, sequence: int) -> int:
        """Return how far a sequence number is behind the next byte; below 0: before it."""
        assert self._following is not None  # noqa: S101 – for the type checker
        return (sequence - self._following + SEQUENCES // 2) % SEQUENCES - SEQUENCES // 2

    def _misses_a_packet(self, sequence: int, acknowledged: int | None) -> bool:
        """Return whether the capture lacks the packet before the first one that waits."""
        if self.waiting > MOST_AHEAD or len(self._ahead) > MOST_SEGMENTS:
            return True
        end = self._distance(sequence) + _size(self._ahead[sequence])
        return acknowledged is not None and self._distance(acknowledged) >= end

    def _take(self, segment: Segment) -> Iterator[tuple[bytes, bool]]:
        distance = self._distance(segment.sequence)
        if distance + _size(segment) <= 0:  # all of it came before
            return
        payload = segment.payload[max(0, -distance) :]
        gap, self._gap = self._gap or distance > 0, segment.cut > 0
        self._following = (segment.sequence + _size(segment)) % SEQUENCES
        yield payload, gap


def _size(segment: Segment) -> int:
    return len(segment.payload) + segment.cut


class Asked(NamedTuple):
    """A request that waits for its response."""

    key: int
    version: int
    time: float


@attrs.define
class Direction:
    """What one end sends: the bytes of frames that are not whole yet."""

    stream: Reassembly = attrs.field(factory=Reassembly)
    buffered: bytearray = attrs.field(factory=bytearray)
    in_frames: bool = False

    @property
    def waiting(self) -> int:
        """The bytes that are kept."""
        return len(self.buffered) + self.stream.waiting

    def lose(self) -> None:
        """Forget the frame that is under way, and wait for a segment that begins with one."""
        self.buffered.clear()
        self.in_frames = False

    def next_frame(self) -> bytes | None:
        """Return the next frame with its size, None before it is whole."""
        if len(self.buffered) < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self.buffered)
        if not 0 <= size <= LARGEST_FRAME:
            self.lose()
            return None
        if len(self.buffered) < SIZE.size + size:
            return None
        frame = bytes(self.buffered[: SIZE.size + size])
        del self.buffered[: SIZE.size + size]
        return frame


@attrs.define
class Conversation:
    """A client and a broker."""

    client: str
    requests: Direction = attrs.field(factory=Direction)
    responses: Direction = attrs.field(factory=Direction)
    unanswered: dict[int, Asked] = attrs.field(factory=dict)
    raw_tokens: bool = False
    encrypted: bool = False

    @property
    def waiting(self) -> int:
        """The bytes that are kept of both directions."""
        return self.requests.waiting + self.responses.waiting

    def begins_frame(self, data: bytes, is_client: bool) -> bool:
        """Return whether bytes begin like a frame of one of the ends."""
        if is_client:
            return _begins_request(data)
        return len(data) >= RESPONSE_START.size and RESPONSE_START.unpack_from(data)[1] in self.unanswered


def _begins_request(data: bytes) -> bool:
    if len(data) < REQUEST_START.size:
        return False
    size, key, version, _ = REQUEST_START.unpack_from(data)
    try:
        low, high = message_class(request_name(key)).VERSIONS
    except KeyError:
        return False
    return bool(0 <= size <= LARGEST_FRAME and low <= version <= high)


class Conversations:
    """All connections of a capture. `ports` are those of brokers; without them, whoever is connected to is one."""

    def __init__(self, ports: Iterable[int] = ()) -> None:
        self._ports = {str(port) for port in ports}
        self._conversations: dict[frozenset[str], Conversation] = {}
        self._waiting = 0
        self.notes: Counter[str] = Counter()
        """What could not be read → how often."""

    def read(self, segments: Iterable[Segment]) -> Iterator[dict[str, Any]]:
        """Yield each request and response as JSON, when it is complete."""
        for segment in segments:
            connection = self._connection(segment)
            if connection is None or connection.encrypted:
                continue
            self._waiting -= connection.waiting
            yield from self._read(connection, segment)
            if self._waiting + connection.waiting > MOST_WAITING:
                connection.requests, connection.responses = Direction(), Direction()
                self.notes["connections given up, because too many bytes waited for the rest of a frame"] += 1
            self._waiting += connection.waiting

    def _connection(self, segment: Segment) -> Conversation | None:
        """Return the connection of a segment, a new one at a SYN; None if no end of it is a broker's port."""
        ends = frozenset((segment.source, segment.target))
        ports = {end: end.rpartition(":")[2] for end in ends}
        if self._ports and not self._ports & set(ports.values()):
            return None
        begins = segment.flags & SYN and not segment.flags & ACK
        known = None if begins or segment.flags & RST else self._conversations.get(ends)
        if known is not None:
            return known
        if (old := self._conversations.pop(ends, None)) is not None:
            self._waiting -= old.waiting
        if segment.flags & RST:
            return None
        if len(self._conversations) >= MOST_CONNECTIONS:
            self._waiting -= self._conversations.pop(next(iter(self._conversations))).waiting
        client = segment.source if begins else self._client(segment)
        return self._conversations.setdefault(ends, Conversation(client))

    def _client(self, segment: Segment) -> str:
        """Return the client of a connection that began before the capture: not a broker's port, or the higher one."""
        ports = {end: end.rpartition(":")[2] for end in (segment.source, segment.target)}
        if segment.flags & SYN:
            return segment.target
        return max(ports, key=lambda end: (ports[end] not in self._ports, int(ports[end])))

    def _read(self, connection: Conversation, segment: Segment) -> Iterator[dict[str, Any]]:
        is_client = segment.source == connection.client
        direction = connection.requests if is_client else connection.responses
        if segment.flags & SYN:
            direction.stream.begin(segment.sequence)
            direction.buffered.clear()
            direction.in_frames = True
            return
        if segment.flags & ACK:  # before its own bytes, which may be the response to what was missing
            other = connection.responses if is_client else connection.requests
            turned = segment._replace(source=segment.target, target=segment.source)
            for data, gap in other.stream.acknowledge(segment.acknowledged):
                yield from self._take(connection, not is_client, turned, data, gap=gap)
        for data, gap in direction.stream.add(segment):
            yield from self._take(connection, is_client, segment, data, gap=gap)

    def _take(
        self, connection: Conversation, is_client: bool, segment: Segment, data: bytes, *, gap: bool
    ) -> Iterator[dict[str, Any]]:
        """Yield the messages that these bytes of one end complete."""
        direction = connection.requests if is_client else connection.responses
        if gap:
            self.notes["gaps: packets that are missing, or a connection that began before the capture"] += 1
            direction.lose()
        if not direction.in_frames and not connection.begins_frame(data, is_client):
            return
        direction.in_frames = True
        direction.buffered += data
        if direction.buffered.startswith(TLS):
            connection.encrypted = True
            self.notes["connections encrypted with TLS, which cannot be read"] += 1
            return
        read = self._request if is_client else self._response
        while (frame := direction.next_frame()) is not None:
            if (found := read(connection, frame, segment.time)) is not None:
                ends = {"from": segment.source, "to": segment.target}
                yield {"time": time_text(int(segment.time * 1000)), **ends, **found}

    def _request(self, connection: Conversation, frame: bytes, time: float) -> dict[str, Any] | None:
        if connection.raw_tokens and not _begins_request(frame):
            return None  # a token of SASL, as it was before Kafka 1.0
        connection.raw_tokens = False
        if len(frame) >= REQUEST_START.size:
            _, key, version, correlation_id = REQUEST_START.unpack_from(frame)
            if len(connection.unanswered) >= MOST_UNANSWERED:
                del connection.unanswered[next(iter(connection.unanswered))]
            connection.unanswered[correlation_id] = Asked(key, version, time)
            connection.raw_tokens = (key, version) == (SASL_HANDSHAKE, 0)
        try:
            return read_request(frame[SIZE.size :])
        except KclientError as exc:
            return {"problem": exc.text, "bytes": len(frame)}

    def _response(self, connection: Conversation, frame: bytes, time: float) -> dict[str, Any] | None:
        if len(frame) < RESPONSE_START.size:
            return None
        _, correlation_id = RESPONSE_START.unpack_from(frame)
        asked = connection.unanswered.pop(correlation_id, None)
        if asked is None:
            if not connection.raw_tokens:
                self.notes["responses whose requests are not in the capture"] += 1
            return None
        # A broker that does not know the version of ApiVersions answers in the oldest one.
        is_refusal = asked.key == API_VERSIONS and frame[RESPONSE_START.size :].startswith(
            UNSUPPORTED_VERSION
        )
        try:
            found = read_response(frame[SIZE.size :], asked.key, 0 if is_refusal else asked.version)
        except KclientError as exc:
            found = {"problem": exc.text, "bytes": len(frame)}
        return {**found, "milliseconds": round((time - asked.time) * 1000, 3)}

    def summary(self) -> list[str]:
        """Return what could not be read, a line each."""
        return [f"{count:,} {what}" for what, count in self.notes.items()]
