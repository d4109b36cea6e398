"""From seconds and counts to a plane that is stretched to whatever width a screen has. Pure.

x runs from 0 to 1000 over the time of the run, the same in every picture, so that they line up; y from 100 at the
bottom to 0 at the top. Positions of text are per cent, because text must not be stretched.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import attrs

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0
STEPS: Final = (1, 2, 5, 10)
Point: TypeAlias = tuple[float, float]


@attrs.frozen
class Tick:
    """A line of the grid: where it is in per cent, and what stands beside it."""

    at: float
    label: str


@attrs.frozen
class Frame:
    """The axes of a picture: seconds from left to right, and from the bottom to `top`."""

    seconds: float
    top: float

    def x(self, at: float) -> float:
        return round(min(max(at / self.seconds, 0.0), 1.0) * WIDTH, 2)

    def y(self, value: float) -> float:
        return round(HEIGHT - value / self.top * HEIGHT, 2)

    def percent(self, at: float) -> float:
        """Where a moment is, for text."""
        return round(self.x(at) / 10, 3)

    def rises(self) -> list[Tick]:
        """The lines of the grid across, without the one at the bottom."""
        return [Tick(self.y(value), f"{value:,.0f}") for value in ticks(self.top) if value]

    def times(self) -> list[Tick]:
        """The marks of the axis of time."""
        return [Tick(self.percent(value), f"{value:g}") for value in ticks(self.seconds, 8)]

    def line(self, points: Sequence[Point]) -> str:
        """The outline of a path."""
        return "M" + "L".join(f"{self.x(at):g},{self.y(value):g}" for at, value in points)

    def area(self, points: Sequence[Point]) -> str:
        """The surface below a path."""
        first, last = points[0][0], points[-1][0]
        return f"{self.line(points)}L{self.x(last):g},{HEIGHT:g}L{self.x(first):g},{HEIGHT:g}Z"


def step(top: float, wanted: int = 3) -> float:
    """The distance of round ticks of which about `wanted` fit below `top`."""
    rough = top / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(factor * power for factor in STEPS if factor * power >= rough * 0.999))


def ticks(top: float, wanted: int = 3) -> list[float]:
    """Round numbers from 0 to no more than `top`."""
    distance = step(top, wanted)
    return [distance * number for number in range(int(top / distance + 1e-9) + 1)]


def axis_maximum(values: Iterable[float]) -> float:
    """A round number that none of these exceeds, at least 1."""
    highest = max(values, default=0.0)
    if highest <= 1:
        return 1.0
    half = step(highest) / 2
    return math.ceil(highest / half - 1e-9) * half


def segments_without_gap(points: Sequence[Point], gap: float) -> Iterator[list[Point]]:
    """Split points into runs in which each is at most `gap` seconds after the one before."""
    if not points:
        return
    run = [points[0]]
    for before, point in pairwise(points):
        if point[0] - before[0] > gap:
            yield run
            run = []
        run.append(point)
    yield run


def levels(positions: Sequence[float], room: float) -> list[int]:
    """In which row each badge stands, so that none within `room` of another covers it. Positions ascend."""
    ends: list[float] = []
    chosen = []
    for position in positions:
        row = next((number for number, end in enumerate(ends) if position - end >= room), len(ends))
        ends[row : row + 1] = [position]
        chosen.append(row)
    return chosen
