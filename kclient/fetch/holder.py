"""Who holds the last stable offset of a partition: read off the batch that lies there.

The last stable offset is where the oldest open transaction begins, so the batch at that offset, which read_uncommitted
may see, is that transaction's first: its header has the producer's id and the time of its first record. One Fetch of
one batch tells that on every broker since 0.11, to everybody who may read. DescribeProducers, which came with 2.8,
tells the last time of a producer and not the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from kclient.fetch.request import PartitionFetch, max_version, partition_entry, topic_entry
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.fetch_response import FetchResponse
from kclient.records.batch import read_batches
from kclient.types import IsolationLevel

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

WITHOUT_SESSION = -1
ONE_BATCH_BYTES = 1  # a broker always gives the first batch as a whole


@attrs.frozen
class Holder:
    """The producer of the oldest open transaction, and when it wrote the first record of it (ms since 1970, UTC)."""

    producer_id: int
    since_ms: int


async def find_holder(cluster: Cluster, node_id: int, wanted: PartitionFetch) -> Holder | None:
    """Ask the leader for the batch at `wanted.offset`, the last stable offset. None: no transaction begins there.

    Raises what `cluster.request` raises.
    """
    _, answer = await cluster.request_versioned(node_id, _request(wanted), max_version=max_version([wanted]))
    rows = [row for topic in cast(FetchResponse, answer).responses for row in topic.partitions]
    if len(rows) != 1 or rows[0].error_code or not rows[0].records:
        return None
    first = next(read_batches(rows[0].records), None)
    if first is None or first.is_control or not first.is_transactional:
        return None
    return Holder(first.producer_id, first.base_timestamp)


def _request(wanted: PartitionFetch) -> FetchRequest:
    topic = topic_entry(wanted)
    topic.partitions.append(partition_entry(wanted, ONE_BATCH_BYTES))
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=ONE_BATCH_BYTES,
        isolation_level=int(IsolationLevel.READ_UNCOMMITTED),
        session_id=0,
        session_epoch=WITHOUT_SESSION,
        topics=[topic],
    )
