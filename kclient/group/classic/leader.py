"""The group leader of the classic protocol: it computes the assignment of all members and watches their topics.

Subscriptions come from other members and are not trusted: an unreadable one counts as no topics, of a member that is
listed twice the first counts. The assignor runs in a thread, so a slow one never delays a heartbeat.

`SubscriptionTracker` compares the subscription, the topics of the last join and the metadata of the leader's plan, and
decides whether to rejoin. It does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from kclient.config import Config
from kclient.errors import KclientError, ProtocolDecodeError
from kclient.group.assignors import (
    COOPERATIVE,
    Assignment,
    Assignor,
    Member,
    Subscription,
    Topics,
    common_protocol,
)
from kclient.group.assignors.base import utf16_key
from kclient.group.assignors.validate import make_plan, validate_cooperative_assignment
from kclient.group.classic.state import JoinedGeneration
from kclient.group.subscription_codec import decode_subscription, encode_assignment
from kclient.log import get_logger
from kclient.network.cluster import Cluster
from kclient.network.metadata import MetadataCache
from kclient.protocol.errors import NONE
from kclient.runtime import Runtime
from kclient.text import format_names

logger: Final = get_logger("kclient.group")


def racks_of(metadata: MetadataCache, topics: Iterable[str], *, by_rack: bool) -> Topics:
    """Return the racks of the replicas of each partition of the known `topics`; without `by_rack`, empty sets."""
    return {
        topic: [
            frozenset(_racks(metadata, partition.replicas)) if by_rack else frozenset()
            for partition in metadata.topics[topic].partitions.values()
        ]
        for topic in topics
        if metadata.partition_count(topic) is not None
    }


def _racks(metadata: MetadataCache, replicas: Iterable[int]) -> Iterable[str]:
    for node_id in replicas:
        broker = metadata.brokers.get(node_id)
        if broker is not None and broker.rack:
            yield broker.rack


@attrs.frozen
class MetadataSnapshot:
    """The metadata of all topics of the group that the leader's assignment is based on."""

    topics: tuple[str, ...]
    by_rack: bool
    seen: Topics

    def change(self, metadata: MetadataCache) -> str | None:
        """Describe what has changed since, None if nothing has. A topic whose metadata has an error counts as same."""
        if not metadata.brokers:
            return None
        now = racks_of(metadata, self.topics, by_rack=self.by_rack)
        for topic in self.topics:
            known = metadata.topics.get(topic)
            if known is not None and known.error_code != NONE:
                continue
            before, after = self.seen.get(topic, ()), now.get(topic, ())
            if len(before) != len(after):
                return f"cached metadata has changed: topic {topic} from {len(before)} to {len(after)} partitions"
            if before != after:
                return f"cached metadata has changed: the racks of topic {topic}"
        return None


class GroupLeader:
    """Computes the group's assignment."""

    def __init__(
        self, cluster: Cluster, config: Config, runtime: Runtime, assignors: Sequence[Assignor]
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._runtime = runtime
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._cooperative = common_protocol(assignors) == COOPERATIVE

    async def plan(
        self, joined: JoinedGeneration, own_topics: Iterable[str]
    ) -> tuple[dict[str, bytes], MetadataSnapshot]:
        """Return the encoded assignment of every member, and the metadata that it is based on.

        The plan is empty if the coordinator keeps the assignment that it has (`skip_assignment`, KIP-814). Raises
        UsageError for a failed assignor.
        """
        members = read_members(joined)
        subscribed = dict.fromkeys(topic for member in members for topic in member.subscription.topics)
        topics = tuple(sorted(subscribed | dict.fromkeys(own_topics), key=utf16_key))
        # Members of other subscriptions name topics that this consumer has no metadata of.
        await self._fetch_metadata(topics)
        by_rack = any(member.subscription.rack_id for member in members)
        seen = racks_of(self._cluster.metadata, topics, by_rack=by_rack)
        assignment_snapshot = MetadataSnapshot(topics, by_rack, seen)
        if joined.skip_assignment:
            return {}, assignment_snapshot
        assignor = self._assignors[joined.generation.protocol or ""]
        # Not on the loop: an assignor may take seconds, and heartbeats must be sent meanwhile.
        plan = await self._runtime.offload(make_plan, assignor, seen, members)
        if self._cooperative:
            validate_cooperative_assignment(assignor.name, plan, members)
        extra = _log_topics_left_out(plan, topics, seen)
        if extra:
            await self._fetch_metadata(extra)
            seen = racks_of(self._cluster.metadata, topics + extra, by_rack=by_rack)
            assignment_snapshot = MetadataSnapshot(topics + extra, by_rack, seen)
        return {member_id: encode_assignment(part) for member_id, part in plan.items()}, assignment_snapshot

    async def _fetch_metadata(self, topics: tuple[str, ...]) -> None:
        """Request the metadata of those topics that are unknown."""
        missing = [topic for topic in topics if self._cluster.metadata.partition_count(topic) is None]
        if not missing:
            return
        try:
            await self._cluster.describe_topics(
                missing,
                allow_auto_create=self._config.allow_auto_create_topics,
                timeout=self._config.request_timeout_ms / 1000,
            )
        except KclientError as exc:
            if not exc.retriable:
                raise
            logger.warning("leader: topics %s are assigned later: %s", ", ".join(missing), exc.text)


def read_members(joined: JoinedGeneration) -> list[Member]:
    """Decode the members of a JoinGroup response, each once, in the coordinator's order."""
    members: dict[str, Member] = {}
    for entry in joined.members:
        if entry.member_id in members:
            logger.warning("leader: member %s is listed twice; the second is ignored", entry.member_id)
            continue
        try:
            subscription = decode_subscription(entry.metadata)
        except ProtocolDecodeError as exc:
            logger.warning(
                "leader: member %s gets nothing, its subscription is damaged: %s", entry.member_id, exc
            )
            subscription = Subscription(())
        members[entry.member_id] = Member(entry.member_id, subscription, entry.group_instance_id)
    return list(members.values())


def _log_topics_left_out(
    plan: Mapping[str, Assignment], topics: Sequence[str], known: Topics
) -> tuple[str, ...]:
    """Log the topics that a plan leaves out, and return those to which no member is subscribed."""
    assigned = dict.fromkeys(partition.topic for part in plan.values() for partition in part.partitions)
    unassigned = [topic for topic in topics if topic not in assigned]
    extra = tuple(topic for topic in assigned if topic not in topics)
    if missing := [topic for topic in unassigned if topic not in known]:
        logger.info("leader: members are subscribed to topics that do not exist: %s", ", ".join(missing))
    if left := [topic for topic in unassigned if topic in known]:
        logger.warning(
            "leader: the assignor gave no member the partitions of subscribed topics, so nothing reads them: %s",
            ", ".join(left),
        )
    if extra:
        logger.info(
            "leader: the assignor added topics to which no member is subscribed: %s", ", ".join(extra)
        )
    return extra


@attrs.define
class SubscriptionTracker:
    """The subscription now and at the last join.

    `topics` is None without a subscription, `assignment_snapshot` None unless this member led the last join.
    """

    topics: tuple[str, ...] | None = None
    matches: Callable[[str], bool] | None = None  # the pattern, for topics that are not in `topics` yet
    joined_subscription: tuple[str, ...] = ()
    assignment_snapshot: MetadataSnapshot | None = None

    def subscribe(self, topics: Iterable[str], matches: Callable[[str], bool] | None) -> None:
        """Set the subscription."""
        self.topics = tuple(sorted(dict.fromkeys(topics), key=utf16_key))
        self.matches = matches

    def unsubscribe(self) -> None:
        """Remove the subscription."""
        self.topics = self.matches = self.assignment_snapshot = None

    def keep_fresh(self, cluster: Cluster) -> None:
        """Set the topics that metadata updates ask for; with a pattern they ask for all topics already."""
        if self.topics is not None and self.matches is None:
            group = self.assignment_snapshot.topics if self.assignment_snapshot is not None else ()
            cluster.set_topics(dict.fromkeys((*self.topics, *group)))

    def rejoin_reason_for(self, metadata: MetadataCache) -> str | None:
        """Return why a rejoin is needed, None if the last join still matches."""
        if self.topics is not None and self.topics != self.joined_subscription:
            came, went = (
                _not_in(self.joined_subscription, self.topics),
                _not_in(self.topics, self.joined_subscription),
            )
            return f"subscription has changed since the last join: {came} came, {went} went"
        return self.assignment_snapshot.change(metadata) if self.assignment_snapshot is not None else None

    def accept(self, assignment: Assignment) -> bool:
        """Return whether every assigned topic is subscribed.

        If so, add the assigned topics that match our pattern but that only the leader's metadata had: they count as
        part of our last join, so they do not cause another one.
        """
        known = dict.fromkeys(self.topics or ())
        new = dict.fromkeys(tp.topic for tp in assignment.partitions if tp.topic not in known)
        if any(self.matches is None or not self.matches(topic) for topic in new):
            return False
        if new and self.topics == self.joined_subscription:
            self.subscribe((*known, *new), self.matches)
            self.joined_subscription = self.topics or ()
        return True


def _not_in(others: Iterable[str], topics: Iterable[str]) -> str:
    """Return the number of `topics` that `others` lacks, with the first few names."""
    known = dict.fromkeys(others)
    new = [topic for topic in topics if topic not in known]
    return f"{len(new)} ({format_names(new)})" if new else "none"
