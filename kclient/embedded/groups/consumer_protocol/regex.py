"""Regular expressions of subscriptions: validated as RE2 does, and resolved to topics after the heartbeat."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.embedded.groups.consumer_protocol.journal import Journal
from kclient.embedded.groups.consumer_protocol.metadata import (
    ConsumerGroupMetadata,
    ResolvedRegularExpression,
    metadata_hash,
)
from kclient.protocol.errors import INVALID_REGULAR_EXPRESSION

# Syntax that Python accepts and RE2 rejects, with RE2's message.
NOT_IN_RE2: Final = (
    (re.compile(r"\(\?(?:<?[=!]|\(|>|#)"), "invalid or unsupported Perl syntax"),
    (re.compile(r"\(\?P[=>]"), "invalid or unsupported Perl syntax"),
    (re.compile(r"\\[1-9Z]"), "invalid escape sequence"),
    (re.compile(r"(?:[*+?]|\})[*+](?!\?)"), "invalid nested repetition operator"),
)
ESCAPED: Final = re.compile(r"\\[^1-9Z]|\[\^?\]?(?:\\.|[^\]\\])*\]")

RE2_MESSAGES: Final = (
    ("missing ), unterminated subpattern", "missing closing )"),
    ("unbalanced parenthesis", "unexpected )"),
    ("unterminated character set", "missing closing ]"),
    ("bad escape (end of pattern)", "trailing backslash at end of expression"),
    ("bad escape", "invalid escape sequence"),
    ("bad character range", "invalid character class range"),
    ("nothing to repeat", "missing argument to repetition operator"),
    ("multiple repeat", "invalid nested repetition operator"),
    ("min repeat greater than max repeat", "invalid repeat count"),
    ("missing >", "invalid named capture"),
    ("bad character in group name", "invalid named capture"),
    ("unknown extension", "invalid or unsupported Perl syntax"),
)


def compiled(text: str) -> re.Pattern[str]:
    """Compile a regular expression. Raise ApiError with INVALID_REGULAR_EXPRESSION as brokers do."""
    plain = ESCAPED.sub("", text)
    problem = next((message for syntax, message in NOT_IN_RE2 if syntax.search(plain)), None)
    if problem is None:
        try:
            return re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text))
        except (re.error, OverflowError, RecursionError) as exc:
            reason = str(exc)
            problem = next((message for ours, message in RE2_MESSAGES if reason.startswith(ours)), reason)
    raise ApiError(
        INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{text}` is not a valid regular expression: {problem}.",
    )


def matching(text: str, names: Iterable[str], authorized: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the names that match as a whole and that the client may describe, in alphabetical order."""
    pattern = compiled(text)
    return tuple(sorted(name for name in names if pattern.fullmatch(name) and authorized(name)))


NOTHING: Final = ResolvedRegularExpression((), 0)
TOGETHER_MS: Final = 10_000


def resolve_later(group: ConsumerGroupMetadata, principal: str) -> None:
    """Resolve the regular expressions after the heartbeat is answered, if that is due."""
    if _due(group):
        group.coordinator.broker.call_later(0, lambda: _resolve(group, principal))


def forget_unused(journal: Journal) -> None:
    """Remove the regular expressions that no member uses."""
    group = journal.group
    used = {member.regex for member in group.members.values()}
    for pattern in [one for one in group.patterns if one not in used]:
        journal.remove_regex(pattern)


def _due(group: ConsumerGroupMetadata) -> bool:
    """Whether to resolve: all expressions together, at least ten seconds after the last time."""
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


def _resolve(group: ConsumerGroupMetadata, principal: str) -> None:
    """Resolve for the sender of the heartbeat: topics that it may not describe do not match."""
    if group.dead or not _due(group):
        return
    journal = Journal(group)
    now = group.cluster.clock.wall_ms()

    def may_describe(name: str) -> bool:
        return group.cluster.acl.allows(principal, "DESCRIBE", f"Topic:{name}")

    before = dict(group.patterns)
    topics = tuple(group.cluster.topics)
    for pattern in sorted({member.regex for member in group.members.values()} - {""}):
        found = matching(pattern, topics, may_describe)
        journal.set_regex(pattern, ResolvedRegularExpression(found, now))
    if any(found.topics != before.get(one, NOTHING).topics for one, found in group.patterns.items()):
        journal.bump_epoch(metadata_hash(group))
    with suppress(ApiError):  # then nothing has changed, and the next heartbeat retries
        journal.write()
        group.topics_seen = topics
