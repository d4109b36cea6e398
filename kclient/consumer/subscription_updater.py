"""Applies the subscription: the cluster's metadata and the group follow it, and a pattern is matched again.

subscribe(), assign(), unsubscribe()   metadata of the new topics; a member sends its new subscription at once
poll()                                 a consumer that is not a member joins
new metadata                           a pattern may match other topics: join, or send them
"""

from __future__ import annotations

from kclient.change_signal import ChangeSignal
from kclient.config import Config
from kclient.consumer.assigned import AssignedPartitions
from kclient.consumer.group import GroupConsumer
from kclient.consumer.missing_topics import MissingTopics
from kclient.consumer.subscription import SubscriptionKind, SubscriptionState
from kclient.network.cluster import Cluster


class SubscriptionUpdater:
    """Applies the subscription of one consumer; `group` is None without a group id."""

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        subscription: SubscriptionState,
        assigned: AssignedPartitions,
        group: GroupConsumer | None,
        missing_topics: MissingTopics,
        changed: ChangeSignal,
    ) -> None:
        self._config = config
        self._cluster = cluster
        self._subscription = subscription
        self._assigned = assigned
        self._group = group
        self._missing_topics = missing_topics
        self._changed = changed
        self._metadata_seen = 0
        self._join_due = True

    def follow_subscription(self) -> None:
        """Pass a changed subscription to the metadata cache and to the group."""
        self._missing_topics.reset()
        self._metadata_seen = self._cluster.metadata.version
        self._cluster.set_topics(self._subscription.metadata_topics)
        if self._subscription.kind is SubscriptionKind.PATTERN:
            # The metadata may be that of an earlier subscription, without the topics that match this pattern.
            self._cluster.request_update("a pattern is subscribed to")
        group = self._group
        if group is not None and self._subscription.joins_at_once and group.membership.current is not None:
            group.join()  # a member sends its new subscription at once
        else:
            self._join_due = True
        self._changed.notify()

    def stop_unsubscribed(self) -> None:
        """Stop reading topics that left the subscription. Their partitions stay assigned until the rebalance."""
        covers, positions = self._subscription.covers, self._assigned.positions
        positions.follow_subscription(covers)
        self._assigned.stop_unsubscribed(tp for tp in positions.assigned() if not covers(tp.topic))

    def join_group(self) -> None:
        """Join the group. Only poll() calls this: a member without polls would own partitions and not read them."""
        if self._group is None:
            return
        if self._join_due and self._subscription.joins_at_once:
            self._group.join()
            self._join_due = False
        self._match_pattern(self._group)

    def _match_pattern(self, group: GroupConsumer) -> None:
        """Match the pattern again if the metadata has changed."""
        version = self._cluster.metadata.version
        if version == self._metadata_seen or self._subscription.kind is not SubscriptionKind.PATTERN:
            return
        self._metadata_seen = version
        changed = self._subscription.match(
            self._cluster.metadata.topics, exclude_internal=self._config.exclude_internal_topics
        )
        if changed or self._join_due:
            group.join()
            self._join_due = False
