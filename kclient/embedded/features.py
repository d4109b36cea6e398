"""Which features a release has, and at which level a new cluster of it runs them.

Clients read from it whether they may use transactions V2 (`transaction.version` 2) and the consumer protocol
(`group.version` 1). Levels of `metadata.version` are those of the releases; brokers before 3.3 ran with ZooKeeper and
knew no features. KIP-584, KIP-1022, KIP-890.
"""

from __future__ import annotations

from typing import Final

import attrs

from kclient.embedded.releases import Release

FOUR: Final = Release.parse("4.0")

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
