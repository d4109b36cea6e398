"""Report topics and partitions that are subscribed or assigned and do not exist.

after a second              a WARNING that the topic does not exist; the consumer waits for it
when it is created          a WARNING with the most similar name: brokers with auto.create.topics.enable create every
                            topic that a client requests, also one with a misspelt name, which stays empty
after `missing_topic_timeout_ms`       UnknownTopicError from poll(), and again while the topic is missing
"""

from __future__ import annotations

import difflib
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.subscription import SubscriptionKind, SubscriptionState
from kclient.consumer.tasks import BackgroundTasks
from kclient.errors import KclientError, UnknownTopicError
from kclient.log import get_logger
from kclient.network.cluster import Cluster
from kclient.positions.table import Positions
from kclient.runtime import Runtime
from kclient.types import TopicPartition

log: Final = get_logger("kclient.consumer")

WARN_SECONDS: Final = 1.0  # a topic that is created within a second gets only the WARNING about that


class MissingTopics:
    """Checks the metadata when it has changed, and the clock while a topic or partition is missing.

    Notifies `changed` when `take_error` has an error.
    """

    def __init__(
        self,
        config: Config,
        runtime: Runtime,
        cluster: Cluster,
        subscription: SubscriptionState,
        positions: Positions,
        tasks: BackgroundTasks,
        changed: ChangeSignal,
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._cluster = cluster
        self._subscription = subscription
        self._positions = positions
        self._tasks = tasks
        self._changed = changed
        self._version_seen = 0
        self._missing_since: dict[str | TopicPartition, float] = {}
        self._error: KclientError | None = None
        self._searching = False
        self._warned: set[tuple[str, str]] = set()

    def reset(self) -> None:
        """Start again, for another subscription."""
        self._version_seen = self._cluster.metadata.version
        self._missing_since.clear()
        self._error = None

    def check(self, now: float) -> None:
        """Note what is missing, and search for the most similar name of a topic that is missing for too long."""
        metadata = self._cluster.metadata
        if metadata.version != self._version_seen:
            self._version_seen = metadata.version
            since = self._missing_since
            self._missing_since = {missing: since.get(missing, now) for missing in self._missing()}
            self._warn_of_created()
        self._warn_of_missing(now)
        late = next(
            (missing for missing, since in self._missing_since.items() if now >= since + self._wait_seconds),
            None,
        )
        if late is not None and not self._searching and self._error is None:
            self._searching = True
            # The next report about this topic comes one `topic_wait_ms` later.
            self._missing_since[late] = now
            self._tasks.spawn("search for a missing topic", self._report(late))

    def next_check(self) -> float | None:
        """Return when a waiting poll must check again, None if nothing is missing."""
        if self._searching or not self._missing_since:
            return None
        delays: dict[str | TopicPartition, float] = dict.fromkeys(self._unwarned(), self._warn_seconds)
        return min(
            since + delays.get(missing, self._wait_seconds) for missing, since in self._missing_since.items()
        )

    def take_error(self) -> KclientError | None:
        """Return the error for the next poll, once."""
        error, self._error = self._error, None
        return error

    def describe(self) -> str:
        """Return what `explain()` adds: topics that do not exist, and topics that were created on request."""
        missing, created = self._nonexistent(), self._created()
        parts = [f"; {_names(missing)} not exist"] if missing else []
        if created:
            parts.append(
                f"; {', '.join(map(repr, created))} did not exist until asked for: created by the brokers "
                "(auto.create.topics.enable)?"
            )
        return "".join(parts)

    def _nonexistent(self) -> list[str]:
        metadata = self._cluster.metadata
        return [topic for topic in self._subscribed_topics() if topic in metadata.nonexistent]

    def _created(self) -> list[str]:
        if not self._config.allow_auto_create_topics:
            return []
        return [topic for topic in self._subscribed_topics() if topic in self._cluster.metadata.created]

    def _subscribed_topics(self) -> tuple[str, ...]:
        subscription = self._subscription
        by_name = subscription.kind in (SubscriptionKind.TOPICS, SubscriptionKind.MANUAL)
        return subscription.topics if by_name else ()

    def _unwarned(self) -> list[str]:
        """Return the topics that do not exist and that no WARNING has named yet."""
        topics = [topic for topic in self._nonexistent() if topic in self._missing_since]
        return [topic for topic in topics if ("missing", topic) not in self._warned]

    def _warn_of_missing(self, now: float) -> None:
        """Warn of each topic once that was missing for a moment."""
        for topic in self._unwarned() if self._missing_since else ():
            if now >= self._missing_since[topic] + self._warn_seconds:
                self._warned.add(("missing", topic))
                log.warning(
                    "topic %r does not exist; the consumer waits for it, and poll() raises UnknownTopicError when it "
                    "is still missing after %g s",
                    topic, self._wait_seconds, extra={"topic": topic},
                )  # fmt: skip

    def _warn_of_created(self) -> None:
        """Warn of each topic once that it was created after it had been asked for."""
        for topic in self._created():
            if self._first("created", topic):
                self._tasks.spawn("search for a created topic's nearest name", self._warn_created(topic))

    def _first(self, what: str, topic: str) -> bool:
        first = (what, topic) not in self._warned
        self._warned.add((what, topic))
        return first

    @property
    def _warn_seconds(self) -> float:
        return min(WARN_SECONDS, self._wait_seconds)

    async def _warn_created(self, topic: str) -> None:
        known = [name for name in await self._known_topics() if name != topic]
        near = await self._runtime.offload(_nearest, topic, known)
        log.warning(
            "topic %r did not exist, and was created after this consumer asked for it: brokers with "
            "auto.create.topics.enable create what is asked for, also a misspelt name.%s With "
            "allow_auto_create_topics=False they do not, and poll() raises UnknownTopicError",
            topic, f" Did you mean {near[0]!r}?" if near else "", extra={"topic": topic},
        )  # fmt: skip

    @property
    def _wait_seconds(self) -> float:
        config = self._config
        return max(config.missing_topic_timeout_ms, config.retry_backoff_ms) / 1000

    def _missing(self) -> list[str | TopicPartition]:
        subscription, known = self._subscription, self._cluster.metadata.topics
        if subscription.kind in (SubscriptionKind.PATTERN, SubscriptionKind.BROKERS):
            return []
        missing: list[str | TopicPartition] = [topic for topic in subscription.topics if topic not in known]
        if subscription.kind is SubscriptionKind.MANUAL:
            assigned = self._positions.assigned()
            missing += [tp for tp in assigned if self._lacks(tp)]
        return missing

    def _lacks(self, tp: TopicPartition) -> bool:
        """Return whether the topic is known and does not have this partition."""
        topic = self._cluster.metadata.topics.get(tp.topic)
        return topic is not None and bool(topic.partitions) and tp.partition not in topic.partitions

    async def _report(self, missing: str | TopicPartition) -> None:
        if isinstance(missing, TopicPartition):
            self._searching = False
            self._error = self._no_such_partition(missing)
            self._changed.notify()
        else:
            await self._report_topic(missing)

    def _no_such_partition(self, tp: TopicPartition) -> UnknownTopicError:
        count = self._cluster.metadata.partition_count(tp.topic) or 1
        return UnknownTopicError(
            f"Partition {tp} does not exist (looked for {self._wait_seconds:g} s). The partitions of "
            f"{tp.topic!r} are numbered from 0 to {count - 1}. Assign one of these, or add partitions to the topic.",
            topic=tp.topic,
        )

    async def _report_topic(self, topic: str) -> None:
        try:
            known = await self._known_topics()
            near = await self._runtime.offload(_nearest, topic, known)
        finally:
            self._searching = False
            self._changed.notify()
        if topic in known or topic not in self._missing_since:
            return
        hint = f"Did you mean {near[0]!r}?" if near else "Create the topic, or correct the name."
        self._error = UnknownTopicError(
            f"Topic {topic!r} does not exist (looked for {self._wait_seconds:g} s). "
            f"The name is misspelt, or the topic was not created yet. {hint}",
            topic=topic,
            nearest=near[0] if near else None,
        )

    async def _known_topics(self) -> list[str]:
        timeout = self._config.request_timeout_ms / 1000
        try:
            response = await self._cluster.describe_topics(None, allow_auto_create=False, timeout=timeout)
        except KclientError:
            return sorted(self._cluster.metadata.topics)  # the hint uses the topics that are known here
        return sorted(topic.name for topic in response.topics if topic.name and not topic.error_code)


def _names(topics: list[str]) -> str:
    return f"topic {topics[0]!r} does" if len(topics) == 1 else f"topics {', '.join(map(repr, topics))} do"


def _nearest(topic: str, known: list[str]) -> list[str]:
    """Return the most similar known name in a list, or an empty list. Takes a second for ten thousand names."""
    return difflib.get_close_matches(topic, known, n=1)
