"""What happens to the tokens of OAUTHBEARER: the endpoint fails, hangs or is slow, brokers refuse old ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults.kinds import End, amount, kind
from tests.simulation.issuer import BEARER, Mood
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


def bearers(scenario: Scenario) -> bool:
    """Where applications have tokens."""
    return scenario.sasl == BEARER


@kind("F-54", amount=amount(0, 1), fits=bearers)
def fail_tokens(stage: Stage, fault: Fault) -> End | None:
    """Requests for a token fail: as a function of the user's does (0), or as an endpoint that is down (1)."""
    stage.issuer.mood = Mood.BUSY if fault.amount else Mood.FAILS
    return stage.issuer.recover


@kind("F-55", fits=bearers)
def hang_tokens(stage: Stage, fault: Fault) -> End | None:
    """Requests for a token that begin now never end."""
    stage.issuer.mood = Mood.HANGS
    return stage.issuer.recover


@kind("F-55", amount=amount(0.5, 2, 4, 8), fits=bearers)
def slow_tokens(stage: Stage, fault: Fault) -> End | None:
    """A token takes so many seconds."""
    stage.issuer.delay = fault.amount
    return stage.issuer.recover


@kind("F-56", fits=bearers)
def revoke_tokens(stage: Stage, fault: Fault) -> End | None:
    """The brokers refuse every token that was issued before, as when the issuer's keys are replaced."""
    stage.issuer.revoke()
    return None
