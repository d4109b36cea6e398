"""StreamsGroupTargetAssignmentMemberValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/StreamsGroupTargetAssignmentMemberValue.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

from typing import ClassVar

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
    write_tags,
)


@define(weakref_slot=False)
class TaskIds(Struct):
    """Tasks of one subtopology, one per partition.

    Attributes:
        subtopology_id: The subtopology the tasks run.
        partitions: The input partitions, each of which is one task.
    """

    subtopology_id: str = ""
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class StreamsGroupTargetAssignmentMemberValue(Message):
    """The tasks the assignor wants a streams group member to have, whether or not others still hold them.

    Attributes:
        active_tasks: Tasks that the member shall process.
        standby_tasks: Tasks whose state it shall keep ready for a takeover.
        warmup_tasks: Tasks whose state it shall restore in order to take them over later.
    """

    NAME: ClassVar[str] = "StreamsGroupTargetAssignmentMemberValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 21
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    active_tasks: list[TaskIds] = Factory(list)
    standby_tasks: list[TaskIds] = Factory(list)
    warmup_tasks: list[TaskIds] = Factory(list)


# TaskIds in version 0
def read_task_ids_v0(data: Buffer, at: int, size: int) -> tuple[TaskIds, int]:
    message = new(TaskIds)
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
        message.unknown_tags = left_over(found)
    return message, at


def write_task_ids_v0(message: TaskIds, add: Add) -> None:
    subtopology_id = message.subtopology_id.encode()
    add(compact_string_length[len(subtopology_id)])
    add(subtopology_id)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# StreamsGroupTargetAssignmentMemberValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[StreamsGroupTargetAssignmentMemberValue, int]:
    message = new(StreamsGroupTargetAssignmentMemberValue)
    message.unknown_tags = ()
    count = data[at]
    at += 1
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
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: StreamsGroupTargetAssignmentMemberValue, add: Add) -> None:
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
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[StreamsGroupTargetAssignmentMemberValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TaskIds.FIELDS = (
    Field("subtopology_id", "subtopologyId", "string", (0, 0)),
    Field("partitions", "partitions", "[]int32", (0, 0)),
)
StreamsGroupTargetAssignmentMemberValue.FIELDS = (
    Field("active_tasks", "activeTasks", "[]TaskIds", (0, 0), struct=TaskIds),
    Field("standby_tasks", "standbyTasks", "[]TaskIds", (0, 0), struct=TaskIds),
    Field("warmup_tasks", "warmupTasks", "[]TaskIds", (0, 0), struct=TaskIds),
)
