"""Everything that a group has committed: OffsetFetch without topics, which only the coordinator can list.

Offsets of topics that the caller may not see are left out by the broker. Offsets under an open transaction are those
from before it: looking must not wait for what others do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kclient.config import Config
from kclient.generated.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kclient.generated.offset_fetch_response import OffsetFetchResponse
from kclient.group.asking import ask_coordinator
from kclient.group.coordinator import Coordinator
from kclient.group.form import Form
from kclient.group.offset_fetch import PartitionAnswer, committed_offset
from kclient.network.errors import broker_error
from kclient.protocol import errors as codes
from kclient.runtime import Runtime
from kclient.types import OffsetAndMetadata, TopicPartition

ALL_TOPICS_SINCE: Final = 2
GROUPS_SINCE: Final = 8
NAMES_UNTIL: Final = 9  # from version 10 on topics come as ids, which nobody here knows the names of


async def all_offsets(
    coordinator: Coordinator, config: Config, runtime: Runtime
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Every partition with a commit of the group; none for a group that is not known. The caller bounds it.

    Raises GroupAuthorizationError, BrokerError, VersionError for brokers before 0.10.2.
    """
    group_id = coordinator.group_id
    group = OffsetFetchRequestGroup(group_id=group_id, topics=None)
    answer = await ask_coordinator(
        coordinator,
        OffsetFetchResponse,
        Form(OffsetFetchRequest(groups=[group]), GROUPS_SINCE, NAMES_UNTIL),
        Form(OffsetFetchRequest(group_id=group_id, topics=None), ALL_TOPICS_SINCE, GROUPS_SINCE - 1),
        code_of=_code,
        config=config,
        runtime=runtime,
    )
    _require_none(_code(answer), group_id)
    found = {}
    for partition, entry in _entries(answer):
        _require_none(entry.error_code, group_id)
        if (offset := committed_offset(entry)) is not None:
            found[partition] = offset
    return found


def _require_none(code: int, group_id: str) -> None:
    if code not in (codes.NONE, codes.GROUP_ID_NOT_FOUND):
        raise broker_error(code, f"Reading all committed offsets of group {group_id}", group=group_id)


def _code(answer: OffsetFetchResponse) -> int:
    return answer.groups[0].error_code if answer.groups else answer.error_code


def _entries(answer: OffsetFetchResponse) -> Iterator[tuple[TopicPartition, PartitionAnswer]]:
    for old in answer.topics:
        for entry in old.partitions:
            yield TopicPartition(old.name, entry.partition_index), entry
    for group in answer.groups:
        for topic in group.topics:
            for each in topic.partitions:
                yield TopicPartition(topic.name, each.partition_index), each
