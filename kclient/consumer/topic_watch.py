"""Notices topics that are asked for and do not exist; tells the user after `topic_wait_ms`, with the nearest name."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from kclient.consumer.subscription import SubscriptionKind
from kclient.errors import KclientError, UnknownTopicError

if TYPE_CHECKING:
    from kclient.consumer.session import Session


class TopicWatch:
    """Looks at the metadata when it changed, and at the clock while something is missing. Spec: U-07, B.5.4."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._version_seen = 0
        self._missing_since: dict[str, float] = {}
        self._error: KclientError | None = None
        self._asking = False

    def forget(self) -> None:
        """Another subscription: start over."""
        self._version_seen = self._session.cluster.metadata.version
        self._missing_since.clear()
        self._error = None

    def look(self, now: float) -> None:
        """Note what is missing; ask for the nearest name of what is missing too long. Spec: U-07."""
        metadata = self._session.cluster.metadata
        if metadata.version != self._version_seen:
            self._version_seen = metadata.version
            since = self._missing_since
            self._missing_since = {
                topic: since.get(topic, now) for topic in self._wanted() if topic not in metadata.topics
            }
        late = next(
            (topic for topic, since in self._missing_since.items() if now >= since + self._patience), None
        )
        if late is not None and not self._asking and self._error is None:
            self._asking = True
            self._missing_since[late] = now
            self._session.flows.errand("search for a missing topic", self._report(late))

    def next_look(self) -> float | None:
        """When a waiting poll must look again, None if nothing is missing."""
        if self._asking or not self._missing_since:
            return None
        return min(self._missing_since.values()) + self._patience

    def take_error(self) -> KclientError | None:
        """The error for the next poll, once."""
        error, self._error = self._error, None
        return error

    @property
    def _patience(self) -> float:
        config = self._session.config
        return max(config.topic_wait_ms, config.retry_backoff_ms) / 1000

    def _wanted(self) -> tuple[str, ...]:
        subscription = self._session.subscription
        return () if subscription.kind is SubscriptionKind.PATTERN else subscription.topics

    async def _report(self, topic: str) -> None:
        try:
            known = await self._known_topics()
        finally:
            self._asking = False
            self._session.news.notify()
        if topic in known:
            return
        near = difflib.get_close_matches(topic, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else "Create the topic, or correct the name."
        self._error = UnknownTopicError(
            f"Topic {topic!r} does not exist (looked for {self._patience:g} s). "
            f"The name is wrong, or nobody has created the topic. {hint}",
            topic=topic,
            nearest=near[0] if near else None,
        )

    async def _known_topics(self) -> list[str]:
        session = self._session
        timeout = session.config.request_timeout_ms / 1000
        try:
            answer = await session.cluster.describe_topics(None, allow_auto_create=False, timeout=timeout)
        except KclientError:
            return sorted(session.cluster.metadata.topics)  # the names at hand must do for the hint
        return sorted(topic.name for topic in answer.topics if topic.name and not topic.error_code)
