"""The report: one file that shows a run to a person, in any browser, without a network.

    python -m demo.report demo-out/run.json          # draws it again from the recording

The pictures are worked out in `pictures.py`; `page.html.j2` draws them as SVG that is stretched, with text that is not.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

import attrs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from demo.recording import Numbers, Recording
from demo.report.figures import figures
from demo.report.geometry import Frame
from demo.report.pictures import delays, lag, lanes, marks, throughput

HERE: Final = Path(__file__).parent


MEANINGS: Final = {
    "published": "acknowledged by the brokers",
    "consumed": "different records the members delivered",
    "committed": "sum of the offsets of {group}",
    "in Parquet": "rows of the files the manifest names",
    "in the table": "rows of the newest version, by two readers",
    "lag": "of the pipeline’s group {pipeline}",
}


@attrs.frozen
class Tile:
    """One of the five numbers, and how it was counted."""

    name: str
    value: int
    right: bool
    meaning: str


def write(run: Recording, path: Path) -> None:
    """Draw a recording."""
    path.write_text(render(run), encoding="utf-8")


def render(run: Recording) -> str:
    """The page as text. Raises ValueError for a run that has no numbers yet."""
    if run.numbers is None:
        raise ValueError("the run did not come to its numbers")
    frame = Frame(run.seconds, 1.0)
    pages = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return pages.get_template("page.html.j2").render(
        run=run,
        began=datetime.fromisoformat(run.began),
        numbers=run.numbers,
        tiles=tiles(run, run.numbers),
        marks=marks(run, frame),
        times=frame.times(),
        lanes=lanes(run, frame),
        lags=[lag(run, group, frame) for group in (run.group, run.pipeline)],
        throughput=throughput(run, frame),
        delays=delays(run.carriers),
        figures=figures(run),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
    )


def tiles(run: Recording, numbers: Numbers) -> list[Tile]:
    """The five numbers as they are shown."""
    return [
        Tile(name, value, right, MEANINGS[name].format(group=run.group, pipeline=run.pipeline))
        for name, value, right in numbers.named()
    ]
