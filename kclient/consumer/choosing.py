"""Choosing what to read: topics, a pattern, or partitions by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kclient.consumer import close
from kclient.consumer.core import ConsumerCore
from kclient.consumer.listener import RebalanceListener
from kclient.consumer.subscription import checked_partitions, checked_topics
from kclient.errors import ArgumentError
from kclient.types import SubscriptionPattern, TopicPartition


async def subscribe(
    session: ConsumerCore,
    topics: Iterable[str],
    pattern: re.Pattern[str] | SubscriptionPattern | str | None,
    listener: RebalanceListener | None,
) -> None:
    """Follow topics or a pattern with a group; the assignment changes with the next rebalance."""
    names = checked_topics(topics)
    if pattern is not None and names:
        raise ArgumentError("Give topics or a pattern, not both.")
    session.group_part  # noqa: B018 – raises for a consumer without a group
    if isinstance(pattern, SubscriptionPattern):
        session.group_part.require_broker_patterns()
        session.subscription.subscribe_broker_pattern(pattern, listener)
    elif pattern is not None:
        session.subscription.subscribe_pattern(_compiled(pattern), listener)
    elif names:
        session.subscription.subscribe(names, listener)
    else:
        await close.unsubscribe(session)
        return
    _drop_what_nobody_wants(session)
    session.follow_subscription()


async def assign(session: ConsumerCore, partitions: Iterable[TopicPartition]) -> None:
    """Read these partitions without a group's help; what stays keeps its position."""
    chosen = checked_partitions(partitions)
    if not chosen:
        await close.unsubscribe(session)
        return
    session.subscription.assign(chosen)
    if session.group is not None and session.running and session.group.committing.auto_commit_due():
        session.group.auto_commit()
    session.set_assignment(chosen)
    session.follow_subscription()


def _compiled(pattern: re.Pattern[str] | str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as exc:
        raise ArgumentError(f"The pattern {pattern!r} is not a regular expression: {exc}.") from exc
    except TypeError:
        raise ArgumentError(f"The pattern must be text or a compiled one, not {pattern!r}.") from None


def _drop_what_nobody_wants(session: ConsumerCore) -> None:
    """Partitions of topics that left the subscription stay assigned until the rebalance, but are not read any more."""
    covers = session.subscription.covers
    session.positions.follow_subscription(covers)
    unwanted = [tp for tp in session.positions.assigned() if not covers(tp.topic)]
    session.take_back(unwanted)
    session.buffer.drop(unwanted)
