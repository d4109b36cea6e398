"""For `consumer.explain()`: where fetching a partition stands, and which transaction holds its last stable offset.

The last stable offset is where the oldest open transaction begins. The batch at that offset, which read_uncommitted may
read, is therefore the first batch of that transaction: its header has the producer's id and the time of its first
record. One Fetch of one batch returns it on every broker since 0.11, to every client that may read the topic.
DescribeProducers, which came with 2.8, returns the time of a producer's last record and not of its first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import attrs

from kclient.fetch.request import LAST_VERSION_BY_NAME, fetch_request
from kclient.fetch.session import FINAL_EPOCH, INVALID_SESSION_ID, FetchRequestData, PartitionFetch
from kclient.generated.fetch_response import FetchResponse
from kclient.records.batch import read_batches
from kclient.types import IsolationLevel, TopicPartition

if TYPE_CHECKING:
    from kclient.network.cluster import Cluster

ONE_BATCH_BYTES: Final = 1  # a broker always returns the first batch whole


@attrs.frozen
class FetchStatus:
    """The node that a partition is fetched from, and what delays the next request. Times are seconds of the loop.

    `sent_at`: when the Fetch in flight with this partition was sent. `retry_at`: the end of a backoff after
    `last_error` (text, or an error code of the protocol). `backpressured_by`: another partition of the same node whose
    buffered records polls must return first. `buffer_full`: no memory is left for another request.
    """

    node_id: int | None
    is_preferred: bool = False
    sent_at: float | None = None
    retry_at: float | None = None
    last_error: str | int = ""
    backpressured_by: TopicPartition | None = None
    buffer_full: bool = False


@attrs.frozen
class OpenTransaction:
    """The producer of the oldest open transaction, and the time of its first record (ms since 1970, UTC)."""

    producer_id: int
    since_ms: int


async def find_open_transaction(cluster: Cluster, node_id: int, at: PartitionFetch) -> OpenTransaction | None:
    """Fetch the batch at `at.offset`, the last stable offset, from the leader. None: no transaction begins there.

    Raise what `cluster.request` raises.
    """
    request = fetch_request(
        FetchRequestData(INVALID_SESSION_ID, FINAL_EPOCH, (at,)),  # these two mean a Fetch without a session
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        max_bytes=ONE_BATCH_BYTES,
        partition_max_bytes=ONE_BATCH_BYTES,
    )
    max_version = LAST_VERSION_BY_NAME if at.topic_id is None else None
    _, response = await cluster.request_versioned(node_id, request, max_version=max_version)
    rows = [row for topic in cast(FetchResponse, response).responses for row in topic.partitions]
    if len(rows) != 1 or rows[0].error_code or not rows[0].records:
        return None
    first = next(read_batches(rows[0].records), None)
    if first is None or first.is_control or not first.is_transactional:
        return None
    return OpenTransaction(first.producer_id, first.base_timestamp)
