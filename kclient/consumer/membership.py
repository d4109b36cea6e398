"""The membership of one consumer, which begins with a join and ends when the consumer leaves the group.

Commits, rebalances and listeners outlive a membership: they ask `CurrentMembership` for the one that runs now. Without
one, a consumer with a group id and assigned partitions commits as a member of no generation, and a subscribed one may
not commit.
"""

from __future__ import annotations

from typing import Final

from kclient.config import Config
from kclient.consumer.subscription import SubscriptionKind, SubscriptionState
from kclient.errors import ArgumentError, KclientError
from kclient.group.commit_errors import commit_failed
from kclient.group.consumer_protocol.member import ConsumerMembership
from kclient.group.membership import Generation, Identity, Membership
from kclient.protocol.errors import error as error_code
from kclient.types import GroupMetadata

MEMBERSHIP_TASK: Final = "membership in the group"


class CurrentMembership:
    """`current` is the membership that runs now, None before a join and after leaving."""

    def __init__(self, config: Config, subscription: SubscriptionState) -> None:
        self.group_id: str = config.group_id or ""
        self.current: Membership | None = None
        self._instance_id = config.group_instance_id
        self.subscription = subscription

    # --- status

    @property
    def ended(self) -> str:
        """Why the last membership ended, "" if none has."""
        return self.current.ended if self.current is not None else ""

    @property
    def stable(self) -> bool:
        """Whether this consumer is a member and may commit: no rebalance is under way."""
        return self.current is not None and self.current.stable

    @property
    def lost(self) -> bool:
        """Whether partitions that are given up now may already belong to other members."""
        return self.current is None or self.current.lost

    @property
    def may_auto_commit(self) -> bool:
        """Whether an automatic commit may be sent: a subscribed member in a rebalance must wait."""
        return self.stable or not self.subscription.automatic

    def is_in(self, generation: Generation) -> bool:
        """Return whether this is the current generation."""
        return self.current is not None and self.current.generation == generation

    def group_metadata(self) -> GroupMetadata:
        """Return group id, generation, member id and instance id."""
        if self.current is None:
            return GroupMetadata(self.group_id, group_instance_id=self._instance_id)
        generation = self.current.generation
        return GroupMetadata(self.group_id, generation.generation_id, generation.member_id, self._instance_id)

    # --- calls to the membership

    def poll_started(self) -> None:
        """Restart the poll timer."""
        if self.current is not None:
            self.current.poll_started()

    def request_rejoin(self, reason: str) -> None:
        """Let the membership join again. Raise ArgumentError for a reason that no request can carry."""
        try:
            reason.encode()
        except (AttributeError, UnicodeEncodeError):
            raise ArgumentError(f"The reason for a rebalance is text, not {reason!r}.") from None
        if self.current is not None:
            self.current.request_rejoin(reason)

    def send_subscription(self) -> None:
        """Give the membership the current subscription; it sends it to the coordinator."""
        subscription, membership = self.subscription, self.current
        if membership is None:
            return
        pattern = subscription.broker_pattern
        if pattern is not None and isinstance(membership, ConsumerMembership):
            membership.follow_pattern(pattern.pattern)
            return
        matches = subscription.covers if subscription.kind is SubscriptionKind.PATTERN else None
        membership.set_subscription(subscription.topics, matches)

    # --- for commits

    def commit_identity(self) -> Identity:
        """Return the identity for OffsetCommit. Raise CommitFailedError if a subscribed consumer has not joined."""
        if self.current is not None:
            return self.current.commit_identity()
        if self.subscription.automatic:
            why = "this consumer is not a member of the group: it joins with its first poll()"
            raise commit_failed("not_joined", self.group_id, why)
        return Identity()

    def fetch_identity(self) -> Identity:
        """Return the identity for OffsetFetch."""
        return Identity() if self.current is None else self.current.fetch_identity()

    def commit_refused(self, code: int, identity: Identity) -> KclientError:
        """Apply a refused commit to the membership, and return the error for the caller of commit()."""
        if self.current is not None:
            return self.current.commit_refused(code, identity)
        return commit_failed(
            "occupied", self.group_id, f"the coordinator answered {error_code(code).name} ({code})"
        )
