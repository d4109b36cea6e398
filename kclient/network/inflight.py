"""The requests of one connection that wait for their answers, in the order in which they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

import attrs

from kclient.errors import KclientError
from kclient.generated.metadata_request import MetadataRequest
from kclient.protocol.message import Message
from kclient.protocol.struct_limit import MOST_STRUCTS

MAX_IN_FLIGHT: Final = 100
MOST_OF_ALL_TOPICS: Final = 1_000_000  # brokers, topics and partitions of a cluster
MOST_OF_NO_TOPIC: Final = 100_000
PARTITIONS_PER_TOPIC: Final = 1_000
# The first request holds a line end and an empty line, so a server of a line protocol (HTTP, SMTP, Redis) answers it
# at once instead of waiting for more, and we can tell at once that it is not Kafka.
FIRST_CORRELATION_ID: Final = int.from_bytes(b"\r\n\r\n", "big")


@attrs.define(eq=False)
class Entry:
    """One request. When its caller was cancelled, `answer` is too: a tombstone, whose answer is dropped."""

    correlation_id: int
    name: str
    api_key: int
    version: int
    answer: asyncio.Future[Message]
    most_structs: int = MOST_STRUCTS
    timer: asyncio.TimerHandle = attrs.field(init=False)
    sent: float = 0.0  # in the loop's time


class InFlight:
    """A queue with a deadline for every entry."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._entries: deque[Entry] = deque()
        self._next_id = FIRST_CORRELATION_ID

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def full(self) -> bool:
        return len(self._entries) >= MAX_IN_FLIGHT

    @property
    def first(self) -> Entry | None:
        """The request whose answer is due."""
        return self._entries[0] if self._entries else None

    @property
    def next_id(self) -> int:
        """The correlation id of the next request that is added."""
        return self._next_id

    def add(self, message: Message, version: int, deadline: float, late: Callable[[Entry], None]) -> Entry:
        """Note a request that goes out now; `late` is called if it still waits at its deadline."""
        api_key = -1 if message.API_KEY is None else message.API_KEY
        name = message.NAME.removesuffix("Request")
        answer: asyncio.Future[Message] = self._loop.create_future()
        entry = Entry(self._next_id, name, api_key, version, answer, most_structs(message))
        entry.timer = self._loop.call_at(deadline, late, entry)
        self._next_id = (self._next_id + 1) & 0x7FFF_FFFF
        self._entries.append(entry)
        return entry

    def due(self, correlation_id: int) -> Entry | None:
        """The request that an answer belongs to; None if its turn is not now: then the stream cannot be trusted."""
        first = self.first
        return first if first is not None and first.correlation_id == correlation_id else None

    def answered(self) -> None:
        """The first request has its answer."""
        self._entries.popleft().timer.cancel()

    def fail(self, error_for: Callable[[Entry], KclientError]) -> None:
        """No answer will come any more."""
        entries, self._entries = self._entries, deque()
        for entry in entries:
            entry.timer.cancel()
            if not entry.answer.done():
                entry.answer.set_exception(error_for(entry))


def most_structs(request: Message) -> int:
    """How many brokers, topics and partitions an answer may name; of Metadata fewer where it was asked for topics."""
    if not isinstance(request, MetadataRequest):
        return MOST_STRUCTS
    if request.topics is None:
        return MOST_OF_ALL_TOPICS
    return min(MOST_OF_NO_TOPIC + PARTITIONS_PER_TOPIC * len(request.topics), MOST_OF_ALL_TOPICS)
