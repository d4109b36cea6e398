"""What only a consumer with a group has: the coordinator, the membership while subscribed, and commits."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from kclient.consumer.committing import Committing
from kclient.consumer.rebalance import Rebalance
from kclient.consumer.subscription import SubscriptionKind
from kclient.errors import KclientError
from kclient.group.commit_failure import commit_failed
from kclient.group.commits import Commits
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Generation, Identity, MemberState
from kclient.group.membership import ClassicMembership
from kclient.protocol.errors import error as error_code
from kclient.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kclient.consumer.session import Session

log = logging.getLogger("kclient.commit")

MEMBERSHIP: Final = "membership in the group"


class GroupPart:
    """The group of one consumer. A membership lives from `join` to `leave`; commits work without one too."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.group_id = session.config.group_id or ""
        self.coordinator = Coordinator(session.cluster, self.group_id, session.config, session.runtime)
        self.commits = Commits(
            self.coordinator, session.config, session.runtime, self._identity, self._commit_refused
        )
        self.committing = Committing(
            self.commits,
            session.config,
            session.runtime,
            session.flows,
            session.callbacks,
            session.call_user,
            session.counters,
        )
        self.rebalance = Rebalance(session)
        self._membership: ClassicMembership | None = None
        self._leaving = False

    @property
    def joining(self) -> bool:
        """Whether this consumer takes part in the group, or tries to."""
        return self._membership is not None

    @property
    def stable(self) -> bool:
        """Whether this consumer is a member whose assignment stands."""
        return self._membership is not None and self._membership.state is MemberState.STABLE

    def join(self, topics: tuple[str, ...]) -> None:
        """Take part in the group, wanting these topics."""
        if self._membership is None:
            session = self._session
            self._membership = ClassicMembership(
                self.coordinator, session.cluster, session.config, session.runtime, self.rebalance
            )
            self._tell_topics(self._membership, topics)
            self._membership.changed.relay(session.news)
            session.flows.start(MEMBERSHIP, self._membership.run)
        else:
            self._tell_topics(self._membership, topics)

    async def leave(self, reason: str, timeout: float) -> None:
        """Give up the assignment, telling the listener, and leave; its error is raised last. Spec: B.13.8."""
        membership = self._membership
        if membership is None or self._leaving:
            return
        self._leaving = True
        now = self._session.runtime.now
        deadline = now() + timeout
        lost = membership.lost or membership.rebalancing
        try:
            await self._session.flows.stop(MEMBERSHIP)
            await self.rebalance.leave(
                lost=lost, deadline=deadline
            )  # who commits in it is a member until it returns
        except asyncio.CancelledError:
            deadline = now()  # LeaveGroup is sent all the same, and nobody waits for its answer
            raise
        finally:
            await self._settle(deadline)
            self._membership, self._leaving = None, False
            await membership.leave(reason, max(0.0, deadline - now()))

    async def _settle(self, deadline: float) -> None:
        """Wait for the answers to commits that the listener has begun."""
        try:
            async with asyncio.timeout_at(deadline):
                await self.committing.settle()
        except TimeoutError:
            log.warning("asynchronous commits have no answer yet; leaving the group all the same")

    def auto_commit(self) -> None:
        """Store what is released, if this consumer may commit now: a member in a rebalance may not."""
        if self.stable or not self._session.subscription.automatic:
            self.committing.auto_commit(self._session.released())
        else:
            self.committing.put_off()

    async def last_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata], timeout: float) -> None:
        """The automatic commit of close()."""
        if self.stable or not self._session.subscription.automatic:
            await self.committing.commit_for_good(offsets, "on close", timeout)

    def poll_started(self) -> None:
        """Restart the poll timer. Spec: S1-18."""
        if self._membership is not None:
            self._membership.poll_started()

    def request_rejoin(self, reason: str) -> None:
        """Join again when the flow comes round."""
        if self._membership is not None:
            self._membership.request_rejoin(reason)

    def take_error(self) -> KclientError | None:
        """An error that the group flow has left for the next poll."""
        return None if self._membership is None else self._membership.take_error()

    def metadata(self) -> GroupMetadata:
        """Who we are in the group."""
        instance_id = self._session.config.group_instance_id
        if self._membership is None:
            return GroupMetadata(self.group_id, group_instance_id=instance_id)
        generation = self._membership.generation
        return GroupMetadata(self.group_id, generation.generation_id, generation.member_id, instance_id)

    def is_present(self, generation: Generation) -> bool:
        """Whether this generation is still the one we are in."""
        return self._membership is not None and self._membership.generation == generation

    @property
    def lost(self) -> bool:
        """Whether partitions given up now may belong to others already. Spec: S3-31, S3-53."""
        return self._membership is None or self._membership.lost

    def _tell_topics(self, membership: ClassicMembership, topics: tuple[str, ...]) -> None:
        subscription = self._session.subscription
        matches = subscription.covers if subscription.kind is SubscriptionKind.PATTERN else None
        membership.set_subscription(topics, matches)

    def _identity(self) -> Identity:
        return Identity() if self._membership is None else self._membership.commit_identity()

    def _commit_refused(self, code: int, identity: Identity) -> KclientError:
        if self._membership is not None:
            return self._membership.commit_refused(code, identity)
        return commit_failed(
            "occupied", self.group_id, f"the coordinator answered {error_code(code).name} ({code})"
        )
