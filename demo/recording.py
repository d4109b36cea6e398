"""What happened in a run, kept in `run.json`, drawn by the report. Times are seconds since the demo began."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Self

import attrs

KILLED: Final = "killed"
MOVED: Final = "moved"
STARTED: Final = "started"
DONE: Final = "done"


@attrs.frozen
class Event:
    """Something worth a line: `kind` is killed, moved, started or done."""

    at: float
    kind: str
    text: str


@attrs.define
class Span:
    """A process at work from `start` to `end`; `lane` is its name, `state` what it did, `killed` how it ended."""

    lane: str
    state: str
    start: float
    end: float | None = None
    killed: bool = False


@attrs.frozen
class Sample:
    """The lag of a group in each partition, as the brokers reported it."""

    at: float
    lags: list[int]

    @property
    def total(self) -> int:
        return sum(self.lags)


@attrs.define
class Owner:
    """A partition was a member's from `start` to `end`."""

    partition: int
    member: str
    start: float
    end: float | None = None


@attrs.frozen
class Count:
    """How many there were by then."""

    at: float
    total: int


@attrs.frozen
class Recovery:
    """How long the work of what was killed at `at` stood still; `meaning` says from what until what."""

    name: str
    at: float
    seconds: float
    meaning: str


@attrs.frozen
class Latency:
    """From the moment when a probe's record was due to be published until poll() had returned it, in seconds."""

    records: int
    median: float
    p99: float
    longest: float


@attrs.frozen
class Batch:
    """A batch that the manifest names: which run of the job wrote it, when, and how much.

    The milliseconds are those of all its tasks together, None where the job was killed before it reported them.
    """

    run: int
    number: int
    start: float
    end: float
    rows: int
    bytes: int
    files: int
    fetch_ms: int | None = None
    decode_ms: int | None = None
    write_ms: int | None = None

    @property
    def rate(self) -> float:
        """Rows a second, all of the batch's time counted."""
        return self.rows / max(self.end - self.start, 0.001)


@attrs.frozen
class Carrier:
    """A line of the answer: delays in minutes, None where nothing of this carrier flew."""

    code: str
    airline: str
    flights: int
    departure: float | None
    arrival: float | None


@attrs.frozen
class Place:
    """A file or directory that the run left, and what it holds."""

    path: str
    description: str


@attrs.frozen
class Command:
    """Something to type after the run, and what it shows."""

    description: str
    command: str


@attrs.frozen
class Numbers:
    """The five numbers, and how many records there should be."""

    expected: int
    published: int
    consumed: int
    committed: int
    parquet: int
    lag: int
    place: str = "in Parquet"

    def named(self) -> list[tuple[str, int, bool]]:
        """Return each number with its name, and whether it is right."""
        counts = {
            "published": self.published,
            "consumed": self.consumed,
            "committed": self.committed,
            self.place: self.parquet,
        }
        counted = [(name, value, value == self.expected) for name, value in counts.items()]
        return [*counted, ("lag", self.lag, self.lag == 0)]

    @property
    def agree(self) -> bool:
        """Whether every one of them is what it should be."""
        return all(right for _, _, right in self.named())

    def __str__(self) -> str:
        if self.agree:
            return "all five numbers agree"
        return f"THE NUMBERS DIFFER: {self.expected:,} and lag 0 were right"


@attrs.define
class Recording:
    """A run from its first second to its last."""

    began: str  # UTC, ISO 8601
    cluster: str
    servers: str
    topic: str
    partitions: int
    group: str
    pipeline: str
    engine: str = "spark"
    seconds: float = 0.0
    repeated: int = 0
    events: list[Event] = attrs.field(factory=list)
    spans: list[Span] = attrs.field(factory=list)
    owners: list[Owner] = attrs.field(factory=list)
    lags: dict[str, list[Sample]] = attrs.field(factory=dict)
    published: list[Count] = attrs.field(factory=list)
    recoveries: list[Recovery] = attrs.field(factory=list)
    machine: dict[str, str] = attrs.field(factory=dict)
    batches: list[Batch] = attrs.field(factory=list)
    carriers: list[Carrier] = attrs.field(factory=list)
    places: list[Place] = attrs.field(factory=list)
    further: list[Command] = attrs.field(factory=list)
    numbers: Numbers | None = None
    latency: Latency | None = None

    def begin(self, lane: str, state: str, at: float) -> Span:
        """Note a process's new activity, which ends the previous one."""
        self.finish(lane, at)
        span = Span(lane, state, at)
        self.spans.append(span)
        return span

    def finish(self, lane: str, at: float, *, killed: bool = False) -> None:
        """Note the end of a process's activity."""
        for span in self.spans:
            if span.lane == lane and span.end is None:
                span.end, span.killed = at, killed

    def owns(self, member: str, partitions: Iterable[int], at: float) -> None:
        """Note the complete assignment of a member."""
        wanted = set(partitions)
        for owner in self.owners:
            if owner.member == member and owner.end is None:
                if owner.partition not in wanted:
                    owner.end = at
                wanted.discard(owner.partition)
        self.owners += [Owner(partition, member, at) for partition in sorted(wanted)]

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(attrs.asdict(self), indent=1), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for name, kind in LISTS.items():
            fields[name] = [kind(**one) for one in fields.get(name, ())]
        fields["lags"] = {
            group: [Sample(**one) for one in samples] for group, samples in fields["lags"].items()
        }
        if fields["numbers"] is not None:
            fields["numbers"] = Numbers(**fields["numbers"])
        if fields.get("latency") is not None:
            fields["latency"] = Latency(**fields["latency"])
        return cls(**fields)


LISTS: Final[dict[str, type[Any]]] = {
    "events": Event,
    "spans": Span,
    "owners": Owner,
    "published": Count,
    "recoveries": Recovery,
    "batches": Batch,
    "carriers": Carrier,
    "places": Place,
    "further": Command,
}
