"""Observers of the cluster's events, the ground truth of tests, and the log of requests, which is one of them.

An observer derives from `Observer` and is added to `state.observers`. It is called synchronously after the cluster's
state has changed; it must not change anything.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from kclient.embedded.partition import Partition
from kclient.embedded.received_request import ReceivedRequest
from kclient.protocol.message import Message
from kclient.records.batch import Batch
from kclient.types import OffsetAndMetadata, TopicPartition


class Observer:
    """Override the methods of the events that you need."""

    def requested(self, request: ReceivedRequest) -> None:
        """A request came in whole."""

    def answered(self, request: ReceivedRequest, response: Message | None) -> None:
        """It was handled; None where no response is sent."""

    def appended(self, partition: Partition, batch: Batch) -> None:
        """A batch, control batches included, is in the log with its final offsets."""

    def truncated(self, partition: Partition, to: int) -> None:
        """The log ends at `to` now."""

    def log_start_moved(self, partition: Partition, to: int) -> None:
        """Records below `to` are gone."""

    def compacted(self, partition: Partition, removed: list[int]) -> None:
        """These offsets are gone from the middle of the log."""

    def leader_changed(self, partition: Partition) -> None:
        """It has another leader, or the same one in a new epoch."""

    def broker_changed(self, node: int, change: str) -> None:
        """It was "started", "killed", "shut down", "paused" or "resumed", or it is "not counted on" any more."""

    def topic_created(self, name: str, partitions: int) -> None:
        """There is a new topic."""

    def topic_deleted(self, name: str, topic_id: bytes) -> None:
        """The topic is gone."""

    def committed(
        self, group_id: str, member_id: str, generation: int, offsets: dict[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """A commit was accepted; `generation` is −1 for one without membership, else generation or member epoch."""

    def rebalanced(self, group_id: str, generation: int, owned: dict[str, list[TopicPartition]]) -> None:
        """A generation and what each of its members owns in it; see `reconciled` too."""

    def reconciled(self, group_id: str, member_id: str, epoch: int, owned: list[TopicPartition]) -> None:
        """A member of a consumer group is in this epoch and owns this; in epoch −1 it is gone.

        By default, call `rebalanced` with a generation of one member.
        """
        self.rebalanced(group_id, epoch, {member_id: owned})


KEPT: Final = 5_000
KEPT_BYTES: Final = 64 * 1024 * 1024
WITH_RECORDS: Final = {
    "ProduceRequest": ("topic_data", "partition_data"),
    "FetchResponse": ("responses", "partitions"),
}


@attrs.define(eq=False)
class LoggedRequest:
    """A request and its response, None while it is parked and where none is sent.

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
    response: Any = None

    def __str__(self) -> str:
        asked = f"{self.at:.3f} {self.api} v{self.version} to broker {self.node}"
        return f"{asked} from {self.client_id!r} on connection {self.connection}"


class RequestLog(Observer):
    """The log of one cluster, oldest first."""

    def __init__(self) -> None:
        self._kept: dict[ReceivedRequest, LoggedRequest] = {}
        self._bytes = 0

    def entries(self) -> list[LoggedRequest]:
        """What is kept, in the order in which it came."""
        return list(self._kept.values())

    def clear(self) -> None:
        """Forget it all."""
        self._kept.clear()
        self._bytes = 0

    def requested(self, request: ReceivedRequest) -> None:
        entry = LoggedRequest(
            request.api,
            request.version,
            request.client_id,
            request.node_id,
            request.connection_number,
            request.message,
            request.received_at,
        )
        self._kept[request] = entry
        self._bytes += _weight(entry.request)
        self._bound()

    def answered(self, request: ReceivedRequest, response: Message | None) -> None:
        entry = self._kept.get(request)
        if entry is not None:
            entry.response = response
            self._bytes += _weight(response)
            self._bound()

    def _bound(self) -> None:
        while len(self._kept) > KEPT or (self._bytes > KEPT_BYTES and len(self._kept) > 1):
            oldest = self._kept.pop(next(iter(self._kept)))
            self._bytes -= _weight(oldest.request) + _weight(oldest.response)


def _weight(message: Any) -> int:
    """The bytes of the records of a produce request or a fetch response; all else is small."""
    if message is None or message.NAME not in WITH_RECORDS:
        return 0
    topics, partitions = WITH_RECORDS[message.NAME]
    parts = [part for topic in getattr(message, topics) for part in getattr(topic, partitions)]
    return sum(len(part.records or b"") for part in parts)
