"""StreamsGroupMetadataValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/StreamsGroupMetadataValue.json by `python -m codegen`; edits here are lost.
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
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    read_whole,
    write_tags,
    written,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_u1: Final = struct.Struct(">iqB").unpack_from


@define(weakref_slot=False)
class LastAssignmentConfig(Struct):
    """One setting that shaped the last assignment.

    Attributes:
        key: The name of the assignment setting.
        value: The value of the setting, as text.
    """

    key: str = ""
    value: str = ""


@define(weakref_slot=False)
class StreamsGroupMetadataValue(Message):
    """The epoch of a Kafka Streams group; each change of members, topology or topics gives a new one.

    Attributes:
        epoch: The group epoch, towards which the members' epochs move.
        metadata_hash: Hash over the topics of the topology as the group knows them.
        validated_topology_epoch: The newest topology epoch whose topics were checked against the cluster; -1
            for none.
        last_assignment_configs: The assignment settings in force when tasks were last assigned; null or empty
            when none were kept.
        stored_description_topology_epoch: The topology epoch whose description the group keeps (Kafka 4.4);
            -1 for none.
        failed_description_topology_epoch: The topology epoch whose description could not be kept (Kafka 4.4);
            -1 for none.
    """

    NAME: ClassVar[str] = "StreamsGroupMetadataValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 17
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = Factory(list)
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1


# LastAssignmentConfig in version 0
def read_last_assignment_config_v0(data: Buffer, at: int, size: int) -> tuple[LastAssignmentConfig, int]:
    message = new(LastAssignmentConfig)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("key")
    message.key = str(data[at:end], "utf-8")
    at = end
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("value")
    message.value = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_last_assignment_config_v0(message: LastAssignmentConfig, add: Add) -> None:
    key = message.key.encode()
    add(compact_string_length[len(key)])
    add(key)
    value_ = message.value.encode()
    add(compact_string_length[len(value_)])
    add(value_)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_validated_topology_epoch_tag_v0(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i4(data, at)
    at += 4
    return value, at


def write_validated_topology_epoch_tag_v0(value: int, add: Add) -> None:
    add(pack_i4(value))


def read_last_assignment_configs_tag_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[list[LastAssignmentConfig] | None, int]:
    value: list[LastAssignmentConfig] | None
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    if count == 0:
        value = None
    else:
        count -= 1
        if not 0 <= count * 3 <= size - at:
            raise Malformed("last_assignment_configs")
        last_assignment_configs: list[LastAssignmentConfig] = []
        for _ in range(count):
            last_assignment_config, at = read_last_assignment_config_v0(data, at, size)
            last_assignment_configs.append(last_assignment_config)
        value = last_assignment_configs
    return value, at


def write_last_assignment_configs_tag_v0(value: list[LastAssignmentConfig] | None, add: Add) -> None:
    last_assignment_configs = value
    if last_assignment_configs is None:
        add(b"\x00")
    else:
        add(compact_length[len(last_assignment_configs)])
        for last_assignment_config in last_assignment_configs:
            write_last_assignment_config_v0(last_assignment_config, add)


def read_stored_description_topology_epoch_tag_v0(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i4(data, at)
    at += 4
    return value, at


def write_stored_description_topology_epoch_tag_v0(value: int, add: Add) -> None:
    add(pack_i4(value))


def read_failed_description_topology_epoch_tag_v0(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i4(data, at)
    at += 4
    return value, at


def write_failed_description_topology_epoch_tag_v0(value: int, add: Add) -> None:
    add(pack_i4(value))


# StreamsGroupMetadataValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[StreamsGroupMetadataValue, int]:
    message = new(StreamsGroupMetadataValue)
    message.validated_topology_epoch = -1
    message.last_assignment_configs = []
    message.stored_description_topology_epoch = -1
    message.failed_description_topology_epoch = -1
    message.unknown_tags = ()
    message.epoch, message.metadata_hash, tags = unpack_i4_i8_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.validated_topology_epoch = read_whole(read_validated_topology_epoch_tag_v0, found.pop(0))
        if 1 in found:
            message.last_assignment_configs = read_whole(read_last_assignment_configs_tag_v0, found.pop(1))
        if 2 in found:
            message.stored_description_topology_epoch = read_whole(
                read_stored_description_topology_epoch_tag_v0,
                found.pop(2),
            )
        if 3 in found:
            message.failed_description_topology_epoch = read_whole(
                read_failed_description_topology_epoch_tag_v0,
                found.pop(3),
            )
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: StreamsGroupMetadataValue, add: Add) -> None:
    add(pack_i4_i8(message.epoch, message.metadata_hash))
    tags: dict[int, bytes] = {}
    if message.validated_topology_epoch != -1:
        tags[0] = written(write_validated_topology_epoch_tag_v0, message.validated_topology_epoch)
    if message.last_assignment_configs != []:
        tags[1] = written(write_last_assignment_configs_tag_v0, message.last_assignment_configs)
    if message.stored_description_topology_epoch != -1:
        tags[2] = written(
            write_stored_description_topology_epoch_tag_v0,
            message.stored_description_topology_epoch,
        )
    if message.failed_description_topology_epoch != -1:
        tags[3] = written(
            write_failed_description_topology_epoch_tag_v0,
            message.failed_description_topology_epoch,
        )
    if tags or message.unknown_tags:
        write_tags((0, 1, 2, 3), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[StreamsGroupMetadataValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
LastAssignmentConfig.FIELDS = (
    Field("key", "key", "string", (0, 0)),
    Field("value", "value", "string", (0, 0)),
)
StreamsGroupMetadataValue.FIELDS = (
    Field("epoch", "epoch", "int32", (0, 0)),
    Field("metadata_hash", "metadataHash", "int64", (0, 0)),
    Field("validated_topology_epoch", "validatedTopologyEpoch", "int32", (0, 0), tagged=(0, 0), tag=0),
    Field(
        "last_assignment_configs",
        "lastAssignmentConfigs",
        "[]LastAssignmentConfig",
        (0, 0),
        nullable=(0, 0),
        tagged=(0, 0),
        tag=1,
        struct=LastAssignmentConfig,
    ),
    Field(
        "stored_description_topology_epoch",
        "storedDescriptionTopologyEpoch",
        "int32",
        (0, 0),
        tagged=(0, 0),
        tag=2,
    ),
    Field(
        "failed_description_topology_epoch",
        "failedDescriptionTopologyEpoch",
        "int32",
        (0, 0),
        tagged=(0, 0),
        tag=3,
    ),
)
