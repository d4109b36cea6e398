"""Bugs of members that keep what they have through a rebalance, M-63 to M-65, and of the sticky assignors, M-68."""

from __future__ import annotations

from typing import Any, Final

from kclient.consumer.rebalance import AssignmentChange, Rebalance
from kclient.group.assignors import Member, Subscription, Topics, general
from kclient.group.assignors.sticky import StickyAssignor
from kclient.types import TopicPartition
from tests.simulation.mutants import plans
from tests.simulation.mutants.table import Patch, Symptoms, mutant

MOST_MOVES: Final = 1_000


class Endless(Exception):
    """It would go on for ever."""


@mutant("M-63", "I-11", look=plans.looking_at(plans.SLOW_COMMITS))
def reads_what_goes(patch: Patch) -> None:
    """Keep reading partitions that are about to be revoked, until the listener is called."""

    async def stop_delivery(self: Rebalance, going: Any) -> Any:
        if set(going) == set(self.owned()):
            return await before(self, going)
        return self._assigned.committable()

    before = patch.put(Rebalance, "_stop_delivery", stop_delivery)


@mutant("M-64", "I-11", "I-27", look=plans.looking_at(plans.GRADUAL_TURNS))
def never_gives_up(patch: Patch) -> None:
    """Keep what goes to another member, and join again as if it were given up."""

    async def prepare(self: Rebalance, change: AssignmentChange) -> None:
        kept = self._not_in(change)
        change.target = (*change.target, *kept)
        await before(self, change)
        change.revoked += kept

    before = patch.put(Rebalance, "_prepare_change", prepare)


@mutant("M-65", "I-22", "I-02", look=plans.looking_at(plans.GRADUAL_TURNS))
def one_join_only(patch: Patch) -> None:
    """Do not join again after a revocation: what was given up stays unassigned."""

    async def complete(self: Rebalance, *args: Any, **more: Any) -> bool:
        await before(self, *args, **more)
        return False

    before = patch.put(Rebalance, "on_join_complete", complete)


def mixed_subscriptions(seed: int) -> Symptoms:
    """Members that want different topics are given theirs after a few moves. I-26."""
    moves = 0

    def counted(self: general._Table, partition: TopicPartition) -> None:
        nonlocal moves
        moves += 1
        if moves > MOST_MOVES:
            raise Endless
        take(self, partition)

    topics: Topics = {"a": [frozenset()] * 3, "b": [frozenset()] * 4}
    wanted = {"one": ("a",), "two": ("a", "b"), "three": ("b",)}
    members = [Member(name, Subscription(names)) for name, names in wanted.items()]
    take, general._Table._take = general._Table._take, counted  # type: ignore[method-assign]
    try:
        StickyAssignor().assign(topics, members)
    except Endless:
        return [("I-26", f"more than {MOST_MOVES} moves of 7 partitions between 3 members")]
    finally:
        general._Table._take = take  # type: ignore[method-assign]
    return []


@mutant("M-68", "I-26", look=mixed_subscriptions)
def never_even(patch: Patch) -> None:
    """Move partitions, where members want different topics, also between those that have as many, until none moves."""

    def even_out(self: general._Table, partitions: Any) -> bool:
        while any(self._move_with_gain(each) for each in partitions):
            continue
        return True

    def move(self: general._Table, partition: TopicPartition) -> bool:
        source = self.owner[partition]
        others = [one for one in self.given if one != source and self.may_have(one, partition)]
        target = min(others, key=lambda one: self.loads[one], default=None)
        if target is None or self.loads[target] > self.loads[source]:
            return False
        self._take(partition)
        self._give(partition, target)
        return True

    patch.put(general._Table, "even_out", even_out)
    patch.put(general._Table, "_move_with_gain", move)
