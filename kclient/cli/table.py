"""Plain text tables: columns as wide as they must be, numbers to the right.

Names come from whoever called a group or a client so: nothing in them may steer a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> list[str]:
    """The lines of a table; columns whose titles are in `right` are aligned there."""
    rows = [[printable(cell) for cell in row] for row in rows]
    columns = list(zip(titles, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return [
        GAP.join(
            cell.rjust(width) if title in right else cell.ljust(width)
            for title, cell, width in zip(titles, line, widths, strict=True)
        ).rstrip()
        for line in (titles, *rows)
    ]


def printable(text: str) -> str:
    """The text with escapes for whatever is no visible character."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text
    )
