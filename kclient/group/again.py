"""Why something must be asked again, in words: the codes that came, and what each came for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.protocol import errors as codes
from kclient.text import format_partitions
from kclient.types import TopicPartition


def why_again(again: Mapping[TopicPartition, int], left: Iterable[TopicPartition]) -> str:
    """Each code of `again`, in the order in which they came; what is `left` without one was not answered."""
    told: dict[int | None, list[TopicPartition]] = {}
    for partition in (*again, *(tp for tp in left if tp not in again)):
        told.setdefault(again.get(partition), []).append(partition)
    reasons = (f"{_answer(code)} for {format_partitions(some)}" for code, some in told.items())
    return f"the coordinator answered {'; '.join(reasons)}"


def _answer(code: int | None) -> str:
    return "nothing" if code is None else f"{codes.error(code).name} ({code})"
