"""What a seed draws: the topic, how services fail, and what happens when."""

from __future__ import annotations

import random
from typing import Final

import attrs

CHAOS_SECONDS: Final = 240.0

KINDS: Final = {
    "kill": "the process dies where it is, and another one begins",
    "kill_at_step": "the process dies at one of its next steps",
    "freeze": "the process stands still, and goes on after seconds, minutes or hours",
    "replace": "the process stands still, another one takes over, and the first one goes on afterwards",
    "second_run": "a second process runs the same job for a while, with the same checkpoint",
    "second_checkpoint": "a second process runs the same job for a while, with a checkpoint of its own",
    "lose_checkpoint": "the process dies, and the checkpoint is gone",
    "old_checkpoint": "the process dies, and the checkpoint is a copy of before",
    "store_fails": "the object store refuses requests, loses answers, or writes late, now and then",
    "store_down": "nothing reaches the object store",
    "catalog_down": "nothing reaches the catalog",
    "commit_fails": "the next commits conflict, are refused, lose their answers, are late or slow",
    "append": "other programs commit into the table, several times",
    "rewrite": "a compaction replaces the files of the table",
    "expire": "the snapshots before the newest one expire",
    "roll_back": "the table is rolled back, and brought back after a while",
    "restore": "the table is put back to an older copy, with all that it says",
    "sleep": "the machine sleeps for days in the middle of a batch, and garbage is removed meanwhile",
    "retention": "records that have landed are deleted from the logs",
    "add_partition": "the topic gets another partition",
    "recreate": "the topic is deleted and created again",
}
"""Kind of fault → what happens."""


@attrs.frozen
class Fault:
    """One fault: when, for how long, and of what size; what these mean depends on the kind."""

    kind: str
    at: float
    seconds: float = 0.0
    what: tuple[str, ...] = ()
    count: int = 1


@attrs.frozen(kw_only=True)
class Plan:
    """A run. `failing` is how probable a fault of a commit is while there is chaos.

    `sink` is `table`, or `manifests` of a directory in the object store. Where the job `drains`, each process lands
    what is there and ends, and writes ahead: files of the next batch before one is committed.
    """

    sink: str = "table"
    drains: bool = False
    partitions: int = 2
    records_per_second: float = 10.0
    failing: float = 0.0
    chaos_seconds: float = CHAOS_SECONDS
    faults: tuple[Fault, ...] = ()


WEIGHTS: Final = {
    "kill": 3,
    "kill_at_step": 6,
    "freeze": 3,
    "replace": 4,
    "commit_fails": 6,
    "recreate": 0,
    "sleep": 0,
}
"""How often a kind is drawn, 2 if it is not here. Days cost too much for each seed: `sleep` is in a plan of its own."""


DRAINING: Final = 1 / 3
OF_MANIFESTS: Final = (
    "kill",
    "kill_at_step",
    "freeze",
    "replace",
    "second_run",
    "store_fails",
    "store_down",
    "retention",
    "add_partition",
)
"""What can happen where manifests say what counts. They are one checkpoint's: without it the job is refused."""


def draw(seed: int) -> Plan:
    """Return the plan of a seed."""
    rng = random.Random(f"lakehouse {seed}")
    sink = rng.choice(("table", "table", "table", "manifests"))
    possible = list(KINDS if sink == "table" else OF_MANIFESTS)
    kinds = rng.choices(possible, [WEIGHTS.get(kind, 2) for kind in possible], k=rng.randint(2, 9))
    if rng.random() < 0.05:  # it ends the job, so it is seldom, and the last thing that happens
        kinds.append("recreate")
    times = sorted(rng.uniform(2.0, CHAOS_SECONDS) for _ in kinds)
    return Plan(
        sink=sink,
        drains=random.Random(f"drains {seed}").random() < DRAINING,
        partitions=rng.randint(1, 3),
        records_per_second=rng.choice((2.0, 10.0, 30.0)),
        failing=rng.choice((0.0, 0.0, 0.2, 0.5)),
        faults=tuple(_fault(rng, kind, time) for kind, time in zip(kinds, times, strict=True)),
    )


def _fault(rng: random.Random, kind: str, at: float) -> Fault:
    seconds = rng.choice((1.0, 10.0, 40.0, 90.0))
    if kind in ("freeze", "replace") and rng.random() < 0.3:
        seconds = rng.choice((300.0, 600.0, 900.0, rng.uniform(3_600.0, 7_200.0)))
    faults = rng.choices(("conflict", "refused", "lost", "late", "slow"), k=rng.randint(1, 4))
    return Fault(kind, at, seconds, tuple(faults), rng.randint(1, 12))
