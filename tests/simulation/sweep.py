"""Many seeds on several processes, within a count or a time, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from typing import Final

import attrs

from kclient.simulation.stuck import first_line
from tests.simulation.runner import Verdict, run_seed


@attrs.frozen
class Result:
    """What a sweep needs to know of a seed. `problem` is what kept the seed from an end, as a hang does."""

    seed: int
    violations: tuple[str, ...]
    digest: str
    seconds: float
    cpu_seconds: float
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether it ran to its end and broke no promise."""
        return not self.violations and not self.problem


@attrs.define
class Totals:
    """Over all seeds of a sweep."""

    seeds: int = 0
    virtual_seconds: list[float] = attrs.field(factory=list)
    cpu_seconds: float = 0.0
    failed: list[Result] = attrs.field(factory=list)

    def add(self, result: Result) -> None:
        """Count one."""
        self.seeds += 1
        self.virtual_seconds.append(result.seconds)
        self.cpu_seconds += result.cpu_seconds
        if not result.passed:
            self.failed.append(result)

    def __str__(self) -> str:
        hours = sum(self.virtual_seconds) / 3600
        median = sorted(self.virtual_seconds)[len(self.virtual_seconds) // 2] if self.virtual_seconds else 0.0
        speed = sum(self.virtual_seconds) / self.cpu_seconds if self.cpu_seconds else 0.0
        return (
            f"{self.seeds} seeds, {hours:.2f} virtual hours, median seed {median:.0f} virtual s, "
            f"{speed:.0f} × real time per core, {len(self.failed)} failed"
        )


def one(seed: int) -> Result:
    """Run a seed."""
    began = time.process_time()
    try:
        verdict: Verdict = run_seed(seed)
    except Exception as exc:  # noqa: BLE001 – whatever it is, it is what the seed found
        return Result(seed, (), "", 0.0, time.process_time() - began, first_line(exc))
    return Result(
        seed,
        tuple(map(str, verdict.violations)),
        verdict.digest,
        verdict.seconds,
        time.process_time() - began,
    )


# A run leaves about three megabytes behind: thousands of runs must not add up.
SEEDS_A_PROCESS: Final = 100


def sweep(
    seeds: Iterable[int], *, jobs: int, seconds: float | None = None, least: int = 0
) -> Iterator[Result]:
    """Results as they come; after `seconds` no new seed begins, unless `least` have not been begun."""
    until = None if seconds is None else time.monotonic() + seconds
    source = iter(seeds)
    begun = 0
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=SEEDS_A_PROCESS) as pool:
        running: set[Future[Result]] = set()
        while True:
            late = until is not None and time.monotonic() >= until and begun >= least
            for seed in islice(source, 0 if late else 2 * jobs - len(running)):
                running.add(pool.submit(one, seed))
                begun += 1
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
