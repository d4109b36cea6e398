"""One seed from its draw to its verdict.

verdict = run_seed(7)                  # draws scenario and plan
verdict = run_plan(7, plan)            # a plan that was written down, under this seed's schedule
verdict.violations, .digest, .seconds, .history
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random
from typing import Final

import attrs

from kclient.simulation.stuck import SimulationLivelockError, SimulationStuckError, first_line
from kclient.simulation.world import World, run
from tests.simulation import faults, invariants
from tests.simulation.bounds import convergence_seconds, progress_seconds
from tests.simulation.grouping import CLASSIC
from tests.simulation.plan import Plan
from tests.simulation.probes import probing
from tests.simulation.publishing import publish
from tests.simulation.scenario import draw
from tests.simulation.stage import Stage
from tests.simulation.watch import Invariant, Violation

QUIET_SECONDS: Final = 60.0  # at least; a median seed lasts two virtual minutes
CLOSE_SECONDS: Final = 25.0
LIMIT: Final = 3_600.0
AWAKE_TRIES: Final = 200
SECONDS_A_RECORD: Final = 0.3  # where each needs a fetch of its own


@attrs.frozen
class Verdict:
    """What came of a seed. `seconds` are virtual."""

    seed: int
    plan: Plan
    violations: tuple[Violation, ...]
    digest: str
    seconds: float
    callbacks: int
    published: int
    history: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every promise was kept."""
        return not self.violations


def draw_plan(seed: int) -> Plan:
    """The plan of a seed."""
    rng = Random(f"{seed}:plan")
    scenario = draw(rng)
    return Plan(scenario, faults.draw(rng, scenario))


def run_seed(seed: int, *, history: bool = False) -> Verdict:
    """Draw a plan and run it."""
    return run_plan(seed, draw_plan(seed), history=history)


def run_plan(
    seed: int,
    plan: Plan,
    *,
    history: bool = False,
    more: tuple[type[Invariant], ...] = (),
    prepare: Callable[[World], None] = lambda world: None,
) -> Verdict:
    """Run a plan with the schedule, the latencies and the records of this seed. What the loop finds is a violation.

    `more` looks on as well; `prepare` may change the world before anything is in it.
    """
    stages: list[Stage] = []

    async def main(world: World) -> None:
        prepare(world)
        stage = Stage(world, plan, [*invariants.ALL, *more])
        stages.append(stage)
        with probing(stage, logging.DEBUG if plan.scenario.verbose else logging.WARNING):
            await play(stage)

    try:
        outcome = run(seed, main, limit=LIMIT, history=history)
    except SimulationStuckError as exc:
        return _stuck(seed, plan, stages[0], exc)
    stage = stages[0]
    found = [Violation("I-38", outcome.seconds, finding) for finding in outcome.findings]
    return Verdict(
        seed,
        plan,
        (*stage.violations, *found),
        outcome.digest,
        outcome.seconds,
        outcome.callbacks,
        stage.published,
        outcome.history,
    )


def _stuck(seed: int, plan: Plan, stage: Stage, stuck: SimulationStuckError) -> Verdict:
    """A run that could not go on: a hot loop, or something that waits for ever."""
    broken = "I-26" if isinstance(stuck, SimulationLivelockError) else "I-25"
    violations = (*stage.violations, Violation(broken, stage.now, first_line(stuck)))
    callbacks = stage.world.loop.callbacks
    return Verdict(seed, plan, violations, "", stage.now, callbacks, stage.published)


async def play(stage: Stage) -> None:
    """The phases of a run."""
    scenario = stage.scenario
    async with stage.cluster:
        stage.cluster.state.observers.append(stage.ledger)
        stage.make_topic()
        for number in range(scenario.members):
            stage.start_member(f"member-{number + 1}")
        publisher = asyncio.create_task(publish(stage))
        supervisor = asyncio.create_task(supervise(stage)) if scenario.protocol != CLASSIC else None
        began = stage.now
        await faults.play(stage)
        await asyncio.sleep(max(0.0, began + scenario.chaos_seconds - stage.now))
        await heal(stage)
        await publisher
        await settle(stage)
        stage.watch.rested()
        if supervisor is not None:
            supervisor.cancel()
        late = await stage.stop_members(CLOSE_SECONDS)
        if late:
            stage.report(Violation("I-24", stage.now, f"{', '.join(map(str, late))} never ended"))
        stage.watch.finished()


async def supervise(stage: Stage) -> None:
    """Start processes again that have ended themselves because their member had failed for good."""
    while True:
        await asyncio.sleep(1.0)
        for name, member in list(stage.members.items()):
            if member.over and member.gave_up and name not in stage.guests:
                stage.start_member(name)


async def heal(stage: Stage) -> None:
    """End every fault, and restart each member that died."""
    await faults.heal(stage)
    stage.make_whole()
    stage.quiet = True
    await awake(stage)
    start_all(stage)
    stage.watch.healed()


async def awake(stage: Stage) -> None:
    """Hosts that stand still go on, and members that work or close finish that."""
    for _ in range(AWAKE_TRIES):
        usual = [(name, member) for name, member in stage.members.items() if name not in stage.guests]
        if all(stage.hosts[name].alive and not member.is_away for name, member in usual):
            return
        await asyncio.sleep(1.0)
        start_all(stage)


def start_all(stage: Stage) -> None:
    """Restart each member that has ended."""
    for name, member in list(stage.members.items()):
        if member.over and name not in stage.guests:
            stage.start_member(name)


async def settle(stage: Stage) -> None:
    """Let things come to rest, and everything be read; what takes too long is for the invariants to say."""
    await asyncio.sleep(max(QUIET_SECONDS, convergence_seconds(stage.scenario)))
    metadata = stage.scenario.metadata_max_age_ms / 1000
    slow = len(stage.ledger.undelivered()) * SECONDS_A_RECORD
    until = stage.now + metadata + progress_seconds(stage.scenario) + slow
    while stage.now < until and stage.scenario.reset == "earliest" and stage.ledger.undelivered():
        start_all(stage)
        await asyncio.sleep(5.0)
    await asyncio.sleep(1.0)
