"""Scenario A-10: bytes that Java wrote lie in a broker's log, and a consumer reads what Java reads from them."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kclient.embedded import EmbeddedCluster
from kclient.embedded.log import StoredBatch
from kclient.errors import BrokerError
from kclient.types import OffsetAndMetadata, TopicPartition
from tests.records.support import golden_cases
from tests.scenarios.support import T0, asked, consumer_of, play, read
from tests.waiting import until

CASES = [case for case in golden_cases() if all(batch["valid"] for batch in case["batches"])]
TIMESTAMP_TYPES = {"NoTimestampType": -1, "CreateTime": 0, "LogAppendTime": 1}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def lay_down(cluster: EmbeddedCluster, partition: int, case: dict[str, Any]) -> None:
    """Make the bytes of a case the log of a partition."""
    place = cluster.state.topics["t"].partitions[partition]
    log = place.log
    place.leader_epoch = max(0, *(batch.get("partition_leader_epoch", 0) for batch in case["batches"]))
    data, at = bytes.fromhex(case["hex"]), 0
    log.start = log.end = case["batches"][0]["base_offset"]
    for batch in case["batches"]:
        log.keep(StoredBatch.of(data[at : at + batch["size_in_bytes"]], batch["base_offset"]))
        at += batch["size_in_bytes"]


def digest(data: bytes | None) -> str | None:
    return None if data is None else hashlib.sha256(data).hexdigest()


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def as_java_reads(case: dict[str, Any]) -> list[tuple[Any, ...]]:
    rows = []
    for batch in case["batches"]:
        epoch = batch.get("partition_leader_epoch", -1)
        for record in () if batch.get("control") else batch["records"]:
            value = record["value_sha256"] if "value_sha256" in record else digest(unhex(record["value"]))
            headers = [(name, unhex(data)) for name, data in record.get("headers", [])]
            metadata = record["offset"], record["timestamp"], TIMESTAMP_TYPES[batch["timestamp_type"]]
            rows.append((*metadata, unhex(record["key"]), value, headers, None if epoch < 0 else epoch))
    return rows


def as_we_read(record: Any) -> tuple[Any, ...]:
    metadata = record.offset, record.timestamp, record.timestamp_type
    return (*metadata, record.key, digest(record.value), list(record.headers), record.leader_epoch)


@pytest.mark.spec("A-10", "S2-21", "S2-22", "S2-28", "B.11.1", "B.11.4", "B.10.10", "D-50", "D-79")
@pytest.mark.parametrize("release", ["4.3", "3.9"])
def test_a10_what_java_wrote_is_read_as_java_reads_it(release: str) -> None:
    """Formats 0 to 2, every codec; the next fetch begins after the last batch, whatever it still holds."""
    partitions = [TopicPartition("t", number) for number in range(len(CASES))]
    assert {batch["magic"] for case in CASES for batch in case["batches"]} == {0, 1, 2}
    assert {batch["compression"] for case in CASES for batch in case["batches"]} == set(CODECS)

    async def scenario() -> None:
        async with EmbeddedCluster(1, release=release, topics={"t": len(CASES)}) as cluster:
            for number, case in enumerate(CASES):
                lay_down(cluster, number, case)
            ends = [case["batches"][-1]["next_offset"] for case in CASES]
            found: dict[int, list[Any]] = {number: [] for number in range(len(CASES))}
            async with consumer_of(cluster) as consumer:
                await consumer.assign(partitions)
                while [await consumer.position(tp) for tp in partitions] != ends:
                    for record in await consumer.poll(5.0):
                        found[record.partition].append(as_we_read(record))
                await until(lambda: next_fetches(cluster) == dict(enumerate(ends)))
            for number, case in enumerate(CASES):
                assert found[number] == as_java_reads(case), case["case"]

    play(scenario, 60)


def next_fetches(cluster: EmbeddedCluster) -> dict[int, int]:
    """The offset of each partition that was asked for last."""
    topics = [topic for one in asked(cluster, "Fetch") for topic in one.request.topics]
    return {part.partition: part.fetch_offset for topic in topics for part in topic.partitions}


@pytest.mark.spec("A-10", "S2-23", "B.11.2")
@pytest.mark.parametrize("keep", [1, 16, 60, 61, 90])
def test_a10_a_cut_batch_at_the_end_is_fetched_again(keep: int) -> None:
    def cut(request: Any, response: Any) -> Any:
        (topic,) = response.responses
        (partition,) = topic.partitions
        assert len(partition.records) > sizes[0] + keep
        partition.records = bytes(partition.records[: sizes[0] + keep])
        return response

    sizes: list[int] = []

    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster, consumer_of(cluster) as consumer:
            cluster.produce("t", ["0", "1"])
            cluster.produce("t", ["2" * 50, "3"])
            sizes.extend(len(stored.data) for stored in cluster.state.topics["t"].partitions[0].log.batches)
            cluster.on("Fetch", cut, times=1)
            await consumer.assign([T0])
            assert [record.offset for record in await read(consumer, 4)] == [0, 1, 2, 3]
            offsets = [
                part.fetch_offset for one in asked(cluster, "Fetch") for part in partitions_of(one.request)
            ]
            assert offsets[:2] == [0, 2]

    play(scenario)


def partitions_of(request: Any) -> list[Any]:
    return [partition for topic in request.topics for partition in topic.partitions]


@pytest.mark.spec("A-10", "S2-03")
@pytest.mark.parametrize("codec", CODECS)
def test_a10_a_record_larger_than_every_limit_is_delivered(codec: str) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(1, topics={"t": 1}) as cluster:
            large = bytes(range(256)) * 800
            cluster.produce("t", [b"before", large, b"behind"], codec=codec)
            cluster.produce("t", [large])
            limits = {"fetch_max_bytes": 100, "max_partition_fetch_bytes": 50, "fetch_min_bytes": 1}
            async with consumer_of(cluster, **limits) as consumer:
                await consumer.assign([T0])
                found = await read(consumer, 4)
                assert [record.value for record in found] == [b"before", large, b"behind", large]
            for one in asked(cluster, "Fetch"):
                assert one.request.max_bytes <= 100
                assert {part.partition_max_bytes for part in partitions_of(one.request)} <= {50}

    play(scenario)


@pytest.mark.spec("A-10", "S2-26", "D-32")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("release", ["4.3", "0.10.2"])
def test_a10_earlier_records_of_a_batch_are_skipped_after_a_restart(codec: str, release: str) -> None:
    """Of a batch of format 2, and of a wrapper of format 1 with relative offsets."""
    if (codec, release) == ("zstd", "0.10.2"):
        codec = "gzip"  # zstd came with format 2

    async def scenario() -> None:
        async with EmbeddedCluster(1, release=release, topics={"t": 1}) as cluster:
            cluster.produce("t", ["first"])
            cluster.produce("t", [str(number) for number in range(1, 9)], codec=codec)
            async with consumer_of(cluster, "t", group_id="g") as consumer:
                assert len(await read(consumer, 9)) == 9
                await consumer.commit({T0: OffsetAndMetadata(5)})
            async with consumer_of(cluster, "t", group_id="g") as consumer:
                assert [record.offset for record in await read(consumer, 4)] == [5, 6, 7, 8]

    play(scenario)


@pytest.mark.spec("A-10", "D-53", "B.15.12")
def test_a10_zstd_from_a_broker_that_speaks_no_version_for_it_is_a_typed_error() -> None:
    """A proxy, say, that holds Fetch back at version 9."""

    async def scenario() -> None:
        async with EmbeddedCluster(1, release="3.9") as cluster, consumer_of(cluster) as consumer:
            cluster.create_topic("t", 1, config={"compression.type": "zstd"})
            cluster.produce("t", ["0"], codec="zstd")
            cluster.on("ApiVersions", without_zstd)
            await consumer.assign([T0])
            with pytest.raises(
                BrokerError, match=r"UNSUPPORTED_COMPRESSION_TYPE.* t-0|t-0.*UNSUPPORTED_COMPRESSION"
            ):
                await read(consumer, 1)
            assert await consumer.position(T0) == 0
            cluster.lift()
            for connection in list(cluster.state.brokers[1].connections):
                connection.kill()
            assert [record.offset for record in await read(consumer, 1)] == [0]

    play(scenario)


def without_zstd(request: Any, response: Any) -> Any:
    for api in response.api_keys:
        if api.api_key == 1:
            api.max_version = 9
    return response
