"""What the page shows, worked out of a recording: every shape and every label, nothing of how they are drawn. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from demo.recording import Batch, Carrier, Recording, Sample
from demo.report.figures import text_with_recovery
from demo.report.geometry import Frame, Point, Tick, axis_maximum, levels, segments_without_gap, ticks

GAP_SECONDS: Final = 2.0
BADGE_PERCENT: Final = 6.0
TABLE_SECONDS: Final = 2.0
ORDER: Final = ("publisher", "member", "ingest", "SQL", "Arrow", "broker")


@attrs.frozen
class Mark:
    """An event in a picture: its number, where it is in per cent, in which row its badge stands."""

    number: int
    at: float
    level: int
    kind: str
    seconds: float
    text: str


@attrs.frozen
class Bar:
    """A rectangle, and its tooltip."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    label: str
    killed: bool = False

    @property
    def end(self) -> float:
        """Its right side in per cent."""
        return round((self.x + self.width) / 10, 3)


@attrs.frozen
class Lane:
    """A process in the timeline."""

    name: str
    bars: list[Bar]


@attrs.frozen
class Row:
    """One partition: the shapes of its lag, who owned it, the highest value."""

    name: str
    areas: list[str]
    owners: list[Bar]
    highest: int


@attrs.frozen
class Lag:
    """A group's lag: all of it, and of each partition on a scale of their own."""

    group: str
    rises: list[Tick]
    lines: list[str]
    areas: list[str]
    rows: list[Row]
    row_top: int
    highest: Sample
    table: list[Sample]


@attrs.frozen
class Throughput:
    """A bar for each batch: as wide as it took, as high as it was fast, so that its surface is its rows."""

    rises: list[Tick]
    bars: list[Bar]
    batches: list[Batch]


@attrs.frozen
class Dumbbell:
    """A carrier's two mean delays on the axis of minutes, in per cent."""

    carrier: Carrier
    departure: float | None
    arrival: float | None


@attrs.frozen
class Delays:
    """The answer: a line a carrier, and the axis on which they stand."""

    ticks: list[Tick]
    zero: float
    rows: list[Dumbbell]


def marks(run: Recording, frame: Frame) -> list[Mark]:
    """The events, numbered in the order of time."""
    events = sorted(run.events, key=lambda event: event.at)
    rows = levels([frame.percent(event.at) for event in events], BADGE_PERCENT)
    return [
        Mark(
            number,
            frame.percent(event.at),
            row,
            event.kind,
            event.at,
            text_with_recovery(run, event.kind, event.at, event.text),
        )
        for number, (event, row) in enumerate(zip(events, rows, strict=True), 1)
    ]


def lanes(run: Recording, frame: Frame) -> list[Lane]:
    """Who was at work when: the publisher, the members, the job, and below them the brokers."""
    return [
        Lane(
            name,
            [
                _stretch(frame, span.start, span.end or run.seconds, span.state, span.state, span.killed)
                for span in run.spans
                if span.lane == name
            ],
        )
        for name in sorted(dict.fromkeys(span.lane for span in run.spans), key=_rank)
    ]


def lag(run: Recording, group: str, frame: Frame) -> Lag:
    """The picture of a group, its owners only where it has members."""
    samples = run.lags.get(group) or [Sample(0.0, [0] * run.partitions)]
    whole = attrs.evolve(frame, top=axis_maximum(sample.total for sample in samples))
    row = attrs.evolve(frame, top=axis_maximum(most for sample in samples for most in sample.lags))
    total = list(segments_without_gap([(sample.at, sample.total) for sample in samples], GAP_SECONDS))
    return Lag(
        group=group,
        rises=whole.rises(),
        lines=[whole.line(points) for points in total],
        areas=[whole.area(points) for points in total],
        rows=[_row(run, samples, number, row, group == run.group) for number in range(run.partitions)],
        row_top=int(row.top),
        highest=max(samples, key=lambda sample: sample.total),
        table=_thinned(samples),
    )


def throughput(run: Recording, frame: Frame) -> Throughput:
    """The batches of the ingest."""
    frame = attrs.evolve(frame, top=axis_maximum(batch.rate for batch in run.batches))
    bars = [
        Bar(
            frame.x(batch.start),
            frame.y(batch.rate),
            round(frame.x(batch.end) - frame.x(batch.start), 2),
            round(100 - frame.y(batch.rate), 2),
            f"run-{batch.run}",
            f"batch {batch.number}: {batch.rows:,} rows in {batch.end - batch.start:.1f} s, {batch.rate:,.0f} rows/s",
        )
        for batch in run.batches
    ]
    return Throughput(frame.rises(), bars, run.batches)


def delays(carriers: Sequence[Carrier]) -> Delays:
    """Both delays of each carrier on one axis, which holds 0."""
    values = [
        value for carrier in carriers for value in (carrier.departure, carrier.arrival) if value is not None
    ]
    low, high = (
        -axis_maximum(-value for value in values) if min(values, default=0) < 0 else 0.0,
        axis_maximum(values),
    )
    width = high - low

    def place(value: float) -> float:
        return round((value - low) / width * 100, 3)

    return Delays(
        [Tick(place(value), f"{value:g}") for value in sorted({low, *ticks(high)})],
        place(0.0),
        [
            Dumbbell(
                carrier,
                None if carrier.departure is None else place(carrier.departure),
                None if carrier.arrival is None else place(carrier.arrival),
            )
            for carrier in carriers
        ],
    )


def _rank(lane: str) -> int:
    kind, *_ = lane.split()
    return ORDER.index(kind)


def _row(run: Recording, samples: Sequence[Sample], number: int, frame: Frame, owned: bool) -> Row:
    points: list[Point] = [(sample.at, sample.lags[number]) for sample in samples]
    return Row(
        f"{run.topic}-{number}",
        [frame.area(part) for part in segments_without_gap(points, GAP_SECONDS)],
        _owners(run, number, frame) if owned else [],
        max(sample.lags[number] for sample in samples),
    )


def _owners(run: Recording, number: int, frame: Frame) -> list[Bar]:
    """Who held a partition from when to when."""
    return [
        _stretch(
            frame,
            owner.start,
            owner.end or run.seconds,
            f"owner-{owner.member}",
            f"member {owner.member}",
        )
        for owner in run.owners
        if owner.partition == number
    ]


def _stretch(frame: Frame, start: float, end: float, kind: str, label: str, killed: bool = False) -> Bar:
    width = max(round(frame.x(end) - frame.x(start), 2), 1.0)
    ending = f", killed at {end:.1f} s" if killed else f" to {end:.1f} s"
    return Bar(frame.x(start), 0, width, 100, kind, f"{label}: {start:.1f} s{ending}", killed)


def _thinned(samples: Sequence[Sample]) -> list[Sample]:
    """About one sample in two seconds, and the last."""
    kept: list[Sample] = []
    for sample in samples:
        if not kept or sample.at - kept[-1].at >= TABLE_SECONDS:
            kept.append(sample)
    if kept[-1] is not samples[-1]:
        kept.append(samples[-1])
    return kept
