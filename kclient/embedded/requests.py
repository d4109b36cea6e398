"""What the cluster was asked and what it answered, decoded: the newest of it, within two bounds.

Requests and answers with records keep whole frames alive, so the bytes of these are bounded besides the number.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from kclient.embedded.call import Call
from kclient.embedded.observer import Observer
from kclient.protocol.message import Message

KEPT: Final = 5_000
KEPT_BYTES: Final = 64 * 1024 * 1024
WITH_RECORDS: Final = {
    "ProduceRequest": ("topic_data", "partition_data"),
    "FetchResponse": ("responses", "partitions"),
}


@attrs.define(eq=False)
class LoggedRequest:
    """A request and its answer, None while it is parked and where none is sent.

    `api` is the request's name without "Request", `node` the broker, `connection` the number of the connection (the
    first is 1), `at` seconds of the cluster's clock.
    """

    api: str
    version: int
    client_id: str
    node: int
    connection: int
    request: Any
    at: float
    answer: Any = None

    def __str__(self) -> str:
        asked = f"{self.at:.3f} {self.api} v{self.version} to broker {self.node}"
        return f"{asked} from {self.client_id!r} on connection {self.connection}"


class RequestLog(Observer):
    """The log of one cluster, oldest first."""

    def __init__(self) -> None:
        self._kept: dict[Call, LoggedRequest] = {}
        self._bytes = 0

    def entries(self) -> list[LoggedRequest]:
        """What is kept, in the order in which it came."""
        return list(self._kept.values())

    def clear(self) -> None:
        """Forget it all."""
        self._kept.clear()
        self._bytes = 0

    def requested(self, call: Call) -> None:
        node, connection = call.broker.node_id, call.connection.number
        entry = LoggedRequest(
            call.api, call.version, call.client_id, node, connection, call.message, call.received_at
        )
        self._kept[call] = entry
        self._bytes += _weight(entry.request)
        self._bound()

    def answered(self, call: Call, answer: Message | None) -> None:
        entry = self._kept.get(call)
        if entry is not None:
            entry.answer = answer
            self._bytes += _weight(answer)
            self._bound()

    def _bound(self) -> None:
        while len(self._kept) > KEPT or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= _weight(oldest.request) + _weight(oldest.answer)


def _weight(message: Any) -> int:
    """The bytes of the records of a produce request or a fetch answer; all else is small."""
    if message is None or message.NAME not in WITH_RECORDS:
        return 0
    topics, partitions = WITH_RECORDS[message.NAME]
    parts = [part for topic in getattr(message, topics) for part in getattr(topic, partitions)]
    return sum(len(part.records or b"") for part in parts)
