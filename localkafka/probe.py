"""Four hand-encoded requests to a broker: its nodes, a group's coordinator, its readiness, a new topic.

All in versions without tagged fields that every broker from 0.10 to 4.3 speaks; CreateTopics has none, so its caller
says which. Deliberately not kclient's codecs: the harness must not fail or lie together with what it judges.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

T = TypeVar("T")

Address = tuple[str, int]

METADATA, FIND_COORDINATOR, HEARTBEAT, CREATE_TOPICS = 3, 10, 12, 19
NO_ERROR = 0
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
NO_LEADER = -1


@attrs.frozen
class Metadata:
    """One broker's view of the cluster."""

    brokers: frozenset[int]
    leaders: Mapping[tuple[str, int], int]  # NO_LEADER where there is none
    replicas: Mapping[tuple[str, int], frozenset[int]]
    in_sync: Mapping[tuple[str, int], frozenset[int]]


def metadata(broker: Address, timeout: float) -> Metadata:
    """Return all brokers and partitions. Raise OSError."""
    answer = _ask(broker, METADATA, 1, struct.pack(">i", -1), timeout)
    brokers = answer.array(
        lambda: (answer.number("i"), answer.string(), answer.number("i"), answer.string())[0]
    )
    answer.number("i")  # controller
    leaders: dict[tuple[str, int], int] = {}
    replicas: dict[tuple[str, int], frozenset[int]] = {}
    in_sync: dict[tuple[str, int], frozenset[int]] = {}

    def partition(topic: str) -> None:
        answer.number("h")
        key = (topic, answer.number("i"))
        leaders[key] = answer.number("i")
        replicas[key] = frozenset(answer.array(lambda: answer.number("i")))
        in_sync[key] = frozenset(answer.array(lambda: answer.number("i")))

    def topic() -> None:
        answer.number("h")
        name = answer.string()
        answer.number("b")  # internal
        answer.array(lambda: partition(name))

    answer.array(topic)
    return Metadata(frozenset(brokers), leaders, replicas, in_sync)


def find_coordinator(broker: Address, group: str, timeout: float) -> int | None:
    """Return the node that coordinates a group, or None. Raise OSError."""
    answer = _ask(broker, FIND_COORDINATOR, 0, _string(group), timeout)
    error, node = answer.number("h"), answer.number("i")
    return node if error == NO_ERROR else None


def coordinates(broker: Address, group: str, timeout: float) -> bool:
    """Return whether this broker has loaded the group's partition. Raise OSError."""
    body = _string(group) + struct.pack(">i", 0) + _string("nobody")
    error = _ask(broker, HEARTBEAT, 0, body, timeout).number("h")
    return error not in (COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR)


def create_topic(
    broker: Address,
    topic: str,
    partitions: int,
    replication: int,
    configs: Mapping[str, str],
    timeout: float,
    version: int,
) -> tuple[int, str]:
    """Create a topic with version 1 or 2; return the error code and text of the response. Raise OSError."""
    body = b"".join(
        (
            struct.pack(">i", 1) + _string(topic) + struct.pack(">ihi", partitions, replication, 0),
            struct.pack(">i", len(configs)),
            *(_string(key) + _string(value) for key, value in configs.items()),
            struct.pack(">i?", int(timeout * 1000), False),
        )
    )
    answer = _ask(broker, CREATE_TOPICS, version, body, timeout)
    if version > 1:
        answer.number("i")  # throttle time
    [result] = answer.array(lambda: (answer.string(), answer.number("h"), answer.string())[1:])
    return result


class _ResponseReader:
    """A cursor over a response body."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from(f">{code}", self._data, self._at)
        self._at += struct.calcsize(code)
        return int(value)

    def string(self) -> str:
        size = max(self.number("h"), 0)  # null reads as empty
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def array(self, element: Callable[[], T]) -> list[T]:
        return [element() for _ in range(self.number("i"))]


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _ask(broker: Address, api_key: int, version: int, body: bytes, timeout: float) -> _ResponseReader:
    with socket.create_connection(broker, timeout) as connection:
        request = struct.pack(">hhi", api_key, version, 1) + _string("localkafka") + body
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as stream:
            (size,) = struct.unpack(">i", _exactly(stream.read(4), 4))
            return _ResponseReader(_exactly(stream.read(size), size)[4:])  # without the correlation id


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
    return data
