"""Count the values of a topic exactly once: python exactly_once_sqlite.py localhost:9092 flights counts.db

The counts and the offsets up to which they count are written in one transaction, so a crash at any moment loses nothing
and counts nothing twice. Run it again: it continues. It ends when it has reached the present end of the topic.
"""

from __future__ import annotations

import sqlite3
import sys

from kclient import Consumer, Records, TopicPartition

TABLES = """
CREATE TABLE IF NOT EXISTS counts (value BLOB PRIMARY KEY, seen INTEGER);
CREATE TABLE IF NOT EXISTS offsets (topic TEXT, partition INTEGER, next INTEGER, PRIMARY KEY (topic, partition));
"""


def main(servers: str, topic: str, path: str) -> None:
    database = sqlite3.connect(path)
    database.executescript(TABLES)
    with Consumer(bootstrap_servers=servers) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        for name, number, following in database.execute("SELECT * FROM offsets WHERE topic = ?", [topic]):
            consumer.seek(TopicPartition(name, number), following)
        while any(consumer.position(tp) < ends[tp] for tp in partitions):
            store(database, consumer.poll(timeout=5.0))
    for value, seen in database.execute("SELECT value, seen FROM counts ORDER BY seen DESC, value LIMIT 10"):
        print(seen, value.decode())


def store(database: sqlite3.Connection, records: Records) -> None:
    """Write what the records add, and the offsets after them, in one transaction."""
    added = [(record.value or b"",) for record in records]
    offsets = [(*tp, position.offset) for tp, position in records.next_offsets().items()]
    with database:
        database.executemany(
            "INSERT INTO counts VALUES (?, 1) ON CONFLICT DO UPDATE SET seen = seen + 1", added
        )
        database.executemany("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", offsets)


if __name__ == "__main__":
    main(*sys.argv[1:])
