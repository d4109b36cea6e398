"""Many things in a text: the first few by name, the rest as a number, and numbers with their noun."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kclient.text import printable
from kclient.types import TopicPartition


def names_of(partitions: Iterable[TopicPartition], limit: int = 5) -> str:
    """The first few partitions, and how many more there are."""
    listed = list(partitions)
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return some_of([str(tp) for tp in listed[:limit]], limit) + more or "no partitions"


def some_of(names: Sequence[str], limit: int = 5) -> str:
    """The first few, and how many more there are."""
    return ", ".join(map(printable, names[:limit])) + (
        f" and {len(names) - limit} more" if len(names) > limit else ""
    )


def counted(number: int, one: str, many: str = "") -> str:
    """1 file, 2 files."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
