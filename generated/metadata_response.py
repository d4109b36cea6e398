"""MetadataResponse, versions 0–13: its classes, and one read and write pair per layout.

Generated from schemas/MetadataResponse.json by `python -m codegen`; edits here are lost.
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
    write_tags,
)

pack_bool: Final = struct.Struct(">?").pack
pack_bool_i4: Final = struct.Struct(">?i").pack
pack_i2: Final = struct.Struct(">h").pack
pack_i2_i4x3: Final = struct.Struct(">hiii").pack
pack_i2_i4x4: Final = struct.Struct(">hiiii").pack
pack_i2x2: Final = struct.Struct(">hh").pack
pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
pack_i4x2: Final = struct.Struct(">ii").pack
pack_uuid_bool: Final = struct.Struct(">16s?").pack
unpack_bool_i4: Final = struct.Struct(">?i").unpack_from
unpack_bool_u1: Final = struct.Struct(">?B").unpack_from
unpack_i2: Final = struct.Struct(">h").unpack_from
unpack_i2_i4x3: Final = struct.Struct(">hiii").unpack_from
unpack_i2_i4x3_u1: Final = struct.Struct(">hiiiB").unpack_from
unpack_i2_i4x4: Final = struct.Struct(">hiiii").unpack_from
unpack_i2_u1: Final = struct.Struct(">hB").unpack_from
unpack_i2x2: Final = struct.Struct(">hh").unpack_from
unpack_i4: Final = struct.Struct(">i").unpack_from
unpack_i4_i2: Final = struct.Struct(">ih").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from
unpack_i4x2: Final = struct.Struct(">ii").unpack_from
unpack_uuid_bool_u1: Final = struct.Struct(">16s?B").unpack_from


@define(weakref_slot=False)
class MetadataResponseBroker(Struct):
    """The brokers that are alive; an empty list is no usable answer.

    Attributes:
        node_id: The broker's id, by which partitions name their leaders and replicas.
        host: Name or address at which the broker listens, on the listener the question came in by.
        port: TCP port of the broker on that listener.
        rack: The broker's rack, for rack-aware assignment; null when it has none.
    """

    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


@define(weakref_slot=False)
class MetadataResponsePartition(Struct):
    """The topic's partitions in no particular order; empty when ErrorCode is set.

    Attributes:
        error_code: 0, or what is wrong with the partition: LEADER_NOT_AVAILABLE (5) while an election is
            going on.
        partition_index: The partition's number within its topic.
        leader_id: Broker id of the leader; -1 when there is none.
        leader_epoch: Counts the elections of the partition: information with a lower epoch is stale. -1 when
            unknown; not reliable before version 9.
        replica_nodes: Broker ids of all replicas, the preferred leader first.
        isr_nodes: Broker ids of the replicas in sync with the leader.
        offline_replicas: Broker ids of replicas that cannot serve: their broker or their disk is gone.
    """

    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = Factory(list)
    isr_nodes: list[int] = Factory(list)
    offline_replicas: list[int] = Factory(list)


@define(weakref_slot=False)
class MetadataResponseTopic(Struct):
    """The asked topics, or all the caller may see.

    Attributes:
        error_code: 0, or why the topic cannot be described: 3 unknown (yet), 17 bad name, 29 not authorized,
            100 unknown id.
        name: The topic's name; null, from version 12 on, when it was asked by an id that is unknown.
        topic_id: The topic's id, which a recreated topic does not share with its predecessor; zero when the
            broker knows none.
        is_internal: True for Kafka's own topics, such as __consumer_offsets, which pattern subscriptions
            leave out by default.
        partitions: The topic's partitions in no particular order; empty when ErrorCode is set.
        topic_authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on the
            topic; -2147483648 when not asked for.
    """

    error_code: int = 0
    name: str | None = ""
    topic_id: Uuid = ZERO_UUID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = Factory(list)
    topic_authorized_operations: int = -2147483648


@define(weakref_slot=False)
class MetadataResponse(Message):
    """The cluster as one broker knows it: nodes, topics, partitions and leaders. It may be out of date, which
    leader epochs reveal.

    Attributes:
        throttle_time_ms: Milliseconds of quota debt, 0 for none. Since version 6 the answer is immediate and
            the client must stay silent that long; before, the broker had already held the answer back.
        brokers: The brokers that are alive; an empty list is no usable answer.
        cluster_id: Unchanging id of the cluster; a change means that a bootstrap address now leads elsewhere.
            Null from brokers that have none.
        controller_id: Broker id to send administrative requests to; with KRaft any live broker, which
            forwards them. -1 when unknown.
        topics: The asked topics, or all the caller may see.
        cluster_authorized_operations: Bit n set if the caller may do operation n of Kafka's access rules on
            the cluster; -2147483648 when not asked for.
        error_code: 0, or why the whole answer is void: REBOOTSTRAP_REQUIRED (129) asks to start over from the
            bootstrap addresses.
    """

    NAME: ClassVar[str] = "MetadataResponse"
    TYPE: ClassVar[str] = "response"
    API_KEY: ClassVar[int | None] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE_SINCE: ClassVar[int | None] = 9

    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = Factory(list)
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = Factory(list)
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0


# MetadataResponseBroker in version 0
def read_metadata_response_broker_v0(data: Buffer, at: int, size: int) -> tuple[MetadataResponseBroker, int]:
    message = new(MetadataResponseBroker)
    message.rack = None
    message.unknown_tags = ()
    message.node_id, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    (message.port,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_metadata_response_broker_v0(message: MetadataResponseBroker, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    host = message.host.encode()
    add(pack_i4_i2(message.node_id, len(host)))
    add(host)
    add(pack_i4(message.port))


# MetadataResponsePartition in versions 0–4
def read_metadata_response_partition_v0(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[MetadataResponsePartition, int]:
    message = new(MetadataResponsePartition)
    message.leader_epoch = -1
    message.offline_replicas = []
    message.unknown_tags = ()
    message.error_code, message.partition_index, message.leader_id, count = unpack_i2_i4x3(data, at)
    at += 14
    if not 0 <= count * 4 <= size - at:
        raise Malformed("replica_nodes")
    message.replica_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("isr_nodes")
    message.isr_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_metadata_response_partition_v0(message: MetadataResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    replica_nodes = message.replica_nodes
    add(pack_i2_i4x3(message.error_code, message.partition_index, message.leader_id, len(replica_nodes)))
    add(int32_array[len(replica_nodes)].pack(*replica_nodes))
    isr_nodes = message.isr_nodes
    add(pack_i4(len(isr_nodes)))
    add(int32_array[len(isr_nodes)].pack(*isr_nodes))


# MetadataResponseTopic in version 0
def read_metadata_response_topic_v0(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.is_internal = False
    message.topic_authorized_operations = -2147483648
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_metadata_response_topic_v0(message: MetadataResponseTopic, add: Add) -> None:
    if message.topic_authorized_operations != -2147483648:
        raise Unwritable("topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2x2(message.error_code, len(name)))
    add(name)
    partitions = message.partitions
    add(pack_i4(len(partitions)))
    for partition in partitions:
        write_metadata_response_partition_v0(partition, add)


# MetadataResponse in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_id = None
    message.controller_id = -1
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 10 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v0(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 8 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v0(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v0(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4(len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v0(broker, add)
    topics = message.topics
    add(pack_i4(len(topics)))
    for topic in topics:
        write_metadata_response_topic_v0(topic, add)


# MetadataResponseBroker in versions 1–8
def read_metadata_response_broker_v1(data: Buffer, at: int, size: int) -> tuple[MetadataResponseBroker, int]:
    message = new(MetadataResponseBroker)
    message.unknown_tags = ()
    message.node_id, length = unpack_i4_i2(data, at)
    at += 6
    end = at + length
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, length = unpack_i4_i2(data, at)
    at += 6
    if length == -1:
        message.rack = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("rack")
        message.rack = str(data[at:end], "utf-8")
        at = end
    return message, at


def write_metadata_response_broker_v1(message: MetadataResponseBroker, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    host = message.host.encode()
    add(pack_i4_i2(message.node_id, len(host)))
    add(host)
    add(pack_i4(message.port))
    rack = message.rack
    if rack is None:
        add(b"\xff\xff")
    else:
        rack_bytes = rack.encode()
        add(pack_i2(len(rack_bytes)))
        add(rack_bytes)


# MetadataResponseTopic in versions 1–4
def read_metadata_response_topic_v1(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.topic_authorized_operations = -2147483648
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.is_internal, count = unpack_bool_i4(data, at)
    at += 5
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v0(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_metadata_response_topic_v1(message: MetadataResponseTopic, add: Add) -> None:
    if message.topic_authorized_operations != -2147483648:
        raise Unwritable("topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2x2(message.error_code, len(name)))
    add(name)
    partitions = message.partitions
    add(pack_bool_i4(message.is_internal, len(partitions)))
    for partition in partitions:
        write_metadata_response_partition_v0(partition, add)


# MetadataResponse in version 1
def read_v1(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_id = None
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 9 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v1(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4(len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v1(topic, add)


# MetadataResponse in version 2
def read_v2(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.throttle_time_ms = 0
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.cluster_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 9 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v2(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4(len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\xff\xff")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(pack_i2(len(cluster_id_bytes)))
        add(cluster_id_bytes)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v1(topic, add)


# MetadataResponse in versions 3–4
def read_v3(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.cluster_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 9 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v1(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v3(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4x2(message.throttle_time_ms, len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\xff\xff")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(pack_i2(len(cluster_id_bytes)))
        add(cluster_id_bytes)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v1(topic, add)


# MetadataResponsePartition in versions 5–6
def read_metadata_response_partition_v5(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[MetadataResponsePartition, int]:
    message = new(MetadataResponsePartition)
    message.leader_epoch = -1
    message.unknown_tags = ()
    message.error_code, message.partition_index, message.leader_id, count = unpack_i2_i4x3(data, at)
    at += 14
    if not 0 <= count * 4 <= size - at:
        raise Malformed("replica_nodes")
    message.replica_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("isr_nodes")
    message.isr_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("offline_replicas")
    message.offline_replicas = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_metadata_response_partition_v5(message: MetadataResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    replica_nodes = message.replica_nodes
    add(pack_i2_i4x3(message.error_code, message.partition_index, message.leader_id, len(replica_nodes)))
    add(int32_array[len(replica_nodes)].pack(*replica_nodes))
    isr_nodes = message.isr_nodes
    add(pack_i4(len(isr_nodes)))
    add(int32_array[len(isr_nodes)].pack(*isr_nodes))
    offline_replicas = message.offline_replicas
    add(pack_i4(len(offline_replicas)))
    add(int32_array[len(offline_replicas)].pack(*offline_replicas))


# MetadataResponseTopic in versions 5–6
def read_metadata_response_topic_v5(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.topic_authorized_operations = -2147483648
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.is_internal, count = unpack_bool_i4(data, at)
    at += 5
    if not 0 <= count * 22 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v5(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_metadata_response_topic_v5(message: MetadataResponseTopic, add: Add) -> None:
    if message.topic_authorized_operations != -2147483648:
        raise Unwritable("topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2x2(message.error_code, len(name)))
    add(name)
    partitions = message.partitions
    add(pack_bool_i4(message.is_internal, len(partitions)))
    for partition in partitions:
        write_metadata_response_partition_v5(partition, add)


# MetadataResponse in versions 5–6
def read_v5(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.cluster_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 9 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v5(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v5(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4x2(message.throttle_time_ms, len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\xff\xff")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(pack_i2(len(cluster_id_bytes)))
        add(cluster_id_bytes)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v5(topic, add)


# MetadataResponsePartition in versions 7–8
def read_metadata_response_partition_v7(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[MetadataResponsePartition, int]:
    message = new(MetadataResponsePartition)
    message.unknown_tags = ()
    (
        message.error_code,
        message.partition_index,
        message.leader_id,
        message.leader_epoch,
        count,
    ) = unpack_i2_i4x4(data, at)
    at += 18
    if not 0 <= count * 4 <= size - at:
        raise Malformed("replica_nodes")
    message.replica_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("isr_nodes")
    message.isr_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    (count,) = unpack_i4(data, at)
    at += 4
    if not 0 <= count * 4 <= size - at:
        raise Malformed("offline_replicas")
    message.offline_replicas = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    return message, at


def write_metadata_response_partition_v7(message: MetadataResponsePartition, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    replica_nodes = message.replica_nodes
    add(
        pack_i2_i4x4(
            message.error_code,
            message.partition_index,
            message.leader_id,
            message.leader_epoch,
            len(replica_nodes),
        )
    )
    add(int32_array[len(replica_nodes)].pack(*replica_nodes))
    isr_nodes = message.isr_nodes
    add(pack_i4(len(isr_nodes)))
    add(int32_array[len(isr_nodes)].pack(*isr_nodes))
    offline_replicas = message.offline_replicas
    add(pack_i4(len(offline_replicas)))
    add(int32_array[len(offline_replicas)].pack(*offline_replicas))


# MetadataResponseTopic in version 7
def read_metadata_response_topic_v7(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.topic_authorized_operations = -2147483648
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.is_internal, count = unpack_bool_i4(data, at)
    at += 5
    if not 0 <= count * 26 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v7(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    return message, at


def write_metadata_response_topic_v7(message: MetadataResponseTopic, add: Add) -> None:
    if message.topic_authorized_operations != -2147483648:
        raise Unwritable("topic_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2x2(message.error_code, len(name)))
    add(name)
    partitions = message.partitions
    add(pack_bool_i4(message.is_internal, len(partitions)))
    for partition in partitions:
        write_metadata_response_partition_v7(partition, add)


# MetadataResponse in version 7
def read_v7(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.cluster_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 9 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v7(data, at, size)
        topics.append(topic)
    message.topics = topics
    return message, at


def write_v7(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4x2(message.throttle_time_ms, len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\xff\xff")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(pack_i2(len(cluster_id_bytes)))
        add(cluster_id_bytes)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v7(topic, add)


# MetadataResponseTopic in version 8
def read_metadata_response_topic_v8(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.error_code, length = unpack_i2x2(data, at)
    at += 4
    end = at + length
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.is_internal, count = unpack_bool_i4(data, at)
    at += 5
    if not 0 <= count * 26 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v7(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    (message.topic_authorized_operations,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_metadata_response_topic_v8(message: MetadataResponseTopic, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    if message.name is None:
        raise Unwritable("name")
    name = message.name.encode()
    add(pack_i2x2(message.error_code, len(name)))
    add(name)
    partitions = message.partitions
    add(pack_bool_i4(message.is_internal, len(partitions)))
    for partition in partitions:
        write_metadata_response_partition_v7(partition, add)
    add(pack_i4(message.topic_authorized_operations))


# MetadataResponse in version 8
def read_v8(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 12 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v1(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    (length,) = unpack_i2(data, at)
    at += 2
    if length == -1:
        message.cluster_id = None
    else:
        end = at + length
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4x2(data, at)
    at += 8
    if not 0 <= count * 13 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v8(data, at, size)
        topics.append(topic)
    message.topics = topics
    (message.cluster_authorized_operations,) = unpack_i4(data, at)
    at += 4
    return message, at


def write_v8(message: MetadataResponse, add: Add) -> None:
    if message.unknown_tags:
        raise Unwritable("unknown_tags")
    brokers = message.brokers
    add(pack_i4x2(message.throttle_time_ms, len(brokers)))
    for broker in brokers:
        write_metadata_response_broker_v1(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\xff\xff")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(pack_i2(len(cluster_id_bytes)))
        add(cluster_id_bytes)
    topics = message.topics
    add(pack_i4x2(message.controller_id, len(topics)))
    for topic in topics:
        write_metadata_response_topic_v8(topic, add)
    add(pack_i4(message.cluster_authorized_operations))


# MetadataResponseBroker in versions 9–13
def read_metadata_response_broker_v9(data: Buffer, at: int, size: int) -> tuple[MetadataResponseBroker, int]:
    message = new(MetadataResponseBroker)
    message.unknown_tags = ()
    message.node_id, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("host")
    message.host = str(data[at:end], "utf-8")
    at = end
    message.port, length = unpack_i4_u1(data, at)
    at += 5
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.rack = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("rack")
        message.rack = str(data[at:end], "utf-8")
        at = end
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_response_broker_v9(message: MetadataResponseBroker, add: Add) -> None:
    add(pack_i4(message.node_id))
    host = message.host.encode()
    add(compact_string_length[len(host)])
    add(host)
    add(pack_i4(message.port))
    rack = message.rack
    if rack is None:
        add(b"\x00")
    else:
        rack_bytes = rack.encode()
        add(compact_string_length[len(rack_bytes)])
        add(rack_bytes)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponsePartition in versions 9–13
def read_metadata_response_partition_v9(
    data: Buffer,
    at: int,
    size: int,
) -> tuple[MetadataResponsePartition, int]:
    message = new(MetadataResponsePartition)
    message.unknown_tags = ()
    (
        message.error_code,
        message.partition_index,
        message.leader_id,
        message.leader_epoch,
        count,
    ) = unpack_i2_i4x3_u1(data, at)
    at += 15
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("replica_nodes")
    message.replica_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("isr_nodes")
    message.isr_nodes = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("offline_replicas")
    message.offline_replicas = list(int32_array[count].unpack_from(data, at))
    at += 4 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_response_partition_v9(message: MetadataResponsePartition, add: Add) -> None:
    add(pack_i2_i4x3(message.error_code, message.partition_index, message.leader_id, message.leader_epoch))
    replica_nodes = message.replica_nodes
    add(compact_length[len(replica_nodes)])
    add(int32_array[len(replica_nodes)].pack(*replica_nodes))
    isr_nodes = message.isr_nodes
    add(compact_length[len(isr_nodes)])
    add(int32_array[len(isr_nodes)].pack(*isr_nodes))
    offline_replicas = message.offline_replicas
    add(compact_length[len(offline_replicas)])
    add(int32_array[len(offline_replicas)].pack(*offline_replicas))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponseTopic in version 9
def read_metadata_response_topic_v9(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.topic_id = ZERO_UUID
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.is_internal, count = unpack_bool_u1(data, at)
    at += 2
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v9(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    message.topic_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_response_topic_v9(message: MetadataResponseTopic, add: Add) -> None:
    if message.name is None:
        raise Unwritable("name")
    add(pack_i2(message.error_code))
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_bool(message.is_internal))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_metadata_response_partition_v9(partition, add)
    add(pack_i4(message.topic_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponse in version 9
def read_v9(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v9(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 10 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v9(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.cluster_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v9(message: MetadataResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_metadata_response_broker_v9(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.controller_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_metadata_response_topic_v9(topic, add)
    add(pack_i4(message.cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponseTopic in versions 10–11
def read_metadata_response_topic_v10(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    end = at + length - 1
    if not at <= end <= size:
        raise Malformed("name")
    message.name = str(data[at:end], "utf-8")
    at = end
    message.topic_id, message.is_internal, count = unpack_uuid_bool_u1(data, at)
    at += 18
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v9(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    message.topic_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_response_topic_v10(message: MetadataResponseTopic, add: Add) -> None:
    if message.name is None:
        raise Unwritable("name")
    add(pack_i2(message.error_code))
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid_bool(message.topic_id, message.is_internal))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_metadata_response_partition_v9(partition, add)
    add(pack_i4(message.topic_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponse in version 10
def read_v10(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v9(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 26 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v10(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.cluster_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v10(message: MetadataResponse, add: Add) -> None:
    add(pack_i4(message.throttle_time_ms))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_metadata_response_broker_v9(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.controller_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_metadata_response_topic_v10(topic, add)
    add(pack_i4(message.cluster_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponse in version 11
def read_v11(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v9(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 26 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v10(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v11(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    add(pack_i4(message.throttle_time_ms))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_metadata_response_broker_v9(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.controller_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_metadata_response_topic_v10(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponseTopic in versions 12–13
def read_metadata_response_topic_v12(data: Buffer, at: int, size: int) -> tuple[MetadataResponseTopic, int]:
    message = new(MetadataResponseTopic)
    message.unknown_tags = ()
    message.error_code, length = unpack_i2_u1(data, at)
    at += 3
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.name = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("name")
        message.name = str(data[at:end], "utf-8")
        at = end
    message.topic_id, message.is_internal, count = unpack_uuid_bool_u1(data, at)
    at += 18
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 18 <= size - at:
        raise Malformed("partitions")
    partitions: list[MetadataResponsePartition] = []
    for _ in range(count):
        partition, at = read_metadata_response_partition_v9(data, at, size)
        partitions.append(partition)
    message.partitions = partitions
    message.topic_authorized_operations, tags = unpack_i4_u1(data, at)
    at += 5
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_metadata_response_topic_v12(message: MetadataResponseTopic, add: Add) -> None:
    add(pack_i2(message.error_code))
    name = message.name
    if name is None:
        add(b"\x00")
    else:
        name_bytes = name.encode()
        add(compact_string_length[len(name_bytes)])
        add(name_bytes)
    if len(message.topic_id) != 16:
        raise Unwritable("topic_id")
    add(pack_uuid_bool(message.topic_id, message.is_internal))
    partitions = message.partitions
    add(compact_length[len(partitions)])
    for partition in partitions:
        write_metadata_response_partition_v9(partition, add)
    add(pack_i4(message.topic_authorized_operations))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponse in version 12
def read_v12(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.error_code = 0
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v9(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 26 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v12(data, at, size)
        topics.append(topic)
    message.topics = topics
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v12(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    add(pack_i4(message.throttle_time_ms))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_metadata_response_broker_v9(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.controller_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_metadata_response_topic_v12(topic, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# MetadataResponse in version 13
def read_v13(data: Buffer, at: int, size: int) -> tuple[MetadataResponse, int]:
    message = new(MetadataResponse)
    message.cluster_authorized_operations = -2147483648
    message.unknown_tags = ()
    message.throttle_time_ms, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 11 <= size - at:
        raise Malformed("brokers")
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        broker, at = read_metadata_response_broker_v9(data, at, size)
        brokers.append(broker)
    message.brokers = brokers
    length = data[at]
    at += 1
    if length > 127:
        length, at = read_string_length(data, at - 1)
    if length == 0:
        message.cluster_id = None
    else:
        end = at + length - 1
        if not at <= end <= size:
            raise Malformed("cluster_id")
        message.cluster_id = str(data[at:end], "utf-8")
        at = end
    message.controller_id, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 26 <= size - at:
        raise Malformed("topics")
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        topic, at = read_metadata_response_topic_v12(data, at, size)
        topics.append(topic)
    message.topics = topics
    message.error_code, tags = unpack_i2_u1(data, at)
    at += 3
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v13(message: MetadataResponse, add: Add) -> None:
    if message.cluster_authorized_operations != -2147483648:
        raise Unwritable("cluster_authorized_operations")
    add(pack_i4(message.throttle_time_ms))
    brokers = message.brokers
    add(compact_length[len(brokers)])
    for broker in brokers:
        write_metadata_response_broker_v9(broker, add)
    cluster_id = message.cluster_id
    if cluster_id is None:
        add(b"\x00")
    else:
        cluster_id_bytes = cluster_id.encode()
        add(compact_string_length[len(cluster_id_bytes)])
        add(cluster_id_bytes)
    add(pack_i4(message.controller_id))
    topics = message.topics
    add(compact_length[len(topics)])
    for topic in topics:
        write_metadata_response_topic_v12(topic, add)
    add(pack_i2(message.error_code))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[MetadataResponse]] = {
    0: (read_v0, write_v0),
    1: (read_v1, write_v1),
    2: (read_v2, write_v2),
    3: (read_v3, write_v3),
    4: (read_v3, write_v3),
    5: (read_v5, write_v5),
    6: (read_v5, write_v5),
    7: (read_v7, write_v7),
    8: (read_v8, write_v8),
    9: (read_v9, write_v9),
    10: (read_v10, write_v10),
    11: (read_v11, write_v11),
    12: (read_v12, write_v12),
    13: (read_v13, write_v13),
}

# what JSON and error messages know of the fields
MetadataResponseBroker.FIELDS = (
    Field("node_id", "nodeId", "int32", (0, 13)),
    Field("host", "host", "string", (0, 13)),
    Field("port", "port", "int32", (0, 13)),
    Field("rack", "rack", "string", (1, 13), nullable=(1, 13), ignorable=True),
)
MetadataResponsePartition.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 13)),
    Field("partition_index", "partitionIndex", "int32", (0, 13)),
    Field("leader_id", "leaderId", "int32", (0, 13)),
    Field("leader_epoch", "leaderEpoch", "int32", (7, 13), ignorable=True),
    Field("replica_nodes", "replicaNodes", "[]int32", (0, 13)),
    Field("isr_nodes", "isrNodes", "[]int32", (0, 13)),
    Field("offline_replicas", "offlineReplicas", "[]int32", (5, 13), ignorable=True),
)
MetadataResponseTopic.FIELDS = (
    Field("error_code", "errorCode", "int16", (0, 13)),
    Field("name", "name", "string", (0, 13), nullable=(12, 13)),
    Field("topic_id", "topicId", "uuid", (10, 13), ignorable=True),
    Field("is_internal", "isInternal", "bool", (1, 13), ignorable=True),
    Field(
        "partitions",
        "partitions",
        "[]MetadataResponsePartition",
        (0, 13),
        struct=MetadataResponsePartition,
    ),
    Field("topic_authorized_operations", "topicAuthorizedOperations", "int32", (8, 13)),
)
MetadataResponse.FIELDS = (
    Field("throttle_time_ms", "throttleTimeMs", "int32", (3, 13), ignorable=True),
    Field("brokers", "brokers", "[]MetadataResponseBroker", (0, 13), struct=MetadataResponseBroker),
    Field("cluster_id", "clusterId", "string", (2, 13), nullable=(2, 13), ignorable=True),
    Field("controller_id", "controllerId", "int32", (1, 13), ignorable=True),
    Field("topics", "topics", "[]MetadataResponseTopic", (0, 13), struct=MetadataResponseTopic),
    Field("cluster_authorized_operations", "clusterAuthorizedOperations", "int32", (8, 10)),
    Field("error_code", "errorCode", "int16", (13, 13), ignorable=True),
)
