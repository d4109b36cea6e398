"""The publisher: numbered records into random partitions, straight into the leader's log, and into the ledger.

It needs no network, so no fault of the network keeps it from its rate; a partition without a leader gets nothing. Among
plain batches there are some with gaps and some without records, as a log cleaner leaves them.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kclient.embedded.partition import Partition
from kclient.embedded.releases import Release
from kclient.embedded.replication import append
from kclient.records.compression import Compression
from kclient.records.writer import NewRecord, build_batch
from kclient.types import TimestampType
from tests.simulation.ledger import VISIBLE, Row

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

ZSTD_SINCE: Final = Release.parse("2.1")


async def publish(stage: Stage) -> None:
    """Until the quiet phase begins; then every transaction is ended, if readers have to wait for that.

    Where they read what is not committed, transactions that are never ended must not keep them (F-43).
    """
    rng, scenario = stage.publisher_rng, stage.scenario
    transactions = stage.transactions
    while not stage.quiet:
        transactions.end_due()
        partition = rng.choice(stage.partitions() or [None])
        if partition is not None and stage.writable(partition):
            if scenario.transactions and rng.random() < 0.6:
                transactions.write(partition)
            else:
                write_some(stage, partition)
        await asyncio.sleep(rng.expovariate(scenario.records_per_second / 5))
    left = scenario.isolation == "read_committed"
    while left:
        left = transactions.end_all()
        await asyncio.sleep(0.5)


def write_some(stage: Stage, partition: Partition) -> None:
    """A batch of a producer without an id; one in ten has gaps, or nothing but an offset range."""
    rng = stage.publisher_rng
    count = rng.choice((1, 1, 2, 5, 20))
    records = new_records(stage, partition, count)
    gaps = rng.choice((1, 2, 7)) if rng.random() < 0.1 else 0
    if gaps:
        records = [one._replace(offset=at * gaps) for at, one in enumerate(records)]
    last = (count * gaps) if gaps else None
    write(stage, partition, records, build(stage, records, last_offset=last))
    if rng.random() < 0.03:
        append(stage.cluster.state, partition, build_batch([], last_offset=rng.choice((0, 3))))


def new_records(stage: Stage, partition: Partition, count: int) -> list[NewRecord]:
    """The next records of the run."""
    return [_record(stage, partition) for _ in range(count)]


def _record(stage: Stage, partition: Partition) -> NewRecord:
    """Its value holds its number, its partition and a checksum of both."""
    stage.published += 1
    text = f"{stage.published}:{partition.tp}".encode()
    padding = b"." * max(0, stage.scenario.record_bytes - len(text) - 9)
    rng = stage.publisher_rng
    key = rng.choice((None, b"", f"k{rng.randrange(10)}".encode()))
    headers = rng.choice(((), (("h", None),), (("h", b""), ("h", b"x"))))
    value = b"%s:%08x%s" % (text, zlib.crc32(text), padding)
    null = rng.random() <= 0.03
    return NewRecord(key, rng.choice((None, b"")) if null else value, stage.wall_ms(), headers)


def build(
    stage: Stage,
    records: Sequence[NewRecord],
    *,
    last_offset: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch in the scenario's codec; with a producer id it is transactional."""
    codec = stage.scenario.compression
    if codec == Compression.ZSTD and Release.parse(stage.scenario.release) < ZSTD_SINCE:
        codec = Compression.LZ4
    return build_batch(
        records,
        compression=codec,
        last_offset=last_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=producer_id >= 0,
    )


def write(
    stage: Stage, partition: Partition, records: Sequence[NewRecord], batch: bytes, state: str = VISIBLE
) -> list[Row]:
    """Append a batch of these records, the last that were made, and enter them."""
    stored = append(stage.cluster.state, partition, batch)
    by_log = partition.topic.log_append_time
    first = stage.published - len(records) + 1
    rows = [
        Row(
            number=first + index,
            tp=partition.tp,
            topic_id=partition.topic.topic_id,
            offset=stored.base_offset + (index if one.offset is None else one.offset),
            epoch=partition.leader_epoch,
            key=one.key,
            value=one.value,
            headers=tuple(one.headers),
            timestamp=stored.header.max_timestamp if by_log else one.timestamp,
            timestamp_type=TimestampType.LOG_APPEND_TIME if by_log else TimestampType.CREATE_TIME,
            state=state,
        )
        for index, one in enumerate(records)
    ]
    for row in rows:
        stage.ledger.enter(row)
    return rows
