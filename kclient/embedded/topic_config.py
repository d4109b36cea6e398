"""The settings of a topic: every key that Kafka's topics have, their defaults, and which of them change what is seen.

A topic holds the values that were given for it as text, as CreateTopics brings them. What is not given follows the
broker's setting of the same meaning, else Kafka's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kclient.embedded.releases import Release
from kclient.embedded.settings import KEYS as BROKER_KEYS
from kclient.embedded.settings import Settings

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7  # types as DescribeConfigs numbers them
TOPIC, CLUSTER_DEFAULT, BROKER, DEFAULT = 1, 3, 4, 5  # where a value comes from, as it numbers that
INT_MAX: Final = 2**31 - 1
LONG_MAX: Final = 2**63 - 1
MIN_SEGMENT_BYTES: Final = 1_048_576
LARGE_SEGMENTS_SINCE: Final = Release.parse("4.0")
CLUSTER_DEFAULTS_SINCE: Final = Release.parse("4.1")
FORMATS: Final = {  # release → its default message format
    "0.10.0": "0.10.0-IV1",
    "0.10.1": "0.10.1-IV2",
    "0.10.2": "0.10.2-IV0",
    "0.11.0": "0.11.0-IV2",
    "1.0": "1.0-IV0",
    "1.1": "1.1-IV0",
    "2.0": "2.0-IV1",
    "2.1": "2.1-IV2",
    "2.2": "2.2-IV1",
    "2.3": "2.3-IV1",
    "2.4": "2.4-IV1",
    "2.5": "2.5-IV0",
    "2.6": "2.6-IV0",
    "2.7": "2.7-IV2",
    "2.8": "2.8-IV1",
}
CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


@attrs.frozen
class ConfigKey:
    """One key: its type as DescribeConfigs numbers it, Kafka's default, the broker's synonym, the valid values."""

    kind: int
    default: str
    synonym: str = ""
    least: float = 0
    most: float = LONG_MAX
    values: tuple[str, ...] = ()
    unset: bool = False  # the broker's key has no default of its own
    since: str = "0.10.0"
    before: str = ""  # the release that gave it up

    def known_to(self, release: Release) -> bool:
        """Whether topics of this release have the key."""
        gone = bool(self.before) and release >= Release.parse(self.before)
        return release >= Release.parse(self.since) and not gone

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


def _flag(default: str, synonym: str = "", since: str = "0.10.0", before: str = "") -> ConfigKey:
    return ConfigKey(BOOLEAN, default, synonym, values=("true", "false"), since=since, before=before)


def _tiered(default: str, synonym: str) -> ConfigKey:
    return ConfigKey(LONG, default, synonym, -2, since="3.6")


def _level(default: str, synonym: str, least: int, most: int) -> ConfigKey:
    return ConfigKey(INT, default, synonym, least, most, since="3.8")


KEYS: Final = {
    "cleanup.policy": ConfigKey(LIST, "delete", "log.cleanup.policy", values=("compact", "delete")),
    "compression.gzip.level": _level("-1", "compression.gzip.level", -1, 9),
    "compression.lz4.level": _level("9", "compression.lz4.level", 1, 17),
    "compression.type": ConfigKey(STRING, "producer", "compression.type", values=CODECS),
    "compression.zstd.level": _level("3", "compression.zstd.level", -131072, 22),
    "delete.retention.ms": ConfigKey(LONG, "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": ConfigKey(LONG, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": ConfigKey(LONG, str(LONG_MAX), "log.flush.interval.messages", 1),
    "flush.ms": ConfigKey(LONG, str(LONG_MAX), "log.flush.interval.ms", unset=True),
    "follower.replication.throttled.replicas": ConfigKey(LIST, ""),
    "index.interval.bytes": ConfigKey(INT, "4096", "log.index.interval.bytes", 0, INT_MAX),
    "leader.replication.throttled.replicas": ConfigKey(LIST, ""),
    "local.retention.bytes": _tiered("-2", "log.local.retention.bytes"),
    "local.retention.ms": _tiered("-2", "log.local.retention.ms"),
    "max.compaction.lag.ms": ConfigKey(LONG, str(LONG_MAX), "log.cleaner.max.compaction.lag.ms", 1),
    "max.message.bytes": ConfigKey(INT, "1048588", "message.max.bytes", 0, INT_MAX),
    "message.downconversion.enable": _flag("true", "log.message.downconversion.enable", "2.0", "4.0"),
    "message.format.version": ConfigKey(STRING, "", "log.message.format.version", before="4.0"),
    "message.timestamp.after.max.ms": ConfigKey(
        LONG, "3600000", "log.message.timestamp.after.max.ms", since="3.6"
    ),
    "message.timestamp.before.max.ms": ConfigKey(
        LONG, str(LONG_MAX), "log.message.timestamp.before.max.ms", since="3.6"
    ),
    "message.timestamp.difference.max.ms": ConfigKey(
        LONG, str(LONG_MAX), "log.message.timestamp.difference.max.ms", before="4.0"
    ),
    "message.timestamp.type": ConfigKey(
        STRING, "CreateTime", "log.message.timestamp.type", values=("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": ConfigKey(DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio", 0, 1),
    "min.compaction.lag.ms": ConfigKey(LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": ConfigKey(INT, "1", "min.insync.replicas", 1, INT_MAX),
    "preallocate": _flag("false", "log.preallocate"),
    "remote.log.copy.disable": _flag("false", since="3.9"),
    "remote.log.delete.on.disable": _flag("false", since="3.9"),
    "remote.storage.enable": _flag("false", since="3.6"),
    "retention.bytes": ConfigKey(LONG, "-1", "log.retention.bytes", -1),
    "retention.ms": ConfigKey(LONG, "604800000", "log.retention.ms", -1, unset=True),
    "segment.bytes": ConfigKey(INT, "1073741824", "log.segment.bytes", 14, INT_MAX),
    "segment.index.bytes": ConfigKey(INT, "10485760", "log.index.size.max.bytes", 4, INT_MAX),
    "segment.jitter.ms": ConfigKey(LONG, "0", "log.roll.jitter.ms", unset=True),
    "segment.ms": ConfigKey(LONG, "604800000", "log.roll.ms", 1, unset=True),
    "unclean.leader.election.enable": _flag("false", "unclean.leader.election.enable"),
}


@attrs.frozen
class ConfigEntry:
    """A key with its effective value, the source of the value, and the broker's synonym ("" for none)."""

    name: str
    value: str
    source: int
    synonym: str


def described(config: Mapping[str, str], settings: Settings, release: Release) -> list[ConfigEntry]:
    """Every key that topics of this release have."""
    rows = []
    for name, key in KEYS.items():
        if key.known_to(release):
            text = value(name, config, settings)
            if name == "message.format.version" and name not in config:
                text = FORMATS.get(str(release), "3.0-IV1")
            rows.append(ConfigEntry(name, text, _source(name, config, settings, release), key.synonym))
    return rows


def _source(name: str, config: Mapping[str, str], settings: Settings, release: Release) -> int:
    if name in config:
        return TOPIC
    source = broker_source(KEYS[name].synonym, settings)
    by_cluster = name == "min.insync.replicas" and source == DEFAULT and release >= CLUSTER_DEFAULTS_SINCE
    return CLUSTER_DEFAULT if by_cluster else source


def broker_source(name: str, settings: Settings) -> int:
    """Where the broker has a setting from."""
    field = BROKER_KEYS.get(name)
    return DEFAULT if field is None or getattr(settings, field.name) == field.default else BROKER


def value(name: str, config: Mapping[str, str], settings: Settings) -> str:
    """The value in force: the topic's, else the broker's, else Kafka's default."""
    return config[name] if name in config else inherited(name, settings)


def inherited(name: str, settings: Settings) -> str:
    """The value of a topic that does not set the key."""
    field = BROKER_KEYS.get(KEYS[name].synonym)
    return KEYS[name].default if field is None else as_text(getattr(settings, field.name))


def number(name: str, config: Mapping[str, str], settings: Settings) -> int:
    """The value in force of a key that is a number."""
    return int(value(name, config, settings))


def as_text(given: object) -> str:
    """A setting as Kafka writes it."""
    return str(given).lower() if isinstance(given, bool) else str(given)


def problems(config: Mapping[str, str | None], release: Release) -> list[str]:
    """What is wrong with the settings of a new topic, one sentence for each key."""
    found = []
    for name, value in config.items():
        if name not in KEYS or not KEYS[name].known_to(release):
            found.append(f"Unknown topic config name: {name}")
        elif value is None:
            found.append(f"Null value not supported for topic configs: {name}")
        elif reason := KEYS[name].problem(value) or _too_small(name, value, release):
            found.append(f"Invalid value {value} for configuration {name}: {reason}")
    return found


def _too_small(name: str, value: str, release: Release) -> str | None:
    small = name == "segment.bytes" and release >= LARGE_SEGMENTS_SINCE and int(value) < MIN_SEGMENT_BYTES
    return f"it must be at least {MIN_SEGMENT_BYTES}" if small else None


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]
