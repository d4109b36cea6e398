"""`python -m demo`: publish, consume while a broker and a member are killed, land as Parquet, compare four numbers.

    published    records that the broker acknowledged
    consumed     different records that the group's members delivered
    Parquet      rows that Spark reads back
    committed    the sum of committed offsets, as the brokers tell them

It exits 0 only if they agree. The brokers are ours, or with `--kafka VERSION` those of a real Apache Kafka.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final

import attrs

from demo.brokers import Brokers, brokers
from demo.flights import FLIGHTS, data_file, flights
from demo.group import Group, Outcome
from demo.landing import SparkJob
from demo.publish import publish
from demo.terminal import Terminal, bar
from kclient.errors import KclientError
from localkafka import LocalKafkaError
from localkafka.releases import RELEASES

TOPIC: Final = "flights"
GROUP: Final = "delays"
PARTITIONS: Final = 6
KAFKAS: Final = [version for version, release in RELEASES.items() if release.kraft]


def main() -> int:
    """Run the demo; 0 when the four numbers agree, 1 when they do not or something failed, 130 when interrupted."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run(arguments.flights, arguments.out, arguments.kafka, Terminal())
    except KeyboardInterrupt:
        print("interrupted; everything that was started is ended", file=sys.stderr)
        return 130
    except (FileNotFoundError, KclientError, LocalKafkaError, RuntimeError) as failure:
        print(f"the demo failed: {failure}", file=sys.stderr)
        return 1


@attrs.frozen
class Numbers:
    """The four numbers, and how many records there should be."""

    expected: int
    published: int
    consumed: int
    parquet: int
    committed: int

    @property
    def agree(self) -> bool:
        """Whether every one of them is what it should be."""
        return {self.published, self.consumed, self.parquet, self.committed} == {self.expected}

    def __str__(self) -> str:
        verdict = "all agree" if self.agree else f"THEY DIFFER, {self.expected:,} was right"
        return (
            f"published {self.published:,} · consumed {self.consumed:,} · in Parquet {self.parquet:,} · "
            f"committed {self.committed:,}: {verdict}"
        )


def run(count: int, out: Path, kafka: str | None, terminal: Terminal) -> int:
    """The whole job. What it starts ends with it; Spark works on one core while the group has the other."""
    out.mkdir(parents=True, exist_ok=True)
    parquet, airlines = out / "flights.parquet", data_file("airlines.csv")
    with ExitStack() as stack:
        spark = stack.enter_context(SparkJob(terminal, out))
        terminal.say(
            f"starting {f'Apache Kafka {kafka}' if kafka else 'brokers'}, and a Spark session beside it"
        )
        cluster = stack.enter_context(brokers(kafka))
        cluster.create(TOPIC, PARTITIONS)
        servers = cluster.servers
        terminal.say(f"{cluster.name} serve at {servers}; publishing {count:,} flights of 2013")
        published = _publish(servers, count, terminal)
        terminal.say(f"published {sum(published):,} records to {TOPIC} in {PARTITIONS} partitions, lz4")
        spark.order(servers, TOPIC, parquet, airlines)
        outcome = _consume(cluster, published, terminal, out, spark)
        terminal.say(_told(outcome))
        committed = cluster.committed(GROUP)
        landed = spark.result()
    terminal.table(_carriers(landed.worst))
    numbers = Numbers(count, sum(published), outcome.distinct, landed.rows, committed)
    terminal.say(str(numbers))
    terminal.say(f"the Parquet is in {parquet}, partitioned by month")
    return 0 if numbers.agree else 1


def _publish(servers: str, count: int, terminal: Terminal) -> list[int]:
    def show(done: int) -> None:
        terminal.draw(
            [f"          published {bar(done, count)} {done:>9,}"], f"published {done:,} of {count:,}"
        )

    return asyncio.run(publish(servers, TOPIC, PARTITIONS, flights(count), show))


def _consume(
    cluster: Brokers, published: list[int], terminal: Terminal, logs: Path, spark: SparkJob
) -> Outcome:
    group = Group(cluster.servers, TOPIC, GROUP, published, terminal, logs)
    kill = partial(cluster.kill_coordinator, GROUP, TOPIC, PARTITIONS)
    return group.run(kill_broker=kill, beside=spark.listen)


def _told(outcome: Outcome) -> str:
    partitions = ", ".join(map(str, outcome.taken_over))
    return (
        f"consumed and committed {outcome.distinct:,} different records; partitions {partitions} went to the other "
        f"member, and {outcome.repeated:,} records came twice"
    )


def _carriers(rows: list[list[Any]]) -> str:
    lines = [
        f"          {'the ten worst carriers':32}{'flights':>9}{'departure':>12}{'arrival':>10}   mean delay, min"
    ]
    lines += [
        f"          {carrier} {airline or '?':29}{count:>9,}{departure:>12.2f}{arrival:>10.2f}"
        for carrier, airline, count, departure, arrival in rows
    ]
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="The flights of 2013 through three brokers and a consumer group, of which a broker and a "
        "member are killed, and a PySpark job, into Parquet. Prints and compares four numbers; exits 0 only if they "
        "agree.",
    )
    parser.add_argument(
        "--flights", type=_count, default=FLIGHTS, metavar="N", help=f"how many (default all, {FLIGHTS:,})"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-out"),
        metavar="DIR",
        help="where Parquet and logs go (default demo-out)",
    )
    parser.add_argument(
        "--kafka",
        choices=KAFKAS,
        metavar="VERSION",
        help=f"brokers of this Apache Kafka ({', '.join(KAFKAS)}) instead of embedded ones; needs Java and mvn",
    )
    return parser.parse_args()


def _count(text: str) -> int:
    count = int(text)
    if not 1 <= count <= FLIGHTS:
        raise argparse.ArgumentTypeError(f"must be between 1 and {FLIGHTS}")
    return count


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
