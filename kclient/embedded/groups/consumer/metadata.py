"""What a consumer group knows of the topics that it reads, and a hash by which it sees that they changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kclient.embedded.state import Partition, Topic

if TYPE_CHECKING:
    from kclient.embedded.groups.consumer.group import ConsumerGroup


def topics_read(group: ConsumerGroup) -> list[Topic]:
    """The topics that a member wants and that exist, by name."""
    names = {name: None for member in group.members.values() for name in group.topics_of(member)}
    return [group.cluster.topics[name] for name in sorted(names) if name in group.cluster.topics]


def metadata_hash(group: ConsumerGroup) -> int:
    """A signed 64-bit number that differs when topics, their ids, partitions or racks do; 0 without topics."""
    with_racks = any(broker.rack is not None for broker in group.cluster.brokers.values())
    return hash_of(
        (
            topic.name,
            topic.topic_id,
            len(topic.partitions),
            [replica_racks(group, one) for one in topic.partitions] if with_racks else [],
        )
        for topic in topics_read(group)
    )


def hash_of(topics: Iterable[tuple[str, bytes, int, Sequence[Sequence[str]]]]) -> int:
    """The hash of topics in the order of their names: name, id, number of partitions, racks of each one's replicas."""
    whole = hashlib.blake2b(digest_size=8)
    known = False
    for name, topic_id, partitions, racks in topics:
        known = True
        whole.update(repr((name, topic_id, partitions, list(racks) if any(racks) else [])).encode())
    return int.from_bytes(whole.digest(), "big", signed=True) if known else 0


def replica_racks(group: ConsumerGroup, partition: Partition) -> list[str]:
    """The racks of a partition's replicas, in alphabetical order."""
    racks = {group.cluster.brokers[node].rack for node in partition.replicas}
    return sorted(rack for rack in racks if rack is not None)
