"""What a kind of fault is, and the table of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

import attrs

from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

End = Callable[[], object]
Begin = Callable[["Stage", Fault], End | None]
Target = Callable[[Random, Scenario], str]
Amount = Callable[[Random, Scenario], float]


@attrs.frozen
class Kind:
    """One kind. `ids` are rows of docs/specification/simulation.md."""

    name: str
    ids: tuple[str, ...]
    begin: Begin
    draw_target: Target
    draw_amount: Amount
    fits: Callable[[Scenario], bool]


KINDS: Final[dict[str, Kind]] = {}


def broker(rng: Random, scenario: Scenario) -> str:
    """The id of a broker."""
    return str(rng.randrange(scenario.brokers) + 1)


def member(rng: Random, scenario: Scenario) -> str:
    """The name of an application's host."""
    return f"member-{rng.randrange(scenario.members) + 1}"


def partition(rng: Random, scenario: Scenario) -> str:
    """The number of a partition."""
    return str(rng.randrange(scenario.partitions))


def link(rng: Random, scenario: Scenario) -> str:
    """A member and a broker, as "member-1 broker-2"."""
    return f"{member(rng, scenario)} broker-{broker(rng, scenario)}"


def nothing(rng: Random, scenario: Scenario) -> str:
    """No target."""
    return ""


def no_amount(rng: Random, scenario: Scenario) -> float:
    """No amount."""
    return 0.0


def amount(*choices: float) -> Amount:
    """One of these."""
    return lambda rng, scenario: rng.choice(choices)


def always(scenario: Scenario) -> bool:
    """In every scenario."""
    return True


def several_brokers(scenario: Scenario) -> bool:
    """Where another broker can take over."""
    return scenario.brokers > 1


def kind(
    *ids: str,
    target: Target = nothing,
    amount: Amount = no_amount,
    fits: Callable[[Scenario], bool] = always,
) -> Callable[[Begin], Begin]:
    """Enter a function into the table under its own name."""

    def enter(begin: Begin) -> Begin:
        name = begin.__name__
        KINDS[name] = Kind(name, ids, begin, target, amount, fits)
        return begin

    return enter
