"""StreamsGroupTopologyValue, versions 0–0: its classes, and one read and write pair per layout.

Generated from schemas/StreamsGroupTopologyValue.json by `python -m codegen`; edits here are lost.
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
    int16_array,
    left_over,
    new,
    read_compact_strings,
    read_string_length,
    read_tags,
    read_uvarint,
    write_tags,
)

pack_i4: Final = struct.Struct(">i").pack
pack_i4_i2: Final = struct.Struct(">ih").pack
unpack_i4_i2_u1: Final = struct.Struct(">ihB").unpack_from
unpack_i4_u1: Final = struct.Struct(">iB").unpack_from


@define(weakref_slot=False)
class TopicConfig(Struct):
    """One configuration key for an internal topic.

    Attributes:
        key: Name of the topic configuration.
        value: Value of the topic configuration, as text.
    """

    key: str = ""
    value: str = ""


@define(weakref_slot=False)
class TopicInfo(Struct):
    """An internal topic that the group needs, and how to create it.

    Attributes:
        name: The name of the internal topic.
        partitions: How many partitions it needs; 0 to derive that from its inputs.
        replication_factor: How many replicas it is to have; 0 for the cluster's default.
        topic_configs: Further configuration for its creation.
    """

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = Factory(list)


@define(weakref_slot=False)
class CopartitionGroup(Struct):
    """Sets of its topics that must have the same number of partitions.

    Attributes:
        source_topics: Members of the set as indexes into SourceTopics, from 0.
        source_topic_regex: Members of the set as indexes into SourceTopicRegex, from 0.
        repartition_source_topics: Members of the set as indexes into RepartitionSourceTopics, from 0.
    """

    source_topics: list[int] = Factory(list)
    source_topic_regex: list[int] = Factory(list)
    repartition_source_topics: list[int] = Factory(list)


@define(weakref_slot=False)
class Subtopology(Struct):
    """The parts of the topology that share no state and are assigned on their own.

    Attributes:
        subtopology_id: The subtopology's id, unique within the topology.
        source_topics: Names of the outer topics it reads.
        source_topic_regex: Patterns of the outer topics it reads.
        state_changelog_topics: Internal topics that back up its state stores.
        repartition_sink_topics: Internal topics it writes for other subtopologies to read.
        repartition_source_topics: Internal topics it reads that other subtopologies write.
        copartition_groups: Sets of its topics that must have the same number of partitions.
    """

    subtopology_id: str = ""
    source_topics: list[str] = Factory(list)
    source_topic_regex: list[str] = Factory(list)
    state_changelog_topics: list[TopicInfo] = Factory(list)
    repartition_sink_topics: list[str] = Factory(list)
    repartition_source_topics: list[TopicInfo] = Factory(list)
    copartition_groups: list[CopartitionGroup] = Factory(list)


@define(weakref_slot=False)
class StreamsGroupTopologyValue(Message):
    """The processing topology of a streams group: its subtopologies with the topics each of them reads and
    writes.

    Attributes:
        epoch: Epoch of the topology; the application raises it when it changes the topology.
        subtopologies: The parts of the topology that share no state and are assigned on their own.
    """

    NAME: ClassVar[str] = "StreamsGroupTopologyValue"
    TYPE: ClassVar[str] = "coordinator-value"
    API_KEY: ClassVar[int | None] = 23
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE_SINCE: ClassVar[int | None] = 0

    epoch: int = 0
    subtopologies: list[Subtopology] = Factory(list)


# TopicConfig in version 0
def read_topic_config_v0(data: Buffer, at: int, size: int) -> tuple[TopicConfig, int]:
    message = new(TopicConfig)
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


def write_topic_config_v0(message: TopicConfig, add: Add) -> None:
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


# TopicInfo in version 0
def read_topic_info_v0(data: Buffer, at: int, size: int) -> tuple[TopicInfo, int]:
    message = new(TopicInfo)
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
    message.partitions, message.replication_factor, count = unpack_i4_i2_u1(data, at)
    at += 7
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 3 <= size - at:
        raise Malformed("topic_configs")
    topic_configs: list[TopicConfig] = []
    for _ in range(count):
        topic_config, at = read_topic_config_v0(data, at, size)
        topic_configs.append(topic_config)
    message.topic_configs = topic_configs
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_topic_info_v0(message: TopicInfo, add: Add) -> None:
    name = message.name.encode()
    add(compact_string_length[len(name)])
    add(name)
    add(pack_i4_i2(message.partitions, message.replication_factor))
    topic_configs = message.topic_configs
    add(compact_length[len(topic_configs)])
    for topic_config in topic_configs:
        write_topic_config_v0(topic_config, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# CopartitionGroup in version 0
def read_copartition_group_v0(data: Buffer, at: int, size: int) -> tuple[CopartitionGroup, int]:
    message = new(CopartitionGroup)
    message.unknown_tags = ()
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("source_topics")
    message.source_topics = list(int16_array[count].unpack_from(data, at))
    at += 2 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("source_topic_regex")
    message.source_topic_regex = list(int16_array[count].unpack_from(data, at))
    at += 2 * count
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 2 <= size - at:
        raise Malformed("repartition_source_topics")
    message.repartition_source_topics = list(int16_array[count].unpack_from(data, at))
    at += 2 * count
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_copartition_group_v0(message: CopartitionGroup, add: Add) -> None:
    source_topics = message.source_topics
    add(compact_length[len(source_topics)])
    add(int16_array[len(source_topics)].pack(*source_topics))
    source_topic_regex = message.source_topic_regex
    add(compact_length[len(source_topic_regex)])
    add(int16_array[len(source_topic_regex)].pack(*source_topic_regex))
    repartition_source_topics = message.repartition_source_topics
    add(compact_length[len(repartition_source_topics)])
    add(int16_array[len(repartition_source_topics)].pack(*repartition_source_topics))
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# Subtopology in version 0
def read_subtopology_v0(data: Buffer, at: int, size: int) -> tuple[Subtopology, int]:
    message = new(Subtopology)
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
    if not 0 <= count <= size - at:
        raise Malformed("source_topics")
    message.source_topics, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("source_topic_regex")
    message.source_topic_regex, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 9 <= size - at:
        raise Malformed("state_changelog_topics")
    state_changelog_topics: list[TopicInfo] = []
    for _ in range(count):
        state_changelog_topic, at = read_topic_info_v0(data, at, size)
        state_changelog_topics.append(state_changelog_topic)
    message.state_changelog_topics = state_changelog_topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count <= size - at:
        raise Malformed("repartition_sink_topics")
    message.repartition_sink_topics, at = read_compact_strings(count, data, at, size)
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 9 <= size - at:
        raise Malformed("repartition_source_topics")
    repartition_source_topics: list[TopicInfo] = []
    for _ in range(count):
        repartition_source_topic, at = read_topic_info_v0(data, at, size)
        repartition_source_topics.append(repartition_source_topic)
    message.repartition_source_topics = repartition_source_topics
    count = data[at]
    at += 1
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 4 <= size - at:
        raise Malformed("copartition_groups")
    copartition_groups: list[CopartitionGroup] = []
    for _ in range(count):
        copartition_group, at = read_copartition_group_v0(data, at, size)
        copartition_groups.append(copartition_group)
    message.copartition_groups = copartition_groups
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_subtopology_v0(message: Subtopology, add: Add) -> None:
    subtopology_id = message.subtopology_id.encode()
    add(compact_string_length[len(subtopology_id)])
    add(subtopology_id)
    source_topics = message.source_topics
    add(compact_length[len(source_topics)])
    for source_topic in source_topics:
        source_topic_bytes = source_topic.encode()
        add(compact_string_length[len(source_topic_bytes)])
        add(source_topic_bytes)
    source_topic_regex = message.source_topic_regex
    add(compact_length[len(source_topic_regex)])
    for source_topic_regex_item in source_topic_regex:
        source_topic_regex_item_bytes = source_topic_regex_item.encode()
        add(compact_string_length[len(source_topic_regex_item_bytes)])
        add(source_topic_regex_item_bytes)
    state_changelog_topics = message.state_changelog_topics
    add(compact_length[len(state_changelog_topics)])
    for state_changelog_topic in state_changelog_topics:
        write_topic_info_v0(state_changelog_topic, add)
    repartition_sink_topics = message.repartition_sink_topics
    add(compact_length[len(repartition_sink_topics)])
    for repartition_sink_topic in repartition_sink_topics:
        repartition_sink_topic_bytes = repartition_sink_topic.encode()
        add(compact_string_length[len(repartition_sink_topic_bytes)])
        add(repartition_sink_topic_bytes)
    repartition_source_topics = message.repartition_source_topics
    add(compact_length[len(repartition_source_topics)])
    for repartition_source_topic in repartition_source_topics:
        write_topic_info_v0(repartition_source_topic, add)
    copartition_groups = message.copartition_groups
    add(compact_length[len(copartition_groups)])
    for copartition_group in copartition_groups:
        write_copartition_group_v0(copartition_group, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# StreamsGroupTopologyValue in version 0
def read_v0(data: Buffer, at: int, size: int) -> tuple[StreamsGroupTopologyValue, int]:
    message = new(StreamsGroupTopologyValue)
    message.unknown_tags = ()
    message.epoch, count = unpack_i4_u1(data, at)
    at += 5
    if count > 127:
        count, at = read_uvarint(data, at - 1)
    count -= 1
    if not 0 <= count * 8 <= size - at:
        raise Malformed("subtopologies")
    subtopologies: list[Subtopology] = []
    for _ in range(count):
        subtopologie, at = read_subtopology_v0(data, at, size)
        subtopologies.append(subtopologie)
    message.subtopologies = subtopologies
    tags = data[at]
    at += 1
    if tags:
        found, at = read_tags(tags, data, at, size)
        message.unknown_tags = left_over(found)
    return message, at


def write_v0(message: StreamsGroupTopologyValue, add: Add) -> None:
    add(pack_i4(message.epoch))
    subtopologies = message.subtopologies
    add(compact_length[len(subtopologies)])
    for subtopologie in subtopologies:
        write_subtopology_v0(subtopologie, add)
    if message.unknown_tags:
        write_tags((), {}, message.unknown_tags, add)
    else:
        add(b"\x00")


# version → its layout's pair
CODECS: dict[int, Codec[StreamsGroupTopologyValue]] = {
    0: (read_v0, write_v0),
}

# what JSON and error messages know of the fields
TopicConfig.FIELDS = (
    Field("key", "key", "string", (0, 0)),
    Field("value", "value", "string", (0, 0)),
)
TopicInfo.FIELDS = (
    Field("name", "name", "string", (0, 0)),
    Field("partitions", "partitions", "int32", (0, 0)),
    Field("replication_factor", "replicationFactor", "int16", (0, 0)),
    Field("topic_configs", "topicConfigs", "[]TopicConfig", (0, 0), struct=TopicConfig),
)
CopartitionGroup.FIELDS = (
    Field("source_topics", "sourceTopics", "[]int16", (0, 0)),
    Field("source_topic_regex", "sourceTopicRegex", "[]int16", (0, 0)),
    Field("repartition_source_topics", "repartitionSourceTopics", "[]int16", (0, 0)),
)
Subtopology.FIELDS = (
    Field("subtopology_id", "subtopologyId", "string", (0, 0)),
    Field("source_topics", "sourceTopics", "[]string", (0, 0)),
    Field("source_topic_regex", "sourceTopicRegex", "[]string", (0, 0)),
    Field("state_changelog_topics", "stateChangelogTopics", "[]TopicInfo", (0, 0), struct=TopicInfo),
    Field("repartition_sink_topics", "repartitionSinkTopics", "[]string", (0, 0)),
    Field("repartition_source_topics", "repartitionSourceTopics", "[]TopicInfo", (0, 0), struct=TopicInfo),
    Field("copartition_groups", "copartitionGroups", "[]CopartitionGroup", (0, 0), struct=CopartitionGroup),
)
StreamsGroupTopologyValue.FIELDS = (
    Field("epoch", "epoch", "int32", (0, 0)),
    Field("subtopologies", "subtopologies", "[]Subtopology", (0, 0), struct=Subtopology),
)
