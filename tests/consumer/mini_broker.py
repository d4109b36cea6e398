"""A small broker for one group of one member at a time: logs, committed offsets, joins. Built on the scripted broker.

`logs` holds each partition's records, `committed` the group's offsets. A heartbeat answers `heartbeat_errors` one by
one, then 0; `commit_error` and `fetch_errors` are answered until they are taken back. Joining takes no time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kclient.generated import fetch_response as fetched
from kclient.generated import list_offsets_response as listed
from kclient.generated import offset_commit_response as stored
from kclient.generated import offset_fetch_response as read
from kclient.generated import offset_for_leader_epoch_response as epochs
from kclient.generated.find_coordinator_response import FindCoordinatorResponse
from kclient.generated.heartbeat_response import HeartbeatResponse
from kclient.generated.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from kclient.generated.leave_group_response import LeaveGroupResponse
from kclient.generated.sync_group_response import SyncGroupResponse
from kclient.records.writer import NewRecord, build_batch
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.scripted_broker import On, ScriptedBroker, Seen

MEMBER_ID_REQUIRED = 79
VERSIONS = {
    "FindCoordinatorRequest": (0, 3),
    "OffsetFetchRequest": (1, 7),
    "OffsetCommitRequest": (2, 8),
    "FetchRequest": (4, 12),
}
FAST = {
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 40,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 40,
    "heartbeat_interval_ms": 20,
}


class MiniBroker(ScriptedBroker):
    """See the module. Steps of a script come before its default responses."""

    def __init__(self, *script: On, topics: dict[str, int]) -> None:
        super().__init__(*script, topics=topics, versions=VERSIONS)
        self.logs: dict[TopicPartition, list[bytes | None]] = {}
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.commits: list[dict[TopicPartition, int]] = []
        self.generation = 0
        self.heartbeat_errors: list[int] = []
        self.commit_error = 0
        self.fetch_errors: dict[TopicPartition, int] = {}
        for name in ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetFetch"):
            self.default_responses[f"{name}Request"] = getattr(self, name)
        for name in ("OffsetCommit", "ListOffsets", "Fetch", "OffsetForLeaderEpoch"):
            self.default_responses[f"{name}Request"] = getattr(self, name)

    def fill(self, topic: str, partition: int, *values: bytes | None) -> None:
        self.logs.setdefault(TopicPartition(topic, partition), []).extend(values)

    def _take(self, seen: Seen) -> On:
        step = super()._take(seen)
        if step.answer == self.Fetch and not self._has_data(seen.message):
            return step._replace(delay=0.02)
        return step

    def _has_data(self, request: Any) -> bool:
        return any(
            partition.fetch_offset < len(self.logs.get(TopicPartition(topic.topic, partition.partition), ()))
            for topic in request.topics
            for partition in topic.partitions
        )

    # --- the group

    def FindCoordinator(self, request: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(node_id=self.node_id, host=self.host, port=self.port)

    def JoinGroup(self, request: Any) -> JoinGroupResponse:
        if not request.member_id:
            return JoinGroupResponse(error_code=MEMBER_ID_REQUIRED, member_id=f"m-{len(self.requests)}")
        self.generation += 1
        chosen = request.protocols[0]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=chosen.name,
            leader=request.member_id,
            member_id=request.member_id,
            members=[JoinGroupResponseMember(member_id=request.member_id, metadata=chosen.metadata)],
        )

    def SyncGroup(self, request: Any) -> SyncGroupResponse:
        (own,) = request.assignments
        return SyncGroupResponse(
            protocol_type="consumer", protocol_name=request.protocol_name, assignment=own.assignment
        )

    def Heartbeat(self, request: Any) -> HeartbeatResponse:
        return HeartbeatResponse(error_code=self.heartbeat_errors.pop(0) if self.heartbeat_errors else 0)

    def LeaveGroup(self, request: Any) -> LeaveGroupResponse:
        return LeaveGroupResponse()

    def OffsetCommit(self, request: Any) -> stored.OffsetCommitResponse:
        response = stored.OffsetCommitResponse()
        offsets = {}
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if not self.commit_error:
                    offsets[tp] = partition.committed_offset
                    epoch = partition.committed_leader_epoch
                    self.committed[tp] = OffsetAndMetadata(
                        partition.committed_offset,
                        None if epoch < 0 else epoch,
                        partition.committed_metadata or "",
                    )
                partitions.append(
                    stored.OffsetCommitResponsePartition(
                        partition_index=tp.partition, error_code=self.commit_error
                    )
                )
            response.topics.append(stored.OffsetCommitResponseTopic(name=topic.name, partitions=partitions))
        self.commits.append(offsets)
        return response

    def OffsetFetch(self, request: Any) -> read.OffsetFetchResponse:
        response = read.OffsetFetchResponse()
        for topic in request.topics:
            partitions = []
            for number in topic.partition_indexes:
                known = self.committed.get(TopicPartition(topic.name, number), OffsetAndMetadata(-1))
                partitions.append(
                    read.OffsetFetchResponsePartition(
                        partition_index=number,
                        committed_offset=known.offset,
                        committed_leader_epoch=-1 if known.leader_epoch is None else known.leader_epoch,
                        metadata=known.metadata,
                    )
                )
            response.topics.append(read.OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
        return response

    # --- the logs

    def ListOffsets(self, request: Any) -> listed.ListOffsetsResponse:
        response = listed.ListOffsetsResponse()
        for topic in request.topics:
            partitions = []
            for partition in topic.partitions:
                end = len(self.logs.get(TopicPartition(topic.name, partition.partition_index), ()))
                offset = {-1: end, -2: 0}.get(partition.timestamp, partition.timestamp)
                found = offset <= end if partition.timestamp < 0 else offset < end
                partitions.append(
                    listed.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index,
                        offset=offset if found else -1,
                        timestamp=partition.timestamp,
                        leader_epoch=self.leader_epoch,
                    )
                )
            response.topics.append(listed.ListOffsetsTopicResponse(name=topic.name, partitions=partitions))
        return response

    def OffsetForLeaderEpoch(self, request: Any) -> epochs.OffsetForLeaderEpochResponse:
        response = epochs.OffsetForLeaderEpochResponse()
        for topic in request.topics:
            partitions = [
                epochs.EpochEndOffset(
                    partition=partition.partition,
                    leader_epoch=self.leader_epoch,
                    end_offset=len(self.logs.get(TopicPartition(topic.topic, partition.partition), ())),
                )
                for partition in topic.partitions
            ]
            response.topics.append(
                epochs.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)
            )
        return response

    def Fetch(self, request: Any) -> fetched.FetchResponse:
        response = fetched.FetchResponse()
        for topic in request.topics:
            partitions = [self._fetched(topic.topic, partition) for partition in topic.partitions]
            response.responses.append(
                fetched.FetchableTopicResponse(topic=topic.topic, partitions=partitions)
            )
        return response

    def _fetched(self, topic: str, partition: Any) -> fetched.PartitionData:
        tp = TopicPartition(topic, partition.partition)
        log, start = self.logs.get(tp, []), partition.fetch_offset
        records = b""
        if start < len(log) and tp not in self.fetch_errors:
            new = [NewRecord(value=value, timestamp=start + index) for index, value in enumerate(log[start:])]
            records = build_batch(new, base_offset=start, partition_leader_epoch=self.leader_epoch)
        return fetched.PartitionData(
            partition_index=tp.partition,
            error_code=self.fetch_errors.get(tp, 0),
            high_watermark=len(log),
            last_stable_offset=len(log),
            log_start_offset=0,
            records=records,
        )


@contextmanager
def in_a_thread(broker: MiniBroker) -> Iterator[MiniBroker]:
    """Run a broker on a loop of its own, for tests of the sync facade."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="broker")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(broker.__aenter__(), loop).result(10)
        yield broker
        asyncio.run_coroutine_threadsafe(broker.__aexit__(None, None, None), loop).result(10)
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def _end_tasks() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
