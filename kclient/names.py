"""Partitions in a text: the first few by name, the rest as a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kclient.types import TopicPartition


def names_of(partitions: Iterable[TopicPartition], limit: int = 5) -> str:
    """The first few partitions, and how many more there are."""
    return some_of([str(tp) for tp in partitions], limit)


def some_of(names: Sequence[str], limit: int = 5) -> str:
    """The first few, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")
