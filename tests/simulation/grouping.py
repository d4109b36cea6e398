"""How each application takes part in the group: by which protocol, under which name, with which assignors.

A group need not be of one kind. Every second application may have no instance id though the others have one. In a
rolling upgrade the first incarnation of a process is configured in another way than those that follow it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kclient.embedded.releases import Release
from kclient.group.assignors import COOPERATIVE, common_protocol, resolve_assignors
from tests.simulation.assignors import OWN

if TYPE_CHECKING:
    from tests.simulation.application import Member
    from tests.simulation.scenario import Scenario

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
AUTO: Final = "auto"
CONSUMER_SINCE: Final = Release.parse("4.0")
CLASSIC_ONLY: Final = ("partition_assignment_strategy", "session_timeout_ms", "heartbeat_interval_ms")


def number_of(name: str) -> int:
    """That of "member-2" is 2."""
    return int(name.rpartition("-")[2])


def instance_id_of(scenario: Scenario, name: str) -> str | None:
    """Its group.instance.id, None for a dynamic member."""
    number = number_of(name)
    is_static = scenario.static and not (scenario.some_dynamic and number % 2 == 0)
    return f"member-{number}" if is_static else None


def assignors_of(scenario: Scenario, incarnation: int) -> tuple[Any, ...]:
    """What it lists, the one that it likes best first."""
    listed = scenario.assignor if incarnation == 1 else scenario.later_assignor or scenario.assignor
    return tuple(OWN[name]() if name in OWN else name for name in listed.split(","))


def configured_protocol(scenario: Scenario, incarnation: int) -> str:
    """Its group_protocol."""
    return scenario.protocol if incarnation == 1 else scenario.later_protocol or scenario.protocol


def speaks_consumer(scenario: Scenario, incarnation: int) -> bool:
    """Whether it speaks the consumer protocol (KIP-848), as configured or because brokers know it."""
    protocol = configured_protocol(scenario, incarnation)
    known = Release.parse(scenario.release) >= CONSUMER_SINCE
    return protocol == CONSUMER or (protocol == AUTO and known)


def is_cooperative(scenario: Scenario, incarnation: int) -> bool:
    """Whether it keeps what it has while the group rebalances: all that it lists must be able to."""
    if speaks_consumer(scenario, incarnation):
        return True
    return common_protocol(resolve_assignors(assignors_of(scenario, incarnation))) == COOPERATIVE


def settings_of(member: Member) -> dict[str, Any]:
    """The part of its configuration that says so; None is for "not given". `member.instead` has the last word."""
    scenario, incarnation = member.stage.scenario, member.incarnation
    settings: dict[str, Any] = {
        "group_instance_id": instance_id_of(scenario, member.name),
        "partition_assignment_strategy": assignors_of(scenario, incarnation),
    }
    protocol = configured_protocol(scenario, incarnation)
    if protocol != CLASSIC:
        settings["group_protocol"] = protocol
        settings["group_remote_assignor"] = scenario.remote_assignor or None
    if protocol == CONSUMER:
        settings |= dict.fromkeys(CLASSIC_ONLY)
    return {**settings, **member.instead}
