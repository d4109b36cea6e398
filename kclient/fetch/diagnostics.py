"""For `consumer.explain()`: where fetching a partition stands, and which transaction holds its last stable offset.

The last stable offset is where the oldest open transaction begins. The batch at that offset, which read_uncommitted may
read, is therefore the first batch of that transaction: its header has the producer's id and the time of its first
record. One Fetch of one batch returns it on every broker since 0.11, to every client that may read the topic.
DescribeProducers, which came with 2.8, returns the time of a producer's last record and not of its first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from kclient.fetch.request import max_version, partition_entry, topic_entry
from kclient.fetch.session import PartitionFetch
from kclient.generated.fetch_request import FetchRequest
from kclient.generated.fetch_response import FetchResponse
from kclient.records.batch import read_batches
from kclient.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster


@attrs.frozen
class FetchStatus:
    """Whom the partition is asked of, and what keeps it from being asked. Times are seconds of the loop.

    `asked_at`: a Fetch with it is in flight since then. `retry_at`: it is left alone until then, because of `trouble`
    (text, or the wire's error code). `drains_first`: another partition of the same node that polls must drain first.
    `no_room`: the buffer is full.
    """

    node_id: int | None
    is_preferred: bool = False
    asked_at: float | None = None
    retry_at: float | None = None
    trouble: str | int = ""
    drains_first: TopicPartition | None = None
    no_room: bool = False


WITHOUT_SESSION = -1
ONE_BATCH_BYTES = 1  # a broker always gives the first batch as a whole


@attrs.frozen
class OpenTransaction:
    """The producer of the oldest open transaction, and when it wrote the first record of it (ms since 1970, UTC)."""

    producer_id: int
    since_ms: int


async def find_open_transaction(
    cluster: Cluster, node_id: int, wanted: PartitionFetch
) -> OpenTransaction | None:
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
    return OpenTransaction(first.producer_id, first.base_timestamp)


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
