"""What this member wants, what it joined with, and what the whole group wants: together they say when to rejoin.

Nothing here waits or asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from kclient.group.assignors import Assignment
from kclient.group.assignors.base import utf16_key
from kclient.group.leader import Watched
from kclient.network.cluster import Cluster
from kclient.network.metadata import MetadataCache
from kclient.text import format_names


@attrs.define
class Wanted:
    """`topics` is None while nothing is subscribed; `watched` is what a leader shared out, else None."""

    topics: tuple[str, ...] | None = None
    matches: Callable[[str], bool] | None = None  # a pattern, asked about topics that are not in `topics` yet
    joined_with: tuple[str, ...] = ()
    watched: Watched | None = None

    def subscribe(self, topics: Iterable[str], matches: Callable[[str], bool] | None) -> None:
        """Want these topics from now on."""
        self.topics = tuple(sorted(dict.fromkeys(topics), key=utf16_key))
        self.matches = matches

    def unsubscribe(self) -> None:
        """Want nothing."""
        self.topics = self.matches = self.watched = None

    def keep_fresh(self, cluster: Cluster) -> None:
        """Tell the cluster whose metadata is needed; with a pattern all topics are asked for already."""
        if self.topics is not None and self.matches is None:
            group = self.watched.topics if self.watched is not None else ()
            cluster.set_topics(dict.fromkeys((*self.topics, *group)))

    def why_rejoin(self, metadata: MetadataCache) -> str | None:
        """What has changed since the last join, None if nothing has."""
        if self.topics is not None and self.topics != self.joined_with:
            came, went = _not_in(self.joined_with, self.topics), _not_in(self.topics, self.joined_with)
            return f"subscription has changed since the last join: {came} came, {went} went"
        return self.watched.change(metadata) if self.watched is not None else None

    def accept(self, assignment: Assignment) -> bool:
        """Whether every assigned topic is wanted. If so, a topic that only the leader knew yet and that matches our
        pattern is wanted from now on, as if we had joined with it.
        """
        known = dict.fromkeys(self.topics or ())
        new = dict.fromkeys(tp.topic for tp in assignment.partitions if tp.topic not in known)
        if any(self.matches is None or not self.matches(topic) for topic in new):
            return False
        if new and self.topics == self.joined_with:
            self.subscribe((*known, *new), self.matches)
            self.joined_with = self.topics or ()
        return True


def _not_in(others: Iterable[str], topics: Iterable[str]) -> str:
    """How many of the topics the others lack, and the first few of them."""
    known = dict.fromkeys(others)
    new = [topic for topic in topics if topic not in known]
    return f"{len(new)} ({format_names(new)})" if new else "none"
