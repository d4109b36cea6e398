"""FetchRequest, versions 0–18: its classes, and one read and write pair per layout.

Generated from schemas/FetchRequest.json by `python -m codegen`; edits here are lost.
"""

from __future__ import annotations

import struct
from typing import ClassVar, Final

from attrs import Factory, define

from kclient.protocol.message import Field, Message, Struct
from kclient.protocol.primitives import (
    ZERO_UUID,
    Add,
    Buffer,
    Codec,
    Malformed,
    Unwritable,
    Uuid,
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

pack_i2: Final = struct.Struct(">h").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i8: Final = struct.Struct(">iq").pack
pack_i4_i8_i4: Final = struct.Struct(">iqi").pack
pack_i4_i8x2_i4: Final = struct.Struct(">iqqi").pack
pack_i4x2_i8_i4_i8_i4: Final = struct.Struct(">iiqiqi").pack
pack_i4x2_i8x2_i4: Final = struct.Struct(">iiqqi").pack
pack_i4x3_i1_i4x2: Final = struct.Struct(">iiibii").pack
pack_i4x4: Final = struct.Struct(">iiii").pack
pack_i4x4_i1_i4: Final = struct.Struct(">iiiibi").pack
pack_i4x4_i1_i4x2: Final = struct.Struct(">iiiibii").pack
pack_i4x4_i1_i4x3: Final = struct.Struct(">iiiibiii").pack
pack_i4x5: Final = struct.Struct(">iiiii").pack
pack_i8: Final = struct.Struct(">q").pack
pack_uuid: Final = struct.Struct(">16s").pack
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i8_i4: Final = struct.Struct(">iqi").unpack_from
unpack_i4_i8_u1: Final = struct.Struct(">iqB").unpack_from
unpack_i4_i8x2_i4: Final = struct.Struct(">iqqi").unpack_from
unpack_i4x2_i8_i4_i8_i4_u1: Final = struct.Struct(">iiqiqiB").unpack_from
unpack_i4x2_i8x2_i4: Final = struct.Struct(">iiqqi").unpack_from
unpack_i4x3_i1_i4x2_u1: Final = struct.Struct(">iiibiiB").unpack_from
unpack_i4x4: Final = struct.Struct(">iiii").unpack_from
unpack_i4x4_i1_i4: Final = struct.Struct(">iiiibi").unpack_from
unpack_i4x4_i1_i4x2_u1: Final = struct.Struct(">iiiibiiB").unpack_from
unpack_i4x4_i1_i4x3: Final = struct.Struct(">iiiibiii").unpack_from
unpack_i4x5: Final = struct.Struct(">iiiii").unpack_from
unpack_i8: Final = struct.Struct(">q").unpack_from
unpack_uuid: Final = struct.Struct(">16s").unpack_from
unpack_uuid_u1: Final = struct.Struct(">16sB").unpack_from


@define(weakref_slot=False)
class ReplicaState(Struct):
    """Who the fetching follower is, from version 15 on; consumers leave it at its defaults.

    Attributes:
        replica_id: Broker id of the follower; -1 for a consumer.
        replica_epoch: Registration epoch of the follower's process, which tells a restarted broker from its
            predecessor; -1 for a consumer.
    """

    replica_id: int = -1
    replica_epoch: int = -1


@define(weakref_slot=False)
class FetchPartition(Struct):
    """The partitions of this topic with the position to read from.

    Attributes:
        partition: The partition's number within its topic.
        current_leader_epoch: The leader epoch the fetcher knows, so that a stale broker or fetcher is found
            out (errors 74, 75); -1 skips the check.
        fetch_offset: The first offset wanted; the answer may begin with the batch that contains it, earlier
            records included.
        last_fetched_epoch: Leader epoch of the record before FetchOffset, by which the leader detects a
            diverged log; -1 asks for no such check.
        log_start_offset: Where a follower's own copy begins; -1 from consumers.
        partition_max_bytes: Bytes of records wanted of this partition (max.partition.fetch.bytes); the first
            batch comes even if it alone is larger.
        replica_directory_id: Log directory of the fetching controller in KRaft quorums; zero from consumers.
        high_watermark: The high watermark a follower knows, so that the leader answers at once when its own
            is newer; the largest int64 when not used.
    """

    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: Uuid = ZERO_UUID
    high_watermark: int = 9223372036854775807


@define(weakref_slot=False)
class FetchTopic(Struct):
    """Partitions to fetch, in the order they should be served; in a session only those added or altered since
    the last request.

    Attributes:
        topic: The topic's name, up to version 12.
        topic_id: The topic's id, from version 13 on; every partition of the request needs one.
        partitions: The partitions of this topic with the position to read from.
    """

    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[FetchPartition] = Factory(list)


@define(weakref_slot=False)
class ForgottenTopic(Struct):
    """Partitions to drop from the fetch session; empty outside of sessions.

    Attributes:
        topic: Name of the topic to drop partitions of, up to version 12.
        topic_id: Id of the topic to drop partitions of, from version 13 on; the old id if the topic was
            recreated.
        partitions: The partition numbers of this topic that leave the session.
    """

    topic: str = ""
    topic_id: Uuid = ZERO_UUID
    partitions: list[int] = Factory(list)


@define(weakref_slot=False)
class FetchRequest(Message):
    """Asks one broker for record batches of many partitions; it answers when MinBytes are there or MaxWaitMs
    are over.

    Attributes:
        cluster_id: The cluster the sender believes to talk to, checked among controllers; null from
            consumers.
        replica_id: Broker id of a fetching follower up to version 14; -1 for a consumer.
        replica_state: Who the fetching follower is, from version 15 on; consumers leave it at its defaults.
        max_wait_ms: Milliseconds the broker may wait for MinBytes before it answers with what it has
            (fetch.max.wait.ms).
        min_bytes: Bytes of records over all partitions worth an answer before MaxWaitMs are over
            (fetch.min.bytes); 0 answers at once.
        max_bytes: Bytes of records the answer should not exceed (fetch.max.bytes); the first batch comes even
            if it alone is larger.
        isolation_level: 0 read_uncommitted, 1 read_committed: nothing past the last stable offset, and a list
            of aborted transactions to skip.
        session_id: The fetch session this request continues (KIP-227); 0 to ask for a new one or to go
            without.
        session_epoch: Number of the request within its session: 0 opens one, each further request adds 1, -1
            closes it or goes without (with session id 0).
        topics: Partitions to fetch, in the order they should be served; in a session only those added or
            altered since the last request.
        forgotten_topics_data: Partitions to drop from the fetch session; empty outside of sessions.
        rack_id: The consumer's rack (client.rack), from which the leader may choose a closer replica
            (KIP-392); empty when not set.
    """

    NAME: ClassVar[str] = "FetchRequest"
    TYPE: ClassVar[str] = "request"
    API_KEY: ClassVar[int | None] = 1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 18)
    FLEXIBLE_SINCE: ClassVar[int | None] = 12

    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: ReplicaState | None = None
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: list[FetchTopic] = Factory(list)
    forgotten_topics_data: list[ForgottenTopic] = Factory(list)
    rack_id: str = ""


# FetchPartition in versions 0–4
def read_fetch_partition_v0(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.current_leader_epoch = -1
    message.last_fetched_epoch = -1
    message.log_start_offset = -1
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    message.partition, message.fetch_offset, message.partition_max_bytes = unpack_i4_i8_i4(data, at)
    at += 16
    return message, at


def write_fetch_partition_v0(message: FetchPartition, add: Add) -> None:
    if message.last_fetched_epoch != -1:
        raise Unwritable("last_fetched_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(pack_i4_i8_i4(message.partition, message.fetch_offset, message.partition_max_bytes))


# FetchTopic in versions 0–4
def read_fetch_topic_v0(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 16 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetch_topic_v0(message: FetchTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_fetch_partition_v0(partition, add)


# FetchRequest in versions 0–2
def read_v0(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.max_bytes = 2147483647
    message.isolation_level = 0
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.unknown_tags = ()
    message.replica_id, message.max_wait_ms, message.min_bytes, count = unpack_i4x4(data, at)
    at += 16
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.forgotten_topics_data != []:
        raise Unwritable("forgotten_topics_data")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x4(message.replica_id, message.max_wait_ms, message.min_bytes, len(topics)))
    for topic in topics:
        write_fetch_topic_v0(topic, add)


# FetchRequest in version 3
def read_v3(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.isolation_level = 0
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        count,
    ) = unpack_i4x5(data, at)
    at += 20
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v3(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.forgotten_topics_data != []:
        raise Unwritable("forgotten_topics_data")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(pack_i4x5(message.replica_id, message.max_wait_ms, message.min_bytes, message.max_bytes, len(topics)))
    for topic in topics:
        write_fetch_topic_v0(topic, add)


# FetchRequest in version 4
def read_v4(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        count,
    ) = unpack_i4x4_i1_i4(data, at)
    at += 21
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v4(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.forgotten_topics_data != []:
        raise Unwritable("forgotten_topics_data")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(
        pack_i4x4_i1_i4(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            len(topics),
        )
    )
    for topic in topics:
        write_fetch_topic_v0(topic, add)


# FetchPartition in versions 5–8
def read_fetch_partition_v5(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.current_leader_epoch = -1
    message.last_fetched_epoch = -1
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    (
        message.partition,
        message.fetch_offset,
        message.log_start_offset,
        message.partition_max_bytes,
    ) = unpack_i4_i8x2_i4(data, at)
    at += 24
    return message, at


def write_fetch_partition_v5(message: FetchPartition, add: Add) -> None:
    if message.last_fetched_epoch != -1:
        raise Unwritable("last_fetched_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4_i8x2_i4(
            message.partition,
            message.fetch_offset,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )


# FetchTopic in versions 5–8
def read_fetch_topic_v5(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 24 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v5(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetch_topic_v5(message: FetchTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_fetch_partition_v5(partition, add)


# FetchRequest in versions 5–6
def read_v5(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.session_id = 0
    message.session_epoch = -1
    message.forgotten_topics_data = []
    message.rack_id = ""
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        count,
    ) = unpack_i4x4_i1_i4(data, at)
    at += 21
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v5(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.forgotten_topics_data != []:
        raise Unwritable("forgotten_topics_data")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(
        pack_i4x4_i1_i4(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            len(topics),
        )
    )
    for topic in topics:
        write_fetch_topic_v5(topic, add)


# ForgottenTopic in versions 7–11
def read_forgotten_topic_v7(data: Buffer, at: int, size: int) -> tuple[ForgottenTopic, int]:
    message = new(ForgottenTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("partitions")
    message.partitions = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_forgotten_topic_v7(message: ForgottenTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    add(int32_array[len(partitions)].pack(*partitions))


# FetchRequest in versions 7–8
def read_v7(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.rack_id = ""
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x4_i1_i4x3(data, at)
    at += 29
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v7(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    return message, at


def write_v7(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(
        pack_i4x4_i1_i4x3(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
            len(topics),
        )
    )
    for topic in topics:
        write_fetch_topic_v5(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(pack_i4(len(forgotten_topics_data)))
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v7(forgotten_topics_data_item, add)


# FetchPartition in versions 9–11
def read_fetch_partition_v9(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.last_fetched_epoch = -1
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    (
        message.partition,
        message.current_leader_epoch,
        message.fetch_offset,
        message.log_start_offset,
        message.partition_max_bytes,
    ) = unpack_i4x2_i8x2_i4(data, at)
    at += 28
    return message, at


def write_fetch_partition_v9(message: FetchPartition, add: Add) -> None:
    if message.last_fetched_epoch != -1:
        raise Unwritable("last_fetched_epoch")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    add(
        pack_i4x2_i8x2_i4(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )


# FetchTopic in versions 9–11
def read_fetch_topic_v9(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 28 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v9(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_fetch_topic_v9(message: FetchTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topic = message.topic.encode()
    add(pack_i2(len(topic)))
    add(topic)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_fetch_partition_v9(partition, add)


# FetchRequest in versions 9–10
def read_v9(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.rack_id = ""
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x4_i1_i4x3(data, at)
    at += 29
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v9(data, at, size)
        topics.append(topic)
    message.topics = topics
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v7(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    return message, at


def write_v9(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(
        pack_i4x4_i1_i4x3(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
            len(topics),
        )
    )
    for topic in topics:
        write_fetch_topic_v9(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(pack_i4(len(forgotten_topics_data)))
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v7(forgotten_topics_data_item, add)


# FetchRequest in version 11
def read_v11(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x4_i1_i4x3(data, at)
    at += 29
    if not 0 <= count * 6 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v9(data, at, size)
        topics.append(topic)
    message.topics = topics
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 6 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v7(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    (length,) = unpack_i2(data, at)
    at += 2
    end = at + length
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    return message, at


def write_v11(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    topics = message.topics
    add(
        pack_i4x4_i1_i4x3(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
            len(topics),
        )
    )
    for topic in topics:
        write_fetch_topic_v9(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(pack_i4(len(forgotten_topics_data)))
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v7(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(pack_i2(len(rack_id)))
    add(rack_id)


# FetchPartition in versions 12–16
def read_fetch_partition_v12(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    (
        message.partition,
        message.current_leader_epoch,
        message.fetch_offset,
        message.last_fetched_epoch,
        message.log_start_offset,
        message.partition_max_bytes,
        tags,
    ) = unpack_i4x2_i8_i4_i8_i4_u1(data, at)
    at += 33
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_partition_v12(message: FetchPartition, add: Add) -> None:
    add(
        pack_i4x2_i8_i4_i8_i4(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in version 12
def read_fetch_topic_v12(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
    at = end
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v12(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v12(message: FetchTopic, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v12(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ForgottenTopic in version 12
def read_forgotten_topic_v12(data: Buffer, at: int, size: int) -> tuple[ForgottenTopic, int]:
    message = new(ForgottenTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("topic")
    message.topic = str(data[at:end], "utf-8")
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


def write_forgotten_topic_v12(message: ForgottenTopic, add: Add) -> None:
    topic = message.topic.encode()
    add(compact_string_length[len(topic)])
    add(topic)
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_cluster_id_tag_v12(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_cluster_id_tag_v12(value: str | None, add: Add) -> None:
    cluster_id = value
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)


# FetchRequest in version 12
def read_v12(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x4_i1_i4x2_u1(data, at)
    at += 26
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v12(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v12(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.cluster_id = read_whole(read_cluster_id_tag_v12, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v12(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    add(
        pack_i4x4_i1_i4x2(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v12(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v12(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(compact_string_length[len(rack_id)])
    add(rack_id)
    tags: dict[int, bytes] = {}
    if message.cluster_id is not None:
        tags[0] = written(write_cluster_id_tag_v12, message.cluster_id)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in versions 13–16
def read_fetch_topic_v13(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v12(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v13(message: FetchTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v12(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# ForgottenTopic in versions 13–18
def read_forgotten_topic_v13(data: Buffer, at: int, size: int) -> tuple[ForgottenTopic, int]:
    message = new(ForgottenTopic)
    message.topic = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
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


def write_forgotten_topic_v13(message: ForgottenTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    add(int32_array[len(partitions)].pack(*partitions))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_cluster_id_tag_v13(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_cluster_id_tag_v13(value: str | None, add: Add) -> None:
    cluster_id = value
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)


# FetchRequest in versions 13–14
def read_v13(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x4_i1_i4x2_u1(data, at)
    at += 26
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v13(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v13(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.cluster_id = read_whole(read_cluster_id_tag_v13, found.pop(0))
        message.unknown_tags = left_over(found)
    return message, at


def write_v13(message: FetchRequest, add: Add) -> None:
    if message.replica_state is not None and message.replica_state != ReplicaState():
        raise Unwritable("replica_state")
    add(
        pack_i4x4_i1_i4x2(
            message.replica_id,
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v13(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v13(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(compact_string_length[len(rack_id)])
    add(rack_id)
    tags: dict[int, bytes] = {}
    if message.cluster_id is not None:
        tags[0] = written(write_cluster_id_tag_v13, message.cluster_id)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# ReplicaState in versions 15–18
def read_replica_state_v15(data: Buffer, at: int, size: int) -> tuple[ReplicaState, int]:
    message = new(ReplicaState)
    message.unknown_tags = ()
    message.replica_id, message.replica_epoch, tags = unpack_i4_i8_u1(data, at)
    at += 13
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_replica_state_v15(message: ReplicaState, add: Add) -> None:
    add(pack_i4_i8(message.replica_id, message.replica_epoch))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_cluster_id_tag_v15(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_cluster_id_tag_v15(value: str | None, add: Add) -> None:
    cluster_id = value
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)


# FetchRequest in versions 15–16
def read_v15(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x3_i1_i4x2_u1(data, at)
    at += 22
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v13(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v13(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.cluster_id = read_whole(read_cluster_id_tag_v15, found.pop(0))
        if 1 in found:
            message.replica_state = read_whole(read_replica_state_v15, found.pop(1))
        message.unknown_tags = left_over(found)
    return message, at


def write_v15(message: FetchRequest, add: Add) -> None:
    if message.replica_id != -1:
        raise Unwritable("replica_id")
    add(
        pack_i4x3_i1_i4x2(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v13(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v13(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(compact_string_length[len(rack_id)])
    add(rack_id)
    tags: dict[int, bytes] = {}
    if message.cluster_id is not None:
        tags[0] = written(write_cluster_id_tag_v15, message.cluster_id)
    if message.replica_state is not None and message.replica_state != ReplicaState():
        tags[1] = written(write_replica_state_v15, message.replica_state)
    if tags or message.unknown_tags:
        write_tags((0, 1), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_fetch_partition_replica_directory_id_tag_v17(data: Buffer, at: int, size: int) -> tuple[Uuid, int]:
    value: Uuid
    (value,) = unpack_uuid(data, at)
    at += 16
    return value, at


def write_fetch_partition_replica_directory_id_tag_v17(value: Uuid, add: Add) -> None:
    if len(value) != 16:
        raise Unwritable("replica_directory_id")
    add(pack_uuid(value))


# FetchPartition in version 17
def read_fetch_partition_v17(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    (
        message.partition,
        message.current_leader_epoch,
        message.fetch_offset,
        message.last_fetched_epoch,
        message.log_start_offset,
        message.partition_max_bytes,
        tags,
    ) = unpack_i4x2_i8_i4_i8_i4_u1(data, at)
    at += 33
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.replica_directory_id = read_whole(
                read_fetch_partition_replica_directory_id_tag_v17,
                found.pop(0),
            )
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_partition_v17(message: FetchPartition, add: Add) -> None:
    add(
        pack_i4x2_i8_i4_i8_i4(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )
    tags: dict[int, bytes] = {}
    if message.replica_directory_id != ZERO_UUID:
        tags[0] = written(write_fetch_partition_replica_directory_id_tag_v17, message.replica_directory_id)
    if tags or message.unknown_tags:
        write_tags((0,), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in version 17
def read_fetch_topic_v17(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v17(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v17(message: FetchTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v17(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_cluster_id_tag_v17(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_cluster_id_tag_v17(value: str | None, add: Add) -> None:
    cluster_id = value
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)


# FetchRequest in version 17
def read_v17(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x3_i1_i4x2_u1(data, at)
    at += 22
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v17(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v13(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.cluster_id = read_whole(read_cluster_id_tag_v17, found.pop(0))
        if 1 in found:
            message.replica_state = read_whole(read_replica_state_v15, found.pop(1))
        message.unknown_tags = left_over(found)
    return message, at


def write_v17(message: FetchRequest, add: Add) -> None:
    if message.replica_id != -1:
        raise Unwritable("replica_id")
    add(
        pack_i4x3_i1_i4x2(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v17(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v13(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(compact_string_length[len(rack_id)])
    add(rack_id)
    tags: dict[int, bytes] = {}
    if message.cluster_id is not None:
        tags[0] = written(write_cluster_id_tag_v17, message.cluster_id)
    if message.replica_state is not None and message.replica_state != ReplicaState():
        tags[1] = written(write_replica_state_v15, message.replica_state)
    if tags or message.unknown_tags:
        write_tags((0, 1), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_fetch_partition_replica_directory_id_tag_v18(data: Buffer, at: int, size: int) -> tuple[Uuid, int]:
    value: Uuid
    (value,) = unpack_uuid(data, at)
    at += 16
    return value, at


def write_fetch_partition_replica_directory_id_tag_v18(value: Uuid, add: Add) -> None:
    if len(value) != 16:
        raise Unwritable("replica_directory_id")
    add(pack_uuid(value))


def read_fetch_partition_high_watermark_tag_v18(data: Buffer, at: int, size: int) -> tuple[int, int]:
    value: int
    (value,) = unpack_i8(data, at)
    at += 8
    return value, at


def write_fetch_partition_high_watermark_tag_v18(value: int, add: Add) -> None:
    add(pack_i8(value))


# FetchPartition in version 18
def read_fetch_partition_v18(data: Buffer, at: int, size: int) -> tuple[FetchPartition, int]:
    message = new(FetchPartition)
    message.replica_directory_id = ZERO_UUID
    message.high_watermark = 9223372036854775807
    message.unknown_tags = ()
    (
        message.partition,
        message.current_leader_epoch,
        message.fetch_offset,
        message.last_fetched_epoch,
        message.log_start_offset,
        message.partition_max_bytes,
        tags,
    ) = unpack_i4x2_i8_i4_i8_i4_u1(data, at)
    at += 33
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.replica_directory_id = read_whole(
                read_fetch_partition_replica_directory_id_tag_v18,
                found.pop(0),
            )
        if 1 in found:
            message.high_watermark = read_whole(read_fetch_partition_high_watermark_tag_v18, found.pop(1))
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_partition_v18(message: FetchPartition, add: Add) -> None:
    add(
        pack_i4x2_i8_i4_i8_i4(
            message.partition,
            message.current_leader_epoch,
            message.fetch_offset,
            message.last_fetched_epoch,
            message.log_start_offset,
            message.partition_max_bytes,
        )
    )
    tags: dict[int, bytes] = {}
    if message.replica_directory_id != ZERO_UUID:
        tags[0] = written(write_fetch_partition_replica_directory_id_tag_v18, message.replica_directory_id)
    if message.high_watermark != 9223372036854775807:
        tags[1] = written(write_fetch_partition_high_watermark_tag_v18, message.high_watermark)
    if tags or message.unknown_tags:
        write_tags((0, 1), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# FetchTopic in version 18
def read_fetch_topic_v18(data: Buffer, at: int, size: int) -> tuple[FetchTopic, int]:
    message = new(FetchTopic)
    message.topic = ""
    message.unknown_tags = ()
    message.topic_id, count = unpack_uuid_u1(data, at)
    at += 17
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 33 <= size - at:
        raise Malformed("partitions")
    partitions: list[FetchPartition] = []
    for _ in range(count):
        partition, at = read_fetch_partition_v18(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_fetch_topic_v18(message: FetchTopic, add: Add) -> None:
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid(message.topic_id))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_fetch_partition_v18(partition, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


def read_cluster_id_tag_v18(data: Buffer, at: int, size: int) -> tuple[str | None, int]:
    value: str | None
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        value = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        value = str(data[at:end], "utf-8")
        at = end
    return value, at


def write_cluster_id_tag_v18(value: str | None, add: Add) -> None:
    cluster_id = value
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)


# FetchRequest in version 18
def read_v18(data: Buffer, at: int, size: int) -> tuple[FetchRequest, int]:
    message = new(FetchRequest)
    message.cluster_id = None
    message.replica_id = -1
    message.replica_state = None
    message.unknown_tags = ()
    (
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        count,
    ) = unpack_i4x3_i1_i4x2_u1(data, at)
    at += 22
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("topics")
    topics: list[FetchTopic] = []
    for _ in range(count):
        topic, at = read_fetch_topic_v18(data, at, size)
        topics.append(topic)
    message.topics = topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("forgotten_topics_data")
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        forgotten_topics_data_item, at = read_forgotten_topic_v13(data, at, size)
        forgotten_topics_data.append(forgotten_topics_data_item)
    message.forgotten_topics_data = forgotten_topics_data
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("rack_id")
    message.rack_id = str(data[at:end], "utf-8")
    at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        if 0 in found:
            message.cluster_id = read_whole(read_cluster_id_tag_v18, found.pop(0))
        if 1 in found:
            message.replica_state = read_whole(read_replica_state_v15, found.pop(1))
        message.unknown_tags = left_over(found)
    return message, at


def write_v18(message: FetchRequest, add: Add) -> None:
    if message.replica_id != -1:
        raise Unwritable("replica_id")
    add(
        pack_i4x3_i1_i4x2(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
        )
    )
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_fetch_topic_v18(topic, add)
    forgotten_topics_data = message.forgotten_topics_data
    add(compact_length[len(forgotten_topics_data)])
    for forgotten_topics_data_item in forgotten_topics_data:
        write_forgotten_topic_v13(forgotten_topics_data_item, add)
    rack_id = message.rack_id.encode()
    add(compact_string_length[len(rack_id)])
    add(rack_id)
    tags: dict[int, bytes] = {}
    if message.cluster_id is not None:
        tags[0] = written(write_cluster_id_tag_v18, message.cluster_id)
    if message.replica_state is not None and message.replica_state != ReplicaState():
        tags[1] = written(write_replica_state_v15, message.replica_state)
    if tags or message.unknown_tags:
        write_tags((0, 1), tags, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[FetchRequest]] = {
    0: (read_v0, write_v0),
    1: (read_v0, write_v0),
    2: (read_v0, write_v0),
    3: (read_v3, write_v3),
    4: (read_v4, write_v4),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v7, write_v7),
    8: (read_v7, write_v7),
    9: (read_v9, write_v9),
    10: (read_v9, write_v9),
    11: (read_v11, write_v11),
    12: (read_v12, write_v12),
    13: (read_v13, write_v13),
    14: (read_v13, write_v13),
    15: (read_v15, write_v15),
    16: (read_v15, write_v15),
    17: (read_v17, write_v17),
    18: (read_v18, write_v18),
}

# what JSON and error messages know of the fields
ReplicaState.FIELDS = (
    Field("replica_id", "replicaId", "int32", (15, 18)),
    Field("replica_epoch", "replicaEpoch", "int64", (15, 18)),
)
FetchPartition.FIELDS = (
    Field("partition", "partition", "int32", (0, 18)),
    Field("current_leader_epoch", "currentLeaderEpoch", "int32", (9, 18), ignorable=True),
    Field("fetch_offset", "fetchOffset", "int64", (0, 18)),
    Field("last_fetched_epoch", "lastFetchedEpoch", "int32", (12, 18)),
    Field("log_start_offset", "logStartOffset", "int64", (5, 18), ignorable=True),
    Field("partition_max_bytes", "partitionMaxBytes", "int32", (0, 18)),
    Field(
        "replica_directory_id",
        "replicaDirectoryId",
        "uuid",
        (17, 18),
        tagged=(17, 18),
        tag=0,
        ignorable=True,
    ),
    Field("high_watermark", "highWatermark", "int64", (18, 18), tagged=(18, 18), tag=1, ignorable=True),
)
FetchTopic.FIELDS = (
    Field("topic", "topic", "string", (0, 12), ignorable=True),
    Field("topic_id", "topicId", "uuid", (13, 18), ignorable=True),
    Field("partitions", "partitions", "[]FetchPartition", (0, 18), struct=FetchPartition),
)
ForgottenTopic.FIELDS = (
    Field("topic", "topic", "string", (7, 12), ignorable=True),
    Field("topic_id", "topicId", "uuid", (13, 18), ignorable=True),
    Field("partitions", "partitions", "[]int32", (7, 18)),
)
FetchRequest.FIELDS = (
    Field(
        "cluster_id",
        "clusterId",
        "string",
        (12, 18),
        nullable=(12, 18),
        tagged=(12, 18),
        tag=0,
        ignorable=True,
    ),
    Field("replica_id", "replicaId", "int32", (0, 14)),
    Field(
        "replica_state",
        "replicaState",
        "ReplicaState",
        (15, 18),
        tagged=(15, 18),
        tag=1,
        struct=ReplicaState,
    ),
    Field("max_wait_ms", "maxWaitMs", "int32", (0, 18)),
    Field("min_bytes", "minBytes", "int32", (0, 18)),
    Field("max_bytes", "maxBytes", "int32", (3, 18), ignorable=True),
    Field("isolation_level", "isolationLevel", "int8", (4, 18), ignorable=True),
    Field("session_id", "sessionId", "int32", (7, 18), ignorable=True),
    Field("session_epoch", "sessionEpoch", "int32", (7, 18), ignorable=True),
    Field("topics", "topics", "[]FetchTopic", (0, 18), struct=FetchTopic),
    Field("forgotten_topics_data", "forgottenTopicsData", "[]ForgottenTopic", (7, 18), struct=ForgottenTopic),
    Field("rack_id", "rackId", "string", (11, 18), ignorable=True),
)
