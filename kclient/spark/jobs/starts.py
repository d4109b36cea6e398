"""Where a job begins and ends: a word, a moment, or offsets in a file. Pure but for reading that file.

A rule raises ValueError with the end of a sentence that begins with the setting's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import attrs

from kclient.config.values import text
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.types import TopicPartition


@attrs.frozen
class Start:
    """Where an offset map begins or ends: a word, a time (ms since 1970), or the offsets themselves."""

    word: str = ""
    timestamp_ms: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None

    def options(self) -> dict[str, str]:
        """The same as options of the source. Where nothing is as new as a time, it is the end."""
        if self.offsets is not None:
            return {"startingOffsets": dump_offsets(self.offsets)}
        if self.timestamp_ms is not None:
            return {
                "startingTimestamp": str(self.timestamp_ms),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        return {"startingOffsets": self.word}

    def end_options(self) -> dict[str, str]:
        """The same for where a batch ends."""
        given = {name.replace("starting", "ending"): text for name, text in self.options().items()}
        return {name: text for name, text in given.items() if not name.endswith("Strategy")}

    def __str__(self) -> str:
        if self.timestamp_ms is not None:
            return "@" + datetime.fromtimestamp(self.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        return self.word or "offsets"


EARLIEST: Final = Start("earliest")
LATEST: Final = Start("latest")


def start(raw: Any) -> Start:
    """`earliest`, `latest`, `group`, `@2026-01-01T00:00Z`, or a file with `{"topic": {"0": 23}}`."""
    word = text(raw)
    if word.lower() in ("earliest", "latest", "group"):
        return Start(word.lower())
    if word.startswith("@"):
        return Start(timestamp_ms=_time(word[1:]))
    return Start(offsets=_offsets(word))


def end(raw: Any) -> Start:
    """As a start, without `earliest` and `group`."""
    found = start(raw)
    if found.word in ("earliest", "group"):
        raise ValueError("must be latest, @TIME or a file of offsets")
    return found


def _time(raw: str) -> int:
    try:
        moment = datetime.fromisoformat(raw)
    except ValueError:
        raise ValueError("must have a time such as @2026-01-01T00:00Z behind the @") from None
    if moment.tzinfo is None:
        raise ValueError("must say the time zone: end it with Z for UTC, or +02:00")
    return max(0, int(moment.timestamp() * 1000))


def _offsets(path: str) -> dict[TopicPartition, int]:
    try:
        content = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise ValueError(
            f"must be earliest, latest, group, @TIME, or a file of offsets; {path!r} cannot be read: {reason}"
        ) from None
    try:
        return parse_offsets(content)
    except ValueError as exc:
        raise ValueError(f"names the file {path}, whose content {exc}") from None
