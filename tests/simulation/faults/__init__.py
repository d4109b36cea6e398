"""The kinds of faults, and how a seed draws, plays and ends them.

A kind is a function of this package's modules that is marked with `@kind("F-05", …)`. It begins the fault and
returns a function that ends it, or None if the fault ends without it. A seed enables a random subset of the kinds (a
swarm): few kinds at a time reach states that all of them together never reach. Some plans are gentle instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.faults import (
    answers,
    application,
    brokers,
    groups,
    hosts,
    logs,
    sessions,
    shapes,
    tokens,
    wire,
)
from tests.simulation.faults.gentle import draw_gently, is_gentle
from tests.simulation.faults.kinds import KINDS, End, Kind
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

__all__ = [
    "KINDS",
    "answers",
    "application",
    "brokers",
    "draw",
    "groups",
    "heal",
    "hosts",
    "logs",
    "play",
    "sessions",
    "shapes",
    "tokens",
    "wire",
]

# These are few among many kinds, and show little when they come once.
OF_LOGS: Final = ("truncate", "recreate", "expire", "compact", "flip_bits", "redirect", "move_leader")
OF_ANSWERS: Final = ("partial_answer", "never_answer", "fatal_error")
# These came later, and are drawn from a generator of their own: the other seeds stay what they were without them.
RARE: Final = (
    "answer_twice",
    "answer_unasked",
    "delete_topic",
    "evict_sessions",
    "few_sessions",
    "hang",
    "miscount_sessions",
    "move_leader_quietly",
    "stale_broker",
)
RARE_SHARE: Final = 0.4
# And these later still.
OF_GROUPS: Final = ("double", "heartbeat_error", "lose_heartbeat", "odd_one", "roll_members")
GROUPS_SHARE: Final = 0.2
OF_TOKENS: Final = ("fail_tokens", "hang_tokens", "revoke_tokens", "slow_tokens")
TOKENS_SHARE: Final = 0.8


def draw(rng: Random, scenario: Scenario) -> tuple[Fault, ...]:
    """Faults for a scenario, by time."""
    if is_gentle(scenario):
        return draw_gently(rng, scenario)
    fitting = [kind for kind in KINDS.values() if kind.fits(scenario)]
    possible = [kind for kind in fitting if kind.name not in (*RARE, *OF_GROUPS, *OF_TOKENS)]
    active = rng.sample(possible, k=min(len(possible), rng.choice((1, 2, 3, 5, 8))))
    count = rng.choice((2, 4, 8, 16, 30))
    drawn = [_draw_one(rng, scenario, rng.choice(active)) for _ in range(count)]
    for likely, rare in ((0.35, OF_LOGS), (0.2, OF_ANSWERS)):
        if rng.random() < likely:
            kind = rng.choice([one for one in possible if one.name in rare])
            drawn += [_draw_one(rng, scenario, kind) for _ in range(rng.choice((3, 8)))]
    own = Random(f"{scenario} {count}")
    if own.random() < RARE_SHARE:
        active = own.sample([kind for kind in fitting if kind.name in RARE], k=own.choice((1, 1, 2)))
        drawn += [_draw_one(own, scenario, own.choice(active)) for _ in range(own.choice((1, 3, 8)))]
    drawn += _draw_of(OF_GROUPS, GROUPS_SHARE, (1, 2, 4), Random(f"{scenario} {count} groups"), scenario)
    drawn += _draw_of(OF_TOKENS, TOKENS_SHARE, (2, 4, 8), Random(f"{scenario} {count} tokens"), scenario)
    return tuple(sorted(drawn, key=lambda fault: fault.start))


def _draw_of(
    names: tuple[str, ...], share: float, counts: tuple[int, ...], rng: Random, scenario: Scenario
) -> list[Fault]:
    kinds = [kind for name in names if (kind := KINDS[name]).fits(scenario)]
    if not kinds or rng.random() >= share:
        return []
    return [_draw_one(rng, scenario, rng.choice(kinds)) for _ in range(rng.choice(counts))]


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
