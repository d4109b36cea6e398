"""The subscription: topics, a pattern, or assigned partitions – one kind at a time until `unsubscribe`. Pure.

kind       topics                          who assigns
NONE       –                               –
TOPICS     as given                        the group
PATTERN    those that match now            the group
BROKERS    – (the brokers know)            the group
MANUAL     those of the given partitions   the user
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kclient.consumer.arguments import checked_topics
from kclient.consumer.callbacks import RebalanceListener
from kclient.errors import ArgumentError, UsageError
from kclient.types import SubscriptionPattern, TopicPartition

if TYPE_CHECKING:
    from kclient.network.metadata import TopicMetadata


class SubscriptionKind(enum.Enum):
    """Who decides which partitions are read."""

    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    BROKERS = "a pattern of the brokers"
    MANUAL = "partitions by hand"


class SubscriptionState:
    """The subscription, its listener, and its topics in sorted order."""

    def __init__(self) -> None:
        self.kind: SubscriptionKind = SubscriptionKind.NONE
        self.choice: int = 0  # counts changes by the user
        self.pattern: re.Pattern[str] | None = None
        self.broker_pattern: SubscriptionPattern | None = None
        self.topics: tuple[str, ...] = ()
        self._names: frozenset[str] = frozenset()
        self.listener: RebalanceListener | None = None

    @property
    def automatic(self) -> bool:
        """Whether a group assigns the partitions."""
        return self.kind not in (SubscriptionKind.NONE, SubscriptionKind.MANUAL)

    @property
    def joins_at_once(self) -> bool:
        """Whether its topics are known to the group. A pattern joins when the metadata shows its topics."""
        return self.kind in (SubscriptionKind.TOPICS, SubscriptionKind.BROKERS)

    @property
    def metadata_topics(self) -> tuple[str, ...] | None:
        """The topics whose metadata is needed; None for all topics, which a pattern is matched against."""
        return None if self.kind is SubscriptionKind.PATTERN else self.topics

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None) -> None:
        """Follow these topics. Raises ArgumentError for a blank name, UsageError beside another kind."""
        names = checked_topics(topics)
        self._become(SubscriptionKind.TOPICS)
        self._set_topics(names)
        self.listener = listener

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: RebalanceListener | None) -> None:
        """Follow every topic whose whole name matches."""
        if not isinstance(pattern, re.Pattern) or not pattern.pattern:
            raise ArgumentError(f"The pattern must be a compiled regular expression, not {pattern!r}.")
        if not isinstance(pattern.pattern, str):
            raise ArgumentError(
                f"Topics have names of text, which {pattern!r} cannot match. Write the pattern as str."
            )
        self._become(SubscriptionKind.PATTERN)
        # The topics of an earlier pattern must not be joined with.
        if self.pattern != pattern:
            self._set_topics(())
        self.pattern, self.listener = pattern, listener

    def subscribe_broker_pattern(
        self, pattern: SubscriptionPattern, listener: RebalanceListener | None
    ) -> None:
        """Follow every topic that the brokers find for the pattern."""
        if not isinstance(pattern.pattern, str) or not pattern.pattern:
            raise ArgumentError(f"A SubscriptionPattern holds a regular expression, not {pattern.pattern!r}.")
        self._become(SubscriptionKind.BROKERS)
        self.broker_pattern, self.listener = pattern, listener

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, without a group."""
        self._become(SubscriptionKind.MANUAL)
        self._set_topics(tuple(sorted(dict.fromkeys(tp.topic for tp in partitions))))

    def clear(self) -> None:
        """Subscribe to nothing."""
        self.kind, self.pattern, self.listener = SubscriptionKind.NONE, None, None
        self.broker_pattern = None
        self._set_topics(())

    def match(self, topics: Mapping[str, TopicMetadata], *, exclude_internal: bool) -> bool:
        """Match the pattern again. Return whether its topics changed."""
        if self.pattern is None:
            return False
        found = tuple(
            name
            for name, topic in sorted(topics.items())
            if self.pattern.fullmatch(name) and not (exclude_internal and topic.internal)
        )
        changed = found != self.topics
        self._set_topics(found)
        return changed

    def covers(self, topic: str) -> bool:
        """Return whether the group may assign partitions of this topic to this consumer."""
        if self.kind is SubscriptionKind.PATTERN and self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        if self.kind is SubscriptionKind.BROKERS:
            return True
        return self.has(topic)

    def has(self, topic: str) -> bool:
        """Return whether this is one of `topics`, of which there may be thousands."""
        return topic in self._names

    def add(self, topics: Iterable[str]) -> None:
        """Add topics of the pattern that the group's leader has seen first."""
        self._set_topics(tuple(sorted(dict.fromkeys((*self.topics, *topics)))))

    def _set_topics(self, topics: tuple[str, ...]) -> None:
        self.topics, self._names = topics, frozenset(topics)

    def _become(self, kind: SubscriptionKind) -> None:
        if self.kind not in (SubscriptionKind.NONE, kind):
            raise UsageError(
                f"This consumer follows {self.kind.value}, and cannot follow {kind.value} at the same time. "
                "Topics, a pattern and partitions by hand exclude each other. Call unsubscribe() first."
            )
        self.kind = kind
        self.choice += 1
