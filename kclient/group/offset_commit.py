"""Storing offsets with the group's coordinator.

One question asked until it is answered for every partition: failures that pass by themselves are followed by a pause
and another try, built anew from what is known then. The caller bounds it. A commit that must not be tried again
(`retry=False`) raises CommitFailedError with `retriable` instead.

A member with an epoch (KIP-848) asks each time under its newest one. If the coordinator calls that stale, a commit
fails, but for `commit_newest`, which waits until a heartbeat brings the newest and is built anew.

One OffsetCommit: what is asked, and what each answer means.

    code                               meaning
    0                                  stored
    3, 14, 100, or no answer           again
    7, 15, 16                          again, at another coordinator
    22, 25, 27, 82                     the group does not count us in any more: the membership decides
    69                                 the group is gone
    113                                a member with an epoch has missed that it moved on: the caller decides
    29                                 not authorized for the topic; all of them are named
    anything else                      refused

The first partition that is refused decides; topics without authorization are reported when nothing worse came.

What storing offsets and reading them share: topic ids for the question, and what an answer asks for.

Why something must be asked again, in words: the codes that came, and what each came for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from kclient.config import Config
from kclient.errors import ArgumentError, CommitFailedError, KclientError, UnknownTopicError
from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_commit_response import OffsetCommitResponse
from kclient.group.commit_errors import commit_failed
from kclient.group.coordinator import Coordinator, VersionedRequest
from kclient.group.membership import EPOCHS_SINCE, Identity, lowest_version
from kclient.log import get_logger
from kclient.metrics.coordinator import CoordinatorMetrics
from kclient.metrics.registry import Registry
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.network.metadata import MetadataCache
from kclient.protocol import errors as codes
from kclient.protocol.errors import error as error_code
from kclient.protocol.primitives import ZERO_UUID
from kclient.runtime import Runtime
from kclient.text import format_names, format_partitions
from kclient.types import OffsetAndMetadata, TopicPartition

logger = get_logger("kclient.commit")


def describe_failures(again: Mapping[TopicPartition, int], left: Iterable[TopicPartition]) -> str:
    """Each code of `again`, in the order in which they came; what is `left` without one was not answered."""
    told: dict[int | None, list[TopicPartition]] = {}
    for partition in (*again, *(tp for tp in left if tp not in again)):
        told.setdefault(again.get(partition), []).append(partition)
    reasons = (f"{_code_name(code)} for {format_partitions(some)}" for code, some in told.items())
    return f"the coordinator answered {'; '.join(reasons)}"


def _code_name(code: int | None) -> str:
    return "nothing" if code is None else f"{codes.error(code).name} ({code})"


TOPIC_IDS_SINCE: Final = 10
IN_KAFKA_SINCE: Final = 1
IN_ZOOKEEPER: Final = (
    "Offsets cannot be stored in Kafka: version 0 of OffsetCommit, from before Kafka 0.8.2, kept them in ZooKeeper, "
    "where no group finds them, and kclient does not use it."
)

RETRIABLE: Final = (
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.UNKNOWN_TOPIC_ID,
)
COORDINATOR_MOVED: Final = (
    codes.REQUEST_TIMED_OUT,
    codes.COORDINATOR_NOT_AVAILABLE,
    codes.NOT_COORDINATOR,
)
NO_MEMBER: Final = (
    codes.ILLEGAL_GENERATION,
    codes.UNKNOWN_MEMBER_ID,
    codes.REBALANCE_IN_PROGRESS,
    codes.FENCED_INSTANCE_ID,
)


@attrs.define
class OffsetCommitResult:
    """What became of the offsets: `left` was not stored. At most one of the refusals, the last four, is set.

    `again` are the codes of those that may be tried again; what is left without a code was not answered.
    """

    left: dict[TopicPartition, OffsetAndMetadata]
    again: dict[TopicPartition, int] = attrs.field(factory=dict)
    coordinator_moved: int | None = None  # the code that said so
    stale_topics: bool = False
    no_member: int | None = None
    group_gone: bool = False
    stale_epoch: bool = False
    error: KclientError | None = None

    @property
    def why_left(self) -> str:
        """The codes that came, and the partitions that each came for."""
        return describe_failures(self.again, self.left)

    @property
    def unknown(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator says do not exist."""
        return frozenset(tp for tp, code in self.again.items() if code == codes.UNKNOWN_TOPIC_OR_PARTITION)


@attrs.frozen
class OffsetCommitAttempt:
    """Offsets to store under one identity; `topic_ids` is None unless the ids of all topics are known."""

    group_id: str
    identity: Identity
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    topic_ids: Mapping[str, bytes] | None

    def form(self) -> VersionedRequest:
        """The request, the same for all versions that can say it."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in self.offsets.items():
            entry = OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
            topics.setdefault(topic, []).append(entry)
        ids = self.topic_ids or {}
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.identity.generation_id,
            member_id=self.identity.member_id,
            group_instance_id=self.identity.group_instance_id,
            topics=[
                OffsetCommitRequestTopic(name=name, partitions=partitions, topic_id=ids.get(name, ZERO_UUID))
                for name, partitions in topics.items()
            ],
        )
        return VersionedRequest(
            request,
            lowest=self._lowest(),
            highest=TOPIC_IDS_SINCE if self.topic_ids is not None else TOPIC_IDS_SINCE - 1,
            missing=IN_ZOOKEEPER if self._lowest() == IN_KAFKA_SINCE else "",
        )

    def read(self, response: OffsetCommitResponse) -> OffsetCommitResult:
        """Judge the answer, partition by partition in its order; what it leaves out was not stored."""
        answer = OffsetCommitResult(left=dict(self.offsets))
        unauthorized: list[str] = []
        for partition, code in self._codes(response):
            if code == codes.NONE:
                answer.left.pop(partition, None)
            elif code == codes.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic)
            elif not self._again(answer, partition, code):
                self._refuse(answer, partition, code)
                return answer
        if unauthorized:
            answer.error = broker_error(
                codes.TOPIC_AUTHORIZATION_FAILED, self._doing, topics=dict.fromkeys(unauthorized)
            )
        return answer

    def _lowest(self) -> int:
        if self.identity.by_epoch:
            return EPOCHS_SINCE
        return max(IN_KAFKA_SINCE, lowest_version("OffsetCommit", self.identity.group_instance_id))

    @property
    def _doing(self) -> str:
        return f"Committing offsets of group {self.group_id}"

    def _codes(self, response: OffsetCommitResponse) -> Sequence[tuple[TopicPartition, int]]:
        """The error code of every partition that was asked for."""
        names = {topic_id: name for name, topic_id in (self.topic_ids or {}).items()}
        answered = [
            (TopicPartition(names.get(topic.topic_id, topic.name), entry.partition_index), entry.error_code)
            for topic in response.topics
            for entry in topic.partitions
        ]
        return [(partition, code) for partition, code in answered if partition in self.offsets]

    def _again(self, answer: OffsetCommitResult, partition: TopicPartition, code: int) -> bool:
        """Whether the partition may be tried again; notes what must happen before."""
        if code in COORDINATOR_MOVED:
            answer.coordinator_moved = code
        elif code in RETRIABLE:
            answer.stale_topics |= code != codes.COORDINATOR_LOAD_IN_PROGRESS
        else:
            return False
        answer.again[partition] = code
        return True

    def _refuse(self, answer: OffsetCommitResult, partition: TopicPartition, code: int) -> None:
        if code in NO_MEMBER:
            answer.no_member = code
        elif code == codes.GROUP_ID_NOT_FOUND:
            answer.group_gone = True
        elif code == codes.STALE_MEMBER_EPOCH and self.identity.by_epoch:
            answer.stale_epoch = True
        else:
            doing = (
                self._doing if code == codes.GROUP_AUTHORIZATION_FAILED else f"{self._doing} for {partition}"
            )
            answer.error = broker_error(code, doing, group=self.group_id, retriable=False)


TopicIds = Mapping[TopicPartition, bytes | None]
OnRetry = Callable[[str], None]


def ignore_retry(why: str) -> None:
    """Whoever waits does not ask why it takes so long."""


def ids_by_name(metadata: MetadataCache, partitions: TopicIds) -> Mapping[str, bytes] | None:
    """The id of each topic, as the partition has it or as it is known now.

    None if one is unknown: then only versions without ids can be used.
    """
    ids: dict[str, bytes] = {}
    for partition, known in partitions.items():
        topic_id = known or metadata.topic_id(partition.topic)
        if topic_id is None:
            return None
        ids[partition.topic] = topic_id
    return ids


class OffsetResult(Protocol):
    """What OffsetCommitResult and OffsetFetchResult have in common."""

    coordinator_moved: int | None
    stale_topics: bool
    error: KclientError | None


def follow_up(coordinator: Coordinator, answer: OffsetResult) -> None:
    """What an answer asks for beyond trying again. Raises its error."""
    if answer.coordinator_moved is not None:
        code = error_code(answer.coordinator_moved)
        coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
    if answer.stale_topics:
        coordinator.cluster.request_update("the coordinator does not know a topic", reset_backoff=False)
    if answer.error is not None:
        raise answer.error


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Refused = Callable[[int, Identity], KclientError]
WaitForTurn = Callable[[], Awaitable[None]]
GiveUp = Callable[[], bool]


async def no_wait() -> None:
    """Whoever commits waits for nobody."""


def never_give_up() -> bool:
    """Whoever commits tries until the caller's timeout."""
    return False


@attrs.frozen
class CommitOrigin:
    """Under which name a commit was asked for, and which of its partitions were assigned then."""

    identity: Identity
    assigned: frozenset[TopicPartition]


class OffsetCommitter:
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

    def ask(self, offsets: Offsets) -> CommitOrigin:
        """Who asks for a commit that must wait: what is not theirs any more then is not stored.

        Raises CommitFailedError, and what the membership's `commit_identity` raises.
        """
        try:
            return CommitOrigin(self._identity(), frozenset(filter(self._is_assigned, offsets)))
        except CommitFailedError as exc:
            exc.uncommitted = dict(offsets)
            raise

    async def commit(
        self,
        offsets: Offsets,
        *,
        retry: bool,
        turn: WaitForTurn = no_wait,
        asked: CommitOrigin | None = None,
        give_up: GiveUp = never_give_up,
        tell: OnRetry = ignore_retry,
    ) -> Offsets:
        """Store offsets, each the next one to consume, and return them. Nothing is sent for an empty mapping.

        `asked` says who asked for it, if that was not now. With `retry` what passes by itself is tried again until the
        caller's timeout, or until `give_up` says so; `tell` hears why each try failed. Without it `turn`
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
                if not retry or give_up():
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
        self, newest: Callable[[], Offsets], give_up: GiveUp = never_give_up, tell: OnRetry = ignore_retry
    ) -> Offsets:
        """Store what `newest` gives; where the epoch was stale, what it gives once a heartbeat has brought the newest.

        Returns what was stored. The caller bounds it. Raises what `commit` raises, and so when there is no epoch more.
        """
        while offsets := newest():
            identity = self._identity()
            try:
                return await self.commit(offsets, retry=True, give_up=give_up, tell=tell)
            except CommitFailedError as exc:
                if exc.reason != "stale_epoch" or give_up():
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
        self, offsets: Offsets, topics: TopicIds, asked: CommitOrigin, turn: WaitForTurn | None
    ) -> OffsetCommitResult:
        """One OffsetCommit; what the answer leaves was not stored and may be tried again."""
        coordinator = self._coordinator
        await (coordinator.lookup() if turn is None else self._reach(turn))
        identity = self._identity_since(asked, offsets)
        question = OffsetCommitAttempt(coordinator.group_id, identity, offsets, self._ids(topics, offsets))
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

    async def _reach(self, turn: WaitForTurn) -> None:
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

    def _still(self, asked: CommitOrigin, offsets: Offsets) -> CommitOrigin:
        self._identity_since(asked, offsets)
        return asked

    def _identity_since(self, asked: CommitOrigin, offsets: Offsets) -> Identity:
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
