"""What a first import costs: CPU and time of process starts above an empty interpreter, beside other clients.

    python -m benchmarks.bench_import [--quick]

Every round starts one process for each line of the table, in turns, so that a busy machine is busy for all of them. The
bytecode caches are written before, into a directory of their own: an installed package has them.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from statistics import median

from benchmarks.report import Figure, Goal, progress, show

ROUNDS = 20
EMPTY = "pass"
MADE = "from kclient import Consumer; Consumer(bootstrap_servers='localhost:9092').close()"
STATEMENTS = {
    "from kclient import Consumer": "from kclient import Consumer",
    "from kclient import AsyncConsumer": "from kclient import AsyncConsumer",
    "kclient, and the first Consumer(…)": MADE,
    "import asyncio": "import asyncio",
    "confluent-kafka": "from confluent_kafka import Consumer",
    "aiokafka": "from aiokafka import AIOKafkaConsumer",
}
GOALS = {"from kclient import Consumer": Goal(most=120)}


def measure(*, quick: bool = False) -> list[Figure]:
    """The medians of all rounds."""
    progress("process starts")
    with tempfile.TemporaryDirectory() as caches:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": caches}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        statements = [EMPTY, *STATEMENTS.values()]
        for statement in statements:
            cost(statement, environment)
        rounds = [
            [cost(one, environment) for one in statements] for _ in range(ROUNDS // 4 if quick else ROUNDS)
        ]
    return [*rows(rounds)]


def rows(rounds: list[list[tuple[float, float]]]) -> Iterator[Figure]:
    (empty_cpu, empty_time), *costs = [
        (median(cpu for cpu, _ in column), median(took for _, took in column))
        for column in zip(*rounds, strict=True)
    ]
    for name, (cpu, took) in zip(STATEMENTS, costs, strict=True):
        note = f"{(took - empty_time) * 1000:.0f} ms of time"
        yield Figure(name, (cpu - empty_cpu) * 1000, "ms CPU", GOALS.get(name), note)


def cost(statement: str, environment: dict[str, str]) -> tuple[float, float]:
    """CPU (user and system) and time of an interpreter that runs the statement."""
    used, began = children_cpu(), time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], env=environment, check=True)
    return children_cpu() - used, time.perf_counter() - began


def children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer process starts")
    show("first import, above an empty interpreter", measure(quick=parser.parse_args().quick))


if __name__ == "__main__":
    main()
