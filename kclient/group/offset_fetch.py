"""OffsetFetch: reading the committed offsets of a group.

    level      code                    action
    group      15, 16                  retry at the new coordinator
    group      14, other retriable     retry
    group      113                     retry with the newest epoch, for a member that has one; else raise
    group      anything else           raise
    partition  0, offset ≥ 0           return the committed offset, also if it is 0
    partition  0, offset < 0           nothing is committed
    partition  88                      retry: a transaction has not completed (KIP-447)
    partition  100, or no response     retry
    partition  3                       raise: the topic does not exist
    partition  29                      raise, with all topics that the client is not authorized for
    partition  anything else           raise

Only a response means "nothing is committed"; a failure or a missing partition never does.

`CommittedOffsets.fetch` retries with a backoff until every partition is answered; the caller sets the timeout. A member
with an epoch (KIP-848) sends its newest one; after STALE_MEMBER_EPOCH it waits for the next.

`all_offsets` reads everything that a group has committed: OffsetFetch without topics. The broker leaves out topics that
the client is not authorized for. It returns the offsets from before an open transaction, so that a reader of another
group does not wait for that transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import attrs

from kclient.config import Config
from kclient.errors import KclientError, UnknownTopicError
from kclient.generated.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kclient.generated.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from kclient.group.coordinator import COORDINATOR_MOVED, Coordinator, VersionedRequest, request_until_answered
from kclient.group.membership import Identity
from kclient.group.offset_commit import OffsetResult, OnRetry, follow_up, ids_by_name, ignore_retry
from kclient.log import get_logger
from kclient.network.backoff import Backoff
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

logger: Final = get_logger("kclient.commit")

GROUPS_SINCE: Final = 8  # Kafka 3.0: a list of groups
STABLE_SINCE: Final = 7  # Kafka 2.5, KIP-447: require_stable
TOPIC_IDS_SINCE: Final = 10  # Kafka 4.1, KIP-848: topic ids instead of names
IN_KAFKA_SINCE: Final = 1
IN_ZOOKEEPER: Final = (
    "Committed offsets cannot be read from Kafka: version 0 of OffsetFetch, from before Kafka 0.8.2, reads them from "
    "ZooKeeper, where no group keeps any, and kclient does not use it."
)

Committed = dict[TopicPartition, OffsetAndMetadata | None]
FetchedPartition = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


@attrs.define(kw_only=True)
class OffsetFetchResult(OffsetResult):
    """`left` must be requested again, unless `error` is set."""

    found: Committed
    left: list[TopicPartition]


@attrs.frozen
class OffsetFetchAttempt:
    """One request for committed offsets; `topic_ids` is None unless the ids of all topics are known.

    The request carries `identity` if it has an epoch and the version has the field.
    """

    group_id: str
    partitions: Sequence[TopicPartition]
    topic_ids: Mapping[str, bytes] | None
    identity: Identity = attrs.field(factory=Identity)

    def requests(self, *, only_stable: bool = False) -> tuple[VersionedRequest, ...]:
        """Return the request, newest version first, with `require_stable` in the versions that have it.

        `only_stable` leaves out the others.
        """
        topics: dict[str, list[int]] = {}
        for partition in self.partitions:
            topics.setdefault(partition.topic, []).append(partition.partition)
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=p) for name, p in topics.items()]
        group = OffsetFetchRequestGroup(
            group_id=self.group_id,
            topics=[self._topic(name, numbers) for name, numbers in topics.items()],
        )
        if self.identity.by_epoch:
            group.member_id, group.member_epoch = self.identity.member_id, self.identity.generation_id
        newest = TOPIC_IDS_SINCE if self.topic_ids is not None else TOPIC_IDS_SINCE - 1
        stable = (
            VersionedRequest(OffsetFetchRequest(groups=[group], require_stable=True), GROUPS_SINCE, newest),
            VersionedRequest(
                OffsetFetchRequest(group_id=self.group_id, topics=old, require_stable=True),
                STABLE_SINCE,
                GROUPS_SINCE - 1,
            ),
        )
        unstable = VersionedRequest(
            OffsetFetchRequest(group_id=self.group_id, topics=old),
            IN_KAFKA_SINCE,
            STABLE_SINCE - 1,
            IN_ZOOKEEPER,
        )
        return stable if only_stable else (*stable, unstable)

    def read(self, response: OffsetFetchResponse) -> OffsetFetchResult:
        """Decode the response: the group's error code first, then the partitions."""
        result = OffsetFetchResult(found={}, left=list(self.partitions))
        code = self._group_code(response)
        if code != codes.NONE:
            self._refuse_group(result, code)
            return result
        unauthorized: list[str] = []
        for partition, entry in self._entries(response):
            if entry.error_code == codes.NONE:
                result.found[partition] = committed_offset(entry)
            elif entry.error_code == codes.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic)
            elif entry.error_code == codes.UNSTABLE_OFFSET_COMMIT:
                result.again[partition] = entry.error_code
            elif entry.error_code in self._not_known_yet:
                result.again[partition] = entry.error_code
                result.stale_topics = True
            else:
                result.error = self._refused(partition, entry.error_code)
                return result
        result.left = [partition for partition in self.partitions if partition not in result.found]
        if unauthorized:
            result.error = broker_error(
                codes.TOPIC_AUTHORIZATION_FAILED, self._doing, topics=dict.fromkeys(unauthorized)
            )
        return result

    def stale(self) -> KclientError:
        """Return the error for STALE_MEMBER_EPOCH after the membership has ended."""
        return broker_error(codes.STALE_MEMBER_EPOCH, self._doing, group=self.group_id)

    @property
    def _doing(self) -> str:
        return f"Reading committed offsets of group {self.group_id}"

    @property
    def _not_known_yet(self) -> tuple[int, ...]:
        """The codes for a topic that the broker does not know yet. In a classic group 3 means "does not exist"."""
        if self.identity.by_epoch:
            return codes.UNKNOWN_TOPIC_ID, codes.UNKNOWN_TOPIC_OR_PARTITION
        return (codes.UNKNOWN_TOPIC_ID,)

    def _topic(self, name: str, numbers: list[int]) -> OffsetFetchRequestTopics:
        topic = OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
        if self.topic_ids is not None:
            topic.topic_id = self.topic_ids[name]
        return topic

    def _group_code(self, response: OffsetFetchResponse) -> int:
        mine = [group for group in response.groups if group.group_id == self.group_id]
        return mine[0].error_code if mine else response.error_code

    def _refuse_group(self, result: OffsetFetchResult, code: int) -> None:
        result.again = dict.fromkeys(self.partitions, code)
        if code in COORDINATOR_MOVED:
            result.coordinator_moved = code
        elif code == codes.STALE_MEMBER_EPOCH and self.identity.by_epoch:
            result.stale_epoch = True
        elif not codes.error(code).retriable:
            result.error = broker_error(code, self._doing, group=self.group_id)

    def _entries(self, response: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, FetchedPartition]]:
        """Yield the response for every requested partition, in either layout."""
        names = {topic_id: name for name, topic_id in (self.topic_ids or {}).items()}
        # Partitions that were not requested are ignored: they must not move a position.
        requested = dict.fromkeys(self.partitions)
        for old in response.topics:
            for entry in old.partitions:
                if (partition := TopicPartition(old.name, entry.partition_index)) in requested:
                    yield partition, entry
        for group in response.groups:
            for topic in group.topics if group.group_id == self.group_id else ():
                name = names.get(topic.topic_id, topic.name)
                for each in topic.partitions:
                    if (partition := TopicPartition(name, each.partition_index)) in requested:
                        yield partition, each

    def _refused(self, partition: TopicPartition, code: int) -> KclientError:
        if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            return UnknownTopicError(
                f"{self._doing}: topic or partition {partition} does not exist. It was deleted, or its name is wrong. "
                "Compare the subscription or the assignment with the topics of the cluster.",
                topic=partition.topic,
            )
        # Temporary errors come at the group level: one at a partition is not retriable.
        return broker_error(code, f"{self._doing} for {partition}", group=self.group_id, retriable=False)


def committed_offset(entry: FetchedPartition) -> OffsetAndMetadata | None:
    """Return the committed offset, None if nothing is committed."""
    if entry.committed_offset < 0:
        return None
    epoch = None if entry.committed_leader_epoch < 0 else entry.committed_leader_epoch
    return OffsetAndMetadata(entry.committed_offset, epoch, entry.metadata or "")


class CommittedOffsets:
    """Reads the committed offsets of one group. `identity` returns the identity for the request."""

    def __init__(
        self,
        coordinator: Coordinator,
        config: Config,
        runtime: Runtime,
        identity: Callable[[], Identity] = Identity,
    ) -> None:
        self._coordinator = coordinator
        self._config = config
        self._runtime = runtime
        self._identity = identity

    async def fetch(
        self, partitions: Sequence[TopicPartition], on_retry: OnRetry = ignore_retry
    ) -> Committed:
        """Return the committed offset of each partition, None if nothing is committed; retry until all are answered.

        `on_retry` is called with the reason of every retry.

        Raises TopicAuthorizationError, GroupAuthorizationError, UnknownTopicError, BrokerError.
        """
        committed: Committed = {}
        left = list(dict.fromkeys(partitions))
        backoff = Backoff.for_retries(self._config, self._runtime)
        while left:
            try:
                result = await self._fetch_once(left)
            except KclientError as exc:
                if not exc.retriable:
                    raise
                why = exc.text
            else:
                # What is answered is kept: only the rest is requested again.
                committed |= result.found
                if not (left := result.left):
                    break
                why = result.why_left
            on_retry(why)
            logger.debug("group %s: committed offsets not read yet: %s", self._coordinator.group_id, why)
            await asyncio.sleep(backoff.next())
        return {partition: committed[partition] for partition in partitions}

    async def _fetch_once(self, partitions: Sequence[TopicPartition]) -> OffsetFetchResult:
        coordinator = self._coordinator
        await coordinator.ensure()
        ids = ids_by_name(coordinator.cluster.metadata, dict.fromkeys(partitions))
        attempt = OffsetFetchAttempt(coordinator.group_id, partitions, ids, self._identity())
        only_stable = self._config.internal_throw_on_fetch_stable_offset_unsupported
        requests = attempt.requests(only_stable=only_stable)
        result = attempt.read(await coordinator.request(OffsetFetchResponse, *requests))
        # The newer epoch comes with a heartbeat, and without a membership there are none.
        if result.stale_epoch and not self._identity().by_epoch:
            result.error = attempt.stale()
        follow_up(coordinator, result)
        return result


ALL_TOPICS_SINCE: Final = 2  # Kafka 0.10.2: null topics mean all
NAMES_UNTIL: Final = 9  # version 10 answers with topic ids, and metadata may not have their names


async def all_offsets(
    coordinator: Coordinator, config: Config, runtime: Runtime
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return all committed offsets of a group, none for an unknown group. The caller sets the timeout.

    Raises GroupAuthorizationError, BrokerError, VersionError for brokers before 0.10.2.
    """
    group_id = coordinator.group_id
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    response = await request_until_answered(
        coordinator,
        OffsetFetchResponse,
        VersionedRequest(OffsetFetchRequest(groups=[group]), GROUPS_SINCE, NAMES_UNTIL),
        VersionedRequest(
            OffsetFetchRequest(group_id=group_id, topics=None), ALL_TOPICS_SINCE, GROUPS_SINCE - 1
        ),
        code_of=_code,
        config=config,
        runtime=runtime,
    )
    _require_none(_code(response), group_id)
    found = {}
    for partition, entry in _entries(response):
        _require_none(entry.error_code, group_id)
        if (offset := committed_offset(entry)) is not None:
            found[partition] = offset
    return found


def _require_none(code: int, group_id: str) -> None:
    if code not in (codes.NONE, codes.GROUP_ID_NOT_FOUND):
        raise broker_error(code, f"Reading all committed offsets of group {group_id}", group=group_id)


def _code(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


def _entries(response: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, FetchedPartition]]:
    for old in response.topics:
        for entry in old.partitions:
            yield TopicPartition(old.name, entry.partition_index), entry
    for group in response.groups:
        for topic in group.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition_index), each
