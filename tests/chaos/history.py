"""The history of a cycle from all journals: the owners of each partition, the commits, the faults."""

from __future__ import annotations

import math
from collections.abc import Iterable

import attrs

from tests.chaos.journal import Line
from tests.chaos.kafka_state import Taken

CHAOS = "chaos"


@attrs.define(eq=False)
class Ownership:
    """A member has a partition from the beginning of `assigned` to the end of `revoked`, or to the beginning of `lost`.

    `how` it ended: revoked, lost, closed or killed, "" if it has not. `rows` are (when, offset, value).
    """

    member: str
    partition: int
    begins: float
    ends: float = math.inf
    how: str = ""
    rows: list[tuple[float, int, str]] = attrs.field(factory=list)

    def __str__(self) -> str:
        return f"{self.member} has partition {self.partition} from {self.begins:.3f} to {self.ends:.3f} ({self.how})"


@attrs.define(eq=False)
class Commit:
    """The offsets that a member committed, and the outcome; `over` is None as long as there is none."""

    member: str
    at: float
    offsets: dict[int, int]
    over: float | None = None
    error: str | None = None

    @property
    def accepted(self) -> bool:
        return self.over is not None and self.error is None


@attrs.define
class FaultWindow:
    """A fault: the process, its start and end. That of a killed broker lasts until the cluster is whole again."""

    target: str
    what: str
    begins: float
    ends: float = math.inf


@attrs.frozen
class Delivery:
    """A record that came to a member."""

    member: str
    at: float
    partition: int
    offset: int
    value: str


@attrs.define
class History:
    """All that the checks look at. Lines are those of each member in their order, `taken` the coordinator's commits."""

    eager: bool
    session: float
    by_coordinator: bool = False  # whether the coordinator shares out, on what members say they have given up
    lines: dict[str, list[Line]] = attrs.field(factory=dict)
    ownerships: list[Ownership] = attrs.field(factory=list)
    deliveries: list[Delivery] = attrs.field(factory=list)
    strays: list[Delivery] = attrs.field(factory=list)  # what came to a member that did not own the partition
    commits: list[Commit] = attrs.field(factory=list)
    faults: list[FaultWindow] = attrs.field(factory=list)
    kills: list[Line] = attrs.field(factory=list)  # of processes, with the number of their life
    acknowledged: dict[tuple[int, int], str] = attrs.field(factory=dict)
    records: dict[tuple[int, int], str] = attrs.field(factory=dict)
    taken: list[Taken] = attrs.field(factory=list)
    wall: float = 0.0  # of the wall clock, when the monotonic one was 0

    def owned(self, member: str, partition: int, at: float) -> Ownership | None:
        """The ownership of a partition by a member at a time."""
        mine = (one for one in self.ownerships if (one.member, one.partition) == (member, partition))
        return next((one for one in mine if one.begins <= at <= one.ends), None)

    def careless(self, member: str) -> bool:
        """Whether a member may say too early, or too late, that it has given up what it had.

        librdkafka (2.16) does, in groups of the consumer protocol. Too early while its application is busy: the
        coordinator gives the partition to another member before `on_revoke` is called. Too late when another member
        comes back meanwhile: it was not heard of for the 30 s after which the coordinator puts it out, so that all
        it had was lost. Its members are not held to either.
        """
        return self.by_coordinator and member.startswith("theirs")

    def faults_of(self, member: str) -> list[FaultWindow]:
        """What was done to the process of a member."""
        return [fault for fault in self.faults if fault.target == process_of(member)]

    def faults_of_brokers(self) -> list[FaultWindow]:
        return [fault for fault in self.faults if fault.target.startswith("node ")]


def process_of(member: str) -> str:
    """`ours-1.0#2` runs in the process `ours-1`."""
    return member.partition(".")[0]


def life_of(member: str) -> int:
    """The second time that a process runs, its members are called `…#2`."""
    return int(member.partition("#")[2])


def read_history(
    lines: Iterable[Line], *, eager: bool, session: float, by_coordinator: bool = False
) -> History:
    """Read the journals of the members and of the injector of faults."""
    history = History(eager, session, by_coordinator)
    for line in lines:
        history.lines.setdefault(line.who, []).append(line)
    _read_chaos(history, history.lines.pop(CHAOS, []))
    for member, mine in history.lines.items():
        _read_member(history, member, mine)
    return history


def _read_chaos(history: History, lines: list[Line]) -> None:
    open_faults: dict[str, FaultWindow] = {}
    for line in lines:
        if line.event == "began":
            history.wall = line["wall"] - line.at
        elif line.event in ("kill", "stop"):
            open_faults[line["target"]] = FaultWindow(line["target"], line.event, line.at)
            history.faults.append(open_faults[line["target"]])
        elif line.event == "go on":
            open_faults[line["target"]].ends = line.at
    history.kills = [line for line in lines if line.event == "kill" and "life" in line.details]


def _read_member(history: History, member: str, lines: list[Line]) -> None:
    mine: dict[int, Ownership] = {}
    commits: dict[int, Commit] = {}
    for line in lines:
        match line.event:
            case "assigned":
                for partition in line["partitions"]:
                    mine[partition] = Ownership(member, partition, line.at)
                    history.ownerships.append(mine[partition])
            case "revoked over" | "lost":
                _end(mine, line["partitions"], line.at, line.event.split()[0])
            case "closed":
                _end(mine, list(mine), line.at, "closed")
            case "delivered":
                _deliver(history, member, mine, line)
            case "commit":
                commits[line["number"]] = Commit(member, line.at, dict(line["offsets"]))
                history.commits.append(commits[line["number"]])
            case "committed":
                commit = commits[line["number"]]
                commit.over, commit.error = line.at, line["error"]
    for kill in history.kills:
        if (kill["target"], kill["life"]) == (process_of(member), life_of(member)):
            _end(mine, list(mine), kill.at, "killed")


def _end(mine: dict[int, Ownership], partitions: list[int], at: float, how: str) -> None:
    for partition in partitions:
        if partition in mine:
            one = mine.pop(partition)
            one.ends, one.how = at, how


def _deliver(history: History, member: str, mine: dict[int, Ownership], line: Line) -> None:
    for partition, offset, value in line["rows"]:
        delivery = Delivery(member, line.at, partition, offset, value)
        history.deliveries.append(delivery)
        if partition in mine:
            mine[partition].rows.append((line.at, offset, value))
        else:
            history.strays.append(delivery)
