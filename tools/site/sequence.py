"""The directive `sequence`: a sequence diagram as SVG, from lines of text that can be read where there is no Sphinx.

| line | is drawn as |
|---|---|
| `Consumer -> Coordinator: JoinGroup` | an arrow |
| `Coordinator --> Consumer: its assignment` | a dashed arrow, for a response |
| `Consumer: on_partitions_revoked` | a box at one participant |

Participants stand in the order in which they are first named. The colours are variables of the page: the same picture
fits light and dark.
"""

from __future__ import annotations

import re
from html import escape
from typing import ClassVar, Final, NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive, directives

COLUMN, ROW, TOP, EDGE, LETTER = 190, 44, 64, 95, 6.6
"""Pixels: between participants, between steps, above the first step, beside the first participant, of a letter."""

ARROW: Final = re.compile(r"(.+?) (-->|->) (.+?): (.*)")

HEAD: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
    'role="img" aria-label="{title}"><title>{title}</title>'
)


class Step(NamedTuple):
    """One line: an arrow, or a box where source and target are the same."""

    source: str
    target: str
    text: str
    dashed: bool


def parsed(lines: list[str]) -> list[Step]:
    """Return the steps of a diagram. Raise ValueError for a line that is neither an arrow nor a box."""
    steps = []
    for line in filter(None, map(str.strip, lines)):
        if arrow := ARROW.fullmatch(line):
            source, kind, target, text = arrow.groups()
            steps.append(Step(source, target, text, kind == "-->"))
        else:
            name, colon, text = line.partition(": ")
            if not colon:
                raise ValueError(f"not a step of a sequence: {line!r}")
            steps.append(Step(name, name, text, False))
    return steps


def participants(steps: list[Step]) -> list[str]:
    """Return the names, in the order in which they appear."""
    return list(dict.fromkeys(name for step in steps for name in (step.source, step.target)))


def label(x: float, y: float, text: str, kind: str) -> str:
    """Return a text that is centred at x."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="middle">{escape(text)}</text>'


def arrow(start: float, end: float, y: float, step: Step) -> str:
    """Return an arrow with its text above it."""
    side = 1 if end > start else -1
    tip = f"M{end:g} {y:g}l{-9 * side} -4.5v9z"
    dashed = ' stroke-dasharray="5 4"' if step.dashed else ""
    line = (
        f'<path class="line" d="M{start:g} {y:g}H{end - 8 * side:g}"{dashed}/><path class="tip" d="{tip}"/>'
    )
    return line + label((start + end) / 2, y - 7, step.text, "step")


def box(x: float, y: float, text: str) -> str:
    """Return a box with a text, over the line of its participant."""
    width = len(text) * LETTER + 20
    return (
        f'<rect class="box" x="{x - width / 2:g}" y="{y - 19:g}" width="{width:g}" height="26" rx="4"/>'
        + label(x, y - 2, text, "step")
    )


def drawn(title: str, lines: list[str]) -> str:
    """Return the diagram as SVG."""
    steps = parsed(lines)
    column = {name: EDGE + COLUMN * number for number, name in enumerate(participants(steps))}
    width, height = 2 * EDGE + COLUMN * (len(column) - 1), TOP + ROW * len(steps) + 10
    parts = [HEAD.format(width=width, height=height, title=escape(title))]
    for name, x in column.items():
        parts.append(f'<path class="life" d="M{x} 34V{height - 6}"/>')
        parts.append(f'<rect class="name" x="{x - 75}" y="4" width="150" height="30" rx="5"/>')
        parts.append(label(x, 24, name, "who"))
    for number, step in enumerate(steps):
        y = TOP + ROW * number + 14
        same = step.source == step.target
        parts.append(
            box(column[step.source], y, step.text)
            if same
            else arrow(column[step.source], column[step.target], y, step)
        )
    return "".join(parts) + "</svg>"


class Sequence(Directive):
    """```` ```{sequence} Title ````, with one step on each line."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"name": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Return the diagram as raw HTML in a figure."""
        try:
            picture = drawn(self.arguments[0], list(self.content))
        except ValueError as exc:
            raise self.error(str(exc)) from exc
        return [nodes.raw("", f'<figure class="diagram">{picture}</figure>', format="html")]
