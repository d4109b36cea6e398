"""A run of a plan: a job under chaos, then everything heals, and the job must drain.

a supervisor      starts the job's process again whenever it has ended, as an orchestrator does
producers, others append to the topic and to the table
faults            of the plan, at their times
heal              every service answers, one process is left, nothing more is produced
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import attrs

from kclient.errors import InternalError, KclientError
from kclient.spark.offsets import parse_offsets
from tests.lakehouse.bucket import BUCKET, Bucket
from tests.lakehouse.check import TableWatch, Violation
from tests.lakehouse.job import Process, partitions, simulated
from tests.lakehouse.plan import Fault, Plan, draw
from tests.lakehouse.scheduler import Scheduler, SimulatedRuntime
from tests.lakehouse.storage import Catalog, DataFiles, SimulatedTable, Version
from tests.lakehouse.topic import Topic, TopicClient

START_AGAIN: Final = 3.0
HEAL_SECONDS: Final = 600.0
"""How long a whole world may take to drain: a commit's tries take about two minutes, those that time out longer."""
CHECKPOINT: Final = "checkpoint"
MANIFESTS: Final = "rows/_manifest/"


@attrs.frozen
class Verdict:
    """What came of a run. `digest` is equal for equal runs."""

    violations: tuple[Violation, ...]
    digest: str
    versions: int
    seconds: float
    errors: tuple[str, ...]


@attrs.define(eq=False)
class World:
    """Everything that a run has."""

    plan: Plan
    seed: int
    rng: random.Random = attrs.field(init=False)
    scheduler: Scheduler = attrs.field(init=False)
    topic: Topic = attrs.field(init=False)
    files: DataFiles = attrs.field(factory=DataFiles)
    watch: TableWatch = attrs.field(init=False)
    catalog: Catalog = attrs.field(init=False)
    bucket: Bucket = attrs.field(init=False)
    processes: list[Process] = attrs.field(factory=list)
    job: Process | None = None
    errors: list[str] = attrs.field(factory=list)
    healed: bool = False
    recreated: bool = False
    copies: list[dict[str, bytes]] = attrs.field(factory=list)
    manifests: dict[str, Any] = attrs.field(factory=dict)
    _back: Version | None = None

    def __attrs_post_init__(self) -> None:
        self.rng = random.Random(f"world {self.seed}")
        self.scheduler = Scheduler(random.Random(f"order {self.seed}"))
        self.topic = Topic(self.scheduler, dict.fromkeys(partitions(self.plan.partitions), 0))
        self.watch = TableWatch(self.files, self.topic)
        self.catalog = Catalog(
            self.scheduler,
            random.Random(f"catalog {self.seed}"),
            self.watch.version,
            failing=self.plan.failing,
        )
        self.bucket = Bucket(self.scheduler, random.Random(f"bucket {self.seed}"), self.written)

    # --- processes

    def start(self, checkpoint: str = CHECKPOINT) -> Process:
        """Start a process of the job."""
        name = f"run-{len(self.processes) + 1}"
        runtime = SimulatedRuntime.of(self.scheduler, random.Random(f"{name} {self.seed}"))
        process = Process(
            self,
            name,
            f"{BUCKET}{checkpoint}",
            runtime,
            TopicClient(self.topic),
            SimulatedTable(self.catalog, runtime, name),
        )
        self.processes.append(process)
        process.task = self.scheduler.spawn(name, process.main)
        return process

    def supervise(self) -> None:
        """Start the job again when its process has ended."""
        while True:
            self.scheduler.pause(START_AGAIN * self.rng.uniform(0.5, 1.5))
            if self.job is None or self.job.task.over:
                self.job = self.start()

    def note(self, process: Process) -> None:
        """Keep what has ended a process. An error that is not one of kclient's is a bug."""
        if (failure := process.task.failure) is None:
            return
        self.errors.append(f"{process.name}: {type(failure).__name__}: {failure}")
        if not isinstance(failure, KclientError) or isinstance(failure, InternalError):
            self.watch.report("I-38", f"{process.name} ended by {failure!r}")
        elif "has gone on" in str(failure):
            times = (process.task.began, process.task.ended)
            self.watch.fenced(process.name, times, self.catalog.moved)

    def current(self) -> Process:
        """Return the process that runs now."""
        running = self.scheduler.running
        return next(process for process in reversed(self.processes) if process.task is running)

    def written(self, key: str) -> None:
        """Make a version of the manifests, once a new one is there."""
        if not key.startswith(MANIFESTS):
            return
        content = json.loads(self.bucket.objects[key])
        if self.manifests.setdefault(key, content) is not content:
            self.watch.report("I-48", f"the manifest {key} was written again")
            return
        offsets = {name: parse_offsets(json.dumps(content[name])) for name in ("start", "end")}
        files = tuple(file["path"] for file in content["files"])
        self.catalog.add_manifest(int(key[len(MANIFESTS) :].removesuffix(".json")), offsets, files)

    # --- what happens beside the job

    def produce(self) -> None:
        """Append records, and now and then some while the job waits for zombies."""
        while not self.healed:
            calm = self.scheduler.now > self.plan.chaos_seconds
            self.scheduler.pause(self.rng.expovariate(0.01 if calm else 1.0))
            records = self.rng.randint(1, max(1, int(2 * self.plan.records_per_second)))
            if not self.healed:
                self.topic.produce(self.rng.randrange(len(self.topic.ends)), records)

    def happen(self, fault: Fault) -> None:
        """Let a fault of the plan happen."""
        getattr(self, f"_{fault.kind}")(fault)

    def _kill(self, fault: Fault) -> None:
        if self.job is not None:
            self.scheduler.kill(self.job.task)

    def _kill_at_step(self, fault: Fault) -> None:
        if self.job is not None:
            self.job.task.dies_in = fault.count

    def _freeze(self, fault: Fault) -> None:
        if self.job is not None:
            self.scheduler.freeze(self.job.task, self.scheduler.now + fault.seconds)

    def _sleep(self, fault: Fault) -> None:
        if self.job is not None:
            self.job.sleeps_writing = fault.seconds
        self.scheduler.at(self.scheduler.now + fault.seconds, lambda: self.catalog.remove_garbage(self.files))

    def _replace(self, fault: Fault) -> None:
        self._freeze(fault)
        self.job = self.start()

    def _second_run(self, fault: Fault) -> None:
        self._beside(self.start(), fault)

    def _second_checkpoint(self, fault: Fault) -> None:
        self._beside(self.start(f"other-{len(self.processes)}"), fault)

    def _beside(self, process: Process, fault: Fault) -> None:
        self.scheduler.at(self.scheduler.now + fault.seconds, lambda: self.scheduler.kill(process.task))

    def _lose_checkpoint(self, fault: Fault) -> None:
        self._kill(fault)
        self.bucket.replace(CHECKPOINT, {})

    def _old_checkpoint(self, fault: Fault) -> None:
        self._kill(fault)
        if self.copies:
            self.bucket.replace(CHECKPOINT, self.rng.choice(self.copies))

    def copy_checkpoint(self) -> None:
        """Keep a copy of the checkpoint."""
        self.copies.append(self.bucket.below(CHECKPOINT))

    def _store_fails(self, fault: Fault) -> None:
        self.bucket.fails_until = self.scheduler.now + fault.seconds

    def _store_down(self, fault: Fault) -> None:
        self.bucket.down_until = self.scheduler.now + fault.seconds

    def _catalog_down(self, fault: Fault) -> None:
        self.catalog.down_until = self.scheduler.now + fault.seconds

    def _commit_fails(self, fault: Fault) -> None:
        self.catalog.faults += fault.what

    def _append(self, fault: Fault) -> None:
        for number in range(fault.count):
            self.scheduler.at(self.scheduler.now + number * self.rng.uniform(0.0, 1.0), self.catalog.append)

    def _rewrite(self, fault: Fault) -> None:
        self.catalog.rewrite(self.files)

    def _expire(self, fault: Fault) -> None:
        if self._back is None:  # nobody expires snapshots of a table that they have just rolled back
            self.catalog.expire()

    def _roll_back(self, fault: Fault) -> None:
        if self._back is not None:
            return
        self.watch.taken_back = True  # before the version is there that lacks them
        self._back = self.catalog.roll_back(1 + fault.count % 4)
        self.watch.taken_back = self._back is not None
        self.scheduler.at(self.scheduler.now + fault.seconds, self._bring_back)

    def _bring_back(self) -> None:
        if (version := self._back) is not None:
            self._back, self.watch.taken_back = None, False
            self.catalog.bring_back(version)

    def _restore(self, fault: Fault) -> None:
        if self._back is None and not self.topic.starts:  # the records are there that are to land again
            self.catalog.restore(1 + fault.count % 4)

    def _add_partition(self, fault: Fault) -> None:
        self.topic.add_partition()

    def _retention(self, fault: Fault) -> None:
        if self._back is None and not self.recreated:
            newest = self.catalog.newest
            for kept in () if newest is None else newest.jobs.values():
                self.topic.delete_before(kept.progress.offsets)

    def _recreate(self, fault: Fault) -> None:
        if self.catalog.newest is not None and self.catalog.newest.jobs:
            self.recreated = True
            self.topic.recreate()

    # --- the end

    def heal(self) -> None:
        """End every fault, and everything but the job."""
        self.healed = True
        self._bring_back()
        self.catalog.down_until = self.bucket.down_until = self.bucket.fails_until = 0.0
        self.catalog.failing = 0.0
        self.catalog.faults.clear()
        for process in self.processes:
            if process is not self.job:
                self.scheduler.kill(process.task)

    def is_drained(self) -> bool:
        """Whether the table has all that the topic has."""
        newest = self.catalog.newest
        jobs = {} if newest is None else newest.jobs
        offsets = [kept.progress.offsets for kept in jobs.values()]
        return any(dict(each) == self.topic.ends for each in offsets)

    def run(self) -> Verdict:
        """Run the plan to its end."""
        scheduler = self.scheduler
        scheduler.spawn("supervisor", self.supervise)
        scheduler.spawn("producer", self.produce)
        for fault in self.plan.faults:
            scheduler.at(fault.at, lambda fault=fault: self.happen(fault))
            scheduler.at(fault.at * self.rng.random(), self.copy_checkpoint)
        scheduler.run(self.plan.chaos_seconds)
        zombies = max((process.task.frozen_until for process in self.processes), default=0.0)
        if zombies > scheduler.now:  # the job goes on for hours, until the last zombie wakes
            scheduler.run(zombies + 1.0)
        self.heal()
        until = scheduler.now + HEAL_SECONDS
        while scheduler.now < until and not (self.is_drained() or self.recreated):
            scheduler.run(scheduler.now + 5.0)
        scheduler.run(scheduler.now + 20.0)
        for process in self.processes:
            self.note(process)
        self.watch.end(self.catalog.newest, ended_by_recreation=self.recreated)
        scheduler.close()
        return self._verdict()

    def _verdict(self) -> Verdict:
        text = "\n".join(
            f"{version.number} {len(version.files)} {sorted(map(str, version.jobs.values()))}"
            for version in self.catalog.history
        )
        return Verdict(
            tuple(self.watch.violations.values()),
            hashlib.sha256(text.encode()).hexdigest(),
            len(self.catalog.history),
            self.scheduler.now,
            tuple(self.errors),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Switch off the log of what is meant to fail."""
    logger = logging.getLogger("kclient.spark")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def run_plan(seed: int, plan: Plan) -> Verdict:
    """Run a plan under a seed."""
    world = World(plan, seed)
    with _quiet(), simulated(world.current):
        try:
            return world.run()
        finally:
            world.scheduler.close()


def run_seed(seed: int) -> Verdict:
    """Run the plan of a seed."""
    return run_plan(seed, draw(seed))
