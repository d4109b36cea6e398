"""Which topics the patterns of a group stand for. Found out behind the heartbeat that asks, not within it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer.group import ConsumerGroup, Resolved
from kclient.embedded.groups.consumer.journal import Journal
from kclient.embedded.groups.consumer.metadata import metadata_hash
from kclient.embedded.groups.consumer.regex import matching
from kclient.embedded.request_context import RequestContext

NOTHING: Final = Resolved((), 0)
TOGETHER_MS: Final = 10_000


def resolve_later(group: ConsumerGroup, call: RequestContext) -> None:
    """Resolve the patterns again, as soon as the heartbeat is answered, if it is time."""
    if _due(group):
        call.broker.call_later(0, lambda: _resolve(group, call))


def forget_unused(journal: Journal) -> None:
    """Drop the patterns that no member has."""
    group = journal.group
    used = {member.regex for member in group.members.values()}
    for pattern in [one for one in group.patterns if one not in used]:
        journal.forget(pattern)


def _due(group: ConsumerGroup) -> bool:
    """All patterns are resolved together, no sooner than ten seconds after the last time."""
    used = [member.regex for member in group.members.values() if member.regex]
    if not used:
        return False
    known = [resolved.at_ms for resolved in group.patterns.values()]
    age = group.cluster.clock.wall_ms() - max(known, default=0)
    if age <= TOGETHER_MS:
        return False
    return (
        any(pattern not in group.patterns for pattern in used)
        or group.topics_seen != tuple(group.cluster.topics)
        or age >= group.cluster.settings.group_consumer_regex_refresh_interval_ms
    )


def _resolve(group: ConsumerGroup, call: RequestContext) -> None:
    """With the eyes of who asked: a topic that it may not describe does not match."""
    if group.dead or not _due(group):
        return
    journal = Journal(group)
    now = group.cluster.clock.wall_ms()
    before = dict(group.patterns)
    topics = tuple(group.cluster.topics)
    for pattern in sorted({member.regex for member in group.members.values()} - {""}):
        found = matching(pattern, topics, lambda name: call.allowed("DESCRIBE", f"Topic:{name}"))
        journal.resolve(pattern, Resolved(found, now))
    if any(found.topics != before.get(one, NOTHING).topics for one, found in group.patterns.items()):
        journal.bump(metadata_hash(group))
    with suppress(ApiError):  # then nothing has changed, and the next heartbeat sees that it is still due
        journal.write()
        group.topics_seen = topics
