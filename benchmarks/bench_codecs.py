"""Decoding and encoding of common messages, against kafka-python 3 in the same run. Prints ratios, not machines.

    python -m benchmarks.bench_codecs

Both sides get the same bytes and the same objects. CPU time is measured and rounds alternate, so that a busy machine
slows both; a ratio is the median over the rounds of theirs / ours.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import kafka.protocol.consumer as peer_consumer
import kafka.protocol.metadata as peer_metadata

from kclient.generated import (
    fetch_request,
    fetch_response,
    list_offsets_response,
    metadata_response,
    offset_commit_request,
    offset_fetch_response,
)
from kclient.protocol import decode, encode
from kclient.protocol.message import Message

ROUNDS = 41
SECONDS_A_ROUND = 0.01
PARTITIONS = 100
GOALS = "goal: geometric mean of decode >= 1.05, none below 0.95; of encode >= 4"


def messages() -> list[tuple[Message, int]]:
    """FetchResponse 12 with 100 partitions, and five others that a consumer of as many partitions meets."""
    numbers = range(PARTITIONS)
    fetched = [
        fetch_response.PartitionData(
            partition_index=n,
            high_watermark=10_000 + n,
            last_stable_offset=10_000 + n,
            log_start_offset=0,
            aborted_transactions=None,
            records=b"r" * 256,
        )
        for n in numbers
    ]
    asked = [
        fetch_request.FetchPartition(partition=n, fetch_offset=1000 + n, partition_max_bytes=1 << 20)
        for n in numbers
    ]
    known = [
        metadata_response.MetadataResponsePartition(
            partition_index=n, leader_id=n % 3, leader_epoch=7, replica_nodes=[0, 1, 2], isr_nodes=[0, 1, 2]
        )
        for n in numbers
    ]
    brokers = [
        metadata_response.MetadataResponseBroker(node_id=n, host=f"broker-{n}", port=9092) for n in range(3)
    ]
    committing = [
        offset_commit_request.OffsetCommitRequestPartition(
            partition_index=n, committed_offset=n, committed_metadata=""
        )
        for n in numbers
    ]
    committed = [
        offset_fetch_response.OffsetFetchResponsePartition(partition_index=n, committed_offset=n, metadata="")
        for n in numbers
    ]
    listed = [
        list_offsets_response.ListOffsetsPartitionResponse(
            partition_index=n, timestamp=-1, offset=n, leader_epoch=7
        )
        for n in numbers
    ]
    return [
        (
            fetch_response.FetchResponse(
                session_id=5,
                responses=[fetch_response.FetchableTopicResponse(topic="orders", partitions=fetched)],
            ),
            12,
        ),
        (fetch_request.FetchRequest(topics=[fetch_request.FetchTopic(topic="orders", partitions=asked)]), 12),
        (
            metadata_response.MetadataResponse(
                brokers=brokers,
                cluster_id="c",
                controller_id=1,
                topics=[metadata_response.MetadataResponseTopic(name="orders", partitions=known)],
            ),
            9,
        ),
        (
            offset_commit_request.OffsetCommitRequest(
                group_id="g",
                member_id="m",
                generation_id_or_member_epoch=3,
                topics=[offset_commit_request.OffsetCommitRequestTopic(name="orders", partitions=committing)],
            ),
            8,
        ),
        (
            offset_fetch_response.OffsetFetchResponse(
                topics=[offset_fetch_response.OffsetFetchResponseTopic(name="orders", partitions=committed)]
            ),
            6,
        ),
        (
            list_offsets_response.ListOffsetsResponse(
                topics=[list_offsets_response.ListOffsetsTopicResponse(name="orders", partitions=listed)]
            ),
            6,
        ),
    ]


def peer_class(name: str) -> Any:
    return getattr(peer_consumer, name, None) or getattr(peer_metadata, name)


def seconds_a_call(call: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start) / calls


def ratio(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float, float]:
    """Median microseconds of ours and of theirs, and the median over the rounds of theirs / ours."""
    calls = [max(1, int(SECONDS_A_ROUND / seconds_a_call(each, 5))) for each in (ours, theirs)]
    pairs = [(seconds_a_call(ours, calls[0]), seconds_a_call(theirs, calls[1])) for _ in range(ROUNDS)]
    medians = [statistics.median(side) * 1e6 for side in zip(*pairs, strict=True)]
    return medians[0], medians[1], statistics.median(theirs / ours for ours, theirs in pairs)


def compare(message: Message, version: int) -> tuple[float, float]:
    """Measure one message, print its row, and return the ratios of decoding and encoding."""
    name = message.NAME
    data = encode(message, version)
    ours = decode(name, version, data)
    peer = peer_class(name)
    theirs = peer.decode(data, version=version)
    theirs._header = None  # their decoder leaves it out, their encoder reads it
    if bytes(theirs.encode(version=version)) != data:
        raise SystemExit(f"{name} {version}: the two clients write different bytes")
    first = ratio(lambda: decode(name, version, data), lambda: peer.decode(data, version=version))
    second = ratio(lambda: encode(ours, version), lambda: theirs.encode(version=version))
    row = f"{name + ' ' + str(version):28}{first[0]:10.1f}{first[1]:9.1f}{first[2]:7.2f}"
    print(row + f"{second[0]:12.1f}{second[1]:9.1f}{second[2]:7.2f}", flush=True)
    return first[2], second[2]


def main() -> None:
    print(f"{'':28}{'decode us':>10}{'peer':>9}{'ratio':>7}{'encode us':>12}{'peer':>9}{'ratio':>7}")
    ratios = [compare(message, version) for message, version in messages()]
    decoded, encoded = (statistics.geometric_mean(side) for side in zip(*ratios, strict=True))
    print(f"{'geometric mean':47}{decoded:7.2f}{encoded:28.2f}")
    print(GOALS)


if __name__ == "__main__":
    main()
