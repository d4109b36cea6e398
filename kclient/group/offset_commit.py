"""OffsetCommit: storing offsets with the group coordinator.

    code                       action
    0                          STORED             the offset is committed
    14                         RETRY
    3, 100                     UPDATE_METADATA    request a metadata update, and retry
    7, 15, 16                  FIND_COORDINATOR   look the coordinator up, and retry
    29                         UNAUTHORIZED       raise, with all topics that the client is not authorized for
    22, 25, 27, 82             NOT_A_MEMBER       raise; the membership decides how to go on
    69                         GROUP_GONE         raise
    113                        STALE_EPOCH        raise, for a member with an epoch (KIP-848)
    anything else              RAISE

A partition without a response is retried. The first partition with a code that raises ends the commit; UNAUTHORIZED is
raised after all other partitions are read.

`OffsetCommitter.commit` retries with a backoff until every offset is stored; the caller sets the timeout. Each attempt
sends what is left, with the current identity of the member. With `retry=False` it raises CommitFailedError with
`retriable` instead.

`commit_newest` also retries after STALE_EPOCH: it waits until a heartbeat has brought the newest epoch, and commits the
offsets that are current then.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

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

logger: Final = get_logger("kclient.commit")


def describe_failures(again: Mapping[TopicPartition, int], left: Iterable[TopicPartition]) -> str:
    """Return the codes of `again` with their partitions, and the partitions of `left` without a response."""
    by_code: dict[int | None, list[TopicPartition]] = {}
    for partition in (*again, *(tp for tp in left if tp not in again)):
        by_code.setdefault(again.get(partition), []).append(partition)
    reasons = (f"{_code_name(code)} for {format_partitions(some)}" for code, some in by_code.items())
    return f"the coordinator answered {'; '.join(reasons)}"


def _code_name(code: int | None) -> str:
    return "nothing" if code is None else f"{codes.error(code).name} ({code})"


TOPIC_IDS_SINCE: Final = 10  # Kafka 4.1, KIP-848: topic ids instead of names
IN_KAFKA_SINCE: Final = 1
IN_ZOOKEEPER: Final = (
    "Offsets cannot be stored in Kafka: version 0 of OffsetCommit, from before Kafka 0.8.2, kept them in ZooKeeper, "
    "where no group finds them, and kclient does not use it."
)


class CommitAction(enum.Enum):
    """What the client does about the error code of a partition."""

    STORED = "stored"
    RETRY = "retry"
    UPDATE_METADATA = "update metadata"
    FIND_COORDINATOR = "find coordinator"
    UNAUTHORIZED = "unauthorized"
    NOT_A_MEMBER = "not a member"
    GROUP_GONE = "group gone"
    STALE_EPOCH = "stale epoch"
    RAISE = "raise"


COMMIT_ACTIONS: Final[Mapping[int, CommitAction]] = {
    codes.NONE: CommitAction.STORED,
    codes.COORDINATOR_LOAD_IN_PROGRESS: CommitAction.RETRY,
    codes.UNKNOWN_TOPIC_OR_PARTITION: CommitAction.UPDATE_METADATA,
    codes.UNKNOWN_TOPIC_ID: CommitAction.UPDATE_METADATA,
    codes.REQUEST_TIMED_OUT: CommitAction.FIND_COORDINATOR,
    codes.COORDINATOR_NOT_AVAILABLE: CommitAction.FIND_COORDINATOR,
    codes.NOT_COORDINATOR: CommitAction.FIND_COORDINATOR,
    codes.TOPIC_AUTHORIZATION_FAILED: CommitAction.UNAUTHORIZED,
    codes.ILLEGAL_GENERATION: CommitAction.NOT_A_MEMBER,
    codes.UNKNOWN_MEMBER_ID: CommitAction.NOT_A_MEMBER,
    codes.REBALANCE_IN_PROGRESS: CommitAction.NOT_A_MEMBER,
    codes.FENCED_INSTANCE_ID: CommitAction.NOT_A_MEMBER,
    codes.GROUP_ID_NOT_FOUND: CommitAction.GROUP_GONE,
    codes.STALE_MEMBER_EPOCH: CommitAction.STALE_EPOCH,
}
RETRIED: Final = (CommitAction.RETRY, CommitAction.UPDATE_METADATA, CommitAction.FIND_COORDINATOR)


@attrs.define(kw_only=True)
class OffsetResult:
    """The decoded response to OffsetCommit or OffsetFetch; `left` are the partitions that are not done.

    `again` has the codes of the partitions to retry; a partition of `left` without a code was not answered.
    """

    left: Collection[TopicPartition]
    again: dict[TopicPartition, int] = attrs.field(factory=dict)
    coordinator_moved: int | None = None  # the code of FIND_COORDINATOR, if it came
    stale_topics: bool = False
    stale_epoch: bool = False
    error: KclientError | None = None

    @property
    def why_left(self) -> str:
        """The error codes, each with its partitions."""
        return describe_failures(self.again, self.left)


@attrs.define(kw_only=True)
class OffsetCommitResult(OffsetResult):
    """`left` was not stored. At most one of `no_member`, `group_gone`, `stale_epoch` and `error` is set."""

    left: dict[TopicPartition, OffsetAndMetadata]
    no_member: int | None = None
    group_gone: bool = False

    @property
    def unknown(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator answered UNKNOWN_TOPIC_OR_PARTITION for."""
        return frozenset(tp for tp, code in self.again.items() if code == codes.UNKNOWN_TOPIC_OR_PARTITION)


@attrs.frozen
class OffsetCommitAttempt:
    """One OffsetCommit under one identity; `topic_ids` is None unless the ids of all topics are known."""

    group_id: str
    identity: Identity
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    topic_ids: Mapping[str, bytes] | None

    def request(self) -> VersionedRequest:
        """Return the request with its versions."""
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
        """Decode the response, partition by partition in its order."""
        result = OffsetCommitResult(left=dict(self.offsets))
        unauthorized: list[str] = []
        for partition, code in self._codes(response):
            action = COMMIT_ACTIONS.get(code, CommitAction.RAISE)
            if action is CommitAction.STORED:
                result.left.pop(partition, None)
            elif action is CommitAction.UNAUTHORIZED:
                unauthorized.append(partition.topic)
            elif action in RETRIED:
                self._retry(result, action, partition, code)
            else:
                self._refuse(result, action, partition, code)
                return result
        if unauthorized:
            topics = dict.fromkeys(unauthorized)
            result.error = broker_error(codes.TOPIC_AUTHORIZATION_FAILED, self._doing, topics=topics)
        return result

    def _lowest(self) -> int:
        if self.identity.by_epoch:
            return EPOCHS_SINCE
        return max(IN_KAFKA_SINCE, lowest_version("OffsetCommit", self.identity.group_instance_id))

    @property
    def _doing(self) -> str:
        return f"Committing offsets of group {self.group_id}"

    def _codes(self, response: OffsetCommitResponse) -> Sequence[tuple[TopicPartition, int]]:
        """Return the error code of every partition in the response that is in the request."""
        names = {topic_id: name for name, topic_id in (self.topic_ids or {}).items()}
        answered = [
            (TopicPartition(names.get(topic.topic_id, topic.name), entry.partition_index), entry.error_code)
            for topic in response.topics
            for entry in topic.partitions
        ]
        return [(partition, code) for partition, code in answered if partition in self.offsets]

    @staticmethod
    def _retry(
        result: OffsetCommitResult, action: CommitAction, partition: TopicPartition, code: int
    ) -> None:
        """Record a partition to retry, and what must happen before."""
        result.again[partition] = code
        if action is CommitAction.FIND_COORDINATOR:
            result.coordinator_moved = code
        elif action is CommitAction.UPDATE_METADATA:
            result.stale_topics = True

    def _refuse(
        self, result: OffsetCommitResult, action: CommitAction, partition: TopicPartition, code: int
    ) -> None:
        """Record a code that ends the commit."""
        if action is CommitAction.NOT_A_MEMBER:
            result.no_member = code
        elif action is CommitAction.GROUP_GONE:
            result.group_gone = True
        elif action is CommitAction.STALE_EPOCH and self.identity.by_epoch:
            result.stale_epoch = True
        else:
            of_group = code == codes.GROUP_AUTHORIZATION_FAILED
            doing = self._doing if of_group else f"{self._doing} for {partition}"
            result.error = broker_error(code, doing, group=self.group_id, retriable=False)


TopicIds = Mapping[TopicPartition, bytes | None]
OnRetry = Callable[[str], None]


def ignore_retry(why: str) -> None:
    """Do nothing on a retry."""


def ids_by_name(metadata: MetadataCache, partitions: TopicIds) -> Mapping[str, bytes] | None:
    """Return the id of each topic: the given one, else that of metadata.

    Return None if one is unknown: then only versions with topic names can be used.
    """
    ids: dict[str, bytes] = {}
    for partition, known in partitions.items():
        topic_id = known or metadata.topic_id(partition.topic)
        if topic_id is None:
            return None
        ids[partition.topic] = topic_id
    return ids


def follow_up(coordinator: Coordinator, result: OffsetResult) -> None:
    """Mark the coordinator unknown or request metadata as a result requires, then raise its error if it has one."""
    if result.coordinator_moved is not None:
        code = error_code(result.coordinator_moved)
        coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
    if result.stale_topics:
        coordinator.cluster.request_update("the coordinator does not know a topic", reset_backoff=False)
    if result.error is not None:
        raise result.error


Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Refused = Callable[[int, Identity], KclientError]
BeforeSend = Callable[[], Awaitable[None]]
GiveUp = Callable[[], bool]


async def no_wait() -> None:
    """Send immediately."""


def never_give_up() -> bool:
    """Retry until the caller's timeout."""
    return False


@attrs.frozen
class CommitOrigin:
    """The identity under which a commit was requested, and those of its partitions that were assigned then."""

    identity: Identity
    assigned: frozenset[TopicPartition]


@attrs.define
class PendingCommit:
    """The state of one commit across its attempts.

    `left` is not stored yet; `replaced` was removed from it because the topic was deleted and recreated. `topic_ids`
    are the topics that the offsets belong to, `unknown` the partitions that the coordinator did not know at the last
    attempt. `origin` is None until the first attempt, unless the caller has set it.
    """

    left: dict[TopicPartition, OffsetAndMetadata]
    topic_ids: TopicIds
    origin: CommitOrigin | None
    replaced: dict[TopicPartition, OffsetAndMetadata] = attrs.field(factory=dict)
    unknown: frozenset[TopicPartition] = frozenset()

    @property
    def uncommitted(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets that are not stored."""
        return self.left | self.replaced

    def drop_replaced(self, metadata: MetadataCache) -> bool:
        """Move the offsets of recreated topics to `replaced`; return whether others are left.

        Without this, an offset of the old topic would become the committed offset of the new one.
        """
        for partition in list(self.left):
            before, now = self.topic_ids[partition], metadata.topic_id(partition.topic)
            if before is not None and now not in (None, before):
                self.replaced[partition] = self.left.pop(partition)
        return bool(self.left)


class OffsetCommitter:
    """Commits of one group.

    `identity` returns the identity to commit with, or raises CommitFailedError; without membership it is `Identity`.
    `refused` is called with 22, 25, 27 or 82 and the identity that was sent; it returns the error for the user, as
    `Membership.commit_refused` does. `topic_id_of` returns the id of the topic that an offset belongs to, None if it
    is unknown; `is_assigned`, whether a partition is assigned now.
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
        self._refused = refused or self._refused_without_membership
        self._metrics = metrics or CoordinatorMetrics(Registry())

    def origin(self, offsets: Offsets) -> CommitOrigin:
        """Return the origin of a commit that is sent later: it fails if its partitions are revoked before that.

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
        before_send: BeforeSend = no_wait,
        origin: CommitOrigin | None = None,
        give_up: GiveUp = never_give_up,
        on_retry: OnRetry = ignore_retry,
    ) -> Offsets:
        """Store offsets, each that of the next record to consume, and return them. An empty mapping sends nothing.

        retry        retry after temporary failures, until the caller's timeout or until `give_up()` is true
        before_send  without `retry`: awaited while the coordinator is connected; the request is sent directly after it
        origin       the result of `origin()` at the time of the call, if the commit has waited since
        on_retry     called with the reason of each failed attempt

        Raises CommitFailedError, TopicAuthorizationError, GroupAuthorizationError, BrokerError, UnknownTopicError for a
        partition that its topic does not have, ArgumentError for a negative offset.
        """
        _require_not_negative(offsets)
        pending, metadata = self._begin(offsets, origin), self._coordinator.cluster.metadata
        backoff = Backoff.for_retries(self._config, self._runtime)
        while pending.drop_replaced(metadata):
            try:
                why = await self._attempt(pending, None if retry else before_send)
            except CommitFailedError as exc:
                exc.uncommitted = pending.uncommitted
                raise
            except KclientError as exc:
                if not exc.retriable:
                    raise
                # An asynchronous commit is not repeated: it could overwrite the newer offset of a later one.
                if not retry or give_up():
                    raise self._not_retried(exc.text, pending) from exc
                why = exc.text
            if why:
                on_retry(why)
                logger.debug("group %s: offsets not stored yet: %s", self._coordinator.group_id, why)
                await asyncio.sleep(backoff.next())
        if pending.replaced:
            raise self._topic_replaced(pending)
        return offsets

    async def commit_newest(
        self, newest: Callable[[], Offsets], give_up: GiveUp = never_give_up, on_retry: OnRetry = ignore_retry
    ) -> Offsets:
        """Store what `newest` returns; after STALE_EPOCH, wait for the newest epoch and store what it returns then.

        Return what was stored. The caller sets the timeout. Raises what `commit` raises, also if the membership ends
        while it waits.
        """
        while offsets := newest():
            # Before the commit: the epoch that the coordinator may answer with STALE_MEMBER_EPOCH.
            identity = self._identity()
            try:
                return await self.commit(offsets, retry=True, give_up=give_up, on_retry=on_retry)
            except CommitFailedError as exc:
                if exc.reason != "stale_epoch" or give_up():
                    raise
                on_retry(exc.text)
            await self._wait_for_newer_epoch(identity)
        return offsets

    async def _wait_for_newer_epoch(self, stale: Identity) -> None:
        """Wait for a heartbeat response with the newer epoch: it is in flight, or follows the next heartbeat."""
        backoff = Backoff.for_retries(self._config, self._runtime)
        while True:
            await asyncio.sleep(backoff.next())
            if self._identity().newer_than(stale):
                return

    # --- one attempt

    def _begin(self, offsets: Offsets, origin: CommitOrigin | None) -> PendingCommit:
        """Return the state before the first attempt; learn the leader epochs of the offsets.

        Only of topics that still exist: an epoch of a deleted topic would hide the leader of the recreated one.
        """
        topic_ids = {partition: self._topic_id_of(partition, at.offset) for partition, at in offsets.items()}
        pending = PendingCommit(dict(offsets), topic_ids, origin)
        cluster = self._coordinator.cluster
        pending.drop_replaced(cluster.metadata)
        for partition, offset in pending.left.items():
            cluster.update_last_seen_epoch(partition, offset.leader_epoch)
        return pending

    async def _attempt(self, pending: PendingCommit, before_send: BeforeSend | None) -> str:
        """Send OffsetCommit once; return why offsets are left, "" if none are.

        Without `before_send` the commit is retried; with it, offsets that are left raise CommitFailedError.
        """
        if pending.origin is None:
            pending.origin = self.origin(pending.left)
        else:
            self._identity_since(pending.origin, pending.left)
        result = await self._send(pending, pending.origin, before_send)
        pending.left = result.left
        if not pending.left:
            return ""
        if before_send is not None:
            raise self._not_retried(result.why_left, pending)
        # In two responses, since the coordinator may learn of new partitions later than their leaders.
        unknown_twice = pending.unknown & result.unknown
        pending.unknown = result.unknown
        await self._check_partitions(unknown_twice)
        return result.why_left

    async def _send(
        self, pending: PendingCommit, origin: CommitOrigin, before_send: BeforeSend | None
    ) -> OffsetCommitResult:
        """Send one OffsetCommit and return the decoded response. Raises the errors that it holds."""
        coordinator = self._coordinator
        await (coordinator.lookup() if before_send is None else self._connect(before_send))
        # The lookup takes time: the membership may have ended, or given partitions up, meanwhile.
        identity = self._identity_since(origin, pending.left)
        topic_ids = {partition: pending.topic_ids[partition] for partition in pending.left}
        ids = ids_by_name(coordinator.cluster.metadata, topic_ids)
        attempt = OffsetCommitAttempt(coordinator.group_id, identity, pending.left, ids)
        sent = self._metrics.now()
        result = attempt.read(await coordinator.request(OffsetCommitResponse, attempt.request()))
        if result.no_member is not None:
            raise self._refused(result.no_member, identity)
        if result.group_gone:
            raise commit_failed("group_gone", coordinator.group_id, "the coordinator does not know the group")
        if result.stale_epoch:
            why = f"member epoch {identity.generation_id} is not the newest (STALE_MEMBER_EPOCH)"
            raise commit_failed("stale_epoch", coordinator.group_id, why)
        follow_up(coordinator, result)
        if not result.left:
            self._metrics.committed(sent)
        return result

    async def _connect(self, before_send: BeforeSend) -> None:
        """Connect, await `before_send`, and require that the connection is still there. Raises KclientError.

        Without a connection the request would wait for one, and a later commit could overtake it.
        """
        await self._coordinator.connect()
        await before_send()
        self._coordinator.require_connection()

    async def _check_partitions(self, unknown: Iterable[TopicPartition]) -> None:
        """Raise UnknownTopicError for a partition that its topic does not have: no retry would store its offset.

        `unknown` are the partitions that the coordinator did not know in two attempts. The commit for a topic that is
        unknown itself is retried: the topic may be about to be created.
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
        """Request the partition counts of topics from a broker; topics that do not exist are left out."""
        names = sorted(topics)
        if not names:
            return {}
        try:
            response = await self._coordinator.cluster.describe_topics(
                names, allow_auto_create=False, timeout=self._config.request_timeout_ms / 1000
            )
        except KclientError as exc:
            logger.debug("the partitions of %s are not known: %s", format_names(names), exc)
            return {}
        found = (one for one in response.topics if one.partitions and not one.error_code)
        return {one.name: len(one.partitions) for one in found if one.name}

    def _identity_since(self, origin: CommitOrigin, offsets: Offsets) -> Identity:
        """Return the current identity. Raises CommitFailedError if the member may no longer commit these offsets.

        In a newer generation another member may own the partitions, and may have committed larger offsets. In a newer
        member epoch this member still owns them, unless they were revoked meanwhile.
        """
        identity = self._identity()
        if identity == origin.identity:
            return identity
        revoked = any(tp in origin.assigned and not self._is_assigned(tp) for tp in offsets)
        if revoked or not identity.continues(origin.identity):
            group_id = self._coordinator.group_id
            raise commit_failed("rebalancing", group_id, "the group has rebalanced since commit() was called")
        return identity

    def _not_retried(self, why: str, pending: PendingCommit) -> CommitFailedError:
        return commit_failed("retriable", self._coordinator.group_id, why, pending.uncommitted)

    def _topic_replaced(self, pending: PendingCommit) -> CommitFailedError:
        partitions = ", ".join(map(str, pending.replaced))
        why = f"{partitions} belonged to a topic that was deleted and created again"
        return commit_failed("topic_replaced", self._coordinator.group_id, why, pending.replaced)

    def _refused_without_membership(self, code: int, identity: Identity) -> KclientError:
        """Return the error for a refused commit of a consumer that is not a member of the group."""
        known = error_code(code)
        why = f"the coordinator answered {known.name} ({code})"
        return commit_failed("occupied", self._coordinator.group_id, why)


def _require_not_negative(offsets: Offsets) -> None:
    """Raise ArgumentError for a negative offset."""
    for partition, offset in offsets.items():
        if offset.offset < 0:
            raise ArgumentError(
                f"The offset {offset.offset} to commit for {partition} is negative. "
                "An offset counts from 0. Commit the offset of the next record to consume."
            )
