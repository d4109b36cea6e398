"""ConsumerCore: the parts of one consumer, and the operations that keep them consistent with each other.

    subscription   topics, pattern or partitions      positions   where each assigned partition is read next
    cluster        brokers, leaders, requests         buffer      fetched bytes that wait for a poll
    group          coordinator, membership, commits   delivered   records of the last poll

Everything here runs on one event loop. AsyncConsumer calls it directly, Consumer from another thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.callbacks import CallbackQueue
from kclient.consumer.delivered import DeliveredRecords, UndecodedRecords, nothing_delivered
from kclient.consumer.group import GroupConsumer
from kclient.consumer.interceptors import Interceptors
from kclient.consumer.listener import CallUser
from kclient.consumer.metrics import ConsumerMetrics
from kclient.consumer.missing_topics import MissingTopics
from kclient.consumer.offset_lookup import ConsumerLag
from kclient.consumer.subscription import SubscriptionKind, SubscriptionState
from kclient.consumer.tasks import BackgroundTasks, CallTimeouts
from kclient.errors import BrokerError, KclientError
from kclient.fetch.buffer import FetchBuffer
from kclient.fetch.delivery import DecodeTask, RecordDelivery
from kclient.fetch.fetcher import Fetcher
from kclient.network.cluster import Cluster
from kclient.positions.table import Positions
from kclient.positions.updater import PositionUpdater
from kclient.protocol.errors import INVALID_GROUP_ID
from kclient.records.decoder import decoder_in_use
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

Decode = Callable[[DecodeTask], Awaitable[None]]


class ConsumerCore:
    """The parts of one consumer. `call_user` runs the user's functions, `decode` decodes records."""

    def __init__(self, config: Config, runtime: Runtime, call_user: CallUser, decode: Decode) -> None:
        decoder_in_use()  # raises ConfigError here rather than from the first poll with records
        self.config = config
        self.runtime = runtime
        self.call_user = call_user
        self.decode = decode
        self.interceptors = Interceptors(config.interceptors, call_user, runtime.now)
        self.changed = ChangeSignal()
        self.timeouts = CallTimeouts(self.changed)
        self.tasks = BackgroundTasks(self.changed)
        self.rebalance_steps = CallbackQueue(self.changed)
        self.callbacks = CallbackQueue(self.changed)
        self.subscription = SubscriptionState()
        self.delivered: DeliveredRecords = nothing_delivered()
        self.positions = Positions()
        self.buffer = FetchBuffer()
        self.metrics = metrics = ConsumerMetrics(config, self.positions, self.buffer)
        self.cluster = Cluster(config, runtime, metrics.network)
        self.delivery = RecordDelivery(self.positions, self.buffer, config, metrics.fetch)
        self.fetcher = Fetcher(self.cluster, self.positions, self.buffer, config, runtime, metrics.fetch)
        self.group_or_none: GroupConsumer | None = (
            GroupConsumer(self) if config.group_id is not None else None
        )
        committed = self.group.committed.fetch if self.group_or_none is not None else None
        jumped = metrics.position_jumped
        self.position_updater = PositionUpdater(
            self.cluster, self.positions, config, runtime, committed, jumped
        )
        self.undecoded = UndecodedRecords(
            config.on_decode_error, lambda count: metrics.own.records_skipped(count, "decode")
        )
        self.missing_topics = MissingTopics(
            config, runtime, self.cluster, self.subscription, self.positions, self.tasks, self.changed
        )
        self.lag = ConsumerLag(self)
        self._errors: list[Callable[[], KclientError | None]] = [
            self.cluster.metadata.take_error,
            self.position_updater.take_error,
            self.fetcher.take_error,
            self.missing_topics.take_error,
            self.tasks.take_error,
        ]
        self._metadata_seen = 0
        self._join_due = True
        self._start: asyncio.Task[None] | None = None
        self.ending: asyncio.Task[None] | None = None
        for signal in (self.positions.changed, self.buffer.changed, self.cluster.metadata.changed):
            signal.chain(self.changed)

    @property
    def group(self) -> GroupConsumer:
        """Return the group. Raise the broker's own INVALID_GROUP_ID for a consumer without one."""
        if self.group_or_none is None:
            raise BrokerError(
                "This call needs a group, and the consumer has none (INVALID_GROUP_ID (24)). "
                "Subscriptions and commits belong to a group. Set group_id, or use assign() and seek().",
                code=INVALID_GROUP_ID,
                name="INVALID_GROUP_ID",
            )
        return self.group_or_none

    # --- starting

    @property
    def running(self) -> bool:
        """Whether the cluster was reached and the tasks run. False once close() is ending them."""
        start = self._start
        if self.ending is not None or start is None:
            return False
        return start.done() and not start.cancelled() and start.exception() is None

    @property
    def begun(self) -> bool:
        """Whether anything of this consumer may run, or be connected."""
        return self._start is not None and self.ending is None

    async def start(self) -> None:
        """Connect and start the background tasks, once. Raise what `Cluster.start` raises; a later call tries again.

        A try continues when its caller has timed out. If it fails then, the next call raises the error, so that callers
        with short timeouts see it too.
        """
        if self._start is None or self._start.cancelled():
            self._start = asyncio.create_task(self._begin(), name="kclient start")
            self._start.add_done_callback(_retrieve)
        start = self._start
        try:
            await asyncio.shield(start)
        except asyncio.CancelledError:
            raise
        except BaseException:
            if self._start is start:
                self._start = None  # its error is raised here
            raise

    async def _begin(self) -> None:
        self.cluster.set_topics(self._wanted_topics())
        await self.cluster.start()
        if self.timeouts.closing:
            return  # only asynchronous commits wait for the connection
        self.tasks.start("position updater", self.position_updater.run)
        self.tasks.start("fetcher", self.fetcher.run)

    async def stop_starting(self) -> None:
        """Cancel a start that has not succeeded."""
        if self._start is not None and not self._start.done():
            self._start.cancel()
            await asyncio.wait([self._start])

    # --- the subscription

    def follow_subscription(self) -> None:
        """Pass a changed subscription to the metadata cache and to the group."""
        self.missing_topics.reset()
        self._metadata_seen = self.cluster.metadata.version
        self.cluster.set_topics(self._wanted_topics())
        if self.subscription.kind is SubscriptionKind.PATTERN:
            self.cluster.request_update(
                "a pattern is subscribed to"
            )  # the metadata may be of an earlier subscription
        if self._topics_to_join is not None and self.group.joining:
            self.group.join(self._topics_to_join)  # a member sends its new subscription at once
        else:
            self._join_due = True
        self.changed.notify()

    def stop_unsubscribed(self) -> None:
        """Stop reading topics that left the subscription. Their partitions stay assigned until the rebalance."""
        covers = self.subscription.covers
        self.positions.follow_subscription(covers)
        unsubscribed = [tp for tp in self.positions.assigned() if not covers(tp.topic)]
        self.return_undelivered(unsubscribed)
        self.buffer.drop(unsubscribed)

    def join_group(self) -> None:
        """Join the group. Only poll() calls this: a member without polls would own partitions and not read them."""
        if self._join_due and (topics := self._topics_to_join) is not None:
            self.group.join(topics)
            self._join_due = False
        self._match_pattern()

    def _match_pattern(self) -> None:
        """Match the pattern again if the metadata has changed."""
        version = self.cluster.metadata.version
        if version == self._metadata_seen or self.subscription.kind is not SubscriptionKind.PATTERN:
            return
        self._metadata_seen = version
        changed = self.subscription.match(
            self.cluster.metadata.topics, exclude_internal=self.config.exclude_internal_topics
        )
        if changed or self._join_due:
            self.group.join(self.subscription.topics)
            self._join_due = False

    def learn_topics(self, topics: Iterable[str]) -> None:
        """Add assigned topics that match the pattern and that only the group's leader knew so far."""
        new = [topic for topic in dict.fromkeys(topics) if not self.subscription.has(topic)]
        if new:
            self.subscription.add(new)
            self.group.join(self.subscription.topics)
            self.cluster.request_update("topics of the pattern were assigned that are not known here")

    def _wanted_topics(self) -> tuple[str, ...] | None:
        return None if self.subscription.kind is SubscriptionKind.PATTERN else self.subscription.topics

    @property
    def _topics_to_join(self) -> tuple[str, ...] | None:
        """The topics to join with, None for a pattern: it joins when the metadata shows its topics."""
        kinds = SubscriptionKind.TOPICS, SubscriptionKind.BROKERS
        return self.subscription.topics if self.subscription.kind in kinds else None

    # --- assignment and delivered records

    def set_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        """Make these the assigned partitions. Drop buffered and undelivered records of all others."""
        wanted = dict.fromkeys(partitions)
        new = [tp for tp in wanted if tp not in self.positions]
        self.return_undelivered(tp for tp in self.positions.assigned() if tp not in wanted)
        self.positions.assign(wanted)
        self.positions.defer_lookup(new)
        self.metrics.assignment_changed()
        self.buffer.retain(wanted)
        self.position_updater.cancel_committed_lookup()

    def return_undelivered(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Move the positions back to the first record that iteration has not handed out yet."""
        self._rewind(self.delivered.return_undelivered(partitions))

    def return_all(self) -> None:
        """The poll that delivered these records was interrupted before it returned: deliver them again."""
        delivered, self.delivered = self.delivered, nothing_delivered()
        self._rewind(delivered.return_all())

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what an explicit commit stores: the positions after all returned records.

        While an interrupted application closes, the committable offsets.
        """
        return self.delivered.consumed(self.positions.all_consumed())

    def committable(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what an automatic commit stores: the positions after all processed records."""
        return self.delivered.committable(self.positions.all_consumed())

    def delivered_counts(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition were delivered and are not committable yet."""
        return self.delivered.count_from(self.committable())

    def _rewind(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        for tp, offset in offsets.items():
            state = self.positions.find(tp)
            if state is None or state.position is None or state.delivered_topic_is_gone:
                continue
            if offset.offset < state.position.offset:
                self.positions.seek(tp, offset, state.position.leader)

    # --- errors for the next call

    def raise_stored(self) -> None:
        """Raise the first error that a background task has stored; those of the group come first."""
        if self.group_or_none is not None:
            error = self.group.take_error()
            if error is not None and not self.group.fall_back(error):
                raise error
        for take_error in self._errors:
            if (error := take_error()) is not None:
                raise error


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from logging the error of a start without a waiter: the next call raises it."""
    if not task.cancelled():
        task.exception()
