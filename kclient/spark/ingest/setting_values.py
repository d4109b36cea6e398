"""The rule of each setting of an ingest job: from the user's text to the value that the job uses.

A rule raises ValueError with the end of a sentence that begins with the setting's name. Pure, except for reading the
files that a setting names (a schema, start offsets) and the clock, for a time such as @-3d.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs

from kclient.config.values import INT64_MAX, items, text, time_ms
from kclient.errors import ConfigError
from kclient.runtime import Runtime
from kclient.security.local_file import LARGEST_TEXT, read_local
from kclient.security.secret import problem_of
from kclient.spark.offsets import dump_offsets, parse_offsets
from kclient.spark.sink.partitions import partition_key, split_keys
from kclient.spark.sink.store import checked_url, is_remote, local_path
from kclient.types import TopicPartition

SinkKind: TypeAlias = Literal["parquet", "table", "iceberg", "delta"]
TriggerKind: TypeAlias = Literal["availableNow", "once", "interval"]

_PLAIN_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)
_INTERVAL: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?", re.ASCII)
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_TABLE: Final = re.compile(r"\w+(\.\w+){2,}", re.ASCII)
_FILE: Final = re.compile(r"[^\s<>(){}:#,\"']*[./][^\s<>(){}:#,\"']+")
"""What can only be meant as a file: no schema is one word with a point or a slash in it."""
_JOB: Final = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
PARTITION_KEYS: Final = ("topic", "date(timestamp)")
SINKS: Final = "parquet:PLACE, iceberg:CATALOG.NAMESPACE.TABLE, delta:PLACE, or table:CATALOG.DATABASE.NAME"


@attrs.frozen
class Location:
    """Where rows go, in the form of one of `SINKS`. A place is a directory, or the URL of an object store."""

    kind: SinkKind
    where: str

    @property
    def is_lake(self) -> bool:
        """Whether it is a table into which the job itself commits, without Spark's writer."""
        return self.kind in ("iceberg", "delta")

    def __str__(self) -> str:
        return f"{self.kind}:{self.where}"


@attrs.frozen
class Trigger:
    """When a batch begins: until all is drained, once, or every `interval_ms`."""

    kind: TriggerKind
    interval_ms: int = 0

    def __str__(self) -> str:
        return f"{self.interval_ms / 1000:g}s" if self.kind == "interval" else self.kind


DRAIN: Final = Trigger("availableNow")


def topics(raw: Any) -> tuple[str, ...]:
    """Parse comma-separated names and regular expressions; an expression must match the whole name."""
    names = tuple(dict.fromkeys(items(raw)))
    if not names:
        raise ValueError("must name at least one topic")
    for name in names:
        if str(name).count("{") != str(name).count("}"):
            raise ValueError(
                f"has {name!r}, whose braces are not in pairs: a comma always ends a name; write (a|aa) for a{{1,2}}"
            )
        try:
            re.compile(name)
        except re.error as exc:
            raise ValueError(
                f"has {name!r}, which is neither a topic nor a regular expression: {exc}"
            ) from None
    return names


def is_pattern(name: str) -> bool:
    """Return whether the text can only be an expression, because no topic can have this name."""
    return _PLAIN_TOPIC.fullmatch(name) is None


def matches(name: str, topic: str) -> bool:
    """Return whether a name or expression matches this topic."""
    return re.fullmatch(name, topic) is not None if is_pattern(name) else name == topic


def expression(names: Sequence[str]) -> str | None:
    """Return one regular expression for all topics, None if each is a plain name."""
    if not any(map(is_pattern, names)):
        return None
    parts = (name if is_pattern(name) else re.escape(name) for name in names)
    return f"^(?:{'|'.join(parts)})$"


def location(raw: Any) -> Location:
    """Parse one of `SINKS`."""
    kind, colon, where = text(raw).partition(":")
    if kind and not colon:
        meant = "table" if _TABLE.fullmatch(kind) else "parquet"
        raise ValueError(f"must name its kind: write {meant}:{kind}")
    if not where:
        raise ValueError(f"must be {SINKS}")
    if kind == "table":
        return Location("table", _table(where, "table:CATALOG.DATABASE.NAME"))
    if kind == "iceberg":
        return Location("iceberg", _table(where, "iceberg:CATALOG.NAMESPACE.TABLE"))
    if kind == "delta":
        return Location("delta", place(where))
    if kind != "parquet":
        raise ValueError(f"cannot be {kind}: write {SINKS}")
    return Location("parquet", place(where))


def _table(name: str, form: str) -> str:
    if _TABLE.fullmatch(name) is None:
        raise ValueError(f"cannot be the table {name!r}: give it with all of its parts, as {form}")
    return name


def job_name(raw: Any) -> str:
    """Parse the name of a job: letters, digits, `.`, `_` and `-`."""
    name = text(raw)
    if _JOB.fullmatch(name) is None:
        raise ValueError(f"must be 1 to 100 letters, digits, '.', '_' or '-', not {name!r}")
    return name


def file(raw: Any) -> str:
    """Return the absolute path of a file on this machine that can be read."""
    path = Path(text(raw)).expanduser().absolute()
    if not path.is_file():
        raise ValueError(f"names {path}, which is no file")
    return str(path)


def place(raw: Any) -> str:
    """Return the absolute path of a directory, or the URL of an object store."""
    where = text(raw)
    return _usable(checked_url, where) if is_remote(where) else directory(where)


def directory(raw: Any) -> str:
    """Return the absolute path of a directory on this machine or a mounted share."""
    where = text(raw)
    if is_remote(where):
        raise ValueError(
            f"cannot be on {where.partition(':')[0]}: mount the store, or give a directory of this machine"
        )
    if not (path := _usable(local_path, where)):
        raise ValueError("must name a directory")
    try:
        place = Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"cannot be below {Path(path).parts[0]}: there is no such home directory") from None
    return str(_without_ups(place.absolute()))


def _usable(check: Callable[[str], str], where: str) -> str:
    """Return what a check of the stores makes of a place."""
    try:
        return check(where)
    except ConfigError as exc:
        raise ValueError(f"cannot be used: {exc.text.rstrip('.')}") from None


def _without_ups(path: Path) -> Path:
    """Resolve `..` except after a symbolic link, where it would resolve against the link's target."""
    plain = Path(path.anchor)
    for part in path.parts[1:]:
        inside = part != ".." or plain.name == ".." or os.path.islink(plain)
        plain = plain / part if inside else plain.parent
    return plain


def trigger(raw: Any) -> Trigger:
    """Parse `availableNow`, `once`, or a time as `interval_ms` does."""
    word = text(raw)
    for kind in ("availableNow", "once"):
        if word.lower() == kind.lower():
            return Trigger(kind)
    try:
        return Trigger("interval", interval_ms(word))
    except ValueError:
        raise ValueError(f"must be availableNow, once, or a time such as 10s, not {word!r}") from None


def interval_ms(raw: Any) -> int:
    """Parse a time such as `10s`, `500ms` or `5m` into milliseconds; a number without a unit is seconds."""
    match = _INTERVAL.fullmatch(text(raw))
    milliseconds = round(float(match[1]) * _UNITS[match[2] or "s"]) if match else 0
    if milliseconds < 1:
        raise ValueError(f"must be a time such as 10s, 500ms or 5m, not {raw!r}")
    return milliseconds


def count(raw: Any) -> int:
    """Parse a number of at least 1; `5e6` and `5_000_000` are accepted."""
    try:
        number = float(raw) if isinstance(raw, str) else raw
    except ValueError:
        number = None
    if isinstance(number, bool) or not isinstance(number, int | float) or number != number // 1:
        raise ValueError(f"must be a whole number, not {raw!r}")
    if not 1 <= number <= INT64_MAX:
        raise ValueError(f"must be at least 1 and fit in 64 bits, not {raw!r}")
    return int(number)


def schema(raw: Any) -> str:
    """Parse a schema, a file that holds one, `registry:URL`, or `infer`. Returns the text of a file with DDL."""
    word = text(raw)
    if not word:
        raise ValueError("must be a schema, a file that holds one, registry:URL, or infer")
    path = Path(word)
    named = path.suffix in (".ddl", ".sql", ".txt") or _FILE.fullmatch(word)
    if named or (len(word) < 256 and "\n" not in word and path.is_file()):
        return _content(path)
    return word


def partition_by(raw: Any) -> tuple[str, ...]:
    """Parse partition keys; of a directory only `topic` and `topic,date(timestamp)` are possible."""
    given = split_keys(raw) if isinstance(raw, str) else [str(key) for key in raw]
    keys = tuple(key.replace(" ", "") for key in given)
    if not keys:
        raise ValueError(
            "must be topic, or topic,date(timestamp), or for a table also keys as day(_timestamp)"
        )
    for key in keys:
        partition_key(key)
    return keys


def pairs(raw: Any) -> dict[str, str]:
    """Return a mapping, also from a list of `key=value`."""
    if isinstance(raw, Mapping):
        return {str(key): str(value) for key, value in raw.items()}
    found: dict[str, str] = {}
    for item in [raw] if isinstance(raw, str) else raw:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise ValueError("must be key=value")
        found[key.strip()] = value
    return found


def _content(path: Path) -> str:
    try:
        return read_local(path, LARGEST_TEXT).decode().strip()
    except (OSError, ValueError) as exc:
        reason = "it is not text" if isinstance(exc, UnicodeDecodeError) else problem_of(exc)
        raise ValueError(f"names the file {path}, which cannot be read: {reason}") from None


# --- start and end positions -----------------------------------------------------------------------------------------


@attrs.frozen
class StartPosition:
    """Where an offset map begins or ends: a word, a time (ms since 1970), or the offsets themselves."""

    word: str = ""
    timestamp_ms: int | None = None
    offsets: Mapping[TopicPartition, int] | None = None

    def options(self) -> dict[str, str]:
        """Return options of the source for a start. A time after the newest record means the end."""
        if self.offsets is not None:
            return {"startingOffsets": dump_offsets(self.offsets)}
        if self.timestamp_ms is not None:
            return {
                "startingTimestamp": str(self.timestamp_ms),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        return {"startingOffsets": self.word}

    def end_options(self) -> dict[str, str]:
        """Return options of the source for the end of a batch."""
        given = {name.replace("starting", "ending"): text for name, text in self.options().items()}
        return {name: text for name, text in given.items() if not name.endswith("Strategy")}

    def __str__(self) -> str:
        if self.timestamp_ms is not None:
            return "@" + datetime.fromtimestamp(self.timestamp_ms / 1000, UTC).isoformat(timespec="seconds")
        return self.word or "offsets"


EARLIEST: Final = StartPosition("earliest")
LATEST: Final = StartPosition("latest")


def start(raw: Any) -> StartPosition:
    """Parse `earliest`, `latest`, `group`, `@2026-01-01T00:00Z`, `@-3d`, or a file with `{"topic": {"0": 23}}`."""
    word = text(raw)
    if word.lower() in ("earliest", "latest", "group"):
        return StartPosition(word.lower())
    if word.startswith("@"):
        return StartPosition(timestamp_ms=time_ms(word[1:], Runtime().wall_ms()))
    return StartPosition(offsets=_offsets(word))


def end(raw: Any) -> StartPosition:
    """Parse an end: as a start, without `earliest` and `group`."""
    found = start(raw)
    if found.word in ("earliest", "group"):
        raise ValueError("must be latest, @TIME or a file of offsets")
    return found


def _offsets(path: str) -> dict[TopicPartition, int]:
    try:
        content = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not text"
        raise ValueError(
            f"must be earliest, latest, group, @TIME, or a file of offsets; {path!r} cannot be read: {reason}"
        ) from None
    try:
        return parse_offsets(content)
    except ValueError as exc:
        raise ValueError(f"names the file {path}, whose content {exc}") from None
