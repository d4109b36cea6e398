"""`python -m demo`: publish, consume with a member killed half way, land as Parquet, and compare four numbers.

    published    records that the broker acknowledged
    consumed     different records that the group's members delivered
    Parquet      rows that Spark reads back
    committed    the sum of committed offsets, as Kafka's own kafka-consumer-groups tells them

It exits 0 only if they agree.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, Final

from demo.flights import FLIGHTS, data_file, flights
from demo.group import Group, Outcome
from demo.processes import Child
from demo.publish import publish
from demo.terminal import Terminal, bar
from localkafka import KafkaCluster, LocalKafkaError

TOPIC: Final = "flights"
GROUP: Final = "delays"
PARTITIONS: Final = 6
SPARK_SECONDS: Final = 240.0


def main() -> int:
    """Run the demo; 0 when the four numbers agree, 1 when they do not or something failed, 130 when interrupted."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return run(arguments.flights, arguments.out, Terminal())
    except KeyboardInterrupt:
        print("interrupted; everything that was started is ended", file=sys.stderr)
        return 130
    except (FileNotFoundError, LocalKafkaError, RuntimeError) as failure:
        print(f"the demo failed: {failure}", file=sys.stderr)
        return 1


def run(count: int, out: Path, terminal: Terminal) -> int:
    """The whole job. What it starts ends with it."""
    out.mkdir(parents=True, exist_ok=True)
    airlines = data_file("airlines.csv")
    began = time.monotonic()
    with ExitStack() as stack:
        spark = stack.enter_context(Child("demo.spark_job", [], out / "spark.log"))
        terminal.say("starting Apache Kafka 4.3.1, and a Spark session beside it")
        kafka = stack.enter_context(KafkaCluster("4.3.1"))
        kafka.create_topic(
            TOPIC, PARTITIONS, retention_ms=-1
        )  # what is stamped 2013 would be deleted at once
        terminal.say(f"Kafka is ready at {kafka.bootstrap_servers}; publishing {count:,} flights of 2013")
        published = _publish(kafka.bootstrap_servers, count, terminal)
        terminal.say(f"published {sum(published):,} records to {TOPIC} in {PARTITIONS} partitions, lz4")
        outcome = Group(kafka.bootstrap_servers, TOPIC, GROUP, published, terminal, out).run()
        terminal.say(_told(outcome))
        spark.send({"servers": kafka.bootstrap_servers, "topic": TOPIC, "out": str(out / "flights.parquet"),
                    "airlines": str(airlines)})  # fmt: skip
        committed = sum(row.committed or 0 for row in kafka.describe_group(GROUP).values())
        landed = _await_spark(spark, terminal)
    terminal.table(_carriers(landed["worst"]))
    numbers = {"published": sum(published), "consumed": outcome.distinct, "in Parquet": landed["rows"],
               "committed": committed}  # fmt: skip
    agree = len(set(numbers.values())) == 1 and numbers["published"] == count
    told = " · ".join(f"{name} {number:,}" for name, number in numbers.items())
    terminal.say(f"{told}: {'all agree' if agree else 'THEY DIFFER'}")
    terminal.say(
        f"Parquet in {out / 'flights.parquet'}, partitioned by month; done in {time.monotonic() - began:.0f} s"
    )
    return 0 if agree else 1


def _publish(servers: str, count: int, terminal: Terminal) -> list[int]:
    def show(done: int) -> None:
        terminal.draw(
            [f"          published {bar(done, count)} {done:>9,}"], f"published {done:,} of {count:,}"
        )

    acknowledged = asyncio.run(publish(servers, TOPIC, PARTITIONS, flights(count), show))
    return [acknowledged[partition] for partition in range(PARTITIONS)]


def _await_spark(spark: Child, terminal: Terminal) -> dict[str, Any]:
    """What the job found. Raises RuntimeError when it ends without an answer."""
    texts = {"session": "the Spark session is up", "asking": "landed as Parquet; asking it with SQL",
             "landing": "Spark reads the topic with format('kclient') and writes Parquet"}  # fmt: skip
    deadline = time.monotonic() + SPARK_SECONDS
    while time.monotonic() < deadline:
        events = spark.receive()
        if events is None:
            raise RuntimeError(f"the Spark job ended with {spark.process.wait()}:\n{spark.last_words()}")
        for event in events:
            if "rows" in event:
                return event
            terminal.say(texts[event["stage"]])
    raise RuntimeError(f"the Spark job did not finish within {SPARK_SECONDS:g} s:\n{spark.last_words()}")


def _told(outcome: Outcome) -> str:
    partitions = ", ".join(map(str, outcome.taken_over))
    return (
        f"consumed and committed {outcome.distinct:,} different records; the other member took over partitions "
        f"{partitions} of {outcome.killed} and {outcome.repeated:,} records came twice"
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
        description="The flights of 2013 through a real Kafka, a consumer group with a member killed half way, and a "
        "PySpark job into Parquet. Prints and compares four numbers; exits 0 only if they agree.",
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
