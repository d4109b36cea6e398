"""The rules of values: one function per kind of value converts the user's value to that of the Config.

A rule takes the raw value – a Python value, or text from a mapping or a properties file – and returns the checked
one. It raises ValueError with the end of a sentence that begins with the key and its value: "must be …".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

Rule = Callable[[Any], Any]

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1

_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
_OLD_RESETS = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest"}
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: no ISO 8601 time is later."""
UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGE = re.compile(r"-(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h|d)", re.ASCII)
_DAY = re.compile(r"(\d{4}-\d{2}-\d{2})(Z|[+-]\d{2}:\d{2})", re.ASCII)
_ADDRESS = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s:/@\[\]]+)):(?P<port>\d{1,5})")


def integer(least: int, most: int = INT32_MAX) -> Rule:
    """Check a whole number within a range; text may hold it in decimal digits."""

    def rule(raw: Any) -> int:
        try:
            number = int(raw.strip()) if isinstance(raw, str) else raw
        except ValueError:
            raise ValueError("must be a whole number") from None
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError("must be a whole number")
        if not least <= number <= most:
            raise ValueError(f"must be at least {least}" if number < least else f"must be at most {most}")
        return number

    return rule


def number(least: float, most: float) -> Rule:
    """Check a number within a range; text may hold it."""

    def rule(raw: Any) -> float:
        try:
            found = float(raw.strip() if isinstance(raw, str) else raw)
        except (TypeError, ValueError):
            raise ValueError("must be a number") from None
        if isinstance(raw, bool) or not least <= found <= most:
            raise ValueError(f"must be a number from {least:g} to {most:g}")
        return found

    return rule


def boolean(raw: Any) -> bool:
    """Check a boolean: True or False, or these words in any case."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in ("true", "false"):
        return raw.strip().lower() == "true"
    raise ValueError("must be True or False")


def text(raw: Any) -> str:
    """Check text, and trim it."""
    if not isinstance(raw, str):
        raise ValueError("must be text")
    return raw.strip()


def time_ms(raw: str, now_ms: int) -> int:
    """Return ms since 1970 for `now`, an age such as -1h, ms since 1970, or ISO 8601 with its zone.

    A day with a zone (2026-11-20Z) is its first moment there. Raises ValueError as a rule does.
    """
    if raw == "now":
        return now_ms
    if age := _AGE.fullmatch(raw):
        return max(0, now_ms - int(float(age[1]) * UNIT_MS[age[2]]))
    if raw.isascii() and raw.isdecimal() and len(raw) <= 15 and int(raw) <= LAST_MS:
        return int(raw)
    day = _DAY.fullmatch(raw)
    try:
        moment = datetime.fromisoformat(f"{day[1]}T00:00{day[2]}" if day else raw)
    except ValueError:
        raise ValueError(
            f"has the time {raw}, which cannot be read: write 2026-11-20T14:00Z, 2026-11-20Z, -1h or now"
        ) from None
    if moment.tzinfo is None:
        raise ValueError(
            f"has the time {raw} without a time zone: end it with Z for UTC, or with one such as +02:00"
        )
    return max(0, int(moment.timestamp() * 1000))


def filled_text(raw: Any) -> str:
    """Check text that is not empty."""
    if not (trimmed := text(raw)):
        raise ValueError("must not be empty or blank; leave the key out instead")
    return trimmed


def one_of(*choices: str) -> Rule:
    """Check one of these words, in any case."""

    def rule(raw: Any) -> str:
        word = text(raw).lower()
        if word not in choices:
            raise ValueError(f"must be {' or '.join(choices)}")
        return word

    return rule


def instance_id(raw: Any) -> str:
    """Check a group instance id: letters, digits, `.`, `_` and `-`, 1 to 249 of them, as in a topic's name."""
    name = text(raw)
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in (".", ".."):
        raise ValueError("must have 1 to 249 letters, digits, '.', '_' or '-', and not be '.' or '..'")
    return name


def offset_reset(raw: Any) -> str:
    """Check a reset policy: `earliest`, `latest`, `none`, or `by_duration:` and an ISO 8601 duration."""
    word = text(raw)
    if word.lower() in ("earliest", "latest", "none"):
        return word.lower()
    if word.lower() in _OLD_RESETS:
        raise ValueError(f"is an old word: write {_OLD_RESETS[word.lower()]!r}")
    kind, colon, duration = word.partition(":")
    if kind.lower() != "by_duration" or not colon:
        raise ValueError("must be earliest, latest, none or by_duration:<ISO 8601 duration>")
    parse_iso_duration_ms(duration)
    return f"by_duration:{duration}"


def items(raw: Any) -> list[Any]:
    """Return a list: as it is, or from text with commas between the items."""
    if isinstance(raw, str):
        return [part.strip() for part in raw.split(",") if part.strip()]
    if isinstance(raw, bytes) or not isinstance(raw, Iterable):
        raise ValueError("must be a list, or text with commas between")
    return [item.strip() if isinstance(item, str) else item for item in raw]


def servers(raw: Any) -> tuple[str, ...]:
    """Check `host:port` addresses, at least one, none twice; an IPv6 address is in brackets."""
    addresses = items(raw)
    if not addresses:
        raise ValueError("must name at least one host:port")
    hides = "@" in repr(raw)  # a URL with a password, which may hold a comma
    for address in addresses:
        shown = "one that is not shown, as there is an @ in the text," if hides else repr(address)
        match = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if match is None:
            raise ValueError(
                "must hold host:port as in localhost:9092, without a scheme, IPv6 addresses in brackets; "
                f"{shown} does not"
            )
        if not 1 <= int(match["port"]) <= 65_535:
            raise ValueError(f"must hold ports from 1 to 65535; {shown} does not")
    if twice := [address for address in dict.fromkeys(addresses) if addresses.count(address) > 1]:
        raise ValueError(f"names {'one' if hides else ', '.join(twice)} twice")
    return tuple(addresses)


def assignors(raw: Any) -> tuple[Any, ...]:
    """Check assignors in order of preference: names, Java's class names, or assignor objects."""
    chosen = [
        _ASSIGNORS.get(item, item) if isinstance(item, str) else item
        for item in (items(raw) if isinstance(raw, str | list | tuple) else [raw])
    ]
    if not chosen:
        raise ValueError("must name at least one assignor")
    known = tuple(_ASSIGNORS.values())
    for assignor in chosen:
        if isinstance(assignor, str) and assignor not in known:
            raise ValueError(f"names {assignor!r}, which is not an assignor; {', '.join(known)} are")
    names = [getattr(assignor, "name", assignor) for assignor in chosen]
    if len(names) != len(list(dict.fromkeys(names))):
        raise ValueError("must not name an assignor twice")
    return tuple(chosen)


_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.(?P<fraction>\d{1,9}))?S)?)?",
    re.IGNORECASE,
)


def parse_iso_duration_ms(text: str) -> int:
    """Return the milliseconds of an ISO 8601 duration that is not negative. Raise ValueError for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None or text.strip()[-1] in "PpTt":
        raise ValueError(f"must hold an ISO 8601 duration such as PT1H or P7D, not {text!r}")
    days, hours, minutes, seconds = (
        int(match[unit] or 0) for unit in ("days", "hours", "minutes", "seconds")
    )
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    return whole * 1000 + int((match["fraction"] or "0").ljust(3, "0")[:3])
