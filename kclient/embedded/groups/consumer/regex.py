"""Patterns of topic names: read as brokers read them (RE2), resolved by the coordinator."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from kclient.embedded.api_error import ApiError
from kclient.protocol.errors import INVALID_REGULAR_EXPRESSION

# What Python's patterns have and RE2's have not, and what RE2 says of it.
FOREIGN: Final = (
    (re.compile(r"\(\?(?:<?[=!]|\(|>|#)"), "invalid or unsupported Perl syntax"),
    (re.compile(r"\(\?P[=>]"), "invalid or unsupported Perl syntax"),
    (re.compile(r"\\[1-9Z]"), "invalid escape sequence"),
    (re.compile(r"(?:[*+?]|\})[*+](?!\?)"), "invalid nested repetition operator"),
)
ESCAPED: Final = re.compile(r"\\[^1-9Z]|\[\^?\]?(?:\\.|[^\]\\])*\]")

SAYS: Final = (
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
    """The pattern. Raises ApiError with INVALID_REGULAR_EXPRESSION for one that brokers would not take."""
    plain = ESCAPED.sub("", text)
    problem = next((says for foreign, says in FOREIGN if foreign.search(plain)), None)
    if problem is None:
        try:
            return re.compile(re.sub(r"\(\?<(?=[A-Za-z_])", "(?P<", text))
        except (re.error, OverflowError, RecursionError) as exc:
            said = str(exc)
            problem = next((says for ours, says in SAYS if said.startswith(ours)), said)
    raise ApiError(
        INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex `{text}` is not a valid regular expression: {problem}.",
    )


def matching(text: str, names: Iterable[str], may_see: Callable[[str], bool]) -> tuple[str, ...]:
    """The names that a pattern matches as a whole, of those that may be seen, in alphabetical order."""
    pattern = compiled(text)
    return tuple(sorted(name for name in names if pattern.fullmatch(name) and may_see(name)))
