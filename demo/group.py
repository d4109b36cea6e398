"""Two members read the topic. On the way a broker is killed, and half way the member with more left to read.

The members write events to their pipes. A line that a member wrote before SIGKILL is still read after it, so
the count of distinct records is exact, whatever was delivered twice. Until one member is killed, both may read no
further than half of each partition (and a poll): the killed one always leaves records to the other.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import attrs

from demo.measures import ConsumedOffsets, Stall
from demo.processes import Child
from demo.recorder import Recorder
from demo.recording import KILLED, MOVED
from demo.terminal import bar
from localkafka.processes import deferred_signals

DEADLINE_SECONDS: Final = 240.0
MAX_POLL_RECORDS: Final = 1000


@attrs.define(eq=False)
class Member:
    """What is known of a member: its process, its partitions, and the offset it committed last in each."""

    name: str
    child: Child
    assigned: list[int] = attrs.field(factory=list)
    alive: bool = True

    @property
    def lane(self) -> str:
        """Its name in the timeline."""
        return f"member {self.name}"


@attrs.frozen
class Outcome:
    """What the group did."""

    distinct: int
    repeated: int
    taken_over: list[int]


def poll_records(published: Sequence[int]) -> int:
    """Return max_poll_records: at most a quarter of an average partition, so that half and a poll is not all of it."""
    return max(1, min(MAX_POLL_RECORDS, sum(published) // len(published) // 4))


class Group:
    """Runs the members until every published record was consumed and committed."""

    def __init__(
        self, servers: str, topic: str, group: str, published: Sequence[int], recorder: Recorder, logs: Path
    ) -> None:
        self._arguments = ["--bootstrap-servers", servers, "--topic", topic, "--group", group]
        self._arguments += ["--max-poll-records", str(poll_records(published))]
        self._published = published
        self._total = sum(published)
        self._chronicle = recorder
        self._logs = logs
        self._consumed = ConsumedOffsets(len(published))
        self._committed = dict.fromkeys(range(len(published)), 0)
        self._members: list[Member] = []
        self._reading = False
        self._killed: Member | None = None
        self._broker_killed = False
        self._orphans: list[int] = []
        self._adopted = False
        self._stalls: list[Stall] = []

    def run(self, kill_broker: Callable[[], None], beside: Callable[[], Sequence[str]]) -> Outcome:
        """Start, kill a broker after a fifth and a member after half, finish.

        `beside` is called now and then and gives lines to show below those of the group.
        Raises RuntimeError when a member ends unexpectedly or the deadline passes.
        """
        with ExitStack() as stack, selectors.DefaultSelector() as selector:
            for name in ("A", "B"):
                log = self._logs / f"member-{name}.log"
                with deferred_signals():
                    child = stack.enter_context(Child("demo.member", self._arguments, log))
                member = Member(name, child)
                self._members.append(member)
                self._chronicle.begin(member.lane, "joins")
                selector.register(child.output, selectors.EVENT_READ, member)
            self._follow(selector, kill_broker, beside)
            for member in self._members:
                if member.alive and (code := member.child.end()) != 0:
                    raise RuntimeError(f"member {member.name} ended with {code}:\n{member.child.log_end()}")
                if member.alive:
                    self._own(member, [])
                    self._chronicle.finish(member.lane)
        return Outcome(self._consumed.total, self._consumed.repeated, self._orphans)

    def _follow(
        self,
        selector: selectors.BaseSelector,
        kill_broker: Callable[[], None],
        beside: Callable[[], Sequence[str]],
    ) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while sum(self._committed.values()) < self._total:
            for key, _ in selector.select(timeout=0.1):
                if not self._listen(key.data):
                    selector.unregister(key.fileobj)
            self._start_when_all_own()
            if not self._broker_killed and 5 * self._consumed.total >= self._total:
                self._broker_killed = True
                at = self._chronicle.terminal.elapsed()
                kill_broker()
                names: set[int | str] = {member.name for member in self._members if member.alive}
                meaning = "from SIGKILL until every member that lived on had committed again, to the new coordinator"
                self._stalls.append(Stall("The broker killed", at, meaning, names, set(names)))
            if self._killed is None and 2 * self._consumed.total >= self._total:
                self._kill_one()
            self._show(beside())
            if time.monotonic() > deadline:
                words = "\n".join(member.child.log_end() for member in self._members)
                raise RuntimeError(f"the group did not finish within {DEADLINE_SECONDS:g} s:\n{words}")
        self._show(beside(), now=True)

    def _start_when_all_own(self) -> None:
        """Let them read once both have partitions, or a quick one could be done before the other has joined."""
        if not self._reading and all(member.assigned for member in self._members):
            self._reading = True
            self._allow_reading_to([(end + 1) // 2 for end in self._published])
            for member in self._members:
                self._chronicle.begin(member.lane, "reads")

    def _allow_reading_to(self, ends: Sequence[int]) -> None:
        """Let the living members read each partition up to its offset in `ends`."""
        for member in self._members:
            if member.alive:
                member.child.send({"read_to": ends})

    def _listen(self, member: Member) -> bool:
        """Process the events of a member; return False after its last one."""
        events = member.child.receive(timeout=0.0)
        if events is None:
            if member.alive:
                raise RuntimeError(f"member {member.name} ended unexpectedly:\n{member.child.log_end()}")
            return False
        for event in events:
            self._note_progress(member, event)
            if member.alive:
                self._own(member, event.get("assigned", member.assigned))
            for partition, start, end in event.get("consumed", ()):
                self._consumed.add(partition, start, end)
            for partition, offset in event.get("committed", {}).items():
                self._committed[int(partition)] = offset
        return True

    def _note_progress(self, member: Member, event: dict[str, Any]) -> None:
        """Note recovered work after a kill. Commits that `own` looks up have no time."""
        if not member.alive or "at" not in event:
            return
        at = self._chronicle.since(event["at"])
        who: list[int | str] = [partition for partition, _, _ in event.get("consumed", ())]
        who += [member.name] if event.get("committed") else []
        recoveries = (stall.progressed(who, at) for stall in self._stalls)
        self._chronicle.recording.recoveries += [one for one in recoveries if one is not None]

    def _own(self, member: Member, partitions: list[int]) -> None:
        """Process a member's new assignment, which may contain partitions of the killed member."""
        self._chronicle.owns(member.name, partitions)
        member.assigned = partitions
        if self._orphans and not self._adopted and set(self._orphans) <= set(partitions):
            self._adopted = True
            orphans = ", ".join(map(str, self._orphans))
            self._chronicle.event(MOVED, f"member {member.name} has partitions {orphans} now")

    def _kill_one(self) -> None:
        """SIGKILL to the member that has more left to read."""
        victim = max(self._members, key=lambda member: sum(map(self._lag, member.assigned)))
        orphans = list(victim.assigned)
        victim.alive = False
        over = (stall.without(victim.name) for stall in self._stalls)
        self._chronicle.recording.recoveries += [one for one in over if one is not None]
        at = self._chronicle.terminal.elapsed()
        unread: set[int | str] = {number for number in orphans if self._lag(number)}
        meaning = "from SIGKILL until the other member had read on in each of its partitions (its session lasts 3 s)"
        self._stalls.append(Stall("The member killed", at, meaning, unread))
        victim.child.process.kill()
        self._chronicle.finish(victim.lane, killed=True)
        self._own(victim, [])
        self._killed, self._orphans = victim, orphans
        left = sum(map(self._lag, orphans))
        self._chronicle.event(
            KILLED,
            f"member {victim.name} (pid {victim.child.pid}) killed with {left:,} records of partitions "
            f"{', '.join(map(str, orphans))} unread",
        )
        self._allow_reading_to(self._published)

    def _lag(self, partition: int) -> int:
        return self._published[partition] - self._consumed.distinct(partition)

    def _show(self, below: Sequence[str], now: bool = False) -> None:
        done, lag = self._consumed.total, self._total - sum(self._committed.values())
        lines = [f"          consumed    {bar(done, self._total)} {done:>8,}  lag {lag:>8,}"]
        for partition, end in enumerate(self._published):
            owner = next((m.name for m in self._members if m.alive and partition in m.assigned), "–")
            consumed = self._consumed.distinct(partition)
            lag = end - self._committed[partition]
            lines.append(
                f"          flights-{partition} {owner} {bar(consumed, end)} {consumed:>8,}  lag {lag:>8,}"
            )
        plain = f"consumed {done:,} of {self._total:,}, committed lag {lag:,}"
        self._chronicle.terminal.draw([*lines, *below], plain, now=now)
