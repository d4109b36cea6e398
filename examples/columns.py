"""Ask questions about a topic as a table: python columns.py localhost:9092 flights

Needs pip install 'kclient-kafka[arrow]' duckdb polars. Records become Arrow columns in the extension; no Python object
is made for any of them.
"""

from __future__ import annotations

import sys

import duckdb
import polars
import pyarrow

from kclient import Consumer, TopicPartition


def read(servers: str, topic: str) -> pyarrow.Table:
    """Return all records that the topic has now."""
    with Consumer(bootstrap_servers=servers) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        batches = []
        for batch, _ in consumer.arrow_batches(rows=100_000, columns=["partition", "offset", "key", "value"]):
            batches.append(batch)
            if all(consumer.position(tp) >= ends[tp] for tp in partitions):
                break
    return pyarrow.Table.from_batches(batches)


def main(servers: str, topic: str) -> None:
    records = read(servers, topic)
    print("DuckDB: records of each partition")
    question = "SELECT partition, count(*) FROM records GROUP BY partition ORDER BY partition"
    for partition, count in duckdb.connect().execute(question).fetchall():
        print(f"  {partition}: {count}")
    print("Polars: the most frequent values")
    frame = polars.DataFrame(polars.from_arrow(records))
    most = frame["value"].cast(polars.String).value_counts(sort=True).head(3)
    for value, count in most.iter_rows():
        print(f"  {value}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
