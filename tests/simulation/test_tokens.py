"""Tokens that expire, endpoints that fail, hang or are slow: what applications notice of it. I-44, I-45."""

from __future__ import annotations

import attrs
import pytest

from kclient.errors import AuthenticationError
from tests.simulation.application import Member
from tests.simulation.mutants import plans
from tests.simulation.plan import Fault, Plan
from tests.simulation.runner import run_plan
from tests.simulation.watch import Invariant

pytestmark = [pytest.mark.spread, pytest.mark.timeout(120)]

SLOW_TOKENS = Plan(
    attrs.evolve(plans.LONG_TOKENS, token_seconds=20.0),
    (Fault("slow_tokens", "", 10.0, 40.0, 2.5), *plans.reconnecting(17.5), *plans.reconnecting(34.0)),
)


def refusals(plan: Plan) -> list[tuple[float, str]]:
    """Run a plan. Return when applications were told that they cannot log in, and by which words."""
    told: list[tuple[float, str]] = []

    class Recorder(Invariant):
        """Breaks nothing."""

        id = "I-44"

        def raised(self, member: Member, call: str, error: BaseException) -> None:
            if isinstance(error, AuthenticationError):
                told.append((self.stage.now, str(error)))

    verdict = run_plan(1, plan, more=(Recorder,))
    del Recorder  # it keeps the members
    assert verdict.violations == ()
    assert verdict.published > 100
    return told


@pytest.mark.spec("I-44", "F-54", "F-55")
@pytest.mark.parametrize(
    "plan", [plans.FAILING_TOKENS, plans.HANGING_TOKENS, SLOW_TOKENS], ids=["fails", "hangs", "is slow"]
)
def test_an_endpoint_that_recovers_before_the_token_expires_is_not_noticed(plan: Plan) -> None:
    assert refusals(plan) == []


@pytest.mark.spec("I-45", "F-54", "F-55")
def test_without_a_token_applications_are_told_and_go_on_when_the_endpoint_does() -> None:
    told = refusals(plans.NO_TOKENS)
    assert any("has not returned within 3 s" in text for _, text in told)
    assert any("failed with OSError" in text for _, text in told)
    end = max(fault.start + fault.seconds for fault in plans.NO_TOKENS.faults)
    assert max(when for when, _ in told) < end + 10.0


@pytest.mark.spec("I-45", "F-56")
def test_tokens_that_brokers_refuse_are_replaced_at_once() -> None:
    told = refusals(plans.REFUSED_TOKENS)
    assert told
    assert all("refused the token of OAUTHBEARER" in text and "invalid_token" in text for _, text in told)
    assert max(when for when, _ in told) < 12.0 + 10.0
