"""What each Kafka release speaks: the versions of every API, and the features of the cluster with their levels.

One table lists the release in which every version appeared; a second one those that brokers of 4.x dropped.
Versions count from the release in which they are stable. The versions that real brokers advertise are recorded under
tests/ and are compared with both tables.

Clients read from the features whether they may use transactions V2 (`transaction.version` 2) and the consumer protocol
(`group.version` 1). Levels of `metadata.version` are those of the releases; brokers before 3.3 ran with ZooKeeper and
had no features. KIP-584, KIP-1022, KIP-890.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final, Self

import attrs

from kclient.errors import ArgumentError
from kclient.protocol.registry import MESSAGES

KNOWN: Final = (
    *("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1"),
    *("2.0", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "2.7", "2.8"),
    *("3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9"),
    *("4.0", "4.1", "4.2", "4.3", "4.4"),
)


@attrs.frozen(order=True)
class Release:
    """A release of Apache Kafka without its patch level; newer is greater."""

    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From "4.3", "4.3.1" or "0.10.2.2". Raise ArgumentError, which names the known releases."""
        for name in KNOWN:
            if re.fullmatch(rf"{re.escape(name)}(\.\d+)?", text):
                return cls(tuple(map(int, name.split("."))))
        raise ArgumentError(f"There is no Kafka release {text!r} here; known are {', '.join(KNOWN)}.")

    def __str__(self) -> str:
        return ".".join(map(str, self.numbers))


# API → newest version:the release that brought it, with those between it and its predecessor. Before 0.10.0 brokers
# did not advertise versions, so it stands for all older ones too.
NEWEST: Final = {
    "Produce": "2:0.10.0 3:0.11.0 5:1.0 6:2.0 7:2.1 8:2.4 9:2.8 10:3.7 11:3.8 12:4.0 13:4.1",
    "Fetch": "2:0.10.0 3:0.10.1 5:0.11.0 6:1.0 7:1.1 8:2.0 10:2.1 11:2.3 12:2.7 13:3.1 15:3.5 16:3.7 17:3.9 18:4.1",
    "ListOffsets": "0:0.10.0 1:0.10.1 2:0.11.0 3:2.0 4:2.1 5:2.2 6:2.8 7:3.0 8:3.5 9:3.9 10:4.0 11:4.2",
    "Metadata": "1:0.10.0 2:0.10.1 4:0.11.0 5:1.0 6:2.0 7:2.1 8:2.3 9:2.4 11:2.8 12:3.1 13:4.0",
    "OffsetCommit": "2:0.10.0 3:0.11.0 4:2.0 6:2.1 7:2.3 8:2.4 9:3.7 10:4.2",
    "OffsetFetch": "1:0.10.0 2:0.10.2 3:0.11.0 4:2.0 5:2.1 6:2.4 7:2.5 8:3.0 9:3.7 10:4.2",
    "FindCoordinator": "0:0.10.0 1:0.11.0 2:2.0 3:2.4 4:3.0 5:3.8 6:3.9",
    "JoinGroup": "0:0.10.0 1:0.10.1 2:0.11.0 3:2.0 4:2.2 5:2.3 6:2.4 7:2.5 9:3.2",
    "Heartbeat": "0:0.10.0 1:0.11.0 2:2.0 3:2.3 4:2.4",
    "LeaveGroup": "0:0.10.0 1:0.11.0 2:2.0 4:2.4 5:3.2",
    "SyncGroup": "0:0.10.0 1:0.11.0 2:2.0 3:2.3 4:2.4 5:2.5",
    "DescribeGroups": "0:0.10.0 1:0.11.0 2:2.0 3:2.3 5:2.4 6:4.0",
    "ListGroups": "0:0.10.0 1:0.11.0 2:2.0 3:2.4 4:2.6 5:3.8",
    "SaslHandshake": "0:0.10.0 1:1.0",
    "ApiVersions": "0:0.10.0 1:0.11.0 2:2.0 3:2.4 4:3.9 5:4.4",
    "CreateTopics": "0:0.10.1 1:0.10.2 2:0.11.0 3:2.0 5:2.4 6:2.7 7:2.8",
    "DeleteTopics": "0:0.10.1 1:0.11.0 2:2.0 3:2.1 4:2.4 5:2.7 6:2.8",
    "DeleteRecords": "0:0.11.0 1:2.0 2:2.6",
    "InitProducerId": "0:0.11.0 1:2.0 2:2.4 3:2.5 4:2.7 5:3.8",  # 6 is not stable yet
    "OffsetForLeaderEpoch": "0:0.11.0 1:2.0 2:2.1 3:2.3 4:2.8",
    "AddPartitionsToTxn": "0:0.11.0 1:2.0 2:2.7 3:2.8 4:3.6 5:3.8",
    "AddOffsetsToTxn": "0:0.11.0 1:2.0 2:2.7 3:2.8 4:3.8",
    "EndTxn": "0:0.11.0 1:2.0 2:2.7 3:2.8 4:3.8 5:4.0",
    "TxnOffsetCommit": "0:0.11.0 1:2.0 2:2.1 3:2.5 4:3.8 5:4.0 6:4.4",
    "DescribeConfigs": "0:0.11.0 1:1.1 2:2.0 3:2.6 4:2.8",
    "DescribeLogDirs": "0:1.0 1:2.0 2:2.6 3:3.2 4:3.3 5:4.3",
    "SaslAuthenticate": "0:1.0 1:2.2 2:2.5",
    "CreatePartitions": "0:1.0 1:2.0 2:2.5 3:2.7",
    "DeleteGroups": "0:1.1 1:2.0 2:2.4 3:4.4",
    "OffsetDelete": "0:2.4",
    "DescribeCluster": "0:2.8 1:3.7 2:4.0",
    "ConsumerGroupHeartbeat": "0:3.7 1:4.0",
    "ConsumerGroupDescribe": "0:3.8 1:4.0",
}

# API → the oldest version that brokers of 4.x answer, where it is not 0 (KIP-896). They answer Produce from 3 but list
# 0, which librdkafka looks for. Version 0 and 1 of JoinGroup were missing in 4.0.0 only.
OLDEST_SINCE_4: Final = {
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "OffsetForLeaderEpoch": 2,
    "DescribeConfigs": 1,
    "DescribeLogDirs": 1,
}

FOUR: Final = Release.parse("4.0")


@cache
def versions_of(release: Release) -> Mapping[int, tuple[int, int]]:
    """API key → oldest and newest version that a broker of this release advertises."""
    versions: dict[int, tuple[int, int]] = {}
    for api, history in NEWEST.items():
        entry = MESSAGES[f"{api}Request"]
        newest = max((version for version, since in _parsed(history) if since <= release), default=None)
        if newest is not None and entry.api_key is not None:
            oldest = OLDEST_SINCE_4.get(api, 0) if release >= FOUR else 0
            versions[entry.api_key] = max(oldest, entry.lowest), min(newest, entry.highest)
    return versions


def _parsed(history: str) -> list[tuple[int, Release]]:
    words = (word.split(":") for word in history.split())
    return [(int(version), Release.parse(since)) for version, since in words]


# the level of metadata.version → the release that brought it
METADATA_LEVELS: Final = {
    7: "3.3",
    8: "3.4",
    11: "3.5",
    14: "3.6",
    19: "3.7",
    20: "3.8",
    21: "3.9",
    25: "4.0",
    27: "4.1",
    29: "4.2",
    30: "4.3",
    33: "4.4",
}

# feature, the release that brought it at this level, the highest level, and the release whose new clusters run it there
OTHERS: Final = (
    ("group.version", "4.0", 1, "4.0"),
    ("kraft.version", "3.9", 1, None),
    ("share.version", "4.1", 1, "4.2"),
    ("share.version", "4.4", 2, "4.4"),
    ("streams.version", "4.1", 1, "4.2"),
    ("transaction.version", "4.0", 2, "4.0"),
    ("eligible.leader.replicas.version", "4.0", 1, "4.1"),
)


@attrs.frozen
class Feature:
    """A feature, the levels that a release supports, and the one at which the cluster runs it (0: not)."""

    name: str
    lowest: int
    highest: int
    level: int


def features_of(release: Release) -> list[Feature]:
    """Every feature of a release."""
    levels = [level for level, since in METADATA_LEVELS.items() if release >= Release.parse(since)]
    if not levels:
        return []
    newest, lowest = levels[-1], levels[0] if release >= FOUR else 1
    found = {"metadata.version": Feature("metadata.version", lowest, newest, newest)}
    for name, since, highest, running_since in OTHERS:
        if release >= Release.parse(since):
            runs = running_since is not None and release >= Release.parse(running_since)
            found[name] = Feature(name, 0, highest, highest if runs else 0)
    return list(found.values())
