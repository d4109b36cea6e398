"""Inject faults into a real Kafka and a group: `python -m tests.chaos --cycles 20`; `--seed S` repeats the plans.

The seed decides which faults are injected when; how they play out on the machine differs every time. If a promise is
broken, the journals and the logs of that cycle are kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom

from localkafka import KafkaCluster, LocalKafkaError
from tests.chaos.cycle import Cycle, Result
from tests.chaos.plan import NODES, draw

SHOWN = 3  # of each promise


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise was kept in every cycle."""
    options = _options(arguments)
    seed = SystemRandom().randrange(1 << 31) if options.seed is None else options.seed
    print(f"seed {seed}, {options.cycles} cycles; starting three brokers", flush=True)
    began = time.monotonic()
    cycles = range(options.first, options.first + options.cycles)
    with KafkaCluster("4.3.1", len(NODES)) as kafka:
        failed = [number for number in cycles if not run(kafka, seed, number)]
    print(
        f"{options.cycles} cycles in {(time.monotonic() - began) / 60:.1f} min, {len(failed)} failed: seed {seed}"
    )
    for number in failed:
        print(f"repeat it with: make chaos CYCLES=1 SEED={seed} FIRST={number}")
    return 1 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--cycles", type=int, default=20, help="how many (20)")
    parser.add_argument("--seed", type=int, help="what the plans are drawn from (random)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first cycle (0)")
    return parser.parse_args(arguments)


def run(kafka: KafkaCluster, seed: int, number: int) -> bool:
    """Run one cycle and return whether it passed. Print its plan before it and its result after it."""
    plan = draw(seed, number)
    print(f"cycle {number}: {plan}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-{number}-"))
    try:
        result = Cycle(kafka, plan, f"chaos-{seed}-{number}", folder).run()
    except (AssertionError, OSError, LocalKafkaError) as exc:
        print(f"  failed: {exc}")
        kafka.heal()
        return _kept(folder)
    return _judge(result, folder)


def _judge(result: Result, folder: Path) -> bool:
    print(f"  {result}", flush=True)
    counted = Counter(finding.promise for finding in result.findings)
    for promise, count in counted.items():
        print(f"  {promise} is broken {count} times:")
        for finding in [one for one in result.findings if one.promise == promise][:SHOWN]:
            print(f"    {finding.text}")
    if result.findings:
        return _kept(folder)
    shutil.rmtree(folder)
    return True


def _kept(folder: Path) -> bool:
    print(f"  journals: {folder}", flush=True)
    return False


if __name__ == "__main__":
    sys.exit(main())
