"""What a run has seen so far, and how that moves the state on. Pure.

A commit's record is looked for after the commit is kept, often in a later run: somebody who has read all commits an
offset that no record has yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import attrs

from kclient.spark.jobs.offsets_history.rows import Row
from kclient.spark.jobs.offsets_history.store import State
from kclient.spark.plan import OffsetRange
from kclient.types import TopicPartition


@attrs.define
class Seen:
    """Rows by table, records, groups, and of each group the newest commits: an offset, or None for a removal."""

    rows: Counter[str] = attrs.Factory(Counter)
    records: int = 0
    groups: set[str] = attrs.Factory(set)
    latest: dict[tuple[str, TopicPartition], int | None] = attrs.Factory(dict)

    def note(self, table: str, row: Row) -> None:
        """A row of a record."""
        self.rows[table] += 1
        if "group" in row:
            self.groups.add(row["group"])
        if table == "commits":
            tp = TopicPartition(row["topic"], row["partition"])
            self.latest[row["group"], tp] = row.get("offset")

    def behind(self, state: State, wanted: OffsetRange) -> State:
        """The state when the files of a range are there."""
        waiting = dict(state.waiting)
        for (_, tp), offset in self.latest.items():
            if offset is not None:
                waiting[tp] = waiting.get(tp, frozenset()) | {offset}
        return attrs.evolve(
            state,
            offsets={**state.offsets, wanted.tp: wanted.end},
            committed=state.committed | {tp for _, tp in self.latest},
            waiting=waiting,
        )


def still_waiting(
    state: State, there: Collection[TopicPartition], found: Mapping[tuple[TopicPartition, int], object]
) -> State:
    """The state without what was found, and without partitions that are gone."""
    waiting = {
        tp: left
        for tp, offsets in state.waiting.items()
        if tp in there and (left := frozenset(offset for offset in offsets if (tp, offset) not in found))
    }
    return attrs.evolve(state, waiting=waiting)
