"""Reading a topic of a real Kafka 4.3.1 from end to end, against other clients in the same run, beside the goals.

    python -m benchmarks.bench_consume [--quick] [--records N] [--rounds N] [--only NAME …] [--topics NAME …]

One topic for each codec and size of batches, with 6 partitions and records of 100 bytes with a key of 8. Each reader
(`readers.py`) reads all partitions from the beginning, without a group, and accesses every value. The readers take
turns in rounds, so that a busy machine slows all of them; each round starts with another reader, so that none always
runs first after a pause; a figure is the median over the rounds. They end when SECONDS_A_TOPIC have passed. The two
slowest peers read a part of the topic. Java's figure includes loading its classes ("JIT warm-up included"): each time
is a process of its own. A goal is judged by CPU, because wall time depends on other load of the machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from statistics import median

import attrs
import confluent_kafka

from benchmarks import readers
from benchmarks.readers import PARTITIONS, READERS, VALUE, Run
from benchmarks.report import Figure, Goal, progress, show
from localkafka import KafkaCluster

LARGE, SMALL = "none, 1 MB", "lz4, 16 kB"
TOPICS = {  # codec and bytes of a batch
    LARGE: ("none", 1_000_000),
    "lz4, 1 MB": ("lz4", 1_000_000),
    "none, 16 kB": ("none", 16_384),
    SMALL: ("lz4", 16_384),
}
QUICK_TOPICS = (LARGE, SMALL)
SLOW_SHARE = 10  # the slowest peers read one record of so many
RECORDS, ROUNDS = 1_000_000, 3
QUICK_RECORDS, QUICK_ROUNDS = 100_000, 1
WARM_UP_RECORDS = 1_000
SECONDS_A_TOPIC = 90.0


@attrs.frozen
class Contest:
    """What a record costs us, divided by what it costs the peer: at most so much, by CPU or by time.

    `most` has a bound for each topic that has a goal.
    """

    ours: str
    peer: str
    most: Mapping[str, float]
    by: str = "cpu"


def everywhere(most: float) -> dict[str, float]:
    return dict.fromkeys(TOPICS, most)


CONTESTS = (
    Contest(readers.POLL, readers.KAFKA_PYTHON, everywhere(1 / 3)),
    Contest(readers.POLL_MANY, readers.CONSUME, {LARGE: 0.30, SMALL: 0.40}),
    Contest(readers.POLL_MANY, readers.AIOKAFKA, everywhere(0.18)),
    Contest(readers.POLL_MANY, readers.JAVA, everywhere(0.15)),
    Contest(readers.POLL_MANY, readers.FRANZ_GO, everywhere(1.0)),
    Contest(readers.ITERATE, readers.CONFLUENT_POLL, everywhere(0.35)),
    Contest(readers.ITERATE_ASYNC, readers.CONFLUENT_POLL, everywhere(0.35)),
    Contest(readers.TO_ARROW, readers.CONFLUENT_ARROW, {LARGE: 0.12, SMALL: 0.18}),
    Contest(readers.TO_ARROW, readers.JAVA, everywhere(0.25), by="seconds"),
    Contest(readers.TO_ARROW, readers.FRANZ_GO, everywhere(0.5)),
    Contest(readers.TO_ARROW, readers.FLOOR, {}),
    Contest(readers.TO_ARROW_ASYNC, readers.CONFLUENT_ARROW, {LARGE: 0.12, SMALL: 0.18}),
    Contest(readers.TO_ARROW_ASYNC, readers.JAVA, everywhere(0.25), by="seconds"),
    Contest(readers.TO_ARROW_ASYNC, readers.FRANZ_GO, everywhere(0.5)),
    # No goal: ten times the rows of to_arrow, too many for the caches.
    Contest(readers.ARROW, readers.CONFLUENT_ARROW, {}),
)


def fill(kafka_cluster: KafkaCluster, name: str, records: int) -> str:
    """Write a topic with so many records. Return its name."""
    codec, batch_bytes = TOPICS[name]
    topic = f"bench-{codec}-{batch_bytes}"
    kafka_cluster.create_topic(topic, partitions=PARTITIONS)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka_cluster.bootstrap_servers,
            "compression.codec": codec,
            "linger.ms": 200,
            "batch.size": batch_bytes,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": records + 1,
            "queue.buffering.max.kbytes": 2_000_000,
        }
    )
    for number in range(records):
        producer.produce(topic, VALUE, b"%08d" % number, number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if left := producer.flush(60):
        raise SystemExit(f"{left} records could not be written")
    return topic


def rounds_of(
    servers: str, topic: str, records: int, rounds: int, names: list[str]
) -> Iterator[dict[str, Run]]:
    """Run each reader once per round, until the time is over. The imports of a first consumer are not measured."""
    for name in names:
        READERS[name](servers, topic, WARM_UP_RECORDS)
    deadline = time.monotonic() + SECONDS_A_TOPIC
    for number in range(rounds):
        if number and time.monotonic() >= deadline:
            return
        first = number % len(names)
        yield {
            name: READERS[name](servers, topic, records // SLOW_SHARE if name in readers.SLOW else records)
            for name in names[first:] + names[:first]
        }


def figures(topic: str, runs: list[dict[str, Run]]) -> Iterator[Figure]:
    """Return what each reader reached, and the ratios that have a goal."""
    for name in sorted(runs[0], key=list(READERS).index):
        seconds, cpu = (median(getattr(run[name], what) for run in runs) for what in ("seconds", "cpu"))
        yield Figure(f"{topic}: {name}", 0.001 / seconds, "1000/s", note=f"{cpu * 1e6:.3f} us CPU/record")
    for contest in CONTESTS:
        if {contest.ours, contest.peer} <= runs[0].keys():
            yield ratio(topic, contest, runs)


def ratio(topic: str, contest: Contest, runs: list[dict[str, Run]]) -> Figure:
    cpu, seconds = (
        median(getattr(run[contest.ours], what) / getattr(run[contest.peer], what) for run in runs)
        for what in ("cpu", "seconds")
    )
    most = contest.most.get(topic)
    return Figure(
        f"{topic}: {contest.ours} : {contest.peer}, by {'CPU' if contest.by == 'cpu' else 'time'}",
        cpu if contest.by == "cpu" else seconds,
        "x",
        None if most is None else Goal(most=most),
        f"{seconds:.2f} x by time" if contest.by == "cpu" else f"{cpu:.2f} x by CPU",
    )


def measure(
    cluster: KafkaCluster,
    *,
    quick: bool = False,
    records: int = 0,
    rounds: int = 0,
    only: list[str] | None = None,
    topics: list[str] | None = None,
) -> list[Figure]:
    """0 and None stand for what `quick` says, or else the usual."""
    records = records or (QUICK_RECORDS if quick else RECORDS)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    left_out = readers.missing()
    for name, reason in left_out.items():
        progress(f"{name} is left out: {reason}")
    names = [name for name in READERS if name not in left_out and (not only or name in only)]
    found: list[Figure] = []
    for name in topics or (QUICK_TOPICS if quick else TOPICS):
        progress(f"reading {name} from end to end")
        topic = fill(cluster, name, records)
        found += figures(name, list(rounds_of(cluster.bootstrap_servers, topic, records, rounds, names)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two topics, fewer records, one round")
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--only", nargs="*", choices=READERS, metavar="NAME")
    parser.add_argument("--topics", nargs="*", choices=TOPICS, metavar="NAME")
    arguments = parser.parse_args()
    with KafkaCluster(readers.KAFKA, jvm_options=("-Xmx1g",)) as cluster:
        show("end to end", measure(cluster, **vars(arguments)))


if __name__ == "__main__":
    main()
