"""The questions about topics: how one is put, and how one is put again until a broker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence, Set
from typing import Final

from kclient.errors import DeadlineError, KclientError
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.topology import is_legal_topic
from kclient.protocol.errors import INVALID_TOPIC_EXCEPTION, TOPIC_AUTHORIZATION_FAILED
from kclient.protocol.primitives import Uuid
from kclient.text import format_count

logger = get_logger("kclient.metadata")

Ask = Callable[[MetadataRequest, int], Awaitable[tuple[int, MetadataResponse]]]


TOPIC_IDS_SINCE: Final = 12
NEVER_OF_ALL: Final = (TOPIC_AUTHORIZATION_FAILED, INVALID_TOPIC_EXCEPTION)


def metadata_request(
    topics: Sequence[str] | None, allow_auto_create: bool, topic_ids: Sequence[Uuid] = ()
) -> tuple[MetadataRequest, int]:
    """The question for some topics, none, or all (None), and the lowest version for it.

    Topics whose names nobody here knows are asked for by `topic_ids`, if none is wanted by name.
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


def keep_asked(request: MetadataRequest, answer: MetadataResponse) -> None:
    """Drop the topics that the answer was not asked for, and those that cannot be where it was asked for all.

    A topic that a user asked for stays with its error, whatever its name. One WARNING for each answer.
    """
    names = ids = None
    if request.topics is not None:
        names = {topic.name for topic in request.topics if topic.name is not None}
        ids = {topic.topic_id for topic in request.topics if topic.name is None}
    kept = [topic for topic in answer.topics if _is_asked(topic, names, ids)]
    if len(kept) < len(answer.topics):
        dropped = format_count(len(answer.topics) - len(kept), "topic")
        logger.warning("a metadata answer names what was not asked for, or cannot be: dropped %s", dropped)
        answer.topics = kept


def _is_asked(topic: MetadataResponseTopic, names: Set[str] | None, ids: Set[Uuid] | None) -> bool:
    if names is None or ids is None:
        # Brokers leave out what may not be seen where all topics are asked for: such an error names a stranger.
        return topic.error_code not in NEVER_OF_ALL and is_legal_topic(topic.name or "")
    if topic.topic_id in ids:
        return topic.name is None or is_legal_topic(topic.name)
    return topic.name in names


async def ask_until_answered(
    ask: Callable[[], Awaitable[MetadataResponse]], backoff: Backoff, timeout: float, doing: str
) -> MetadataResponse:
    """Ask again while it fails in a way that passes. Raises the error that does not pass, or DeadlineError."""
    problem: KclientError | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await ask()
                except KclientError as exc:
                    if not exc.retriable:
                        raise
                    problem = exc
                await asyncio.sleep(backoff.next())
    except TimeoutError as exc:
        if isinstance(exc, KclientError):
            raise
        raise DeadlineError(
            f"{doing}: no answer within {timeout} s. {'No broker can be asked.' if problem is None else problem.text} "
            "Check that the cluster is up, or give more time.",
            waiting_for="metadata of topics",
            timeout=timeout,
        ) from problem
