"""Which of the topics that were asked about there are, and which of their partitions can be asked for offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from kclient.generated.metadata_response import MetadataResponse, MetadataResponseTopic
from kclient.protocol import errors as codes
from kclient.types import TopicPartition


@attrs.frozen
class TopicState:
    """A topic as a broker describes it; `code` is an error code of the wire, `leaders` say who leads each partition."""

    name: str
    code: int
    leaders: Mapping[int, int]

    @property
    def exists(self) -> bool:
        """Whether there is such a topic, as far as the caller may know."""
        return self.code not in (codes.UNKNOWN_TOPIC_OR_PARTITION, codes.INVALID_TOPIC_EXCEPTION)

    def partitions(self) -> Iterable[TopicPartition]:
        """All of its partitions."""
        return [TopicPartition(self.name, number) for number in self.leaders]

    def problem_of(self, partition: int) -> str | None:
        """Kafka's name of the reason why nobody can be asked for this partition's offsets, None where there is none."""
        code = self.code
        if not code and partition not in self.leaders:
            code = codes.UNKNOWN_TOPIC_OR_PARTITION
        elif not code and self.leaders[partition] < 0:
            code = codes.LEADER_NOT_AVAILABLE
        return codes.error(code).name if code else None


def topic_states(answer: MetadataResponse, names: Iterable[str]) -> dict[str, TopicState]:
    """The topics by these names; one that the answer leaves out does not exist."""
    told = {topic.name: topic for topic in answer.topics}
    return {name: _state(name, told.get(name)) for name in names}


def _state(name: str, topic: MetadataResponseTopic | None) -> TopicState:
    if topic is None:
        return TopicState(name, codes.UNKNOWN_TOPIC_OR_PARTITION, {})
    return TopicState(
        name, topic.error_code, {row.partition_index: row.leader_id for row in topic.partitions}
    )
