"""One OffsetFetch: what is asked, and what each answer means.

    level      code                    meaning
    group      15, 16                  again, at another coordinator
    group      14, other retriable     again
    group      113                     again, under the newest epoch of a member that has one; else refused
    group      anything else           refused
    partition  0, offset ≥ 0           the committed offset; 0 is one
    partition  0, offset < 0           nothing is committed
    partition  88                      again: a transaction has not finished
    partition  100, or no answer       again
    partition  3                       the topic does not exist
    partition  29                      not authorized for the topic; all of them are named
    partition  anything else           refused

Only an answer says "nothing is committed"; a failure or a gap never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

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
from kclient.group.again import why_again
from kclient.group.coordinator import MOVED
from kclient.group.form import Form
from kclient.group.generation import Identity
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.types import OffsetAndMetadata, TopicPartition

GROUPS_SINCE: Final = 8
STABLE_SINCE: Final = 7
TOPIC_IDS_SINCE: Final = 10
IN_KAFKA_SINCE: Final = 1
IN_ZOOKEEPER: Final = (
    "Committed offsets cannot be read from Kafka: version 0 of OffsetFetch, from before Kafka 0.8.2, reads them from "
    "ZooKeeper, where no group keeps any, and kclient does not use it."
)

Committed = dict[TopicPartition, OffsetAndMetadata | None]
PartitionAnswer = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


@attrs.define
class FetchAnswer:
    """What is known now. `left` must be asked for again, unless `error` ends it; `again` are the codes that say so."""

    found: Committed
    left: list[TopicPartition]
    again: dict[TopicPartition, int] = attrs.field(factory=dict)
    coordinator_moved: int | None = None  # the code that said so
    stale_topics: bool = False
    stale_epoch: bool = False
    error: KclientError | None = None

    @property
    def why_left(self) -> str:
        """The codes that came, and the partitions that each came for."""
        return why_again(self.again, self.left)


@attrs.frozen
class FetchQuestion:
    """Which committed offsets are asked for; `topic_ids` is None unless the ids of all topics are known.

    `identity` is told where a version can, for one whose epoch moves on.
    """

    group_id: str
    partitions: Sequence[TopicPartition]
    topic_ids: Mapping[str, bytes] | None
    identity: Identity = attrs.field(factory=Identity)

    def forms(self, *, only_stable: bool = False) -> tuple[Form, ...]:
        """The request, newest form first; offsets under an open transaction are waited for where a version can.

        `only_stable` leaves out the versions that cannot.
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
            Form(OffsetFetchRequest(groups=[group], require_stable=True), GROUPS_SINCE, newest),
            Form(
                OffsetFetchRequest(group_id=self.group_id, topics=old, require_stable=True),
                STABLE_SINCE,
                GROUPS_SINCE - 1,
            ),
        )
        unstable = Form(
            OffsetFetchRequest(group_id=self.group_id, topics=old),
            IN_KAFKA_SINCE,
            STABLE_SINCE - 1,
            IN_ZOOKEEPER,
        )
        return stable if only_stable else (*stable, unstable)

    def read(self, response: OffsetFetchResponse) -> FetchAnswer:
        """Judge the answer: the group's code first, then the partitions."""
        answer = FetchAnswer(found={}, left=list(self.partitions))
        code = self._group_code(response)
        if code != codes.NONE:
            self._refuse_group(answer, code)
            return answer
        unauthorized: list[str] = []
        for partition, entry in self._entries(response):
            if entry.error_code == codes.NONE:
                answer.found[partition] = committed_offset(entry)
            elif entry.error_code == codes.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic)
            elif entry.error_code == codes.UNSTABLE_OFFSET_COMMIT:
                answer.again[partition] = entry.error_code
            elif entry.error_code in self._not_known_yet:
                answer.again[partition] = entry.error_code
                answer.stale_topics = True
            else:
                answer.error = self._refused(partition, entry.error_code)
                return answer
        answer.left = [partition for partition in self.partitions if partition not in answer.found]
        if unauthorized:
            answer.error = broker_error(
                codes.TOPIC_AUTHORIZATION_FAILED, self._doing, topics=dict.fromkeys(unauthorized)
            )
        return answer

    def stale(self) -> KclientError:
        """The error for who is a member no more, and was told that the epoch is stale."""
        return broker_error(codes.STALE_MEMBER_EPOCH, self._doing, group=self.group_id)

    @property
    def _doing(self) -> str:
        return f"Reading committed offsets of group {self.group_id}"

    @property
    def _not_known_yet(self) -> tuple[int, ...]:
        """The codes for a topic that we knew sooner. In a classic group 3 means that there is none."""
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

    def _refuse_group(self, answer: FetchAnswer, code: int) -> None:
        answer.again = dict.fromkeys(self.partitions, code)
        if code in MOVED:
            answer.coordinator_moved = code
        elif code == codes.STALE_MEMBER_EPOCH and self.identity.by_epoch:
            answer.stale_epoch = True
        elif not codes.error(code).retriable:
            answer.error = broker_error(code, self._doing, group=self.group_id)

    def _entries(self, response: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, PartitionAnswer]]:
        """The answer for every partition that was asked for, in either form."""
        names = {topic_id: name for name, topic_id in (self.topic_ids or {}).items()}
        wanted = dict.fromkeys(self.partitions)
        for old in response.topics:
            for entry in old.partitions:
                if (partition := TopicPartition(old.name, entry.partition_index)) in wanted:
                    yield partition, entry
        for group in response.groups:
            for topic in group.topics if group.group_id == self.group_id else ():
                name = names.get(topic.topic_id, topic.name)
                for each in topic.partitions:
                    if (partition := TopicPartition(name, each.partition_index)) in wanted:
                        yield partition, each

    def _refused(self, partition: TopicPartition, code: int) -> KclientError:
        if code == codes.UNKNOWN_TOPIC_OR_PARTITION:
            return UnknownTopicError(
                f"{self._doing}: topic or partition {partition} does not exist. It was deleted, or its name is wrong. "
                "Compare the subscription or the assignment with the topics of the cluster.",
                topic=partition.topic,
            )
        # What passes without our help a coordinator says of the whole group.
        return broker_error(code, f"{self._doing} for {partition}", group=self.group_id, retriable=False)


def committed_offset(entry: PartitionAnswer) -> OffsetAndMetadata | None:
    """What is committed, None where nothing is."""
    if entry.committed_offset < 0:
        return None
    epoch = None if entry.committed_leader_epoch < 0 else entry.committed_leader_epoch
    return OffsetAndMetadata(entry.committed_offset, epoch, entry.metadata or "")
