"""The logs of a topic, and a client of them for `Stream`. Of a record only its offset exists."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import attrs

from kclient.errors import UnknownTopicError
from kclient.spark.ranges import LogBounds
from kclient.types import TopicPartition
from tests.lakehouse.scheduler import Scheduler

T = TypeVar("T")

TOPIC: Final = "flights"
MARKER_EVERY: Final = 7
"""Each seventh offset is a transaction marker: no row belongs to it."""


_OFFSETS: Final = [offset for offset in range(1 << 19) if offset % MARKER_EVERY != MARKER_EVERY - 1]


def records(start: int, end: int) -> list[int]:
    """Return the offsets of a range that have records."""
    return _OFFSETS[start - start // MARKER_EVERY : end - end // MARKER_EVERY]


@attrs.define(eq=False)
class Topic:
    """A topic with its logs. `id` changes when it is deleted and created again."""

    scheduler: Scheduler
    ends: dict[TopicPartition, int] = attrs.field(factory=dict)
    starts: dict[TopicPartition, int] = attrs.field(factory=dict)
    """Where a log begins that does not begin at 0."""
    incarnation: int = 1

    @property
    def id(self) -> bytes:
        """Its topic id."""
        return self.incarnation.to_bytes(16)

    @property
    def bounds(self) -> dict[TopicPartition, LogBounds]:
        """Where its logs begin and end."""
        return {tp: LogBounds(self.starts.get(tp, 0), end, self.id) for tp, end in self.ends.items()}

    def add_partition(self) -> None:
        """Add an empty partition."""
        self.ends[TopicPartition(TOPIC, len(self.ends))] = 0

    def produce(self, partition: int, records: int) -> None:
        """Append to a partition."""
        self.ends[TopicPartition(TOPIC, partition)] += records

    def recreate(self) -> None:
        """Delete it, and create it again with as many partitions."""
        self.incarnation += 1
        self.ends = dict.fromkeys(self.ends, 0)
        self.starts = {}

    def delete_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets, as retention does."""
        self.starts = {tp: offset for tp, offset in offsets.items() if tp in self.ends}


@attrs.define(eq=False)
class TopicClient:
    """What a `Stream` asks of a `DriverClient`. A request takes `latency` virtual seconds."""

    topic: Topic
    latency: float = 0.01

    def call(self, operation: Callable[[Any], Awaitable[T]], timeout: float | None = None) -> T:
        """Run an operation, none of which ever waits."""
        self.topic.scheduler.pause(self.latency)
        try:
            operation(self).__await__().__next__()
        except StopIteration as exc:
            result: T = exc.value
            return result
        raise RuntimeError("a lookup waits")

    def now(self) -> float:
        """The time of the loop."""
        return self.topic.scheduler.now

    @property
    def runtime(self) -> TopicClient:
        """What has the time."""
        return self

    @property
    def cluster(self) -> TopicClient:
        """What knows the metadata."""
        return self

    @property
    def metadata(self) -> TopicClient:
        """What has the cluster's id."""
        return self

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return "cluster"

    @property
    def lookup(self) -> TopicClient:
        """What answers."""
        return self

    async def partitions(self, selection: Any, *, internal: bool) -> tuple[TopicPartition, ...]:
        """Return the partitions."""
        if not self.topic.ends:
            raise UnknownTopicError(f"{TOPIC} does not exist", topic=TOPIC)
        return tuple(self.topic.ends)

    async def existing(self, selection: Any, *, internal: bool) -> tuple[TopicPartition, ...]:
        """Return the partitions that exist."""
        return tuple(self.topic.ends)

    async def log_bounds(self, partitions: Any, share: float = 1.0) -> Mapping[TopicPartition, LogBounds]:
        """Return where the logs begin and end."""
        return self.topic.bounds
