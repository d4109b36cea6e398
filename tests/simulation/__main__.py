"""Run seeds: `python -m tests.simulation --seeds 500`, or `--seed 12345` to repeat one with its history."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import SystemRandom
from typing import Final

from tests.simulation.plan import Plan
from tests.simulation.runner import Verdict, draw_plan, run_plan
from tests.simulation.shrink import shrink
from tests.simulation.sweep import Totals, sweep

SHOWN: Final = 5
TOLD_EVERY: Final = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """0 when every promise was kept."""
    options = _options(arguments)
    if options.seed is not None or options.plan is not None:
        return _replay(options)
    first = SystemRandom().randrange(1 << 31) if options.first is None else options.first
    return _sweep(first, options)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many (100)")
    parser.add_argument("--first", type=int, help="the first seed; the others follow it (random)")
    parser.add_argument("--seconds", type=float, help="begin no new seed after this time, but run --least")
    parser.add_argument("--least", type=int, default=1, help="seeds to run whatever the time (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (all cores)")
    parser.add_argument("--seed", type=int, help="run this one and show its history")
    parser.add_argument("--plan", type=Path, help="run this plan, with --seed for its schedule (1)")
    parser.add_argument(
        "--shrink", type=Path, metavar="FILE", help="write the fewest faults that fail, with --seed"
    )
    parser.add_argument("--quiet", action="store_true", help="no history")
    return parser.parse_args(arguments)


def _sweep(first: int, options: argparse.Namespace) -> int:
    totals = Totals()
    seeds = range(first, first + options.seeds)
    print(f"seeds {seeds.start} to {seeds.stop - 1} on {options.jobs} processes")
    for result in sweep(seeds, jobs=options.jobs, seconds=options.seconds, least=options.least):
        totals.add(result)
        if not result.passed:
            print(f"\nseed {result.seed} failed; repeat it with: make sim SEED={result.seed}")
            for text in [*result.violations[:SHOWN], result.problem]:
                print(f"  {text}" if text else "", end="\n" if text else "")
        elif sys.stdout.isatty():
            print(f"\r{totals}", end="", flush=True)
        elif totals.seeds % TOLD_EVERY == 0:
            print(totals, flush=True)
    print(f"\n{totals}")
    return 1 if totals.failed else 0


def _replay(options: argparse.Namespace) -> int:
    seed = 1 if options.seed is None else options.seed
    plan = draw_plan(seed) if options.plan is None else Plan.load(options.plan)
    verdict = run_plan(seed, plan, history=not options.quiet)
    for line in verdict.history:
        print(line)
    print(f"\nseed {seed}, digest {verdict.digest}\n{plan.scenario}")
    for fault in plan.faults:
        print(f"  {fault}")
    _judge(verdict)
    if options.shrink is not None and not verdict.passed:
        _shrink(verdict, options.shrink)
    return 0 if verdict.passed else 1


def _judge(verdict: Verdict) -> None:
    print(
        f"{verdict.seconds:.1f} virtual s, {verdict.published} records, {len(verdict.violations)} violations"
    )
    for violation in verdict.violations:
        print(f"  {violation}")


def _shrink(verdict: Verdict, path: Path) -> None:
    broken = {violation.invariant for violation in verdict.violations}

    def breaks(plan: Plan) -> bool:
        again = run_plan(verdict.seed, plan)
        return bool(broken & {violation.invariant for violation in again.violations})

    found = shrink(verdict.plan, breaks)
    found.plan.save(path)
    print(f"{len(verdict.plan.faults)} faults became {len(found.plan.faults)} in {found.runs} runs: {path}")


if __name__ == "__main__":
    sys.exit(main())
