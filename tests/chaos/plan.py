"""What a seed draws for one cycle: how the group works, and the faults: process, kind, begin and length. Data only."""

from __future__ import annotations

import enum
from random import Random
from typing import Final

import attrs

from tests.chaos.member_settings import Commits

NODES: Final = (1, 2, 3)
SESSION_MS: Final = 6000
HEARTBEAT_MS: Final = 1000
AWAY_SECONDS: Final = 20.0  # until a broker is given up, and a session beside
# Six members, in two processes each of kclient and of confluent-kafka.
PROCESSES: Final = {"ours-1": 2, "ours-2": 1, "theirs-1": 2, "theirs-2": 1}
KINDS: Final = {"ours-1": "sync", "ours-2": "async", "theirs-1": "confluent", "theirs-2": "confluent"}
CONSUMER: Final = "consumer"
CLASSIC: Final = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
VARIANTS: Final[dict[str, dict[str, str | int]]] = {
    "range": {**CLASSIC, "partition.assignment.strategy": "range"},
    "cooperative-sticky": {**CLASSIC, "partition.assignment.strategy": "cooperative-sticky"},
    CONSUMER: {"group.protocol": "consumer"},  # with a session as long, by the broker's settings
    "roundrobin": {**CLASSIC, "partition.assignment.strategy": "roundrobin"},
}
EAGER: Final = ("range", "roundrobin")


class Act(enum.Enum):
    """What is done to a target. A killed one is started again, a stopped one goes on, when the time is over."""

    KILL = "SIGKILL"
    STOP = "SIGSTOP"


@attrs.frozen
class Fault:
    """One fault: `wait` seconds after the one before it, for `seconds`. The target is a node's role or a process."""

    wait: float
    act: Act
    target: str  # "coordinator", "leader" (of partition 0), "node 2", "ours-1"
    seconds: float

    def __str__(self) -> str:
        return f"{self.act.value} {self.target} for {self.seconds} s"


@attrs.frozen
class Plan:
    """One cycle. Faults of brokers and of members run at the same time, each kind one after the other."""

    variant: str
    commits: Commits
    static: bool
    brokers: tuple[Fault, ...]
    members: tuple[Fault, ...]

    def __str__(self) -> str:
        group = f"{self.variant}{', static' if self.static else ''}, commits {self.commits.value}"
        return f"{group}; {'; '.join(map(str, (*self.brokers, *self.members)))}"


def draw(seed: int, cycle: int) -> Plan:
    """The same seed and number give the same plan."""
    rng = Random(f"chaos {seed} {cycle}")
    # Every protocol with every way to commit in turn, so that a few cycles see much.
    turn, place = divmod(seed + cycle, len(VARIANTS))
    variant, commits = list(VARIANTS)[place], list(Commits)[(turn + place) % len(Commits)]
    members = tuple(_of_members(rng) for _ in range(rng.choice((2, 2, 3))))
    static = rng.random() < 0.25
    if static and variant == CONSUMER:
        members = tuple(map(_outlasting, members))
    return Plan(variant, commits, static, (_of_brokers(rng),), members)


def _of_brokers(rng: Random) -> Fault:
    target = rng.choice(("coordinator", "coordinator", "leader", f"node {rng.choice(NODES)}"))
    return Fault(_seconds(rng, 0.5, 3), rng.choice(list(Act)), target, _seconds(rng, 2, 8))


def _of_members(rng: Random) -> Fault:
    act = rng.choice(list(Act))
    # Half of the pauses outlast the session: the group goes on without the member, which has to find that out.
    longest = rng.choice((3, SESSION_MS / 1000 + 5)) if act is Act.STOP else 4
    return Fault(_seconds(rng, 0.5, 2), act, rng.choice(list(PROCESSES)), _seconds(rng, longest - 2, longest))


def _outlasting(fault: Fault) -> Fault:
    """A member that was killed is one until its session is over: who comes sooner under its instance id is refused for
    good (111). A coordinator that takes over begins the session again.
    """
    return attrs.evolve(fault, seconds=AWAY_SECONDS) if fault.act is Act.KILL else fault


def _seconds(rng: Random, least: float, most: float) -> float:
    return round(rng.uniform(least, most), 1)
