"""Read the records between two times:

    python replay_by_time.py localhost:9092 flights 2026-01-31T08:00Z 2026-01-31T09:00Z

No group, no commits: nothing else notices. Records are ordered by offset and not by time, so a record that was
written late may be left out or come with the others: the times choose offsets.
"""

from __future__ import annotations

import sys
from datetime import datetime

from kclient import Consumer, TopicPartition


def main(servers: str, topic: str, begin: datetime, end: datetime) -> None:
    with Consumer(bootstrap_servers=servers) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        starts = consumer.offsets_for_times(dict.fromkeys(partitions, begin))
        stops = consumer.offsets_for_times(dict.fromkeys(partitions, end))
        newest = consumer.end_offsets(partitions)
        until = {tp: found.offset if (found := stops[tp]) else newest[tp] for tp in partitions}
        first = {tp: found.offset for tp in partitions if (found := starts[tp]) and found.offset < until[tp]}
        consumer.assign(first)
        for tp, offset in first.items():
            consumer.seek(tp, offset)
        while first and any(consumer.position(tp) < until[tp] for tp in first):
            for record in consumer.poll(timeout=5.0):
                if record.offset < until[TopicPartition(record.topic, record.partition)]:
                    print(record.timestamp, record.partition, record.offset, record.value)


if __name__ == "__main__":
    servers, topic, begin, end = sys.argv[1:]
    main(servers, topic, datetime.fromisoformat(begin), datetime.fromisoformat(end))
