"""The questions about topics: how one is put, and how one is put again until a broker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from kclient.errors import DeadlineError, KclientError
from kclient.generated.metadata_request import MetadataRequest, MetadataRequestTopic
from kclient.generated.metadata_response import MetadataResponse
from kclient.network.backoff import Backoff
from kclient.protocol.primitives import Uuid

Ask = Callable[[MetadataRequest, int], Awaitable[tuple[int, MetadataResponse]]]


TOPIC_IDS_SINCE: Final = 12


def metadata_request(
    topics: Sequence[str] | None, allow_auto_create: bool, topic_ids: Sequence[Uuid] = ()
) -> tuple[MetadataRequest, int]:
    """The question for some topics, none, or all (None), and the lowest version for it.

    Topics whose names nobody here knows are asked for by `topic_ids`, if none is wanted by name. Spec: B.5.1, B.5.10.
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
                except KclientError as failed:
                    if not failed.retriable:
                        raise
                    problem = failed
                await asyncio.sleep(backoff.next())
    except TimeoutError as late:
        if isinstance(late, KclientError):
            raise
        raise DeadlineError(
            f"{doing}: no answer within {timeout} s. {'No broker can be asked.' if problem is None else problem.text} "
            "Check that the cluster is up, or give more time.",
            waiting_for="metadata of topics",
            timeout=timeout,
        ) from problem
