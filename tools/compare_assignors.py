"""Compare our assignors with Kafka's own on random groups: `python -m tools.compare_assignors --seed 7 --groups 300`.

Each group lives through several rebalances, every one starting from what Java gave it: members come, go and change
their topics, topics grow, are made and deleted, some members come back from an old generation with old claims. Java's
answers that cannot be given (a partition twice, of a topic that the member does not want, or that does not exist) are
counted and not compared. Needs a JDK and the jars of Kafka 4.3.1, which it fetches as the tests do.

tests/group/data/assignors_random.jsonl.gz was written by

    python -m tools.compare_assignors --seed 7 --groups 32 --rounds 5 --only sticky cooperative-sticky --write FILE
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from kclient.group.assignors import Assignor, Member, Subscription, resolve_assignors
from kclient.group.assignors.java_order import in_map_order
from kclient.group.assignors.sticky import StickyUserData, encode_cooperative, encode_sticky
from kclient.types import TopicPartition
from localkafka.jars import classpath

KAFKA = "4.3.1"
SOURCE = Path(__file__).parent / "java" / "Assignors.java"
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
TOPICS = ("audit", "clicks", "orders", "payments", "zürich", "\ufb00-late", "\U0001f600-early")
TIMEOUT_SECONDS = 600

Group = dict[str, Any]
"""One case in the form of the vectors, without its assignment; `serial` and `generation` are for us."""


def new_group(random: Random, number: int, assignor: str) -> Group:
    """A group without a previous assignment."""
    racks = [None, "a", "b", "c"] if random.random() < 0.4 else [None]
    nodes = {str(node): random.choice(racks) for node in range(random.randint(1, 6))}
    group: Group = {
        "case": f"{assignor}-random-{number}",
        "kafka": KAFKA,
        "assignor": assignor,
        "nodes": nodes,
        "topics": {},
        "members": [],
        "alike": random.random() < 0.5,
        "large": random.random() < 0.15,
        "racks": racks,
        "serial": 0,
        "generation": 0,
    }
    for topic in random.sample(TOPICS, random.randint(1, len(TOPICS))):
        set_partitions(random, group, topic)
    for _ in range(random.randint(14, 30) if group["large"] else random.randint(1, 8)):
        add_member(random, group)
    return group


def set_partitions(random: Random, group: Group, topic: str) -> None:
    """Create a topic, or replace it by one with other partitions."""
    nodes = [int(node) for node in group["nodes"]]
    copies = random.randint(1, min(3, len(nodes)))
    count = random.randint(0, 60 if group["large"] else 15)
    group["topics"][topic] = [random.sample(nodes, copies) for _ in range(count)]


def add_member(random: Random, group: Group) -> None:
    group["serial"] += 1
    prefix = random.choice(["consumer-1", "consumer-\U0001f600", "consumer-\ufb00", "b", "C"])
    group["members"].append(
        {
            "member_id": f"{prefix}-{random.getrandbits(64):x}",
            "group_instance_id": f"instance-{group['serial']}" if random.random() < 0.15 else None,
            "rack": random.choice(group["racks"]),
            "topics": some_topics(random, group),
            "owned_partitions": [],
            "generation": -1,
            "user_data": None,
        }
    )


def some_topics(random: Random, group: Group) -> list[str]:
    if group["alike"]:
        return list(TOPICS)
    return random.sample(TOPICS, random.randint(0, len(TOPICS)))


def contested(assignor: str) -> list[Group]:
    """Three members that claim one partition, two of them in one generation; they want the same, or not."""
    return [
        group_with_claims(assignor, alike, generations)
        for alike in (True, False)
        for generations in ((1, 1, 2), (1, 2, 1), (2, 1, 1))
    ]


def group_with_claims(assignor: str, alike: bool, generations: Sequence[int]) -> Group:
    group = new_group(Random(3), 0, assignor)
    group |= {
        "topics": {"clicks": [[0]] * 5, "orders": [[0]]},
        "nodes": {"0": None},
        "racks": [None],
        "members": [],
    }
    group["case"] += f"-claims{''.join(map(str, generations))}{'alike' if alike else 'apart'}"
    for number, generation in enumerate(generations):
        add_member(Random(number), group)
        group["members"][-1] |= {"member_id": f"m-{number}", "topics": ["clicks"], "rack": None}
        set_owned(assignor, group["members"][-1], [["clicks", 4], ["clicks", number]], generation)
    if not alike:
        group["members"][0]["topics"] = ["clicks", "orders"]
    return group


def next_group(random: Random, group: Group, given: dict[str, list[list[Any]]]) -> Group:
    """Return the group for its next rebalance: members that took part own their assignment, and some changes follow."""
    group = json.loads(json.dumps(group))
    group["generation"] += 1
    for member in group["members"]:
        if random.random() < 0.9:  # the others missed the last rebalance and own what they owned before
            set_owned(group["assignor"], member, given[member["member_id"]], group["generation"])
    random.choice([leave, join, grow, forget, resubscribe, nothing, leave_and_join])(random, group)
    return group


def set_owned(assignor: str, member: Group, owned: list[list[Any]], generation: int) -> None:
    """Put a member's partitions into its subscription, as members with this assignor do."""
    partitions = tuple(TopicPartition(*each) for each in owned)
    member["generation"] = generation
    if assignor == "sticky":
        member["user_data"] = encode_sticky(StickyUserData(partitions, generation)).hex()
    elif assignor == "cooperative-sticky":
        member["user_data"] = encode_cooperative(generation).hex()
        member["owned_partitions"] = owned


def leave(random: Random, group: Group) -> None:
    while len(group["members"]) > 1:
        group["members"].remove(random.choice(group["members"]))
        if random.random() < 0.5:
            return


def join(random: Random, group: Group) -> None:
    for _ in range(random.randint(1, 3)):
        add_member(random, group)


def leave_and_join(random: Random, group: Group) -> None:
    leave(random, group)
    join(random, group)


def grow(random: Random, group: Group) -> None:
    set_partitions(random, group, random.choice(TOPICS))


def forget(random: Random, group: Group) -> None:
    group["topics"].pop(random.choice(TOPICS), None)


def resubscribe(random: Random, group: Group) -> None:
    for member in random.sample(group["members"], min(2, len(group["members"]))):
        member["topics"] = some_topics(random, group)


def nothing(random: Random, group: Group) -> None:
    random.shuffle(group["members"])


def ask_java(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the results of Kafka's assignors for each group: `assignment`, or `raises`."""
    run = subprocess.run(
        ["java", "-cp", classpath(KAFKA), str(SOURCE)],
        input="".join(json.dumps(group) + "\n" for group in groups).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=TIMEOUT_SECONDS,
        check=True,
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def ask_us(group: Group) -> dict[str, list[list[Any]]]:
    """Return the results of kclient's assignors."""
    (assignor,) = resolve_assignors([group["assignor"]])
    given = run_ours(assignor, group)
    return {member_id: [list(each) for each in partitions] for member_id, partitions in given.items()}


def run_ours(assignor: Assignor, group: Group) -> dict[str, tuple[TopicPartition, ...]]:
    racks = group["nodes"]
    topics = {
        topic: [
            frozenset(racks[str(node)] for node in replicas if racks[str(node)]) for replicas in partitions
        ]
        for topic, partitions in group["topics"].items()
    }
    plan = assignor.assign(topics, [member_of(entry) for entry in group["members"]])
    return {member_id: part.partitions for member_id, part in plan.items()}


def member_of(entry: dict[str, Any]) -> Member:
    subscription = Subscription(
        tuple(entry["topics"]),
        None if entry["user_data"] is None else bytes.fromhex(entry["user_data"]),
        tuple(TopicPartition(*each) for each in entry["owned_partitions"]),
        entry["generation"] if entry["generation"] >= 0 else None,
        entry["rack"],
    )
    return Member(entry["member_id"], subscription, entry["group_instance_id"])


def flaws(group: Group, given: dict[str, list[list[Any]]]) -> list[str]:
    """Return the invalid parts of an assignment: Java assigns them sometimes, kclient does not."""
    found = []
    topics = {each["member_id"]: set(each["topics"]) for each in group["members"]}
    first, *others = in_map_order(topics)
    if not topics[first] and any(topics[each] for each in others) and group["assignor"].endswith("sticky"):
        found.append("takes-a-member-without-topics-for-one-that-wants-what-the-next-one-does")
    everything = [tuple(each) for partitions in given.values() for each in partitions]
    if len(everything) != len(set(everything)):
        found.append("assigns-twice")
    if any(number >= len(group["topics"].get(topic, ())) for topic, number in everything):
        found.append("assigns-missing-partition")
    if any(topic not in each["topics"] for each in group["members"] for topic, _ in given[each["member_id"]]):
        found.append("assigns-unsubscribed-topic")
    return found


def by_topic(given: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """Sort the topics: only the order of partitions within a topic is encoded."""
    return {
        member_id: sorted(partitions, key=lambda each: str(each[0]))
        for member_id, partitions in given.items()
    }


def compare(
    seed: int, count: int, rounds: int, assignors: Sequence[str]
) -> tuple[Counter[str], list[Group], list[Group]]:
    """Return the counts of equal, flawed and different groups; the sound groups with Java's result; the others."""
    random = Random(seed)
    groups = [new_group(random, number, assignors[number % len(assignors)]) for number in range(count)]
    groups += [group for assignor in assignors if "sticky" in assignor for group in contested(assignor)]
    found, sound, different = Counter[str](), list[Group](), list[Group]()
    for step in range(1, rounds + 1):
        following = []
        for group, answer in zip(groups, ask_java(groups), strict=True):
            group["case"] = f"{group['assignor']}-random-{seed}-{group['case'].rsplit('-', 1)[-1]}"
            given = answer.get("assignment", {})
            wrong = flaws(group, given) if "assignment" in answer else ["raises"]
            ours = ask_us(group)
            verdict = "flawed" if wrong else "equal" if by_topic(ours) == by_topic(given) else "different"
            found[f"{group['assignor']} {verdict}"] += 1
            case = {**group, "case": f"{group['case']}-step-{step}", "assignment": given}
            {"flawed": [], "equal": sound, "different": different}[verdict].append(case)
            following.append(next_group(random, group, ours if wrong else given))
        groups = following
    return found, sound, different


def main() -> int:
    """Return 1 if an assignment differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--groups", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5, help="rebalances of each group")
    parser.add_argument("--only", nargs="+", choices=ASSIGNORS, default=ASSIGNORS, metavar="ASSIGNOR")
    parser.add_argument(
        "--write", type=Path, help="where to write the groups that Java gives something sound"
    )
    arguments = parser.parse_args()
    found, sound, different = compare(arguments.seed, arguments.groups, arguments.rounds, arguments.only)
    print(
        f"seed {arguments.seed}: " + ", ".join(f"{what} {number}" for what, number in sorted(found.items()))
    )
    for group in different[:5]:
        print(json.dumps({**group, "ours": ask_us(group)}))
    if arguments.write:
        keys = ("case", "kafka", "assignor", "nodes", "topics", "members", "assignment")
        lines = "".join(json.dumps({key: group[key] for key in keys}) + "\n" for group in sound)
        arguments.write.write_bytes(gzip.compress(lines.encode("ascii"), mtime=0))
    return 1 if different else 0


if __name__ == "__main__":
    raise SystemExit(main())
