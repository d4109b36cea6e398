"""The kinds of faults, and how a seed draws, plays and ends them.

A kind is a function of this package's modules that is marked with `@kind("F-05", …)`. It begins the fault and gives
back a function that ends it, or None where it ends by itself. A seed switches a random subset of the kinds on (a
swarm): few kinds at a time reach states that all of them together never reach. Some plans are gentle instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.faults import answers, application, brokers, hosts, logs, wire
from tests.simulation.faults.gentle import draw_gently, is_gentle
from tests.simulation.faults.kinds import KINDS, End, Kind
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

__all__ = ["KINDS", "answers", "application", "brokers", "draw", "heal", "hosts", "logs", "play", "wire"]

# These are few among many kinds, and show little when they come once.
OF_LOGS: Final = ("truncate", "recreate", "expire", "compact", "flip_bits", "redirect", "move_leader")
OF_ANSWERS: Final = ("partial_answer", "never_answer", "fatal_error")


def draw(rng: Random, scenario: Scenario) -> tuple[Fault, ...]:
    """Faults for a scenario, by time."""
    if is_gentle(scenario):
        return draw_gently(rng, scenario)
    possible = [kind for kind in KINDS.values() if kind.fits(scenario)]
    active = rng.sample(possible, k=min(len(possible), rng.choice((1, 2, 3, 5, 8))))
    count = rng.choice((2, 4, 8, 16, 30))
    drawn = [_draw_one(rng, scenario, rng.choice(active)) for _ in range(count)]
    for likely, rare in ((0.35, OF_LOGS), (0.2, OF_ANSWERS)):
        if rng.random() < likely:
            kind = rng.choice([one for one in possible if one.name in rare])
            drawn += [_draw_one(rng, scenario, kind) for _ in range(rng.choice((3, 8)))]
    return tuple(sorted(drawn, key=lambda fault: fault.start))


def _draw_one(rng: Random, scenario: Scenario, kind: Kind) -> Fault:
    start = rng.uniform(0.0, scenario.chaos_seconds * 0.9)
    seconds = min(rng.choice((0.05, 0.5, 2.0, 5.0, 12.0, 25.0)), scenario.chaos_seconds - start)
    return Fault(kind.name, kind.draw_target(rng, scenario), start, seconds, kind.draw_amount(rng, scenario))


async def play(stage: Stage) -> None:
    """Begin each fault at its time, end it when it is over; return when all have begun."""
    began = stage.now
    ends: list[Callable[[], object]] = stage.open_faults
    for fault in stage.plan.faults:
        await asyncio.sleep(max(0.0, began + fault.start - stage.now))
        stage.world.loop.trace("fault", str(fault))
        end = KINDS[fault.kind].begin(stage, fault)
        if end is not None:
            ends.append(end)
            stage.world.loop.call_later(fault.seconds, _end, stage, end)


async def heal(stage: Stage) -> None:
    """End whatever is still on, then make the world whole: network, brokers, replicas."""
    while stage.open_faults:
        _end(stage, stage.open_faults[0])
    stage.world.network.heal_all()
    await stage.cluster.heal()


def _end(stage: Stage, end: End) -> None:
    if end in stage.open_faults:
        stage.open_faults.remove(end)
        end()
