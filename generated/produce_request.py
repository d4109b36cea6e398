"""ProduceRequest, versions 0–13: its classes, and one read and write pair per layout.

Generated from schemas/ProduceRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    BYTES,
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
    compact_length,
    compact_string_length,
    left_over,
    new,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4: Final = struct.Struct(">hi").pack
pack_i2_i4x2: Final = struct.Struct(">hii").pack
pack_i4: Final = struct.Struct(">i").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4_u1: Final = struct.Struct(">hiB").unpack_from
unpack_i2_i4x2: Final = struct.Struct(">hii").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class PartitionProduceData(Struct):
    """The batches by partition of this topic.

    Attributes:
        index: The partition's number within its topic.
        records: Exactly one record batch of magic 2 from version 3 on (zstd from version 7); message sets of
            magic 0 or 1 before.
    """

    index: int = 0
    records: bytes | memoryview | None = None


@define(weakref_slot=False)
class TopicProduceData(Struct):
    """The batches by topic.

    Attributes:
        name: The topic's name, up to version 12.
        topic_id: The topic's id, from version 13 on.
        partition_data: The batches by partition of this topic.
    """

    name: str = ""
    topic_id: Uuid = ZERO_UUID
    partition_data: list[PartitionProduceData] = Factory(list)


@define(weakref_slot=False)
class ProduceRequest(Message):
    """Hands record batches to the leaders of their partitions; with acks 0 there is no answer at all.

    Attributes:
        transactional_id: The transaction the batches belong to; null outside of transactions.
        acks: Who must have the batches before the answer: 0 nobody and no answer, 1 the leader, -1 all in-
            sync replicas.
        timeout_ms: Milliseconds the leader may wait for the replicas that Acks asks for.
        topic_data: The batches by topic.
    """

    NAME: ClassVar[str] = "ProduceRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_SINCE: ClassVar[int | None] = 9

    transactional_id: str | None = None
    acks: int = 0
    timeout_ms: int = 0
    topic_data: list[TopicProduceData] = Factory(list)


# PartitionProduceData in versions 0–8
def read_partition_produce_data_v0(data: memoryview, at: int, size: int) -> tuple[PartitionProduceData, int]:
    message = new(PartitionProduceData)
    message.unknown_tags = ()
    message.index, length = unpack_i4x2(data, at)
    at += 8
    if length == -1:
        message.records = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    return message, at


def write_partition_produce_data_v0(message: PartitionProduceData, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4(message.index))
    records = message.records
    if records is None:
        add(b"\xff\xff\xff\xff")
    else:
        add(pack_i4(len(records)))
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)


# TopicProduceData in versions 0–8
def read_topic_produce_data_v0(data: memoryview, at: int, size: int) -> tuple[TopicProduceData, int]:
    message = new(TopicProduceData)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 8 <= size - at:
        raise Malformed("partition_data")
    partition_data: list[PartitionProduceData] = []
    for _ in range(count):
        partition_data_item, at = read_partition_produce_data_v0(data, at, size)
        partition_data.append(partition_data_item)
    message.partition_data = partition_data
    return message, at


def write_topic_produce_data_v0(message: TopicProduceData, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    name = message.name.encode()
    add(pack_i2(len(name)))
    add(name)
    partition_data = message.partition_data
    add(pack_i4(len(partition_data)))
    for partition_data_item in partition_data:
        write_partition_produce_data_v0(partition_data_item, add)


# ProduceRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[ProduceRequest, int]:
    data = memoryview(data)
    message = new(ProduceRequest)
    message.transactional_id = None
    message.unknown_tags = ()
    message.acks, message.timeout_ms, count = unpack_i2_i4x2(data, at)
    at += 10
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topic_data")
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, at = read_topic_produce_data_v0(data, at, size)
        topic_data.append(topic_data_item)
    message.topic_data = topic_data
    return message, at


def write_v0(message: ProduceRequest, add: Add) -> None:
    if message.transactional_id is not None:
        raise Unwritable("transactional_id")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic_data = message.topic_data
    add(pack_i2_i4x2(message.acks, message.timeout_ms, len(topic_data)))
    for topic_data_item in topic_data:
        write_topic_produce_data_v0(topic_data_item, add)


# ProduceRequest in versions 3–8
def read_v3(data: Buffer, at: int, size: int) -> tuple[ProduceRequest, int]:
    data = memoryview(data)
    message = new(ProduceRequest)
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.transactional_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    message.acks, message.timeout_ms, count = unpack_i2_i4x2(data, at)
    at += 10
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topic_data")
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, at = read_topic_produce_data_v0(data, at, size)
        topic_data.append(topic_data_item)
    message.topic_data = topic_data
    return message, at


def write_v3(message: ProduceRequest, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\xff\xff")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(pack_i2(len(transactional_id_bytes)))
        add(transactional_id_bytes)
    topic_data = message.topic_data
    add(pack_i2_i4x2(message.acks, message.timeout_ms, len(topic_data)))
    for topic_data_item in topic_data:
        write_topic_produce_data_v0(topic_data_item, add)


# PartitionProduceData in versions 9–13
def read_partition_produce_data_v9(data: memoryview, at: int, size: int) -> tuple[PartitionProduceData, int]:
    message = new(PartitionProduceData)
    message.unknown_tags = ()
    message.index, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_uvarint(data, at - 1)
    if length == 0:
        message.records = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("records")
        message.records = data[at:end]
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_partition_produce_data_v9(message: PartitionProduceData, add: Add) -> None:
    add(pack_i4(message.index))
    records = message.records
    if records is None:
        add(b"\x00")
    else:
        add(compact_length[len(records)])
        if not isinstance(records, BYTES):
            raise Unwritable("records")
        add(records)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicProduceData in versions 9–12
def read_topic_produce_data_v9(data: memoryview, at: int, size: int) -> tuple[TopicProduceData, int]:
    message = new(TopicProduceData)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partition_data")
    partition_data: list[PartitionProduceData] = []
    for _ in range(count):
        partition_data_item, at = read_partition_produce_data_v9(data, at, size)
        partition_data.append(partition_data_item)
    message.partition_data = partition_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_produce_data_v9(message: TopicProduceData, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    partition_data = message.partition_data
    add(compact_length[len(partition_data)])
    for partition_data_item in partition_data:
        write_partition_produce_data_v9(partition_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ProduceRequest in versions 9–12
def read_v9(data: Buffer, at: int, size: int) -> tuple[ProduceRequest, int]:
    data = memoryview(data)
    message = new(ProduceRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.transactional_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    message.acks, message.timeout_ms, count = unpack_i2_i4_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topic_data")
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, at = read_topic_produce_data_v9(data, at, size)
        topic_data.append(topic_data_item)
    message.topic_data = topic_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: ProduceRequest, add: Add) -> None:
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\x00")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(compact_string_length[len(transactional_id_bytes)])
        add(transactional_id_bytes)
    add(pack_i2_i4(message.acks, message.timeout_ms))
    topic_data = message.topic_data
    add(compact_length[len(topic_data)])
    for topic_data_item in topic_data:
        write_topic_produce_data_v9(topic_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# TopicProduceData in version 13
def read_topic_produce_data_v13(data: memoryview, at: int, size: int) -> tuple[TopicProduceData, int]:
    message = new(TopicProduceData)
    message.name = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 6 <= size - at:
        raise Malformed("partition_data")
    partition_data: list[PartitionProduceData] = []
    for _ in range(count):
        partition_data_item, at = read_partition_produce_data_v9(data, at, size)
        partition_data.append(partition_data_item)
    message.partition_data = partition_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_produce_data_v13(message: TopicProduceData, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partition_data = message.partition_data
    add(compact_length[len(partition_data)])
    for partition_data_item in partition_data:
        write_partition_produce_data_v9(partition_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ProduceRequest in version 13
def read_v13(data: Buffer, at: int, size: int) -> tuple[ProduceRequest, int]:
    data = memoryview(data)
    message = new(ProduceRequest)
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.transactional_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("transactional_id")
        message.transactional_id = str(data[at:end], "utf-8")
        at = end
    message.acks, message.timeout_ms, count = unpack_i2_i4_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topic_data")
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        topic_data_item, at = read_topic_produce_data_v13(data, at, size)
        topic_data.append(topic_data_item)
    message.topic_data = topic_data
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v13(message: ProduceRequest, add: Add) -> None:
    transactional_id = message.transactional_id
    if transactional_id is None:
        add(b"\x00")
    else:
        transactional_id_bytes = transactional_id.encode()
        add(compact_string_length[len(transactional_id_bytes)])
        add(transactional_id_bytes)
    add(pack_i2_i4(message.acks, message.timeout_ms))
    topic_data = message.topic_data
    add(compact_length[len(topic_data)])
    for topic_data_item in topic_data:
        write_topic_produce_data_v13(topic_data_item, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[ProduceRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v3, write_v3),
    6: (read_v3, write_v3),
    7: (read_v3, write_v3),
    8: (read_v3, write_v3),
    9: (read_v9, write_v9),
    10: (read_v9, write_v9),
    11: (read_v9, write_v9),
    12: (read_v9, write_v9),
    13: (read_v13, write_v13),
}

# what JSON and error messages know of the fields
PartitionProduceData.FIELDS = (
    Field("index", "index", "int32", (0, 13)),
    Field("records", "records", "records", (0, 13), nullable=(0, 13)),
)
TopicProduceData.FIELDS = (
    Field("name", "name", "string", (0, 12), ignorable=True),
    Field("topic_id", "topicId", "uuid", (13, 13), ignorable=True),
    Field("partition_data", "partitionData", "[]PartitionProduceData", (0, 13), struct=PartitionProduceData),
)
ProduceRequest.FIELDS = (
    Field("transactional_id", "transactionalId", "string", (3, 13), nullable=(3, 13)),
    Field("acks", "acks", "int16", (0, 13)),
    Field("timeout_ms", "timeoutMs", "int32", (0, 13)),
    Field("topic_data", "topicData", "[]TopicProduceData", (0, 13), struct=TopicProduceData),
)
