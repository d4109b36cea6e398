"""Assignors of a user's own: what is refused when a consumer is made, and which plans a leader refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import pytest

from kclient.errors import ConfigError, UsageError
from kclient.group.assignors import (
    Assignment,
    Assignor,
    Member,
    Subscription,
    Topics,
    make_plan,
    resolve_assignors,
)
from kclient.types import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TOPICS: Topics = {"a": [frozenset(), frozenset()], "b": [frozenset()]}
MEMBERS = [Member("m-0", Subscription(("a",))), Member("m-1", Subscription(("a", "b")))]


class Planned(Assignor):
    """Gives back what it was made with, and knows what it was asked."""

    name = "planned"

    def __init__(self, plan: Any = None) -> None:
        self.plan = plan

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        plan: Mapping[str, Assignment] = self.plan
        return plan


class Nameless(Assignor):
    """Inherits, and forgets to say its name."""

    def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
        return {}


@attrs.define
class Odd:
    """The shape of an assignor, with whatever in it."""

    name: Any = "odd"
    supported_protocols: Any = ("EAGER",)
    subscription_user_data: Any = print
    assign: Any = print
    on_assignment: Any = print


@pytest.mark.spec("B.16.8")
@pytest.mark.parametrize(
    ("strategy", "problem"),
    [
        (Planned, "Planned is a class; give an object of it, Planned()"),
        (Odd(assign=1), "assign of the assignor 'odd' cannot be called"),
        (Odd(assign=1, on_assignment=2), "assign, on_assignment of the assignor 'odd' cannot be called"),
        (Nameless(), "has the name None, which must be text"),
        (Odd(name=""), "has the name '', which must be text"),
        (Odd(name=7), "has the name 7, which must be text"),
        (Odd(supported_protocols="EAGER"), "supported_protocols 'EAGER'"),
        (Odd(supported_protocols=("LAZY",)), r"supported_protocols ('LAZY',)"),
        (Odd(supported_protocols=None), "supported_protocols None"),
        (Odd(supported_protocols=()), "supported_protocols ()"),
    ],
)
def test_what_cannot_be_an_assignor_is_refused_in_words(strategy: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_assignors([strategy])
    assert problem in str(caught.value)


@pytest.mark.spec("S4-24", "B.13.4")
@pytest.mark.parametrize(
    ("plan", "mistake"),
    [
        (None, "it is NoneType, not a mapping"),
        ([("m-0", Assignment())], "it is list, not a mapping"),
        ({"m-2": Assignment()}, "it names 'm-2', and no member of the group has this id"),
        ({"m-0": [A0]}, "it gives m-0 list, not Assignment"),
        ({"m-0": Assignment(None)}, "it gives m-0 NoneType, not a tuple of partitions"),  # type: ignore[arg-type]
        ({"m-0": Assignment((("a", 0),))}, "it gives m-0 ('a', 0), which is not a TopicPartition"),  # type: ignore[arg-type]
        ({"m-0": Assignment((TopicPartition("a", -1),))}, "which is not a TopicPartition"),
        ({"m-0": Assignment((TopicPartition("a", 2),))}, "it gives m-0 a-2, and a has 2 partitions"),
        ({"m-0": Assignment((A0, A1, A0))}, "it gives a-0 to m-0 twice"),
        ({"m-0": Assignment((A0,)), "m-1": Assignment((B0, A0))}, "it gives a-0 to m-1 and m-0"),
        ({"m-0": Assignment((A0,), "text")}, "the user_data for m-0 is str, not bytes"),  # type: ignore[arg-type]
    ],
)
def test_a_plan_that_cannot_be_is_refused_and_says_where(plan: Any, mistake: str) -> None:
    with pytest.raises(UsageError, match="'planned'") as caught:
        make_plan(Planned(plan), TOPICS, MEMBERS)
    assert mistake in str(caught.value)


@pytest.mark.spec("S4-24", "B.13.4")
def test_a_plan_may_leave_members_and_partitions_out_and_add_topics() -> None:
    unknown = TopicPartition("z", 40)
    part = Assignment((A1, unknown), b"mine")
    assert make_plan(Planned({"m-1": part}), TOPICS, MEMBERS) == {"m-0": Assignment(), "m-1": part}


@pytest.mark.spec("S4-24")
def test_what_an_assignor_raises_is_the_cause() -> None:
    class Failing(Planned):
        def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
            raise LookupError("no such rack")

    with pytest.raises(UsageError, match="raised LookupError while assigning 2 topics to 2") as caught:
        make_plan(Failing(), TOPICS, MEMBERS)
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
def test_an_assignor_that_exits_ends_neither_the_loop_nor_the_group(error: BaseException) -> None:
    class Exiting(Planned):
        def assign(self, topics: Topics, members: Sequence[Member]) -> Mapping[str, Assignment]:
            raise error

    with pytest.raises(UsageError, match=type(error).__name__) as caught:
        make_plan(Exiting(), TOPICS, MEMBERS)
    assert caught.value.__cause__ is error
