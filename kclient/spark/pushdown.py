"""The filters of a batch that save reading: which of Spark's are taken, and what they leave of the ranges. Pure.

    topic, partition     = and IN             taken
    offset               = < <= > >=          taken
    timestamp            > >=                 taken as a hint: records before the first one that is new enough are not
                                              read, and Spark filters the rest, for log order is not time order
    anything else                             left to Spark

Filters are known by the names of their classes, so that this needs no pyspark (which has them from 4.1 on).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs

from kclient.spark.plan import OffsetRange
from kclient.types import TopicPartition

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.frozen
class Narrowing:
    """What is read of a batch's ranges; None where everything is. Offsets from `first` to before `behind`."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first: int = 0
    behind: int | None = None
    since_ms: int | None = None

    def of(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """What is left of the ranges, the empty ones dropped."""
        kept = (self._cut(one) for one in ranges if self._chosen(one.tp))
        return [one for one in kept if one.size]

    def _chosen(self, tp: TopicPartition) -> bool:
        return (self.topics is None or tp.topic in self.topics) and (
            self.partitions is None or tp.partition in self.partitions
        )

    def _cut(self, one: OffsetRange) -> OffsetRange:
        end = one.end if self.behind is None else min(one.end, self.behind)
        return attrs.evolve(one, start=max(one.start, self.first), end=end)


EVERYTHING: Final = Narrowing()

Step: TypeAlias = Callable[[Narrowing, Any], Narrowing]


def take(filters: Iterable[Any]) -> tuple[Narrowing, list[Any]]:
    """What the filters narrow a batch to, and those that Spark must still apply, in their order."""
    narrowing, left = EVERYTHING, []
    for one in filters:
        step = STEPS.get((getattr(one, "attribute", ()), type(one).__name__))
        try:
            narrowing = narrowing if step is None else step(narrowing, one.value)
        except TypeError:  # a value that the column never holds, which Spark compares as it sees fit
            step = None
        if step is None or one.attribute == ("timestamp",):
            left.append(one)
    return narrowing, left


def _topics(narrowing: Narrowing, values: Iterable[Any]) -> Narrowing:
    wanted = frozenset(_checked(value, str) for value in values if value is not None)
    return attrs.evolve(narrowing, topics=wanted if narrowing.topics is None else wanted & narrowing.topics)


def _partitions(narrowing: Narrowing, values: Iterable[Any]) -> Narrowing:
    wanted = frozenset(_checked(value, int) for value in values if value is not None)
    both = wanted if narrowing.partitions is None else wanted & narrowing.partitions
    return attrs.evolve(narrowing, partitions=both)


def _from(narrowing: Narrowing, offset: int) -> Narrowing:
    return attrs.evolve(narrowing, first=max(narrowing.first, offset))


def _before(narrowing: Narrowing, offset: int) -> Narrowing:
    return attrs.evolve(
        narrowing, behind=min(offset, offset if narrowing.behind is None else narrowing.behind)
    )


def _since(narrowing: Narrowing, time: Any) -> Narrowing:
    """The millisecond of the time; one of another kind is no hint, nor one that records without a time pass."""
    if not isinstance(time, datetime) or time.tzinfo is None or time <= EPOCH:
        return narrowing
    milliseconds = (time - EPOCH) // timedelta(milliseconds=1)
    return attrs.evolve(narrowing, since_ms=max(milliseconds, narrowing.since_ms or 0))


def _checked(value: Any, kind: type) -> Any:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"not {kind.__name__}")
    return value


STEPS: Final[Mapping[tuple[tuple[str, ...], str], Step]] = {
    (("topic",), "EqualTo"): lambda narrowing, value: _topics(narrowing, [value]),
    (("topic",), "In"): _topics,
    (("partition",), "EqualTo"): lambda narrowing, value: _partitions(narrowing, [value]),
    (("partition",), "In"): _partitions,
    (("offset",), "EqualTo"): lambda narrowing, value: _before(
        _from(narrowing, _checked(value, int)), value + 1
    ),
    (("offset",), "LessThan"): lambda narrowing, value: _before(narrowing, _checked(value, int)),
    (("offset",), "LessThanOrEqual"): lambda narrowing, value: _before(narrowing, _checked(value, int) + 1),
    (("offset",), "GreaterThan"): lambda narrowing, value: _from(narrowing, _checked(value, int) + 1),
    (("offset",), "GreaterThanOrEqual"): lambda narrowing, value: _from(narrowing, _checked(value, int)),
    (("timestamp",), "GreaterThan"): _since,
    (("timestamp",), "GreaterThanOrEqual"): _since,
}
"""Column and filter → how it narrows."""
