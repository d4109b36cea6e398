"""What a query's progress tells of its sources: the offsets that are done, the logs that went back, the lag. Pure.

Spark keeps no metrics for sources in Python, but the offsets are there: `startOffset`, `endOffset`, `latestOffset` of
each source in `query.lastProgress` and in the events of a listener. Sources whose offsets are not Kafka's are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from kclient.spark.offsets import parse_offsets
from kclient.types import TopicPartition

Progress: TypeAlias = Mapping[str, Any]
Offsets: TypeAlias = dict[TopicPartition, int]


@attrs.frozen
class Behind:
    """How many offsets each partition of one source was behind when its batch was planned."""

    source: str
    partitions: Mapping[TopicPartition, int]

    @property
    def total(self) -> int:
        return sum(self.partitions.values())

    @property
    def min(self) -> int:
        return min(self.partitions.values(), default=0)

    @property
    def max(self) -> int:
        return max(self.partitions.values(), default=0)

    @property
    def avg(self) -> float:
        return self.total / len(self.partitions) if self.partitions else 0.0


def end_offsets(progress: Progress | None) -> Offsets:
    """The next offset of each partition of all sources; nothing before the first batch."""
    ends: Offsets = {}
    for source in _sources(progress):
        ends |= _offsets(source["endOffset"])
    return ends


def latest_offsets(progress: Progress) -> Offsets:
    """Where the logs of all sources ended when last looked; nothing for a batch that runs again after a restart."""
    return {tp: end for source in _sources(progress) for tp, end in _offsets(source["latestOffset"]).items()}


def gone_back(progress: Progress) -> list[TopicPartition]:
    """The partitions whose end is before their start: their logs were cut or made anew."""
    return [
        tp
        for source in _sources(progress)
        for start in [_offsets(source["startOffset"])]
        for tp, end in _offsets(source["endOffset"]).items()
        if end < start.get(tp, 0)
    ]


def behind(progress: Progress | None) -> list[Behind]:
    """The lag of each source of Kafka's: the ends that were seen last against what is done."""
    found: list[Behind] = []
    for source in _sources(progress):
        latest, done = _offsets(source["latestOffset"]), _offsets(source["endOffset"])
        if latest:
            lags = {tp: max(0, end - done.get(tp, 0)) for tp, end in latest.items()}
            found.append(Behind(str(source["description"]), lags))
    return found


def metadata_of(progress: Progress) -> str:
    """What is stored beside each committed offset: which query, which batch."""
    return json.dumps({"query": str(progress["id"]), "batch": progress["batchId"]})


def _sources(progress: Progress | None) -> Iterator[Mapping[str, Any]]:
    yield from () if progress is None else progress["sources"]


def _offsets(told: Any) -> Offsets:
    """Spark tells offsets as text, or as an object where the progress itself is JSON.

    `query.lastProgress` of pyspark 4.0 and 4.1 has them as Python writes a dict; no name of a topic holds a quote.
    """
    try:
        return parse_offsets(told.replace("'", '"') if isinstance(told, str) else json.dumps(told))
    except ValueError:
        return {}
