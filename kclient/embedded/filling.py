"""The records of one row of a Fetch answer: as many bytes as it may have, in the form that the client knows.

Nothing is copied but to put several batches behind one another. Bytes are cut off at the limit, as Kafka does; the
client ignores a batch that is not whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from kclient.embedded.call import Call
from kclient.embedded.down_conversion import converted, newest_magic
from kclient.embedded.log import Stored
from kclient.embedded.refusal import Refused
from kclient.embedded.releases import Release
from kclient.embedded.sessions import Wanted
from kclient.embedded.topics import Partition
from kclient.generated.fetch_response import AbortedTransaction, PartitionData
from kclient.protocol.errors import UNSUPPORTED_COMPRESSION_TYPE

ZSTD_FOR_ALL_SINCE: Final = Release.parse("4.0")
INDEX_INTERVAL_BYTES: Final = 4096


@attrs.define
class Budget:
    """What is left of a request's MaxBytes. Before Fetch v3 it binds the first batch too."""

    bytes_left: int
    hard: bool
    first: bool = True

    def spend(self, count: int) -> None:
        """So much is answered."""
        self.bytes_left = max(0, self.bytes_left - count)
        self.first = self.first and count == 0


def fill(
    call: Call, partition: Partition, wanted: Wanted, row: PartitionData, below: int, budget: Budget
) -> None:
    """Put in what there is below an offset, within the budget, with the aborted transactions of it. Raises Refused."""
    limit = min(wanted.asked.partition_max_bytes, budget.bytes_left)
    batches = partition.log.read(wanted.asked.fetch_offset, below, limit)
    if not batches:
        return
    first = len(batches[0].data)
    if first > limit and not budget.hard:
        if not budget.first:
            return
        batches, limit = batches[:1], first
    _check_codec(call, partition)
    data = _cut(batches, max(0, limit))
    magic = newest_magic(call.version)
    if any(stored.header.magic > magic for stored in batches):
        data = converted(batches, magic, wanted.asked.fetch_offset, len(data))
    row.records = data
    budget.spend(len(data))
    if row.aborted_transactions is not None:
        found = partition.log.producers.aborted_in(
            wanted.asked.fetch_offset, _indexed_end(partition, batches)
        )
        row.aborted_transactions = [
            AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in found
        ]


def _indexed_end(partition: Partition, batches: Sequence[Stored]) -> int:
    """Up to where aborted transactions are told: to the next entry of Kafka's index, which is beyond what was read."""
    size = 0
    for stored in partition.log.from_offset(batches[-1].last_offset + 1):
        if size > INDEX_INTERVAL_BYTES:
            return stored.base_offset
        size += len(stored.data)
    return partition.log.end


def _check_codec(call: Call, partition: Partition) -> None:
    """Brokers before 4.0 keep topics that are zstd by their settings from clients that are older than it."""
    zstd = call.version < 10 and partition.topic.config.get("compression.type") == "zstd"
    if zstd and call.state.release < ZSTD_FOR_ALL_SINCE:
        raise Refused(UNSUPPORTED_COMPRESSION_TYPE)


def _cut(batches: Sequence[Stored], limit: int) -> bytes | memoryview:
    data = batches[0].data if len(batches) == 1 else b"".join([stored.data for stored in batches])
    return data if len(data) <= limit else memoryview(data)[:limit]
