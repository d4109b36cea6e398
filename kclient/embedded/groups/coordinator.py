"""The group coordinator of a broker: the groups whose partition of `__consumer_offsets` it leads.

Groups and commits are in memory and, as records, in that partition. A new leader of the partition loads them from
there; the old one unloads them, and answers parked requests with NOT_COORDINATOR.

`CoordinatorGroup` is the interface of a group to its coordinator and the APIs, for both protocols: `ClassicGroup`
(classic/) and `ConsumerGroup` (consumer_protocol/) derive from it. Commits and fetches of offsets, listing and deletion
are the same for both except for its checks, which raise `ApiError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

import attrs

from kclient.embedded import topic_config
from kclient.embedded.api_error import ApiError
from kclient.embedded.clock import Timer
from kclient.embedded.groups.offsets import CommittedOffset, GroupOffsets
from kclient.embedded.groups.records import commit_tombstone
from kclient.embedded.log import StoredBatch
from kclient.embedded.partition import OFFSETS_TOPIC, Partition
from kclient.embedded.received_request import ReceivedRequest
from kclient.embedded.releases import Release
from kclient.embedded.replication import append
from kclient.embedded.state import BrokerState
from kclient.group.offsets_topic import offsets_topic_partition
from kclient.protocol.errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_GROUP_ID,
    NOT_COORDINATOR,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TopicPartition

if TYPE_CHECKING:
    from kclient.generated.heartbeat_request import HeartbeatRequest
    from kclient.generated.join_group_request import JoinGroupRequest
    from kclient.generated.join_group_response import JoinGroupResponse
    from kclient.generated.leave_group_request import MemberIdentity
    from kclient.generated.sync_group_request import SyncGroupRequest
    from kclient.generated.sync_group_response import SyncGroupResponse


NEW_COORDINATOR: Final = Release.parse("4.0")  # the rewritten coordinator answers some requests differently
WRITE_SECONDS: Final = 5.0  # offsets.commit.timeout.ms

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"


@attrs.frozen
class Committer:
    """The sender of a commit: member id, instance id, generation or member epoch; "" and −1 for no member."""

    member_id: str
    instance_id: str | None
    generation: int
    api_version: int
    transactional: bool = False


@attrs.define(eq=False)
class CoordinatorGroup(ABC):
    """A group of either protocol."""

    kind: ClassVar[str]

    coordinator: GroupCoordinator
    group_id: str
    offsets: GroupOffsets = attrs.field(factory=GroupOffsets)

    # --- listing and describing

    @property
    @abstractmethod
    def state_name(self) -> str:
        """The state in ListGroups."""

    @property
    @abstractmethod
    def protocol_type(self) -> str | None:
        """ "consumer" and the like; None for a group that only stores offsets."""

    @property
    @abstractmethod
    def empty(self) -> bool:
        """Whether it has no members and may be deleted."""

    # --- checks

    @abstractmethod
    def check_commit(self, committer: Committer, partitions: Sequence[TopicPartition]) -> None:
        """Raise ApiError unless the commit is valid. In a classic group it also counts as a heartbeat."""

    @abstractmethod
    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """Raise ApiError unless this member may fetch committed offsets."""

    @abstractmethod
    def check_offset_delete(self) -> None:
        """Raise ApiError unless single offsets may be deleted."""

    @abstractmethod
    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, which protects its offsets."""

    @abstractmethod
    def retention_begins(self, tp: TopicPartition, commit: CommittedOffset) -> int | None:
        """Return the wall time in ms when the retention of an offset begins; None while it is protected."""

    # --- members of the classic protocol, also in a group of the consumer protocol

    async def classic_join(
        self, context: ReceivedRequest, request: JoinGroupRequest
    ) -> JoinGroupResponse | None:
        """Handle an authorized JoinGroup; return None if a newer request replaced it."""
        raise ApiError(INCONSISTENT_GROUP_PROTOCOL)

    async def classic_sync(
        self, context: ReceivedRequest, request: SyncGroupRequest
    ) -> SyncGroupResponse | None:
        """Handle an authorized SyncGroup; return None as above."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_heartbeat(self, context: ReceivedRequest, request: HeartbeatRequest) -> int:
        """Return the error code for a Heartbeat."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    def classic_leave(self, context: ReceivedRequest, who: MemberIdentity) -> int:
        """Remove a member of a LeaveGroup request; return its error code. Raise ApiError for the whole group."""
        raise ApiError(UNKNOWN_MEMBER_ID)

    # --- life

    @abstractmethod
    def begin(self) -> None:
        """Start the timers of a group that was loaded."""

    @abstractmethod
    def end(self, code: int) -> None:
        """Stop all timers and answer parked requests with the code: this broker no longer has the group."""

    @abstractmethod
    def tombstones(self) -> list[NewRecord]:
        """Return the tombstones of its records, offsets excepted."""


@attrs.define(eq=False)
class _Wait:
    """A partition that is loading: the error code until then, and the timer that ends it."""

    code: int
    timer: Timer


LoadGroups = Callable[["GroupCoordinator", Partition], Mapping[str, CoordinatorGroup]]


class GroupCoordinator:
    """The groups of one broker. Its methods raise `ApiError` for a group that it does not coordinate.

    `load` returns the groups of a partition that the broker begins to lead.
    """

    def __init__(self, broker: BrokerState, load: LoadGroups) -> None:
        self.broker = broker
        self._load_groups = load
        self.groups: dict[str, CoordinatorGroup] = {}
        self._led: set[int] = set()
        self._waiting: dict[int, _Wait] = {}
        self._schedule_expiration()

    # --- lookup

    def partition_of(self, group_id: str) -> int:
        """Return the number of the partition that holds a group."""
        return offsets_topic_partition(group_id, self.broker.state.settings.offsets_topic_num_partitions)

    def check(self, group_id: str, *, nameless: bool = False) -> Partition:
        """Return the partition that holds a group. Raise ApiError unless this broker leads and has loaded it.

        `nameless` allows the group "": offsets may be committed to it.
        """
        if not group_id and not nameless:
            raise ApiError(INVALID_GROUP_ID)
        number = self.partition_of(group_id)
        partition = self.broker.state.partition(TopicPartition(OFFSETS_TOPIC, number))
        if partition is None or number not in self._led:
            raise ApiError(NOT_COORDINATOR)
        if number in self._waiting:
            raise ApiError(self._waiting[number].code)
        return partition

    def find(self, group_id: str, *, nameless: bool = False) -> CoordinatorGroup | None:
        """Return a group of this broker, or None. Raise ApiError as `check` does."""
        self.check(group_id, nameless=nameless)
        return self.groups.get(group_id)

    @property
    def loading(self) -> bool:
        """Whether any partition is loading."""
        return any(wait.code == COORDINATOR_LOAD_IN_PROGRESS for wait in self._waiting.values())

    # --- writing

    def write(
        self,
        group_id: str,
        records: Sequence[NewRecord],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        too_large: int = UNKNOWN_SERVER_ERROR,
    ) -> StoredBatch:
        """Append records to the group's partition; with a producer they belong to its transaction.

        Raise ApiError with the code that a coordinator makes of a failed append; `too_large` is that for a batch
        that the topic does not take.
        """
        partition, state = self.check(group_id, nameless=True), self.broker.state
        config, settings = partition.topic.config, state.settings
        if len(partition.isr) < topic_config.number("min.insync.replicas", config, settings):
            raise ApiError(COORDINATOR_NOT_AVAILABLE)
        data = build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer_id >= 0,
        )
        if len(data) > topic_config.number("max.message.bytes", config, settings):
            raise ApiError(too_large)
        return append(state, partition, data)

    async def replicated(self, group_id: str, stored: StoredBatch) -> None:
        """Wait until a written batch is on all in-sync replicas.

        Raise ApiError when that takes too long or the leadership was lost.
        """
        partition, clock = self.check(group_id, nameless=True), self.broker.state.clock
        if partition.high_watermark > stored.last_offset:
            return
        epoch, deadline = partition.leader_epoch, clock.now() + WRITE_SECONDS
        timer = self.broker.call_later(WRITE_SECONDS, partition.changed.notify)
        try:
            while partition.high_watermark <= stored.last_offset:
                if clock.now() >= deadline:
                    raise ApiError(COORDINATOR_NOT_AVAILABLE)
                await partition.changed.wait(partition.changed.count)
                if partition.leader_epoch != epoch:
                    raise ApiError(NOT_COORDINATOR)
        finally:
            timer.cancel()

    def forget(self, group: CoordinatorGroup) -> None:
        """Delete a group: write tombstones for its records and its offsets. Raise ApiError."""
        now = self.broker.state.clock.wall_ms()
        offsets = [commit_tombstone(group.group_id, tp, now) for tp in group.offsets.committed]
        if tombstones := [*offsets, *group.tombstones()]:
            self.write(group.group_id, tombstones)
        self.groups.pop(group.group_id, None)
        group.end(NOT_COORDINATOR)

    def delete_offsets(self, group: CoordinatorGroup, partitions: Sequence[TopicPartition]) -> None:
        """Delete committed offsets, with a tombstone for each existing one. Raise ApiError."""
        now = self.broker.state.clock.wall_ms()
        wanted = dict.fromkeys(partitions, -1)
        known = [tp for tp in group.offsets.known() if tp in wanted]
        if known:
            tombstones = [commit_tombstone(group.group_id, tp, now) for tp in known]
            stored = self.write(group.group_id, tombstones)
            wanted.update((tp, at) for at, tp in enumerate(known, stored.base_offset))
        for tp, at in wanted.items():
            group.offsets.remove(tp, at)

    # --- leadership

    def leader_changed(self, partition: Partition) -> None:
        """Load a partition that this broker leads now; unload one that it no longer leads."""
        if partition.topic.name != OFFSETS_TOPIC:
            return
        number = partition.number
        if partition.leader != self.broker.node_id:
            self._resign(number)
        elif number not in self._led:
            self._led.add(number)
            self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        state = self.broker.state
        fresh = partition.leader_epoch == 0
        seconds = state.coordinator_start_seconds if fresh else state.coordinator_load_seconds
        if seconds <= 0:
            self._load(partition)
            return
        timer = self.broker.call_later(seconds, lambda: self._load(partition))
        code = NOT_COORDINATOR if fresh else COORDINATOR_LOAD_IN_PROGRESS
        self._waiting[partition.number] = _Wait(code, timer)

    def _load(self, partition: Partition) -> None:
        self._waiting.pop(partition.number, None)
        groups = self._load_groups(self, partition)
        self.groups.update(groups)
        for group in groups.values():
            group.begin()

    def _resign(self, number: int) -> None:
        self._led.discard(number)
        if (wait := self._waiting.pop(number, None)) is not None:
            wait.timer.cancel()
        for group in [group for group in self.groups.values() if self.partition_of(group.group_id) == number]:
            del self.groups[group.group_id]
            group.end(NOT_COORDINATOR)

    # --- events of other partitions

    def complete(self, number: int, producer_id: int, committed: bool) -> None:
        """Make the producer's pending offsets visible, or drop them: its marker is in partition `number`."""
        for group in self.groups.values():
            if self.partition_of(group.group_id) == number:
                visible = group.offsets.complete(producer_id, committed)
                offsets = {tp: commit.plain() for tp, commit in visible.items()}
                for observer in self.broker.state.observers if offsets else ():
                    observer.committed(group.group_id, "", -1, offsets)

    def topic_deleted(self, name: str) -> None:
        """Delete the offsets of a deleted topic."""
        for group in self.groups.values():
            with suppress(
                ApiError
            ):  # too few replicas to write tombstones: the offsets stay, as on a real broker
                self.delete_offsets(group, [tp for tp in group.offsets.known() if tp.topic == name])

    # --- retention of offsets

    def _schedule_expiration(self) -> None:
        interval_ms = self.broker.state.settings.offsets_retention_check_interval_ms
        self.broker.call_later(interval_ms / 1000, self._expire_offsets_and_reschedule)

    def _expire_offsets_and_reschedule(self) -> None:
        with suppress(ApiError):  # too few replicas to write tombstones: retried after the next interval
            self._expire_offsets()
        self._schedule_expiration()

    def _expire_offsets(self) -> None:
        """Remove expired offsets, and groups that have neither members nor offsets.

        Raise ApiError if the tombstones cannot be written.
        """
        state = self.broker.state
        now, retention_ms = state.clock.wall_ms(), state.settings.offsets_retention_minutes * 60_000
        for group in list(self.groups.values()):
            expired = group.offsets.expired(group.retention_begins, now, retention_ms)
            self.delete_offsets(group, expired)
            if group.empty and not group.offsets:
                self.forget(group)
