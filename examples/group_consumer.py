"""Read a topic as a member of a group: python group_consumer.py localhost:9092 flights GROUP

Start it several times with the same group: the members share the partitions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from kclient import Consumer, RebalanceListener, TopicPartition


class Announce(RebalanceListener):
    """Says which partitions come and go."""

    def on_partitions_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        print("assigned:", *partitions, flush=True)

    def on_partitions_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        print("revoked:", *partitions, flush=True)


def main(servers: str, topic: str, group: str) -> None:
    with Consumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        listener=Announce(),
    ) as consumer:
        for record in consumer:
            print(record.partition, record.offset, record.key, record.value, flush=True)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        print("closed: the offsets of all printed records but the last are committed")
