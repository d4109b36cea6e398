"""What a consumer group knows of the topics that it reads, and a hash by which it sees that they changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kclient.embedded.topics import Partition, Topic

if TYPE_CHECKING:
    from kclient.embedded.groups.consumer.group import ConsumerGroup


def topics_read(group: ConsumerGroup) -> list[Topic]:
    """The topics that a member wants and that exist, by name."""
    names = {name: None for member in group.members.values() for name in group.topics_of(member)}
    return [group.cluster.topics[name] for name in sorted(names) if name in group.cluster.topics]


def metadata_hash(group: ConsumerGroup) -> int:
    """A signed 64-bit number that differs when topics, their ids, partitions or racks do; 0 without topics."""
    topics = topics_read(group)
    if not topics:
        return 0
    with_racks = any(broker.rack is not None for broker in group.cluster.brokers.values())
    whole = hashlib.blake2b(digest_size=8)
    for topic in topics:
        racks = [replica_racks(group, one) for one in topic.partitions] if with_racks else []
        whole.update(repr((topic.name, topic.topic_id, len(topic.partitions), racks)).encode())
    return int.from_bytes(whole.digest(), "big", signed=True)


def replica_racks(group: ConsumerGroup, partition: Partition) -> list[str]:
    """The racks of a partition's replicas, in alphabetical order."""
    racks = {group.cluster.brokers[node].rack for node in partition.replicas}
    return sorted(rack for rack in racks if rack is not None)
