"""What storing offsets and reading them share: topic ids for the question, and what an answer asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kclient.group.coordinator import Coordinator
from kclient.group.offset_commit import CommitAnswer
from kclient.group.offset_fetch import FetchAnswer
from kclient.network.metadata import MetadataCache
from kclient.protocol.errors import error as error_code
from kclient.types import TopicPartition

TopicIds = Mapping[TopicPartition, bytes | None]
Tell = Callable[[str], None]


def unheard(why: str) -> None:
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


def follow_up(coordinator: Coordinator, answer: CommitAnswer | FetchAnswer) -> None:
    """What an answer asks for beyond trying again. Raises its error."""
    if answer.coordinator_moved is not None:
        code = error_code(answer.coordinator_moved)
        coordinator.mark_unknown(f"it answered {code.name} ({code.code})")
    if answer.stale_topics:
        coordinator.cluster.request_update("the coordinator does not know a topic", reset_backoff=False)
    if answer.error is not None:
        raise answer.error
