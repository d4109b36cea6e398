"""Reading topics of a real Kafka 4.3.1 with Spark: kclient beside Spark's own Kafka source for the JVM, in one run.

    python -m benchmarks.bench_spark [--quick] [--records N] [--rounds N] [--minutes N] [--topics NAME] [--only NAME]

Two Spark sessions with local[2,4] run side by side: one with kclient, and one of Spark 4.0.0 with its JAR in a separate
environment. They take turns, job by job, so that a busy machine slows both; shown is the median over the rounds,
and a ratio is the median of the ratios within each round. The verdict is on rows a second. Beside it is the ratio of
CPU (JVM and Python together, by process), which says more on a machine that others use too; the last line of each
topic judges it. The synthetic source gives the same columns from memory: what Spark itself takes. Each
reader reads a part of the topic before the measurement, and all write Parquet with one codec. No round starts after
the given minutes.

Spec: SG-02, SG-05…SG-09.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs

from benchmarks import bench_spark_source as source
from benchmarks import bench_spark_triggers as triggers
from benchmarks.bench_spark_contest import CONTESTANTS, FREE, OURS, Contestant, Round, figures
from benchmarks.bench_spark_session import Cost, measured
from benchmarks.bench_spark_topics import PARTITIONS, TOPICS, Topic, fill
from benchmarks.report import Figure, progress, show, write_json
from localkafka import KafkaCluster
from localspark import environments
from localspark.jars import JVM_SOURCE, MINOR
from localspark.session import Session

RECORDS, ROUNDS, MINUTES = 3_000_000, 3, 9.0
QUICK_RECORDS, QUICK_ROUNDS = 300_000, 1
MICRO_BATCHES = 30
WARM_UP = 0.1  # of each topic
CODEC = "zstd"
CHILD = "benchmarks.bench_spark_child"


@attrs.frozen
class Field:
    """Where it takes place."""

    kafka: KafkaCluster
    ours: Session
    theirs: Session
    folder: Path

    def job(self, contestant: Contestant, topic: Topic, rows: int, share: float = 1.0) -> Cost:
        """One contestant's turn, with the last `share` of a topic."""
        first = int(rows * (1 - share)) // PARTITIONS
        options: dict[str, Any] = {
            "kafka.bootstrap.servers": self.kafka.bootstrap_servers,
            "subscribe": topic.kafka_name,
            "startingOffsets": topic.offsets(first),
            "groupIdPrefix": source.PREFIX,
        }
        if contestant.format == "synthetic":
            rows -= first * PARTITIONS
            options = {"rows": rows, "partitions": PARTITIONS, "valueBytes": topic.value_bytes}
        job = {"format": contestant.format, "options": options, "sink": contestant.sink, "codec": CODEC}
        target = self.folder / "out"
        session = self.theirs if contestant.is_jvm_source else self.ours
        cost = measured(session, {**job, "folder": str(target)})
        shutil.rmtree(target, ignore_errors=True)
        return cost


def rounds_of(
    field: Field, topic: Topic, rows: int, taking_part: list[Contestant], count: int, until: float
) -> Iterator[Round]:
    """Run each reader once per round: `count` rounds, or fewer if the time is over."""
    for contestant in taking_part:
        field.job(contestant, topic, rows, WARM_UP)
    for number in range(count):
        if number and time.monotonic() > until:
            progress(f"{topic.name}: no time for more than {number} rounds")
            return
        yield {contestant: field.job(contestant, topic, rows) for contestant in taking_part}


def reading(field: Field, topics: list[tuple[Topic, int]]) -> list[Figure]:
    """What reading adds to workers, before they have done anything else."""
    field.job(FREE, *topics[0])
    idle = source.peak_of_workers(field.ours)
    for topic, rows in topics:
        field.job(OURS, topic, rows)
    found = [source.memory(idle, source.peak_of_workers(field.ours))]
    found += source.connected(field.ours, field.kafka, *topics[0], field.folder)
    field.kafka.create_topic(triggers.TOPIC, triggers.PARTITIONS)
    return [*found, *triggers.of_the_source(field.kafka, MICRO_BATCHES)]


def measure(
    *,
    quick: bool = False,
    records: int = 0,
    rounds: int = 0,
    minutes: float = MINUTES,
    topics: list[str] | None = None,
    only: list[str] | None = None,
) -> list[Figure]:
    """0 and None stand for what `quick` says, or else the usual."""
    begun = time.monotonic()
    records = records or (QUICK_RECORDS if quick else RECORDS)
    rounds = rounds or (QUICK_ROUNDS if quick else ROUNDS)
    taking_part = [one for one in CONTESTANTS if not only or one.name in only]
    with ExitStack() as stack:
        progress("starting Kafka and two Spark sessions")
        kafka = stack.enter_context(KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)))
        ours = stack.enter_context(Session(CHILD))
        python = environments.python(MINOR)
        theirs = stack.enter_context(Session(CHILD, python, JVM_SOURCE.jars()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        field = Field(kafka, ours, theirs, folder)
        chosen = [(one, one.rows(records)) for one in TOPICS if not topics or one.name in topics]
        for topic, rows in chosen:
            progress(f"{topic.name}: writing {rows:,} records")
            fill(kafka, topic, records)
        progress("what reading adds to a worker and to a micro-batch")
        found = reading(field, chosen)
        show(f"the source in Spark {ours.spark}", found)
        start = time.monotonic()
        for number, (topic, rows) in enumerate(chosen, 1):
            progress(f"{topic.name}: reading it, by turns")
            until = start + (begun + 60 * minutes - start) * number / len(chosen)
            each = list(rounds_of(field, topic, rows, taking_part, rounds, until))
            of_topic = list(figures(topic, rows, each))
            show(f"{topic.name}, {len(each)} rounds, Spark {ours.spark} and {theirs.spark}", of_topic)
            found += of_topic
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, one round")
    parser.add_argument(
        "--records", type=int, default=0, help=f"{RECORDS:,} by default; a fifth of them at 1 KB"
    )
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"{MINUTES:g} by default")
    parser.add_argument("--topics", nargs="*", choices=[one.name for one in TOPICS], metavar="NAME")
    parser.add_argument("--only", nargs="*", choices=[one.name for one in CONTESTANTS], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures, for machines")
    arguments = vars(parser.parse_args())
    file = arguments.pop("json")
    found = measure(**arguments)
    if file:
        write_json(file, found, benchmark="spark")


if __name__ == "__main__":
    main()
