"""Plain text tables: columns as wide as they must be, numbers to the right.

Peers chose the names in the cells: nothing in them may steer a terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from kclient.text import printable

GAP = "  "


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> list[str]:
    """Return the lines of a table; columns whose titles are in `right` are right-aligned."""
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
