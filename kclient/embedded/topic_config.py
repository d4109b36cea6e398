"""The settings of a topic: every key that Kafka's topics have, their defaults, and which of them change what is seen.

A topic holds the values that were given for it as text, as CreateTopics brings them. What is not given follows the
broker's setting of the same meaning, else Kafka's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kclient.embedded.settings import KEYS as BROKER_KEYS
from kclient.embedded.settings import Settings

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


@attrs.frozen
class Key:
    """One key: its type as DescribeConfigs numbers it, Kafka's default, the broker's key behind it, what is valid."""

    kind: int
    default: str
    synonym: str = ""
    least: float = 0
    most: float = LONG_MAX
    values: tuple[str, ...] = ()

    def problem(self, value: str) -> str | None:
        """What is wrong with a value, None if nothing is."""
        if self.kind == LIST:
            strange = [word for word in _words(value) if self.values and word not in self.values]
            return f"it must be of {', '.join(self.values)}" if strange else None
        if self.values:
            return None if value in self.values else f"it must be one of {', '.join(self.values)}"
        if self.kind == STRING:
            return None
        try:
            number = float(value) if self.kind == DOUBLE else int(value)
        except ValueError:
            return "it must be a number"
        return None if self.least <= number <= self.most else f"it must be from {self.least} to {self.most}"


def _flag(default: str, synonym: str = "") -> Key:
    return Key(BOOLEAN, default, synonym, values=("true", "false"))


KEYS: Final = {
    "cleanup.policy": Key(LIST, "delete", "log.cleanup.policy", values=("compact", "delete")),
    "compression.gzip.level": Key(INT, "-1", "compression.gzip.level", -1, 9),
    "compression.lz4.level": Key(INT, "9", "compression.lz4.level", 1, 17),
    "compression.type": Key(STRING, "producer", "compression.type", values=CODECS),
    "compression.zstd.level": Key(INT, "3", "compression.zstd.level", -131072, 22),
    "delete.retention.ms": Key(LONG, "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": Key(LONG, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": Key(LONG, str(LONG_MAX), "log.flush.interval.messages", 1),
    "flush.ms": Key(LONG, str(LONG_MAX), "log.flush.interval.ms"),
    "follower.replication.throttled.replicas": Key(LIST, ""),
    "index.interval.bytes": Key(INT, "4096", "log.index.interval.bytes", 0, INT_MAX),
    "leader.replication.throttled.replicas": Key(LIST, ""),
    "local.retention.bytes": Key(LONG, "-2", "log.local.retention.bytes", -2),
    "local.retention.ms": Key(LONG, "-2", "log.local.retention.ms", -2),
    "max.compaction.lag.ms": Key(LONG, str(LONG_MAX), "log.cleaner.max.compaction.lag.ms", 1),
    "max.message.bytes": Key(INT, "1048588", "message.max.bytes", 0, INT_MAX),
    "message.timestamp.after.max.ms": Key(LONG, "3600000", "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": Key(LONG, str(LONG_MAX), "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": Key(
        STRING, "CreateTime", "log.message.timestamp.type", values=("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": Key(DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    "min.compaction.lag.ms": Key(LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": Key(INT, "1", "min.insync.replicas", 1, INT_MAX),
    "preallocate": _flag("false", "log.preallocate"),
    "remote.log.copy.disable": _flag("false"),
    "remote.log.delete.on.disable": _flag("false"),
    "remote.storage.enable": _flag("false"),
    "retention.bytes": Key(LONG, "-1", "log.retention.bytes", -1),
    "retention.ms": Key(LONG, "604800000", "log.retention.ms", -1),
    "segment.bytes": Key(INT, "1073741824", "log.segment.bytes", 1_048_576, INT_MAX),
    "segment.index.bytes": Key(INT, "10485760", "log.index.size.max.bytes", 4, INT_MAX),
    "segment.jitter.ms": Key(LONG, "0", "log.roll.jitter.ms"),
    "segment.ms": Key(LONG, "604800000", "log.roll.ms", 1),
    "unclean.leader.election.enable": _flag("false", "unclean.leader.election.enable"),
}


def value(name: str, config: Mapping[str, str], settings: Settings) -> str:
    """The value in force: the topic's, else the broker's, else Kafka's default."""
    if name in config:
        return config[name]
    field = BROKER_KEYS.get(KEYS[name].synonym)
    return KEYS[name].default if field is None else as_text(getattr(settings, field.name))


def number(name: str, config: Mapping[str, str], settings: Settings) -> int:
    """The value in force of a key that is a number."""
    return int(value(name, config, settings))


def as_text(given: object) -> str:
    """A setting as Kafka writes it."""
    return str(given).lower() if isinstance(given, bool) else str(given)


def problems(config: Mapping[str, str | None]) -> list[str]:
    """What is wrong with the settings of a new topic, one sentence for each key."""
    found = []
    for name, value in config.items():
        if name not in KEYS:
            found.append(f"Unknown topic config name: {name}")
        elif value is None:
            found.append(f"Null value not supported for topic configs: {name}")
        elif reason := KEYS[name].problem(value):
            found.append(f"Invalid value {value} for configuration {name}: {reason}")
    return found


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]
