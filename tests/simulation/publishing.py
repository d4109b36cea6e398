"""The publisher: numbered records into random partitions, straight into the leader's log, and into the ledger.

It needs no network, so no fault of the network keeps it from its rate; a partition without a leader gets nothing.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kclient.embedded.topics import Partition
from kclient.records.writer import NewRecord
from tests.simulation.application import TOPIC
from tests.simulation.ledger import Row

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


async def publish(stage: Stage) -> None:
    """Until the quiet phase begins."""
    rng, scenario = stage.publisher_rng, stage.scenario
    while not stage.quiet:
        partition = rng.choice(stage.partitions())
        count = rng.choice((1, 1, 2, 5, 20))
        if stage.writable(partition):
            append(stage, partition, [record(stage, partition) for _ in range(count)])
        await asyncio.sleep(rng.expovariate(scenario.records_per_second / 5))


def record(stage: Stage, partition: Partition) -> NewRecord:
    """The next record: its value holds its number, its partition and a checksum of both."""
    stage.published += 1
    text = f"{stage.published}:{partition.tp}".encode()
    padding = b"." * max(0, stage.scenario.record_bytes - len(text) - 9)
    rng = stage.publisher_rng
    key = rng.choice((None, b"", f"k{rng.randrange(10)}".encode()))
    headers = rng.choice(((), (("h", None),), (("h", b""), ("h", b"x"))))
    value = b"%s:%08x%s" % (text, zlib.crc32(text), padding)
    return NewRecord(key, value if rng.random() > 0.03 else None, stage.wall_ms(), headers)


def append(stage: Stage, partition: Partition, records: Sequence[NewRecord]) -> None:
    """Append records as one call and enter them."""
    codec = CODECS[stage.scenario.compression]
    placed = stage.cluster.produce(TOPIC, records, partition=partition.number, codec=codec)
    first = stage.published - len(records) + 1
    for index, (one, (_, offset)) in enumerate(zip(records, placed, strict=True)):
        stage.ledger.enter(
            Row(
                number=first + index,
                tp=partition.tp,
                topic_id=partition.topic.topic_id,
                offset=offset,
                epoch=partition.leader_epoch,
                key=one.key,
                value=one.value,
                headers=tuple(one.headers),
                timestamp=one.timestamp,
            )
        )
