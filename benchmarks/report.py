"""What a measurement gives: a figure, what it should be, and whether it is. Shown as a table, kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs


@attrs.frozen
class Goal:
    """A figure is good from `least` on, or up to `most`."""

    least: float | None = None
    most: float | None = None

    def is_met(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f">= {self.least:g}" if self.least is not None else f"<= {self.most:g}"


@attrs.frozen
class Figure:
    """One line of the table. `unit` "x" says a ratio between two things measured in turns."""

    name: str
    value: float
    unit: str
    goal: Goal | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.goal is None:
            return ""
        return "ok" if self.goal.is_met(self.value) else "MISSED"

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal} {self.unit}"
        line = f"{self.name:86} {shown(self.value):>9} {self.unit:10} {goal:16} {self.verdict:7} {self.note}"
        return line.rstrip()


def shown(value: float) -> str:
    """Three digits that count, no more."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def progress(text: str) -> None:
    """Say what is measured now, where it does not get into the table."""
    print(f"  … {text}", file=sys.stderr, flush=True)


def show(title: str, figures: Iterable[Figure]) -> None:
    print(f"\n{title}", flush=True)
    for figure in figures:
        print(f"  {figure}", flush=True)


def write_json(path: Path, figures: Sequence[Figure], **about: Any) -> None:
    """The figures with what is needed to judge them: interpreter, cores, and how busy the machine was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "measured_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_average_1m": os.getloadavg()[0],
        **about,
        "figures": [
            {
                "name": one.name,
                "value": one.value,
                "unit": one.unit,
                "goal": None if one.goal is None else str(one.goal),
                "met": None if one.goal is None else one.goal.is_met(one.value),
                "note": one.note,
            }
            for one in figures
        ],
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
