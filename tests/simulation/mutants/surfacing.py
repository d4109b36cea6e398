"""How a bug delivers records that may no longer be delivered: past every check of the client."""

from __future__ import annotations

from typing import Any

from kclient.consumer.poll import RecordCollector
from kclient.fetch.buffer import CompletedFetch, ResponseMemory, end_of
from kclient.records.records import Records
from kclient.simulation.process import current_name
from tests.simulation.mutants.table import Patch


class Late(dict[str, list[CompletedFetch]]):
    """What each application's next poll will deliver, by host."""

    def extend(self, fetches: list[CompletedFetch]) -> None:
        """Of the application that runs now."""
        self.setdefault(current_name(), []).extend(fetches)


def fetched(asked: Any, partition: Any, frame: ResponseMemory) -> CompletedFetch:
    """What a response brought for a partition, as the client would have buffered it."""
    data = memoryview(partition.records)
    return CompletedFetch(
        asked.tp,
        asked.position_version,
        asked.offset,
        frame,
        data,
        end_of(data),
        partition.aborted_transactions,
    )


def surface(patch: Patch) -> Late:
    """Let polls deliver first what is put into the result."""
    late = Late()

    async def collect(self: RecordCollector, max_records: int) -> Any:
        for fetch in late.pop(current_name(), ()):
            chunk = fetch.take(max_records, self._config)
            if len(chunk):
                return Records([chunk])
        return await before(self, max_records)

    before = patch.put(RecordCollector, "collect", collect)
    return late
