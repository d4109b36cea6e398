"""What a consumer costs while nothing happens, and how long it takes to get going, on a real Kafka 4.3.1.

python -m benchmarks.bench_idle

idle        CPU of a poll loop over 100 partitions without new records, over 10 s
poll(0)     one call over 20 and over 2,000 such partitions
seek        from seek_to_beginning on a partition at rest to its first record
end         one end_offsets() beside fetches that wait for records
"""

from __future__ import annotations

import statistics
import time

import confluent_kafka

from benchmarks.report import Figure, Goal, progress, show
from kclient import Consumer, TopicPartition
from localkafka import KafkaCluster

IDLE_SECONDS = 10.0
POLLS = 2_000
SEEKS = 15
IDLE = Goal(most=0.5)
SOON = Goal(most=500)  # a request may wait for a Fetch on its connection, fetch_max_wait_ms at most


def write_one(servers: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce(topic, b"value", partition=0)
    producer.flush(10)


def idle_consumer(servers: str, topic: str, partitions: int) -> Consumer:
    """A consumer at the end of all partitions, every fetch waiting at the broker."""
    consumer = Consumer(bootstrap_servers=servers, auto_offset_reset="latest")
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    for one in consumer.assignment():
        consumer.position(one)
    consumer.poll(0.7)  # every fetch waits at the broker now
    return consumer


def idle_share(servers: str, topic: str) -> float:
    with idle_consumer(servers, topic, 100) as consumer:
        begun, used = time.perf_counter(), time.process_time()
        while time.perf_counter() - begun < IDLE_SECONDS:
            consumer.poll(1.0)
        return (time.process_time() - used) / (time.perf_counter() - begun)


def poll_zero(servers: str, topic: str, partitions: int) -> float:
    """The median time of a poll(0)."""
    with idle_consumer(servers, topic, partitions) as consumer:
        times = []
        for _ in range(POLLS):
            begun = time.perf_counter()
            consumer.poll(0)
            times.append(time.perf_counter() - begun)
        return statistics.median(times)


def seek_times(servers: str, topic: str) -> list[float]:
    with idle_consumer(servers, topic, 20) as consumer:
        times = []
        for _ in range(SEEKS):
            consumer.poll(0.13)  # another moment of the broker's wait each time
            begun = time.perf_counter()
            consumer.seek_to_beginning([TopicPartition(topic, 0)])
            while not len(consumer.poll(1.0)):
                continue
            times.append(time.perf_counter() - begun)
        return times


def end_times(servers: str, topic: str) -> list[float]:
    with idle_consumer(servers, topic, 20) as consumer:
        times = []
        for _ in range(SEEKS):
            consumer.poll(0.13)
            begun = time.perf_counter()
            consumer.end_offsets([TopicPartition(topic, 1)])
            times.append(time.perf_counter() - begun)
        return times


def measure(cluster: KafkaCluster, *, quick: bool = False) -> list[Figure]:
    servers = cluster.bootstrap_servers
    progress("idle")
    cluster.create_topic("few", partitions=100)
    write_one(servers, "few")
    found = [Figure("idle, 100 partitions", idle_share(servers, "few") * 100, "% of core", IDLE)]
    if quick:
        return found
    cluster.create_topic("many", partitions=2_000)
    for topic, partitions in (("few", 20), ("many", 2_000)):
        found.append(
            Figure(f"poll(0), {partitions:,} partitions", poll_zero(servers, topic, partitions) * 1e6, "us")
        )
    found.append(figure("seek to first record", seek_times(servers, "few")))
    found.append(figure("end_offsets", end_times(servers, "few")))
    return found


def figure(name: str, times: list[float]) -> Figure:
    most = f"at most {max(times) * 1000:.1f} ms"
    return Figure(name, statistics.median(times) * 1000, "ms", SOON, most)


def main() -> None:
    with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as cluster:
        show("at rest, and back at work", measure(cluster))


if __name__ == "__main__":
    main()
