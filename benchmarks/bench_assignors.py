"""What a rebalance of a large group costs its leader: 1,000 members share out 10,000 partitions of 100 topics.

python -m benchmarks.bench_assignors

alike      every member wants all topics          halves      each wants 50 of them, drawn at random
fresh      no previous assignment                 one left    the group was even, then a member left
racks      members in three racks, the three replicas of each partition in three of five

CPU seconds of this process, so that a busy machine does not count against it.
"""

from __future__ import annotations

import time
from random import Random

import attrs

from benchmarks.report import Figure, Goal, progress, show
from kclient.group.assignors import Assignor, Member, Subscription, Topics, resolve_assignors
from kclient.group.assignors.sticky import StickyUserData, encode_sticky
from kclient.types import TopicPartition

MEMBERS = 1_000
TOPICS = [f"topic-{number:03}" for number in range(100)]
PARTITIONS = 100
RACKS = ("a", "b", "c", "d", "e")
ALIKE = Goal(most=1.0)
HALVES = Goal(most=10.0)


def topics_of(random: Random, *, racks: bool) -> Topics:
    def replicas() -> frozenset[str]:
        return frozenset(random.sample(RACKS, 3) if racks else ())

    return {topic: [replicas() for _ in range(PARTITIONS)] for topic in TOPICS}


def members_of(random: Random, *, halves: bool, racks: bool) -> list[Member]:
    def subscription() -> Subscription:
        wanted = sorted(random.sample(TOPICS, 50)) if halves else TOPICS
        return Subscription(tuple(wanted), rack_id=random.choice(RACKS[:3]) if racks else None)

    return [Member(f"consumer-{random.getrandbits(128):032x}", subscription()) for _ in range(MEMBERS)]


def cpu_seconds(assignor: Assignor, topics: Topics, members: list[Member]) -> tuple[float, list[Member]]:
    """How long it takes, and the members as they come to the next rebalance."""
    began = time.process_time()
    plan = assignor.assign(topics, members)
    took = time.process_time() - began
    return took, [with_past(member, plan[member.member_id].partitions) for member in members]


def with_past(member: Member, partitions: tuple[TopicPartition, ...]) -> Member:
    had = Subscription(
        member.subscription.topics,
        encode_sticky(StickyUserData(partitions, 1)),
        partitions,
        1,
        member.subscription.rack_id,
    )
    return attrs.evolve(member, subscription=had)


def measure(*, quick: bool = False) -> list[Figure]:
    found = []
    for name in ("sticky", "cooperative-sticky"):
        for halves in (False, True):
            for racks in (False, True) if not quick else (False,):
                progress(name)
                found += both(name, halves=halves, racks=racks)
    return found


def both(name: str, *, halves: bool, racks: bool) -> list[Figure]:
    """A group's first rebalance, and the one after a member has left."""
    random = Random(7)
    (assignor,) = resolve_assignors([name])
    topics, members = topics_of(random, racks=racks), members_of(random, halves=halves, racks=racks)
    first, later = cpu_seconds(assignor, topics, members)
    second, _ = cpu_seconds(assignor, topics, later[1:])
    what = f"{name}, {'halves' if halves else 'alike'}{', racks' if racks else ''}"
    goal = HALVES if halves else ALIKE
    return [
        Figure(f"{what}, fresh", first, "s of CPU", goal),
        Figure(f"{what}, one left", second, "s of CPU", goal),
    ]


if __name__ == "__main__":
    show("1,000 members, 10,000 partitions", measure())
