"""Draw docs/performance.svg from the figures of a run: what a record costs each reader, by CPU.

    python -m benchmarks --only consume && python -m benchmarks.plot [FIGURES] [SVG]

Shorter is better. kclient's bars are dark.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Final

FIGURES: Final = Path(".cache/bench.json")
SVG: Final = Path("docs/performance.svg")
TOPICS: Final = {"none, 1 MB": "no compression, batches of 1 MB", "lz4, 16 kB": "lz4, batches of 16 kB"}
WIDTH, NAMES, ROW, BAR, HEAD, GAP = 860, 250, 22, 15, 34, 20  # pixels
OURS, PEERS, TEXT = "#0b5fa5", "#b8c4cf", "#222"


def costs_of(figures: Path, topic: str) -> list[tuple[str, float]]:
    """Return the readers of a topic with the microseconds of CPU of a record, the cheapest first."""
    found = {}
    for figure in json.loads(figures.read_text(encoding="utf-8"))["figures"]:
        where, _, name = figure["name"].partition(": ")
        if where == topic and figure["unit"] == "1000/s":
            found[name] = float(figure["note"].split()[0])
    return sorted(found.items(), key=lambda item: item[1])


def panel(title: str, costs: list[tuple[str, float]], top: int) -> Iterator[str]:
    most = max(cost for _, cost in costs)
    yield f'<text x="0" y="{top + 16}" font-weight="bold">{escape(title)}: µs of CPU for a record</text>'
    for number, (name, cost) in enumerate(costs):
        y = top + HEAD + number * ROW
        width = max(1.0, cost / most * (WIDTH - NAMES - 60))
        colour = OURS if name.startswith("kclient") else PEERS
        yield f'<text x="{NAMES - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
        yield f'<rect x="{NAMES}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>'
        yield f'<text x="{NAMES + width + 6:.1f}" y="{y + 12}">{cost:.2f}</text>'


def drawing(figures: Path) -> str:
    """Return the SVG."""
    lines, top = list[str](), 0
    for topic, title in TOPICS.items():
        costs = costs_of(figures, topic)
        if not costs:
            raise SystemExit(f"{figures} has no figures of {topic}: run python -m benchmarks --only consume")
        lines += panel(title, costs, top)
        top += HEAD + len(costs) * ROW + GAP
    style = f'font-family="sans-serif" font-size="12" fill="{TEXT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" width="{WIDTH}" {style}>'
    background = f'<rect width="{WIDTH}" height="{top}" fill="white"/>'
    return "\n".join([head, background, *lines, "</svg>", ""])


def main(figures: Path = FIGURES, svg: Path = SVG) -> None:
    svg.write_text(drawing(figures), encoding="utf-8")
    print(svg)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
