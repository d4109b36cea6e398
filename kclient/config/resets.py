"""The starting offset of a partition without a position: three keys for two cases.

    on_no_committed_offset       nothing is committed        earliest · latest · error · a duration: that long ago
    on_offset_out_of_range    the log lost the position   earliest · latest · error
    auto_offset_reset  Java's key for both         earliest · latest · none (our `error`) · by_duration:<ISO 8601>

Left unset, a partition without a commit begins at the end, as in Java, and a lost position is an error, on purpose not
as in Java: an offset never jumps unless the configuration asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, TypeAlias

from kclient.config.values import parse_iso_duration_ms

Answer: TypeAlias = str | int
"""`earliest`, `latest`, `error`, or the milliseconds since the first wanted record was written."""

WORDS: Final = ("earliest", "latest", "error")
BY_DURATION: Final = "by_duration"
_DEFAULTS: Final[dict[str, Answer]] = {"on_no_committed_offset": "latest", "on_offset_out_of_range": "error"}


def no_offset(raw: Any) -> str | timedelta:
    """Check a reset: `earliest`, `latest`, `error`, or a duration: a timedelta, or its ISO 8601 text."""
    if isinstance(raw, str) and raw.strip().lower() in WORDS:
        return raw.strip().lower()
    try:
        length = timedelta(milliseconds=parse_iso_duration_ms(raw)) if isinstance(raw, str) else raw
    except (ValueError, OverflowError):
        length = None
    if not isinstance(length, timedelta) or length < timedelta(0):
        raise ValueError("must be earliest, latest, error, or a duration: a timedelta, or text such as PT1H")
    return length


def answers(
    auto_offset_reset: str | None,
    on_no_committed_offset: str | timedelta | None,
    on_offset_out_of_range: str | None,
) -> tuple[Answer, Answer]:
    """Return what to do without a commit, and with a lost position. Values are checked; None if not set."""
    both = None if auto_offset_reset is None else _of_java(auto_offset_reset)
    own = (_of_own(on_no_committed_offset), _of_own(on_offset_out_of_range))
    without, lost = (
        next(answer for answer in (mine, both, default) if answer is not None)
        for mine, default in zip(own, _DEFAULTS.values(), strict=True)
    )
    return without, lost


def contradictions(given: Mapping[str, Any]) -> Iterator[str]:
    """Return the problems of kclient's keys that contradict `auto_offset_reset`."""
    if (java := given.get("auto_offset_reset")) is None:
        return
    for name in _DEFAULTS:
        own = given.get(name)
        if own is not None and _of_own(own) != _of_java(java):
            yield (
                f"{name} ({own}) contradicts auto_offset_reset ({java}), which answers both questions: "
                "leave out auto_offset_reset and set on_no_committed_offset and on_offset_out_of_range"
            )


def _of_java(value: str) -> Answer:
    name, _, duration = value.partition(":")
    if name == BY_DURATION:
        return parse_iso_duration_ms(duration)
    return "error" if name == "none" else name


def _of_own(value: str | timedelta | None) -> Answer | None:
    return value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value
