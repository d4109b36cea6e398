"""Storing offsets with the group's coordinator.

One question asked until it is answered for every partition: failures that pass by themselves are followed by a pause
and another try, built anew from what is known then. The caller bounds it. A commit that must not be tried again
(`retry=False`) raises CommitFailedError with `retriable` instead.

A member with an epoch (KIP-848) asks each time under its newest one. If the coordinator calls that stale, a commit
fails, but for `commit_newest`, which waits until a heartbeat brings the newest and is built anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import attrs

from kclient.config import Config
from kclient.errors import ArgumentError, CommitFailedError, KclientError, UnknownTopicError
from kclient.generated.offset_commit_response import OffsetCommitResponse
from kclient.group.commit_failure import commit_failed
from kclient.group.coordinator import Coordinator
from kclient.group.generation import Identity
from kclient.group.offset_commit import CommitAnswer, CommitQuestion
from kclient.group.offset_questions import Tell, TopicIds, follow_up, ids_by_name, unheard
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.registry import Registry
from kclient.network.backoff import Backoff
from kclient.protocol.errors import error as error_code
from kclient.runtime import Runtime
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kclient.commit")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Refused = Callable[[int, Identity], KclientError]
Turn = Callable[[], Awaitable[None]]
Hopeless = Callable[[], bool]


async def no_turn() -> None:
    """Whoever commits waits for nobody."""


def never() -> bool:
    """Whoever commits tries until the caller's timeout."""
    return False


@attrs.frozen
class Asked:
    """Under which name a commit was asked for, and which of its partitions were assigned then."""

    identity: Identity
    assigned: frozenset[TopicPartition]


class Commits:
    """Commits of one group.

    `identity` says under which generation and member id to commit, or raises CommitFailedError; without membership it
    is `Identity`. `refused` is told that the coordinator does not count that identity in any more (22, 25, 27, 82),
    and returns the error for the user, as `Membership.commit_refused` does. `topic_id_of` says of which topic an offset
    of a partition speaks, None where nobody knows; `is_assigned`, whether a partition is ours now.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        config: Config,
        runtime: Runtime,
        identity: Callable[[], Identity] = Identity,
        refused: Refused | None = None,
        metrics: CoordinatorMetrics | None = None,
        topic_id_of: Callable[[TopicPartition, int], bytes | None] = lambda partition, offset: None,
        is_assigned: Callable[[TopicPartition], bool] = lambda partition: False,
    ) -> None:
        self._is_assigned = is_assigned
        self._topic_id_of = topic_id_of
        self._coordinator = coordinator
        self._config = config
        self._runtime = runtime
        self._identity = identity
        self._refused = refused or self._occupied
        self._metrics = metrics or CoordinatorMetrics(Registry())

    def ask(self, offsets: Offsets) -> Asked:
        """Who asks for a commit that must wait: what is not theirs any more then is not stored.

        Raises CommitFailedError, and what the membership's `commit_identity` raises.
        """
        try:
            return Asked(self._identity(), frozenset(filter(self._is_assigned, offsets)))
        except CommitFailedError as exc:
            exc.uncommitted = dict(offsets)
            raise

    async def commit(
        self,
        offsets: Offsets,
        *,
        retry: bool,
        turn: Turn = no_turn,
        asked: Asked | None = None,
        hopeless: Hopeless = never,
        tell: Tell = unheard,
    ) -> Offsets:
        """Store offsets, each the next one to consume, and return them. Nothing is sent for an empty mapping.

        `asked` says who asked for it, if that was not now. With `retry` what passes by itself is tried again until the
        caller's timeout, or until it is `hopeless`; `tell` hears why each try failed. Without it `turn`
        is awaited once the coordinator is connected, and then the request goes out before anything else can.

        Raises CommitFailedError, TopicAuthorizationError, GroupAuthorizationError, BrokerError, UnknownTopicError for a
        partition that its topic does not have, ArgumentError for a negative offset.
        """
        left = dict(offsets)
        _check(left)
        topics = {partition: self._topic_id_of(partition, at.offset) for partition, at in left.items()}
        backoff = Backoff.for_retries(self._config, self._runtime)
        replaced: dict[TopicPartition, OffsetAndMetadata] = {}
        unknown: frozenset[TopicPartition] = frozenset()
        self._learn_epochs(self._of_living_topics(left, topics, replaced))
        while left := self._of_living_topics(left, topics, replaced):
            try:
                asked = self.ask(left) if asked is None else self._still(asked, left)
                answer = await self._commit_once(left, topics, asked, None if retry else turn)
            except CommitFailedError as exc:
                exc.uncommitted = left | replaced
                raise
            except KclientError as exc:
                if not exc.retriable:
                    raise
                if not retry or hopeless():
                    raise self._not_retried(exc.text, left | replaced) from exc
                why = exc.text
            else:
                if not (left := answer.left):
                    continue
                why = answer.why_left
                if not retry:
                    raise self._not_retried(why, left | replaced)
                before, unknown = unknown, answer.unknown
                await self._check_partitions(before & unknown)
            tell(why)
            logger.debug("group %s: offsets not stored yet: %s", self._coordinator.group_id, why)
            await asyncio.sleep(backoff.next())
        if replaced:
            why = f"{', '.join(map(str, replaced))} belonged to a topic that was deleted and created again"
            raise commit_failed("topic_replaced", self._coordinator.group_id, why, replaced)
        return offsets

    async def commit_newest(
        self, newest: Callable[[], Offsets], hopeless: Hopeless = never, tell: Tell = unheard
    ) -> Offsets:
        """Store what `newest` gives; where the epoch was stale, what it gives once a heartbeat has brought the newest.

        Returns what was stored. The caller bounds it. Raises what `commit` raises, and so when there is no epoch more.
        """
        while offsets := newest():
            identity = self._identity()
            try:
                return await self.commit(offsets, retry=True, hopeless=hopeless, tell=tell)
            except CommitFailedError as exc:
                if exc.reason != "stale_epoch" or hopeless():
                    raise
                tell(exc.text)
            await self._newer_than(identity)
        return offsets

    async def _newer_than(self, stale: Identity) -> None:
        """Whoever calls an epoch stale has given a newer one, in an answer that is under way or was lost."""
        backoff = Backoff.for_retries(self._config, self._runtime)
        while True:
            await asyncio.sleep(backoff.next())
            if self._identity().newer_than(stale):
                return

    # --- one try

    async def _commit_once(
        self, offsets: Offsets, topics: TopicIds, asked: Asked, turn: Turn | None
    ) -> CommitAnswer:
        """One OffsetCommit; what the answer leaves was not stored and may be tried again."""
        coordinator = self._coordinator
        await (coordinator.lookup() if turn is None else self._reach(turn))
        identity = self._identity_since(asked, offsets)
        question = CommitQuestion(coordinator.group_id, identity, offsets, self._ids(topics, offsets))
        sent = self._metrics.now()
        answer = question.read(await coordinator.request(OffsetCommitResponse, question.form()))
        if answer.no_member is not None:
            raise self._refused(answer.no_member, identity)
        if answer.group_gone:
            raise commit_failed("group_gone", coordinator.group_id, "the coordinator does not know the group")
        if answer.stale_epoch:
            why = f"member epoch {identity.generation_id} is not the newest (STALE_MEMBER_EPOCH)"
            raise commit_failed("stale_epoch", coordinator.group_id, why)
        follow_up(coordinator, answer)
        if not answer.left:
            self._metrics.committed(sent)
        return answer

    async def _reach(self, turn: Turn) -> None:
        """Be connected when our turn has come. Raises KclientError."""
        await self._coordinator.connect()
        await turn()
        self._coordinator.require_connection()

    async def _check_partitions(self, unknown: Iterable[TopicPartition]) -> None:
        """Raise UnknownTopicError for a partition that its topic does not have: no retry would store its offset.

        `unknown` are those that the coordinator did not know twice. A topic without an answer, or one that does not
        exist, may be about to be created: its commit is tried again.
        """
        counts = await self._partition_counts({tp.topic for tp in unknown})
        for topic, count in counts.items():
            missing = [tp for tp in unknown if tp.topic == topic and tp.partition >= count]
            if missing:
                raise UnknownTopicError(
                    f"No offset can be committed for {format_partitions(missing)}: topic {topic!r} has no "
                    f"such partition. Its partitions are numbered from 0 to {count - 1}. Commit for one of "
                    "these, or add partitions to it.",
                    topic=topic,
                )

    async def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """How many partitions a broker says that each topic has, in one request; without topics that do not exist."""
        names = sorted(topics)
        if not names:
            return {}
        try:
            answer = await self._coordinator.cluster.describe_topics(
                names, allow_auto_create=False, timeout=self._config.request_timeout_ms / 1000
            )
        except KclientError as exc:
            logger.debug("the partitions of %s are not known: %s", format_names(names), exc)
            return {}
        found = (one for one in answer.topics if one.partitions and not one.error_code)
        return {one.name: len(one.partitions) for one in found if one.name}

    # --- small parts

    def _of_living_topics(
        self, offsets: Offsets, topics: TopicIds, replaced: dict[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What means something still; offsets of topics that were created anew go to `replaced`."""
        left = dict(offsets)
        for partition in offsets:
            before, now = topics[partition], self._coordinator.cluster.metadata.topic_id(partition.topic)
            if before is not None and now not in (None, before):
                replaced[partition] = left.pop(partition)
        return left

    def _still(self, asked: Asked, offsets: Offsets) -> Asked:
        self._identity_since(asked, offsets)
        return asked

    def _identity_since(self, asked: Asked, offsets: Offsets) -> Identity:
        """Who we are. Raises CommitFailedError if we may not commit, or not any more what was asked for.

        In a newer generation the partitions may be another member's, who has committed more. A newer member epoch
        leaves them with us, unless they were given up meanwhile.
        """
        identity = self._identity()
        if identity == asked.identity:
            return identity
        given_up = any(tp in asked.assigned and not self._is_assigned(tp) for tp in offsets)
        if given_up or not identity.continues(asked.identity):
            group_id = self._coordinator.group_id
            raise commit_failed("rebalancing", group_id, "the group has rebalanced since it was asked for")
        return identity

    def _learn_epochs(self, offsets: Offsets) -> None:
        """A newer leader epoch than metadata knows: of a topic that is gone it would keep the new one's leader away."""
        cluster = self._coordinator.cluster
        for partition, offset in offsets.items():
            cluster.saw_leader_epoch(partition, offset.leader_epoch)

    def _ids(self, topics: TopicIds, offsets: Offsets) -> Mapping[str, bytes] | None:
        """The id of each topic that positions belong to; where nobody knows that, of the one that exists."""
        return ids_by_name(self._coordinator.cluster.metadata, {tp: topics[tp] for tp in offsets})

    def _not_retried(self, why: str, left: Offsets) -> CommitFailedError:
        return commit_failed("retriable", self._coordinator.group_id, why, left)

    def _occupied(self, code: int, identity: Identity) -> KclientError:
        """The refusal of a commit from outside of the group."""
        known = error_code(code)
        why = f"the coordinator answered {known.name} ({code})"
        return commit_failed("occupied", self._coordinator.group_id, why)


def _check(offsets: Offsets) -> None:
    """Raises ArgumentError."""
    for partition, offset in offsets.items():
        if offset.offset < 0:
            raise ArgumentError(
                f"The offset {offset.offset} to commit for {partition} is negative. "
                "An offset counts from 0. Commit the offset of the next record to consume."
            )
