"""The task that keeps metadata up to date, and the Metadata request that it sends.

    an update is sent             not before
    ----------------------------  -----------------------------------------------------------------
    new topics                    at once
    requested                     the backoff of failures, or of responses without progress, is over
    every metadata_max_age_ms     the same

There are two backoffs. One counts failed updates. The other counts responses without a newer leader epoch, so that a
broker with stale metadata is not asked in a busy loop (KIP-580, KIP-951); `request_update` resets it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from typing import Final

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.errors import DeadlineError, KclientError
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error, rebootstrap_required
from kclient.network.metadata import MetadataCache, UpdateResult, is_legal_topic
from kclient.protocol.errors import (
    INVALID_TOPIC_EXCEPTION,
    NONE,
    REBOOTSTRAP_REQUIRED,
    TOPIC_AUTHORIZATION_FAILED,
)
from kclient.protocol.primitives import Uuid
from kclient.runtime import Runtime
from kclient.text import format_count

logger: Final = get_logger("kclient.metadata")


class MetadataUpdater:
    """Sends Metadata requests when they are due, and applies the responses to the cache."""

    def __init__(
        self,
        cache: MetadataCache,
        ask: Ask,
        rebootstrap: Callable[[str], None],
        config: Config,
        runtime: Runtime,
    ) -> None:
        self._cache = cache
        self._ask = ask
        self._rebootstrap = rebootstrap
        self._runtime = runtime
        self._allow_auto_create = config.allow_auto_create_topics
        self._max_age = config.metadata_max_age_ms / 1000
        self._trigger = config.metadata_recovery_rebootstrap_trigger_ms / 1000
        self._retry_base = config.retry_backoff_ms / 1000
        self._failure_backoff = Backoff.for_retries(config, runtime)
        self._no_progress_backoff = Backoff.for_retries(config, runtime)
        self._topics: tuple[str, ...] | None = ()
        self._topic_ids: tuple[Uuid, ...] = ()
        self._urgent = False  # a new topic: do not wait for a backoff
        self._requested = False
        self._needed_since: float | None = None
        self._not_before = 0.0
        self._last_attempt = 0.0
        self._last_success = 0.0
        self._wake = ChangeSignal()
        self._updated = ChangeSignal()
        self._last_error: KclientError | None = None

    # --- requests for an update

    def set_topics(self, topics: Iterable[str] | None) -> None:
        """Set the topics to keep up to date; None for all topics. New topics are requested at once."""
        wanted = None if topics is None else tuple(dict.fromkeys(topics))
        before, self._topics = self._topics, wanted
        if not _covers(before, wanted):
            self._urgent = True
            self._need("new topics")

    def set_topic_ids(self, topic_ids: Iterable[Uuid]) -> None:
        """Set the topics to keep up to date if none is set by name: those that brokers resolved for a pattern."""
        before, self._topic_ids = self._topic_ids, tuple(dict.fromkeys(topic_ids))
        if not set(self._topic_ids) <= set(before):
            self._urgent = True
            self._need("new topics")

    def request_update(self, reason: str, *, reset_backoff: bool = True) -> None:
        """Request an update. Pass `reset_backoff=False` if the same failure may request it again and again."""
        if reset_backoff:
            self._no_progress_backoff.reset()
            # After failures the backoff stays as it is, however many callers request an update.
            if not self._failure_backoff.step:
                self._not_before = min(self._not_before, self._last_attempt + self._retry_base)
        self._need(reason)

    def _need(self, reason: str) -> None:
        if not self._requested:
            logger.debug("update needed: %s", reason)
        self._requested = True
        if self._needed_since is None:
            self._needed_since = self._runtime.now()
        self._wake.notify()

    async def update_now(self, timeout: float) -> None:
        """Request an update and wait for it. Raise DeadlineError from the last failure after `timeout` seconds."""
        # Read before the request: an update that ends before this task waits is not missed.
        seen = self._updated.count
        self.request_update("asked for")
        try:
            async with asyncio.timeout(timeout):
                await self._updated.wait(seen)
        except TimeoutError:
            why = f" ({self._last_error.text})" if self._last_error is not None else ""
            raise DeadlineError(
                f"no metadata within {timeout} s{why}. No broker answered in time. "
                "Check that the cluster is up, or use a longer timeout.",
                waiting_for="metadata",
                timeout=timeout,
            ) from self._last_error

    # --- the task

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        while True:
            await self._wait_until_due()
            try:
                await self.update()
            except KclientError as exc:
                self._failed(exc)

    async def update(self) -> UpdateResult:
        """Send one Metadata request and apply the response. Raise KclientError if that fails."""
        # Reset before the request is sent: what is requested while it is in flight needs another one.
        self._urgent = self._requested = False
        if self._needed_since is None:
            self._needed_since = self._runtime.now()
        self._last_attempt = self._runtime.now()
        # The topics may change while the request is in flight; the response is whole only if it covers the new ones.
        asked, asked_ids = self._topics, self._topic_ids
        version, response = await self._send_request()
        if response.error_code == REBOOTSTRAP_REQUIRED:
            self._rebootstrap("the broker answered REBOOTSTRAP_REQUIRED")
            raise rebootstrap_required()
        if response.error_code != NONE:
            raise broker_error(response.error_code, "reading metadata")
        whole = _covers(asked, self._topics) and set(self._topic_ids) <= set(asked_ids)
        applied = self._cache.apply(response, version, whole=whole)
        self._succeeded(applied)
        if asked is not None and not set(asked) <= {topic.name for topic in response.topics}:
            self._need("the response lacks a requested topic")
        return applied

    async def _send_request(self) -> tuple[int, MetadataResponse]:
        """Send the request, for no longer than metadata_recovery_rebootstrap_trigger_ms."""
        request, lowest = metadata_request(self._topics, self._allow_auto_create, self._topic_ids)
        give_up = (self._needed_since or self._last_attempt) + self._trigger
        try:
            # Even after the trigger each attempt gets one backoff of time.
            async with asyncio.timeout_at(max(give_up, self._last_attempt + self._retry_base)):
                return await self._ask(request, lowest)
        except TimeoutError as exc:
            if isinstance(exc, KclientError):
                raise
            raise DeadlineError(
                f"no metadata for {self._trigger} s. A broker is connected, but does not answer. "
                "Look at the brokers' logs; kclient retries, and starts over from the bootstrap servers unless "
                "metadata_recovery_strategy is none.",
                waiting_for="metadata",
                timeout=self._trigger,
            ) from exc

    def _succeeded(self, applied: UpdateResult) -> None:
        now = self._runtime.now()
        self._last_success = now
        self._needed_since = self._last_error = None
        self._failure_backoff.reset()
        if applied.progress:
            self._no_progress_backoff.reset()
        self._not_before = now + self._no_progress_backoff.next()
        self._updated.notify()
        if applied.update_needed:
            self._need("the response contains errors or stale leaders")

    def _failed(self, error: KclientError) -> None:
        now = self._runtime.now()
        self._last_error = error
        self._not_before = now + self._failure_backoff.next()
        logger.info("update failed: %s", error.text, extra={"error": error.kc_code})
        if not error.retriable:
            self._cache.store_error(error)
        if self._needed_since is not None and now - self._needed_since >= self._trigger:
            # The brokers that the bootstrap servers name get the whole time again.
            self._needed_since = now
            self._rebootstrap(f"no metadata for {self._trigger} s")
        self._need("the last update failed")

    async def _wait_until_due(self) -> None:
        """Wait until an update is due: requested or expired, and the backoff is over."""
        while True:
            seen, now = self._wake.count, self._runtime.now()
            expires = self._last_success + self._max_age
            due = now if self._urgent else max(self._not_before, 0.0 if self._requested else expires)
            if due <= now:
                if not self._requested:
                    self._no_progress_backoff.reset()
                return
            try:
                async with asyncio.timeout_at(due):
                    await self._wake.wait(seen)
            except TimeoutError:
                continue


def _covers(asked: tuple[str, ...] | None, wanted: tuple[str, ...] | None) -> bool:
    """Return whether a response about the topics `asked` covers all of `wanted`; None is all topics."""
    return asked is None or (wanted is not None and set(wanted) <= set(asked))


Ask = Callable[[MetadataRequest, int], Awaitable[tuple[int, MetadataResponse]]]


TOPIC_IDS_SINCE: Final = 12
NEVER_OF_ALL: Final = (TOPIC_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION)


def metadata_request(
    topics: Sequence[str] | None, allow_auto_create: bool, topic_ids: Sequence[Uuid] = ()
) -> tuple[MetadataRequest, int]:
    """Return the Metadata request for some topics, none, or all (None), and the lowest version for it.

    Without `topics` by name, `topic_ids` requests topics whose names are not known.
    """
    if topic_ids and topics is not None and not topics:
        by_id = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
        return MetadataRequest(topics=by_id, allow_auto_topic_creation=False), TOPIC_IDS_SINCE
    if not topics:
        return MetadataRequest(topics=None if topics is None else []), 1
    wanted = [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(
        topics=wanted, allow_auto_topic_creation=allow_auto_create
    ), 1 if allow_auto_create else 4


def drop_unrequested_topics(request: MetadataRequest, response: MetadataResponse) -> None:
    """Drop topics that were not requested, and illegal names from a response about all topics.

    A topic that was requested by name stays with its error. Log one warning for each response.
    """
    names = ids = None
    if request.topics is not None:
        names = {topic.name for topic in request.topics if topic.name is not None}
        ids = {topic.topic_id for topic in request.topics if topic.name is None}
    kept = [topic for topic in response.topics if _is_asked(topic, names, ids)]
    if len(kept) < len(response.topics):
        dropped = format_count(len(response.topics) - len(kept), "topic")
        logger.warning(
            "a metadata response contains topics that were not requested, or illegal names: dropped %s",
            dropped,
        )
        response.topics = kept


def _is_asked(topic: MetadataResponseTopic, names: Set[str] | None, ids: Set[Uuid] | None) -> bool:
    if names is None or ids is None:
        # In a response about all topics, brokers leave out topics without permission, so these errors are not ours.
        return topic.error_code not in NEVER_OF_ALL and is_legal_topic(topic.name or "")
    if topic.topic_id in ids:
        return topic.name is None or is_legal_topic(topic.name)
    return topic.name in names


async def retry_until_answered(
    ask: Callable[[], Awaitable[MetadataResponse]], backoff: Backoff, timeout: float, doing: str
) -> MetadataResponse:
    """Call `ask` until it returns a response. Raise the first error that is not retriable, or DeadlineError."""
    error: KclientError | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await ask()
                except KclientError as exc:
                    if not exc.retriable:
                        raise
                    error = exc
                await asyncio.sleep(backoff.next())
    except TimeoutError as exc:
        if isinstance(exc, KclientError):
            raise
        raise DeadlineError(
            f"{doing}: no response within {timeout} s. "
            f"{'No broker is available.' if error is None else error.text} "
            "Check that the cluster is up, or use a longer timeout.",
            waiting_for="metadata of topics",
            timeout=timeout,
        ) from error
