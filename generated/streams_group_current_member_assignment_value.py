"""StreamsGroupCurrentMemberAssignmentValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/StreamsGroupCurrentMemberAssignmentValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    Add,
    Buffer,
    Codec,
    Malformed,
    compact_length,
    compact_string_length,
    int32_array,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_i4x2_i1: Final = struct.Struct(">iib").pack
unpack_i4x2_i1_u1: Final = struct.Struct(">iibB").unpack_from


@define(weakref_slot=False)
class TaskIds(Struct):
    """Tasks of one subtopology, one per partition.

    Attributes:
        subtopology_id: The subtopology the tasks run.
        partitions: The input partitions, each of which is one task.
        assignment_epochs: In step with Partitions: the member epoch at which each task was assigned; null or
            empty when not kept.
    """

    subtopology_id: str = ""
    partitions: list[int] = Factory(list)
    assignment_epochs: list[int] | None = Factory(list)


@define(weakref_slot=False)
class StreamsGroupCurrentMemberAssignmentValue(Message):
    """How far a streams group member has come on its way to the target assignment.

    Attributes:
        member_epoch: The epoch the member has reached on its way to the group's.
        previous_member_epoch: The epoch before, still accepted once in case the answer that raised it got
            lost.
        state: 0 stable, 1 has tasks yet to revoke, 2 waits for tasks that others have yet to release.
        active_tasks: Tasks that the member processes.
        standby_tasks: Tasks whose state it keeps ready for a takeover.
        warmup_tasks: Tasks whose state it restores in order to take them over later.
        active_tasks_pending_revocation: Active tasks it has been told to give up and has not yet confirmed.
        standby_tasks_pending_revocation: Standby tasks it has been told to give up and has not yet confirmed.
        warmup_tasks_pending_revocation: Warm-up tasks it has been told to give up and has not yet confirmed.
    """

    NAME: ClassVar[str] = "StreamsGroupCurrentMemberAssignmentValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[TaskIds] = Factory(list)
    standby_tasks: list[TaskIds] = Factory(list)
    warmup_tasks: list[TaskIds] = Factory(list)
    active_tasks_pending_revocation: list[TaskIds] = Factory(list)
    standby_tasks_pending_revocation: list[TaskIds] = Factory(list)
    warmup_tasks_pending_revocation: list[TaskIds] = Factory(list)


def read_task_ids_assignment_epochs_tag_v0(data: Buffer, at: int, size: int) -> tuple[list[int] | None, int]:
    value: list[int] | None
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        value = None
    else:
        count -= 1
        if not 0 <= count * 4 <= size - at:
            raise Malformed("assignment_epochs")
        value = list(int32_array[count].unpack_from(data, at))
        at += 4 * count
    return value, at


def write_task_ids_assignment_epochs_tag_v0(value: list[int] | None, add: Add) -> None:
    assignment_epochs = value
    if assignment_epochs is None:
        add(b"\x00")
    else:
        add(compact_length[len(assignment_epochs)])
        add(int32_array[len(assignment_epochs)].pack(*assignment_epochs))


# TaskIds in version 0
def read_task_ids_v0(data: Buffer, at: int, size: int) -> tuple[TaskIds, int]:
    message = new(TaskIds)
    message.assignment_epochs = []
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("subtopology_id")
    message.subtopology_id = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.assignment_epochs = read_whole(read_task_ids_assignment_epochs_tag_v0, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_task_ids_v0(message: TaskIds, add: Add) -> None:
    subtopology_id = message.subtopology_id.encode()
    add(compact_string_length[len(subtopology_id)])
    add(subtopology_id)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    tags: dict[int, bytes] = {}
    if message.assignment_epochs != []:
        tags[0] = written(write_task_ids_assignment_epochs_tag_v0, message.assignment_epochs)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# StreamsGroupCurrentMemberAssignmentValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[StreamsGroupCurrentMemberAssignmentValue, int]:
    message = new(StreamsGroupCurrentMemberAssignmentValue)
    message.unknown_tags = ()
    message.member_epoch, message.previous_member_epoch, message.state, count = unpack_i4x2_i1_u1(data, at)
    at += 10
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("active_tasks")
    active_tasks: list[TaskIds] = []
    for _ in range(count):
        active_task, at = read_task_ids_v0(data, at, size)
        active_tasks.append(active_task)
    message.active_tasks = active_tasks
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("standby_tasks")
    standby_tasks: list[TaskIds] = []
    for _ in range(count):
        standby_task, at = read_task_ids_v0(data, at, size)
        standby_tasks.append(standby_task)
    message.standby_tasks = standby_tasks
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("warmup_tasks")
    warmup_tasks: list[TaskIds] = []
    for _ in range(count):
        warmup_task, at = read_task_ids_v0(data, at, size)
        warmup_tasks.append(warmup_task)
    message.warmup_tasks = warmup_tasks
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("active_tasks_pending_revocation")
    active_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count):
        active_tasks_pending_revocation_item, at = read_task_ids_v0(data, at, size)
        active_tasks_pending_revocation.append(active_tasks_pending_revocation_item)
    message.active_tasks_pending_revocation = active_tasks_pending_revocation
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("standby_tasks_pending_revocation")
    standby_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count):
        standby_tasks_pending_revocation_item, at = read_task_ids_v0(data, at, size)
        standby_tasks_pending_revocation.append(standby_tasks_pending_revocation_item)
    message.standby_tasks_pending_revocation = standby_tasks_pending_revocation
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("warmup_tasks_pending_revocation")
    warmup_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count):
        warmup_tasks_pending_revocation_item, at = read_task_ids_v0(data, at, size)
        warmup_tasks_pending_revocation.append(warmup_tasks_pending_revocation_item)
    message.warmup_tasks_pending_revocation = warmup_tasks_pending_revocation
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: StreamsGroupCurrentMemberAssignmentValue, add: Add) -> None:
    add(pack_i4x2_i1(message.member_epoch, message.previous_member_epoch, message.state))
    active_tasks = message.active_tasks
    add(compact_length[len(active_tasks)])
    for active_task in active_tasks:
        write_task_ids_v0(active_task, add)
    standby_tasks = message.standby_tasks
    add(compact_length[len(standby_tasks)])
    for standby_task in standby_tasks:
        write_task_ids_v0(standby_task, add)
    warmup_tasks = message.warmup_tasks
    add(compact_length[len(warmup_tasks)])
    for warmup_task in warmup_tasks:
        write_task_ids_v0(warmup_task, add)
    active_tasks_pending_revocation = message.active_tasks_pending_revocation
    add(compact_length[len(active_tasks_pending_revocation)])
    for active_tasks_pending_revocation_item in active_tasks_pending_revocation:
        write_task_ids_v0(active_tasks_pending_revocation_item, add)
    standby_tasks_pending_revocation = message.standby_tasks_pending_revocation
    add(compact_length[len(standby_tasks_pending_revocation)])
    for standby_tasks_pending_revocation_item in standby_tasks_pending_revocation:
        write_task_ids_v0(standby_tasks_pending_revocation_item, add)
    warmup_tasks_pending_revocation = message.warmup_tasks_pending_revocation
    add(compact_length[len(warmup_tasks_pending_revocation)])
    for warmup_tasks_pending_revocation_item in warmup_tasks_pending_revocation:
        write_task_ids_v0(warmup_tasks_pending_revocation_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[StreamsGroupCurrentMemberAssignmentValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TaskIds.FIELDS = (
    Field("subtopology_id", "subtopologyId", "string", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
    Field("assignment_epochs", "assignmentEpochs", "[]int32", (0, 0), nullable=(0, 0), tagged=(0, 0), tag=0),
)
StreamsGroupCurrentMemberAssignmentValue.FIELDS = (
    Field("member_epoch", "memberEpoch", "int32", (0, 0)),
    Field("previous_member_epoch", "previousMemberEpoch", "int32", (0, 0)),
    Field("state", "state", "int8", (0, 0)),
    Field("active_tasks", "activeTasks", "[]TaskIds", (0, 0), struct=TaskIds),
    Field("standby_tasks", "standbyTasks", "[]TaskIds", (0, 0), struct=TaskIds),
    Field("warmup_tasks", "warmupTasks", "[]TaskIds", (0, 0), struct=TaskIds),
    Field(
        "active_tasks_pending_revocation",
        "activeTasksPendingRevocation",
        "[]TaskIds",
        (0, 0),
        struct=TaskIds,
    ),
    Field(
        "standby_tasks_pending_revocation",
        "standbyTasksPendingRevocation",
        "[]TaskIds",
        (0, 0),
        struct=TaskIds,
    ),
    Field(
        "warmup_tasks_pending_revocation",
        "warmupTasksPendingRevocation",
        "[]TaskIds",
        (0, 0),
        struct=TaskIds,
    ),
)
