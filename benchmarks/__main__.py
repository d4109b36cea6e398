"""What a consumer costs, in one run: import, poll, a large plan, idle CPU, records a second beside others, memory.

    python -m benchmarks [--quick] [--only PART …] [--json FILE]

Peers are measured in turns with us, so that ratios hold on a busy machine; figures without a peer do not. Takes about
three minutes, with --quick one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import bench_assignors, bench_consume, bench_idle, bench_import, bench_memory, bench_poll
from benchmarks.report import Figure, show, write_json
from localkafka import KafkaCluster

RESULTS = Path(".cache/bench.json")
ON_KAFKA: dict[str, Callable[..., list[Figure]]] = {
    "consume": bench_consume.measure,
    "idle": bench_idle.measure,
    "memory": bench_memory.measure,
}
WITHOUT: dict[str, Callable[..., list[Figure]]] = {
    "import": bench_import.measure,
    "poll": bench_poll.measure,
    "assignors": bench_assignors.measure,
}
PARTS = (*WITHOUT, *ON_KAFKA)


def main() -> int:
    """1 where a goal was missed."""
    arguments = parsed()
    began, found = time.monotonic(), list[Figure]()
    for part, measure in WITHOUT.items():
        if part in arguments.only:
            found += shown(part, measure(quick=arguments.quick))
    wanted = [part for part in ON_KAFKA if part in arguments.only]
    if wanted:
        with KafkaCluster("4.3.1", jvm_options=("-Xmx1g",)) as cluster:
            for part in wanted:
                found += shown(part, ON_KAFKA[part](cluster, quick=arguments.quick))
    took = time.monotonic() - began
    write_json(arguments.json, found, quick=arguments.quick, seconds=round(took, 1))
    missed = [one.name for one in found if one.verdict == "MISSED"]
    print(f"\n{took:.0f} s; figures in {arguments.json}; missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


def shown(part: str, figures: list[Figure]) -> list[Figure]:
    show(part, figures)
    return figures


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, topics and cases")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help=f"default {RESULTS}")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
