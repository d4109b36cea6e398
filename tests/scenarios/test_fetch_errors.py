"""Error codes of a Fetch from which the client cannot recover: one error with partition and offset."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.errors import BrokerError, CorruptBatchError
from tests.scenarios.support import T0, T1, asked, consumer_of, play, read

OTHERS = {
    "UNSUPPORTED_COMPRESSION_TYPE": 76,
    "OFFSET_MOVED_TO_TIERED_STORAGE": 109,  # for followers only
    "INVALID_REQUEST": 42,
    "INVALID_RECORD": 87,
    "REQUEST_TIMED_OUT": 7,
}


@pytest.mark.spec("S2-35", "B.15.12", "B.10.17")
@pytest.mark.parametrize("name", OTHERS)
def test_an_unexpected_code_is_reported_once_with_its_place_and_moves_nothing(name: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
            cluster.produce("t", ["0", "1"])
            await consumer.assign([T0])
            consumer.seek(T0, 1)
            cluster.on("Fetch", lambda request, response: refused(response, OTHERS[name]), times=1)
            with pytest.raises(BrokerError) as caught:
                await read(consumer, 1)
            assert (caught.value.code, caught.value.name) == (OTHERS[name], name)
            assert "t-0 at offset 1" in caught.value.text
            assert await consumer.position(T0) == 1
            assert [record.offset for record in await read(consumer, 1)] == [1]
            assert not asked(cluster, "ListOffsets")

    play(scenario)


@pytest.mark.spec("S2-35", "B.15.12")
def test_a_log_that_the_broker_cannot_read_is_reported_with_the_offset_and_stops_no_other_partition() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 2}) as cluster, consumer_of(cluster) as consumer:
            cluster.produce("t", ["0"], partition=0)
            cluster.on("Fetch", lambda request, response: refused(response, 2))
            await consumer.assign([T0, T1])
            with pytest.raises(CorruptBatchError, match=r"t-0 at offset 0.*seek past offset 0"):
                await read(consumer, 1)
            cluster.produce("t", ["0"], partition=1)
            found = []
            while not found:
                try:
                    found = list(await consumer.poll(0.2))
                except CorruptBatchError:
                    continue
            assert [(record.partition, record.offset) for record in found] == [(1, 0)]
            assert await consumer.position(T0) == 0

    play(scenario)


def refused(response: Any, code: int) -> Any:
    """The response with this code for partition 0, if it speaks of it."""
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.partition_index == 0:
                partition.error_code, partition.records = code, None
    return response
