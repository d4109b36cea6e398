"""`python -m demo`: publish, consume and land while a broker, a member and the job are killed; compare five numbers.

    published    records that the broker acknowledged
    consumed     different records that the group's members delivered
    committed    the sum of the group's committed offsets, as the brokers report them
    in Parquet   rows of the files that the manifest names, counted once more in the files; or in the table, by the
                 snapshots and once more by two readers
    lag          of the pipeline's own group, as a lag tool reports it: 0

It exits 0 only if they agree. The brokers are embedded, or with `--kafka VERSION` a real Apache Kafka. With
`--engine direct` no Java is needed: the job writes Parquet without Spark, and Arrow runs the query.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Final

from demo.flights import FLIGHTS
from demo.job import ENGINES, SINKS, SPARK
from demo.run import run
from demo.terminal import Terminal
from kclient.cli.spark_doctor import findings
from kclient.errors import KclientError
from localkafka import LocalKafkaError
from localkafka.processes import SIGNALS
from localkafka.releases import RELEASES

NEEDED: Final = ("pyspark", "pyarrow", "java")
KAFKAS: Final = [version for version, release in RELEASES.items() if release.kraft]


def main() -> int:
    """Run the demo; 0 when the five numbers agree, 1 when they do not or something failed, 130 when interrupted."""
    arguments = _arguments()
    for signum in SIGNALS:
        signal.signal(signum, _interrupt)
    try:
        if arguments.engine == SPARK:
            _require_spark()
        return run(
            arguments.flights, arguments.out, arguments.kafka, Terminal(), arguments.engine, arguments.sink
        )
    except KeyboardInterrupt:
        print("interrupted; everything that was started is ended", file=sys.stderr)
        return 130
    except (OSError, KclientError, LocalKafkaError, RuntimeError) as exc:
        print(f"the demo failed: {exc}", file=sys.stderr)
        return 1


def _require_spark() -> None:
    """Raise RuntimeError if Spark cannot start, before anything else is started."""
    for found in findings():
        if found.verdict == "FAIL" and found.name in NEEDED:
            raise RuntimeError(
                f"Spark cannot start here. {found.name}: {found.saw}. Type: {found.hint}. "
                "Or give --engine direct, which needs neither Spark nor Java."
            )
        if found.name == NEEDED[-1]:
            return


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m demo",
        description="The flights of 2013 through three brokers to a group of two and to a streaming job on Spark that "
        "lands them as Parquet. A broker, a member and the job are killed on the way. Prints and compares five "
        "numbers, draws report.html; exits 0 only if they agree.",
    )
    parser.add_argument(
        "--flights", type=_count, default=FLIGHTS, metavar="N", help=f"how many (default all, {FLIGHTS:,})"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo-out"),
        metavar="DIR",
        help="where report, Parquet and logs go (default demo-out)",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=SPARK,
        help="what lands the flights (default spark); direct needs neither Spark nor Java",
    )
    parser.add_argument(
        "--sink",
        choices=SINKS,
        default=SINKS[0],
        help="what they land in (default parquet); a table is on an S3 of this machine, which needs Java, else on disk",
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
    """End the demo at the first signal; ignore later ones, because the cleanup takes seconds."""
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
