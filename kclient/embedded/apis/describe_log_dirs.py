"""DescribeLogDirs (KIP-113): the bytes of the replicas of this broker, which has one directory for all of them.

Sizes are those of the batches, as a real broker counts its segments without their indexes. How large the disk is stays
unknown: nothing here is on one.
"""

from __future__ import annotations

from kclient.embedded.api_error import ApiError
from kclient.embedded.auth import CLUSTER
from kclient.embedded.partition import Partition
from kclient.embedded.request_context import RequestContext
from kclient.generated.describe_log_dirs_request import DescribeLogDirsRequest
from kclient.generated.describe_log_dirs_response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kclient.protocol.errors import CLUSTER_AUTHORIZATION_FAILED


async def handle(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """Every wanted replica that is here; what is unknown or elsewhere is left out."""
    if not context.allowed("DESCRIBE", CLUSTER):
        raise ApiError(CLUSTER_AUTHORIZATION_FAILED)
    wanted = (
        None
        if request.topics is None
        else {(topic.topic, number) for topic in request.topics for number in topic.partitions}
    )
    node = context.broker.node_id
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    for partition in context.state.partitions():
        name, number = partition.tp
        if (
            node in partition.replicas
            and node not in partition.offline
            and (wanted is None or (name, number) in wanted)
        ):
            topics.setdefault(name, []).append(_described(partition, node))
    rows = [DescribeLogDirsTopic(name=name, partitions=found) for name, found in topics.items()]
    return DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir=f"/embedded/{node}", topics=rows)])


def error_response(
    context: RequestContext, request: DescribeLogDirsRequest, error: ApiError
) -> DescribeLogDirsResponse:
    """Return the error code at the top level, which versions before 3 lack: there nothing is listed."""
    return DescribeLogDirsResponse(error_code=error.code)


def _described(partition: Partition, node: int) -> DescribeLogDirsPartition:
    end = partition.end_of(node)
    return DescribeLogDirsPartition(
        partition_index=partition.number,
        partition_size=partition.log.size_bytes(end),
        offset_lag=max(0, partition.high_watermark - end),
    )
