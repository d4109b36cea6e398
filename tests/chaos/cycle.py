"""One cycle: a group at work on a topic of its own, with the faults of the plan, healed, closed, and verified.

six members read and commit   →  brokers and members are killed and stopped  →  all is whole again
→  everything is read and committed in time  →  all close in peace  →  the verdict over journals, topic and commits
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import attrs
from confluent_kafka import KafkaException

from kclient.types import TopicPartition
from localkafka import KafkaCluster
from localkafka.processes import Processes
from tests.chaos import kafka_state
from tests.chaos.findings import Finding
from tests.chaos.history import History, read_history
from tests.chaos.journal import Journal, read
from tests.chaos.member_processes import Crew
from tests.chaos.member_settings import Order
from tests.chaos.plan import CONSUMER, EAGER, PROCESSES, SESSION_MS, VARIANTS, Act, Fault, Plan
from tests.chaos.producer import Source
from tests.chaos.verify import verify
from tests.kafka import other_clients

PARTITIONS = 12
MAX_POLL_MS = 45_000  # also the time for which a rebalance waits for a member
AUTO_COMMIT_MS = 1000
START_SECONDS = 60
QUIET_SECONDS = 60  # until all is read and committed, once all is whole again


@attrs.frozen
class Result:
    """What a cycle has shown."""

    findings: list[Finding]
    history: History
    seconds: float

    def __str__(self) -> str:
        history = self.history
        seen = len({(one.partition, one.offset) for one in history.deliveries})
        calls = [line.event for lines in history.lines.values() for line in lines]
        return (
            f"{len(history.records)} records, {len(history.deliveries) - seen} of them again, "
            f"{len(history.taken)} commits, {calls.count('assigned')} assigned, {calls.count('revoked')} revoked, "
            f"{calls.count('lost')} lost, {self.seconds:.0f} s"
        )


class Cycle:
    """One cycle on a cluster of three nodes. `name` is that of the topic and of the group."""

    def __init__(self, kafka: KafkaCluster, plan: Plan, name: str, folder: Path) -> None:
        self._kafka, self._plan, self._name, self._folder = kafka, plan, name, folder
        self._journal = Journal(folder / "chaos.journal")

    def run(self) -> Result:
        """Raises AssertionError where a group does not begin to work, or members end by themselves."""
        began = time.monotonic()
        self._journal.write("chaos", "began", wall=time.time())
        self._kafka.create_topic(self._name, PARTITIONS, min_insync_replicas=2)
        logs = self._folder / "logs"
        logs.mkdir()
        with Processes(logs) as processes:
            crew = Crew(processes, self._folder, self._journal, self._order())
            try:
                source = self._inject_faults(crew)
                late = self._come_to_rest(crew, source)
                crew.close()
            finally:
                self._journal.close()
                shutil.copytree(logs, self._folder / "output")  # the other one goes with the processes
        history = self._history(crew, source)
        return Result([*late, *verify(history)], history, time.monotonic() - began)

    def _order(self) -> Order:
        settings = {
            **VARIANTS[self._plan.variant],
            "bootstrap.servers": self._kafka.bootstrap_servers,
            "group.id": self._name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": AUTO_COMMIT_MS,
            "max.poll.interval.ms": MAX_POLL_MS,
        }
        return Order("", [], self._name, settings, self._plan.commits, self._plan.static, "")

    # --- at work

    def _inject_faults(self, crew: Crew) -> Source:
        for name in crew.names:
            crew.start(name)
        with Source(self._kafka, self._name, PARTITIONS) as source:
            assert self._wait(crew, START_SECONDS, self._works), "the group has not begun to work"
            with ThreadPoolExecutor(2) as lanes:
                brokers = lanes.submit(self._lane, self._plan.brokers, self._inject_broker_fault)
                members = lanes.submit(
                    self._lane, self._plan.members, lambda fault: inject_member_fault(crew, fault)
                )
            brokers.result()
            members.result()
        assert not source.refused, f"Kafka has refused records: {source.refused[:3]}"
        return source

    def _lane(self, faults: tuple[Fault, ...], inject: Callable[[Fault], None]) -> None:
        for fault in faults:
            time.sleep(fault.wait)
            inject(fault)

    def _inject_broker_fault(self, fault: Fault) -> None:
        node = self._node(fault.target)
        killed = fault.act is Act.KILL
        self._journal.write("chaos", "kill" if killed else "stop", target=f"node {node}")
        (self._kafka.kill if killed else self._kafka.pause)(node)
        time.sleep(fault.seconds)
        (self._kafka.restart if killed else self._kafka.resume)(node)
        self._kafka.wait_until_ready()
        self._journal.write("chaos", "go on", target=f"node {node}")

    def _node(self, target: str) -> int:
        match target.split():
            case ["coordinator"]:
                return self._kafka.coordinator_of(self._name)
            case ["leader"]:
                return self._kafka.leader_of(self._name, 0)
            case [_, number]:
                return int(number)
        raise ValueError(target)

    def _works(self) -> bool:
        """Every member has partitions, and all is committed."""
        _, parts = other_clients.members(self._kafka, self._name)
        done = len(other_clients.committed(self._kafka, self._name)) == PARTITIONS
        return done and len(parts) == sum(PROCESSES.values()) and all(parts.values())

    def _come_to_rest(self, crew: Crew, source: Source) -> list[Finding]:
        """All members are back, and I-22: all is read and committed in time."""
        assert self._wait(crew, START_SECONDS, self._works), "the group is not whole again"
        ends = {TopicPartition(self._name, number): at for number, at in source.ends.items()}
        seen: dict[TopicPartition, int] = {}

        def at_the_end() -> bool:
            seen.update(other_clients.committed(self._kafka, self._name))
            return seen == ends

        if self._wait(crew, QUIET_SECONDS, at_the_end):
            return []
        behind = {tp.partition: (seen.get(tp), end) for tp, end in ends.items() if seen.get(tp) != end}
        return [Finding("I-22", f"after {QUIET_SECONDS} s these are not committed to the end: {behind}")]

    def _wait(self, crew: Crew, seconds: float, reached: Callable[[], bool]) -> bool:
        """Wait for what another client sees; whether it came in time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(KafkaException):  # no coordinator at the moment
                if reached():
                    return True
            crew.check()
            time.sleep(0.3)
        return False

    # --- the verdict

    def _history(self, crew: Crew, source: Source) -> History:
        lines = [line for path in crew.journals for line in read(path)]
        variant = self._plan.variant
        history = read_history(
            lines, eager=variant in EAGER, session=SESSION_MS / 1000, by_coordinator=variant == CONSUMER
        )
        history.acknowledged = source.acknowledged
        history.records = kafka_state.records(self._kafka, self._name, len(source.acknowledged))
        history.taken = kafka_state.commits(self._kafka, self._name, self._name)
        return history


def inject_member_fault(crew: Crew, fault: Fault) -> None:
    """Kill and start again, or stop and let go on."""
    if fault.act is Act.KILL:
        crew.kill(fault.target)
        time.sleep(fault.seconds)
        crew.start(fault.target)
    else:
        crew.stop(fault.target)
        time.sleep(fault.seconds)
        crew.go_on(fault.target)
