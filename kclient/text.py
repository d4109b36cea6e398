"""Text that a peer chose, made fit for a terminal, a log line or an error text: visible characters, and a bound.

Topics, hosts, member ids, names of protocols, error messages and status lines come from brokers, registries and other
members. A terminal obeys ESC sequences, a log line ends at a line break, and a bidi override shows a text in another
order, so every character that Python does not count as printable is shown as an escape: `\\x1b`, `\\n`, `\\u202e`,
`\\ud800`.

    where                           what holds there
    ------------------------------  ---------------------------------------------------------------------------
    a value that a text quotes      `printable(value)`: at most LONGEST_NAME characters, so the rest stays readable
    every KclientError              its whole text is printable and has at most LONGEST_TEXT characters (errors.py)
    every log record of kclient     the same, for message, `extra` and traceback (log.py)
    every cell of a printed table   the same, at most LONGEST_NAME (cli/table.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

LONGEST_NAME: Final = 300  # a topic has up to 249 characters, a host up to 255
LONGEST_PATH: Final = 4_096  # PATH_MAX of Linux
LONGEST_TEXT: Final = 16_384


def printable(text: str, longest: int = LONGEST_NAME) -> str:
    """Return the text with escapes for invisible characters, and at most `longest` characters of it.

    What is cut off is counted at the end: `aaa… (5,000 characters)`.
    """
    if len(text) <= longest and text.isprintable():
        return text
    shown = "".join(map(_escaped, text[:longest]))
    if len(text) <= longest and len(shown) <= longest:
        return shown
    return f"{shown[:longest]}… ({len(text):,} characters)"


def printable_lines(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return the text as `printable` does, but keep line breaks and tabs."""
    shown = "".join(c if c in "\n\t" else _escaped(c) for c in text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def printable_traceback(text: str) -> str:
    """Return the text as `printable_lines` does. A long text loses its middle, because the error is at its end."""
    if len(text) <= LONGEST_TEXT:
        return printable_lines(text)
    half = LONGEST_TEXT // 2
    return f"{printable_lines(text[:half])}\n… ({len(text):,} characters)\n{printable_lines(text[-half:])}"


def format_partitions(partitions: Iterable[object], limit: int = 5) -> str:
    """Return the first `limit` partitions and how many more there are; "no partitions" if there are none."""
    return format_names([str(tp) for tp in partitions], limit) or "no partitions"


def format_names(names: Sequence[str], limit: int = 5) -> str:
    """Return the first `limit` names, made printable, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(map(printable, names[:limit])) + more


def format_count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 file", "2 files"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
