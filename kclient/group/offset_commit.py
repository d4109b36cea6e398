"""One OffsetCommit: what is asked, and what each answer means.

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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from kclient.errors import KclientError
from kclient.generated.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.generated.offset_commit_response import OffsetCommitResponse
from kclient.group.again import why_again
from kclient.group.form import Form
from kclient.group.generation import EPOCHS_SINCE, Identity, lowest_version
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.protocol.primitives import ZERO_UUID
from kclient.types import OffsetAndMetadata, TopicPartition

TOPIC_IDS_SINCE: Final = 10
IN_KAFKA_SINCE: Final = 1
IN_ZOOKEEPER: Final = (
    "Offsets cannot be stored in Kafka: version 0 of OffsetCommit, from before Kafka 0.8.2, kept them in ZooKeeper, "
    "where no group finds them, and kclient does not use it."
)

AGAIN: Final = (
    codes.UNKNOWN_TOPIC_OR_PARTITION,
    codes.COORDINATOR_LOAD_IN_PROGRESS,
    codes.UNKNOWN_TOPIC_ID,
)
ELSEWHERE: Final = (
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
class CommitAnswer:
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
        return why_again(self.again, self.left)

    @property
    def unknown(self) -> frozenset[TopicPartition]:
        """The partitions that the coordinator says do not exist."""
        return frozenset(tp for tp, code in self.again.items() if code == codes.UNKNOWN_TOPIC_OR_PARTITION)


@attrs.frozen
class CommitQuestion:
    """Offsets to store under one identity; `topic_ids` is None unless the ids of all topics are known."""

    group_id: str
    identity: Identity
    offsets: Mapping[TopicPartition, OffsetAndMetadata]
    topic_ids: Mapping[str, bytes] | None

    def form(self) -> Form:
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
        return Form(
            request,
            lowest=self._lowest(),
            highest=TOPIC_IDS_SINCE if self.topic_ids is not None else TOPIC_IDS_SINCE - 1,
            missing=IN_ZOOKEEPER if self._lowest() == IN_KAFKA_SINCE else "",
        )

    def read(self, response: OffsetCommitResponse) -> CommitAnswer:
        """Judge the answer, partition by partition in its order; what it leaves out was not stored."""
        answer = CommitAnswer(left=dict(self.offsets))
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

    def _again(self, answer: CommitAnswer, partition: TopicPartition, code: int) -> bool:
        """Whether the partition may be tried again; notes what must happen before."""
        if code in ELSEWHERE:
            answer.coordinator_moved = code
        elif code in AGAIN:
            answer.stale_topics |= code != codes.COORDINATOR_LOAD_IN_PROGRESS
        else:
            return False
        answer.again[partition] = code
        return True

    def _refuse(self, answer: CommitAnswer, partition: TopicPartition, code: int) -> None:
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
