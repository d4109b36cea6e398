"""Who else wants to be in the group, and how its members are changed one after the other."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Final

from tests.simulation.application import CLOSE_SECONDS
from tests.simulation.assignors import Odd
from tests.simulation.faults.kinds import End, amount, kind, member, nothing
from tests.simulation.grouping import instance_id_of, number_of, speaks_consumer
from tests.simulation.plan import Fault
from tests.simulation.scenario import Scenario

if TYPE_CHECKING:
    from tests.simulation.stage import Stage


HEARTBEAT: Final = "ConsumerGroupHeartbeat"
ERRORS: Final = {
    HEARTBEAT: (
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "FENCED_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
        "UNRELEASED_INSTANCE_ID",
    ),
    "OffsetCommit": ("STALE_MEMBER_EPOCH",),
    "OffsetFetch": ("STALE_MEMBER_EPOCH",),
}


def in_groups(scenario: Scenario) -> bool:
    """Where applications are in a group."""
    return not scenario.manual


def static(scenario: Scenario) -> bool:
    """Where they have instance ids."""
    return scenario.static and not scenario.manual


def by_consumer_protocol(scenario: Scenario) -> bool:
    """Where some of them speak the consumer protocol."""
    return not scenario.manual and (speaks_consumer(scenario, 1) or speaks_consumer(scenario, 2))


def an_error(rng: Random, scenario: Scenario) -> str:
    """An API and one of its errors, as "OffsetCommit STALE_MEMBER_EPOCH"."""
    api = rng.choice(list(ERRORS))
    return f"{api} {rng.choice(ERRORS[api])}"


def goes_again(stage: Stage, name: str) -> End:
    """Kill a guest once the fault is over."""
    return lambda: stage.kill_member(name)


@kind("F-47", target=member, fits=static)
def double(stage: Stage, fault: Fault) -> End | None:
    """A second process with the same instance id, as a deployment that went wrong starts it."""
    instance_id, name = instance_id_of(stage.scenario, fault.target), f"double-{number_of(fault.target)}"
    if instance_id is None or (name in stage.members and not stage.members[name].over):
        return None
    stage.start_guest(name, {"group_instance_id": instance_id})
    return goes_again(stage, name)


@kind("F-47", target=nothing, fits=in_groups)
def odd_one(stage: Stage, fault: Fault) -> End | None:
    """A process that speaks of no assignor that the others know: there is no room for it, unless it came first."""
    name = "odd-1"
    if name in stage.members and not stage.members[name].over:
        return None
    instead = {
        "partition_assignment_strategy": (Odd(),),
        "group_instance_id": None,
        "group_protocol": "classic",
    }
    stage.start_guest(name, {**instead, "group_remote_assignor": None, **stage.timeouts})
    return goes_again(stage, name)


@kind("F-45", "F-53", target=nothing, fits=in_groups)
def roll_members(stage: Stage, fault: Fault) -> End | None:
    """Every process is ended and started again, one after the other, as in a deployment."""

    async def one_by_one() -> None:
        names = [name for name in stage.members if name not in stage.guests]
        for name in names:
            stage.members[name].stop()
            for _ in range(int(CLOSE_SECONDS)):
                await asyncio.sleep(fault.seconds / len(names) / CLOSE_SECONDS)
                if stage.members[name].over:
                    break
            if stage.members[name].over:
                stage.start_member(name)

    rolling = stage.background(one_by_one())
    return rolling.cancel


@kind("F-30", "F-31", target=an_error, amount=amount(1, 1, 3), fits=by_consumer_protocol)
def heartbeat_error(stage: Stage, fault: Fault) -> End | None:
    """Members of the consumer protocol are refused so many times, as if their epoch were over, or for a while."""
    api, error = fault.target.split()
    rule = stage.cluster.fail(api, error, int(fault.amount))
    return lambda: stage.cluster.lift(rule)


@kind("F-07", "F-08", target=nothing, amount=amount(-1, -2, 0, 5), fits=by_consumer_protocol)
def lose_heartbeat(stage: Stage, fault: Fault) -> End | None:
    """One heartbeat of the consumer protocol is not answered, though it counts (-1) or does not (-2), or cut short."""
    if fault.amount < 0:
        rule = stage.cluster.drop(HEARTBEAT, handled=fault.amount == -1)
    else:
        rule = stage.cluster.cut(HEARTBEAT, int(fault.amount))
    return lambda: stage.cluster.lift(rule)
